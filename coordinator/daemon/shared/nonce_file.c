/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/daemon/shared/nonce_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/files.h"

#define TEXT_BYTES 64

static char *path_of(const char *folder, const char *name)
{
    char *path = NULL;
    return asprintf(&path, "%s/%s", folder, name) >= 0 ? path : NULL;
}

static cadre_status no_memory(struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a path");
}

cadre_status nonce_file_write(
    const char *folder, const char *name, struct log_nonce nonce, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *path = path_of(folder, name);
    char text[TEXT_BYTES];
    int length =
        snprintf(text, sizeof text, "%016" PRIx64 " %016" PRIx64 "\n", nonce.high, nonce.low);
    return path != NULL ? file_write_atomic(path, text, (size_t)length, 0600, error)
                        : no_memory(error);
}

/* A file of another name is written, and gets the name that counts only if no file has it. */
cadre_status nonce_file_write_once(
    const char *folder, const char *name, struct log_nonce nonce, struct cadre_error *error)
{
    char own_name[TEXT_BYTES];
    snprintf(own_name, sizeof own_name, "%s.%d.%016" PRIx64, name, (int)getpid(), nonce.low);
    CADRE_FREE_AT_EXIT char *own = path_of(folder, own_name);
    CADRE_FREE_AT_EXIT char *path = path_of(folder, name);
    if (own == NULL || path == NULL) {
        return no_memory(error);
    }
    CADRE_TRY(nonce_file_write(folder, own_name, nonce, error));
    bool made = link(own, path) == 0;
    int why = errno;
    nonce_file_remove(folder, own_name);
    if (!made && why != EEXIST) {
        return cadre_error_errno(error, why, "cannot make %s", path);
    }
    return folder_sync(folder, error);
}

cadre_status nonce_file_read(
    const char *folder, const char *name, struct log_nonce *ret_nonce, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *path = path_of(folder, name);
    CADRE_FREE_AT_EXIT char *text = NULL;
    size_t size = 0;
    *ret_nonce = (struct log_nonce){0};
    if (path == NULL) {
        return no_memory(error);
    }
    if (access(path, F_OK) != 0) {
        return errno == ENOENT ? CADRE_OK
                               : cadre_error_errno(error, errno, "cannot look for %s", path);
    }
    CADRE_TRY(file_read(path, TEXT_BYTES, &text, &size, error));
    struct log_nonce nonce;
    if (sscanf(text, "%16" SCNx64 " %16" SCNx64, &nonce.high, &nonce.low) != 2 ||
        log_nonce_equal(nonce, (struct log_nonce){0})) {
        return cadre_error_set(error, CADRE_DATA_LOSS,
            "%s does not hold two numbers of 16 hexadecimal digits: put that file back, or remove "
            "it",
            path);
    }
    *ret_nonce = nonce;
    return CADRE_OK;
}

void nonce_file_remove(const char *folder, const char *name)
{
    CADRE_FREE_AT_EXIT char *path = path_of(folder, name);
    if (path != NULL) {
        (void)unlink(path);
    }
}
