/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/daemon/moving/folder_use.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/log.h"
#include "common/storage/storage.h"

cadre_status folder_use(const char *folder, bool exclusive, int *ret_fd, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *path = storage_join(folder, "in-use");
    *ret_fd = -1;
    if (path == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a path");
    }
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        return cadre_error_errno(error, errno, "cannot open the lock file %s", path);
    }
    if (flock(fd, (exclusive ? LOCK_EX : LOCK_SH) | LOCK_NB) == 0) {
        *ret_fd = fd;
        return CADRE_OK;
    }
    int why = errno;
    close(fd);
    if (why != EWOULDBLOCK) {
        log_event(LOG_LEVEL_WARNING, "contents",
            "the file system of the contents has no locks: whether others use it is not known",
            LOG_STR("path", path), LOG_STR("reason", strerror(why)));
        return CADRE_OK;
    }
    return exclusive
               ? cadre_error_set(error, CADRE_FAILED_PRECONDITION,
                     "a coordinator is at work on %s: stop all that have it", folder)
               : cadre_error_set(error, CADRE_FAILED_PRECONDITION,
                     "the contents in %s are being copied: start when that has ended", folder);
}
