/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/local/folders.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/base/files.h"

/* False: it could not be made (errno). */
static bool make_runtime(struct local_folders *folders, const char *base)
{
    size_t room = sizeof folders->runtime;
    int length = base != NULL && base[0] == '/'
                     ? snprintf(folders->runtime, room, "%s/cadre-XXXXXX", base)
                     : -1;
    if (length < 0 || (size_t)length >= room || mkdtemp(folders->runtime) == NULL) {
        folders->runtime[0] = '\0';
        return false;
    }
    return true;
}

static cadre_status make_output(
    struct local_folders *folders, const char *output, struct cadre_error *error)
{
    int length = output[0] == '/' ? asprintf(&folders->output, "%s", output)
                                  : asprintf(&folders->output, "%s/%s", folders->working, output);
    if (length < 0) {
        folders->output = NULL;
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for the path of folder %s", output);
    }
    return folder_make_durable(folders->output, 0755, error);
}

cadre_status local_folders_open(
    struct local_folders *folders, const char *output, struct cadre_error *error)
{
    folders->working = getcwd(NULL, 0);
    if (folders->working == NULL) {
        return cadre_error_errno(error, errno, "cannot find the path of the working folder");
    }
    if (output != NULL) {
        CADRE_TRY(make_output(folders, output, error));
    }
    /* XDG_RUNTIME_DIR of another user's session does not stop it: /tmp is tried next. */
    if (!make_runtime(folders, getenv("XDG_RUNTIME_DIR")) && !make_runtime(folders, "/tmp")) {
        return cadre_error_errno(error, errno, "cannot make a folder for sockets in /tmp");
    }
    return CADRE_OK;
}

void local_folders_close(struct local_folders *folders)
{
    if (folders->runtime[0] != '\0') {
        (void)tree_remove(folders->runtime, NULL);
    }
    free(folders->working);
    free(folders->output);
    *folders = (struct local_folders){0};
}
