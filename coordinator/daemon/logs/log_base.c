/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/daemon/logs/log_base.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/fault.h"
#include "common/base/files.h"

#define BASE_TEXT_BYTES 64

int log_base_open_file(const char *path)
{
    if (fault_point("logs.open")) {
        errno = EIO;
        return -1;
    }
    return file_open_made(path);
}

static char *path_of_base(const char *log)
{
    char *path = NULL;
    if (asprintf(&path, "%s.base", log) < 0) {
        errno = ENOMEM;
        return NULL;
    }
    return path;
}

bool log_base_read(const char *log, uint64_t *ret_incarnation, uint64_t *ret_base)
{
    char text[BASE_TEXT_BYTES] = {0};
    CADRE_FREE_AT_EXIT char *path = path_of_base(log);
    CADRE_CLOSE_AT_EXIT int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
    ssize_t got = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    return got > 0 && sscanf(text, "%" SCNu64 " %" SCNu64, ret_incarnation, ret_base) == 2;
}

bool log_base_write(const char *log, uint64_t incarnation, uint64_t base)
{
    CADRE_FREE_AT_EXIT char *path = path_of_base(log);
    CADRE_FREE_AT_EXIT char *temporary = NULL;
    char text[BASE_TEXT_BYTES];
    int length = snprintf(text, sizeof text, "%" PRIu64 " %" PRIu64 "\n", incarnation, base);
    if (path == NULL || asprintf(&temporary, "%s.new", path) < 0) {
        temporary = NULL;
        return false;
    }
    CADRE_CLOSE_AT_EXIT int fd = log_base_open_file(temporary);
    if (fd < 0 || ftruncate(fd, 0) != 0 || write(fd, text, (size_t)length) != length) {
        return false;
    }
    if (fault_point("logs.rename")) {
        errno = EIO;
        return false;
    }
    return rename(temporary, path) == 0;
}
