/* SPDX-License-Identifier: Apache-2.0
 * Punches the hole into a long log and keeps the file that says where it is; log_files.c and
 * log_read.c use it. */
#include "coordinator/daemon/base/log_hole.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/fault.h"

#define HOLE_TEXT_BYTES    64
#define HEAD_SHARE         8   /* of the limit, this part is the beginning */
#define NEWLINE_SCAN_BYTES 512 /* how far a newline is searched */

static char *path_of_hole(const char *log)
{
    char *path = NULL;
    return asprintf(&path, "%s.gap", log) >= 0 ? path : NULL;
}

struct log_hole log_hole_read(const char *log)
{
    char text[HOLE_TEXT_BYTES] = {0};
    struct log_hole hole = {0};
    CADRE_FREE_AT_EXIT char *path = path_of_hole(log);
    CADRE_CLOSE_AT_EXIT int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
    ssize_t got = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    bool good = got > 0 && sscanf(text, "%" SCNu64 " %" SCNu64, &hole.from, &hole.to) == 2 &&
                hole.from <= hole.to;
    return good ? hole : (struct log_hole){0};
}

bool log_hole_write(const char *log, const struct log_hole *hole)
{
    char text[HOLE_TEXT_BYTES];
    CADRE_FREE_AT_EXIT char *path = path_of_hole(log);
    CADRE_FREE_AT_EXIT char *temporary = NULL;
    int length = snprintf(text, sizeof text, "%" PRIu64 " %" PRIu64 "\n", hole->from, hole->to);
    if (path == NULL || asprintf(&temporary, "%s.new", path) < 0) {
        temporary = NULL;
        errno = ENOMEM;
        return false;
    }
    CADRE_CLOSE_AT_EXIT int fd =
        open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    return fd >= 0 && write(fd, text, (size_t)length) == length && rename(temporary, path) == 0;
}

/* The offset behind the last newline within NEWLINE_SCAN_BYTES before `at`, else `at`. */
static uint64_t after_newline_before(int fd, uint64_t at)
{
    char text[NEWLINE_SCAN_BYTES];
    uint64_t begin = at > sizeof text ? at - sizeof text : 0;
    ssize_t got = pread(fd, text, (size_t)(at - begin), (off_t)begin);
    const char *newline = got > 0 ? memrchr(text, '\n', (size_t)got) : NULL;
    return newline != NULL ? begin + (uint64_t)(newline - text) + 1 : at;
}

/* The offset behind the first newline within NEWLINE_SCAN_BYTES from `at` on, else `at`. */
static uint64_t after_newline_behind(int fd, uint64_t at)
{
    char text[NEWLINE_SCAN_BYTES];
    ssize_t got = pread(fd, text, sizeof text, (off_t)at);
    const char *newline = got > 0 ? memchr(text, '\n', (size_t)got) : NULL;
    return newline != NULL ? at + (uint64_t)(newline - text) + 1 : at;
}

static bool log_hole_punch(int fd, uint64_t from, uint64_t bytes)
{
    if (fault_point("log_hole.punch")) {
        errno = EOPNOTSUPP;
        return false;
    }
    return fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)from, (off_t)bytes) ==
           0;
}

bool log_hole_is_supported(int fd)
{
    struct stat status;
    return fstat(fd, &status) == 0 &&
           log_hole_punch(fd, (uint64_t)status.st_size, 1); /* beyond the end: changes nothing */
}

bool log_hole_extend(const char *log, int fd, uint64_t size, uint64_t limit, uint64_t *ret_freed)
{
    uint64_t head = limit / HEAD_SHARE;
    /* Room for the next eighth, so that holes are made seldom. */
    uint64_t tail = limit - 2 * head;
    struct log_hole old = log_hole_read(log);
    struct log_hole hole = old;
    *ret_freed = 0;
    if (log_hole_bytes(&old) == 0) {
        hole.from = after_newline_before(fd, head);
        hole.to = hole.from;
    }
    if (size < hole.to + tail) {
        return true;
    }
    hole.to = after_newline_behind(fd, size - tail);
    /* First the gap file, then the hole: after a kill in between no reader takes zeros for text,
     * and a reader in between looks at the gap file after the text. */
    if (!log_hole_is_supported(fd) || !log_hole_write(log, &hole)) {
        return false;
    }
    if (!log_hole_punch(fd, hole.from, log_hole_bytes(&hole))) {
        int number = errno;
        (void)log_hole_write(log, &old);
        errno = number;
        return false;
    }
    *ret_freed = log_hole_bytes(&hole) - log_hole_bytes(&old);
    return true;
}
