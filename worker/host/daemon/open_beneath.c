/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/host/daemon/task_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/model/limits.h"

/* The descriptor of the last part of `name`, or -1 and errno. */
static int open_beneath_walk(int fd, const char *name)
{
    char part[LIMIT_FILE_NAME_BYTES];
    for (const char *at = name; fd >= 0;) {
        size_t length = strcspn(at, "/");
        bool last = at[length] == '\0';
        snprintf(part, sizeof part, "%.*s", (int)length, at);
        int next = openat(
            fd, part, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | (last ? 0 : O_DIRECTORY));
        int errnum = errno;
        close(fd);
        errno = errnum;
        fd = next;
        at += length + 1;
        if (last) {
            break;
        }
    }
    return fd;
}

cadre_status open_beneath(const char *folder, const char *name, int *ret_fd,
    struct stat *ret_status, struct cadre_error *error)
{
    int fd = open_beneath_walk(open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), name);
    if (fd < 0 || fstat(fd, ret_status) != 0 || !S_ISREG(ret_status->st_mode)) {
        int errnum = fd < 0 ? errno : EINVAL;
        if (fd >= 0) {
            close(fd);
        }
        return cadre_error_errno(error, errnum, "cannot read output file %s", name);
    }
    *ret_fd = fd;
    return CADRE_OK;
}
