/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/local/folders.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/near_miss.h"

static cadre_status program_path_check(
    const char *program, const char *path, char **ret_path, struct cadre_error *error)
{
    struct stat status;
    if (stat(path, &status) != 0) {
        int number = errno;
        char near[NEAR_MISS_PATH_BYTES];
        return error != NULL && number == ENOENT && near_miss_file(path, true, near)
                   ? cadre_error_set(error, CADRE_NOT_FOUND,
                         "cannot start %s: there is no such file; did you mean %s?", program, near)
                   : cadre_error_errno(error, number, "cannot start %s", program);
    }
    if (!S_ISREG(status.st_mode)) {
        return cadre_error_set(
            error, CADRE_INVALID_ARGUMENT, "cannot start %s: it is no regular file", program);
    }
    if (access(path, X_OK) != 0) {
        return cadre_error_set(error, CADRE_PERMISSION_DENIED,
            "cannot start %s: it is not executable (try chmod +x)", program);
    }
    *ret_path = realpath(path, NULL);
    if (*ret_path == NULL) {
        return cadre_error_errno(error, errno, "cannot start %s", program);
    }
    return CADRE_OK;
}

cadre_status program_path(const char *program, char **ret_path, struct cadre_error *error)
{
    if (strchr(program, '/') != NULL) {
        return program_path_check(program, program, ret_path, error);
    }
    const char *path = getenv("PATH");
    CADRE_FREE_AT_EXIT char *list = strdup(path != NULL ? path : "/usr/local/bin:/usr/bin:/bin");
    if (list == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory to look for %s", program);
    }
    char *rest = list;
    for (char *folder = strsep(&rest, ":"); folder != NULL; folder = strsep(&rest, ":")) {
        CADRE_FREE_AT_EXIT char *candidate = NULL;
        if (asprintf(&candidate, "%s/%s", folder[0] != '\0' ? folder : ".", program) < 0) {
            candidate = NULL;
            continue;
        }
        if (program_path_check(program, candidate, ret_path, NULL) == CADRE_OK) {
            return CADRE_OK;
        }
    }
    char near[NEAR_MISS_PATH_BYTES];
    bool found = near_miss_file(program, true, near);
    return cadre_error_set(error, CADRE_NOT_FOUND, "cannot start %s: no such program in PATH%s%s%s",
        program, found ? "; did you mean " : " (one of this folder is written ./NAME)",
        found ? near : "", found ? "?" : "");
}
