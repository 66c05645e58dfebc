/* SPDX-License-Identifier: Apache-2.0
 * The output of tasks: one file for each slot, with its incarnations one after the other. Beside it
 * "<slot>.base" has the newest incarnation and the offset at which it begins, and "<slot>.marks"
 * the streams and times of the bytes (common/base/log_marks.h). Beyond the limit the middle of the
 * file is removed (log_hole.h) and offsets do not change. log_writes.c calls it in
 * threads.
 *
 * Several coordinators may share the folder, and one that was replaced may still write beside its
 * successor. A turn holds the lock of the log and begins with what the files say, so that the place
 * of a byte, at the begin of its incarnation plus its offset, is the same for all writers. */
#include "coordinator/daemon/logs/log_files.h"

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
#include "common/base/files.h"
#include "common/base/log_marks.h"
#include "coordinator/daemon/base/disk.h"
#include "coordinator/daemon/base/log_hole.h"

#define BASE_TEXT_BYTES 64

static int open_log(const char *path)
{
    if (fault_point("logs.open")) {
        errno = EIO;
        return -1;
    }
    return file_open_made(path);
}

/* False: nothing was written of this slot, or its incarnation is not recorded. */
static bool read_base(const char *path, uint64_t *ret_incarnation, uint64_t *ret_base)
{
    char text[BASE_TEXT_BYTES] = {0};
    CADRE_CLOSE_AT_EXIT int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    ssize_t got = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    return got > 0 && sscanf(text, "%" SCNu64 " %" SCNu64, ret_incarnation, ret_base) == 2;
}

/* Written whole or not at all if this process is killed; a loss of power may lose it. */
static bool write_base(const char *path, uint64_t incarnation, uint64_t base)
{
    CADRE_FREE_AT_EXIT char *temporary = NULL;
    char text[BASE_TEXT_BYTES];
    int length = snprintf(text, sizeof text, "%" PRIu64 " %" PRIu64 "\n", incarnation, base);
    if (asprintf(&temporary, "%s.new", path) < 0) {
        temporary = NULL;
        return false;
    }
    CADRE_CLOSE_AT_EXIT int fd = open_log(temporary);
    if (fd < 0 || ftruncate(fd, 0) != 0 || write(fd, text, (size_t)length) != length) {
        return false;
    }
    if (fault_point("logs.rename")) {
        errno = EIO;
        return false;
    }
    return rename(temporary, path) == 0;
}

enum writer { WRITER_NEWEST, WRITER_OLD, WRITER_UNKNOWN };

/* Where the incarnation's output begins. OLD: a newer one writes now. UNKNOWN: the base file could
 * not be written. */
static enum writer find_base(
    const char *log, uint64_t size, uint64_t incarnation, uint64_t *ret_base)
{
    CADRE_FREE_AT_EXIT char *path = NULL;
    uint64_t newest = 0;
    *ret_base = size;
    if (asprintf(&path, "%s.base", log) < 0) {
        path = NULL;
        return WRITER_UNKNOWN;
    }
    uint64_t base = 0;
    bool known = read_base(path, &newest, &base) && base <= size;
    if (known && newest >= incarnation) {
        *ret_base = base;
        return newest == incarnation ? WRITER_NEWEST : WRITER_OLD;
    }
    return write_base(path, incarnation, size) ? WRITER_NEWEST : WRITER_UNKNOWN;
}

/* The file of a turn. */
struct open_log {
    struct log_io *io;
    int fd;       /* -1: it cannot be opened */
    int marks_fd; /* -1: not opened yet */
    bool busy;    /* another coordinator writes it now */
    uint64_t size;
};

/* Opens and locks it; its size is that of then. */
static void take_log(struct open_log *log)
{
    struct stat status;
    log->fd = open_log(log->io->path);
    log->busy = log->fd >= 0 && !file_lock_try(log->fd);
    if (log->fd >= 0 && fstat(log->fd, &status) == 0) {
        log->size = (uint64_t)status.st_size;
    }
}

static bool has_marks_open(struct open_log *log)
{
    CADRE_FREE_AT_EXIT char *path = log->marks_fd < 0 ? log_marks_path(log->io->path) : NULL;
    if (path != NULL) {
        log->marks_fd = open_log(path);
    }
    return log->marks_fd >= 0;
}

/* False: the log is full, and its middle cannot be removed. */
static bool make_room(struct open_log *log)
{
    uint64_t freed = 0;
    uint64_t limit = log->io->limit_bytes;
    if (log->size < limit) { /* most logs have no gap, and no file of one to look for */
        return true;
    }
    struct log_hole hole = log_hole_read(log->io->path);
    if (log->size - log_hole_bytes(&hole) < limit) {
        return true;
    }
    if (!log_hole_extend(log->io->path, log->fd, log->size, limit, &freed)) {
        return false;
    }
    log->io->change_bytes -= (int64_t)freed;
    if (freed > 0 && has_marks_open(log)) {
        hole = log_hole_read(log->io->path);
        log_marks_punch(log->marks_fd, hole.from, hole.to);
    }
    return true;
}

/* Where the middle cannot be removed, the log ends at the limit. */
static size_t up_to_limit(const struct open_log *log, size_t size)
{
    uint64_t limit = log->io->limit_bytes;
    bool crosses = log->size < limit && limit - log->size < size;
    return crosses && !log_hole_is_supported(log->fd) ? (size_t)(limit - log->size) : size;
}

/* Appends the marks of the bytes that are written next, which are those of the extent from the end
 * of the log on. False: the disk is full. Another error costs the marks only. */
static bool write_marks(
    struct open_log *log, const struct log_extent *extent, uint64_t base, struct log_mark *marks)
{
    size_t first = 0;
    for (size_t i = 0; i < extent->marks; i++) {
        marks[i].offset += base;
        first = marks[i].offset <= log->size ? i : first;
    }
    if (extent->marks == 0 || !has_marks_open(log)) {
        return extent->marks == 0 || !disk_is_full(errno);
    }
    if (marks[first].offset < log->size) {
        marks[first].offset = log->size;
    }
    bool done = log_marks_append(log->marks_fd, log->size, marks + first, extent->marks - first);
    return done || !disk_is_full(errno);
}

/* Appends the new bytes. *ret_again: not all of them, because the disk is full: the rest has to be
 * sent again. */
static void write_new_bytes(struct open_log *log, struct log_extent *extent, const uint8_t *bytes,
    size_t fresh, bool *ret_again)
{
    size_t wanted = up_to_limit(log, fresh);
    bool refused = fault_point("logs.write");
    errno = refused ? EIO : errno;
    ssize_t written = refused ? -1 : pwrite(log->fd, bytes, wanted, (off_t)log->size);
    *ret_again = written < 0 ? disk_is_full(errno) : (size_t)written < wanted;
    if (written < 0) {
        extent->lost_errno = *ret_again ? 0 : errno;
        return;
    }
    log->size += (uint64_t)written;
    log->io->change_bytes += written;
    log->io->written = true;
    if (wanted == fresh) {
        (void)make_room(log);
    }
}

/* The offset below which all is stored or dropped. */
static uint64_t log_files_append(
    struct open_log *log, struct log_extent *extent, const uint8_t *bytes, struct log_mark *marks)
{
    uint64_t base = 0;
    if (extent->disposition == LOG_DISCARDED) {
        return extent->end; /* so that its worker may drop it */
    }
    errno = 0;
    enum writer writer = find_base(log->io->path, log->size, extent->task.incarnation, &base);
    if (writer == WRITER_UNKNOWN) {
        if (disk_is_full(errno)) {
            return 0; /* nothing of this one is here yet */
        }
        extent->lost_errno = errno;
        return extent->end;
    }
    if (writer == WRITER_OLD) {
        return extent->end;
    }
    if (base + extent->end <= log->size || extent->disposition == LOG_NO_ROOM) {
        return log->size - base; /* written already, or no room */
    }
    if (log->size > 0 && !make_room(log)) {
        return extent->end; /* what is beyond the limit is lost */
    }
    if (base + extent->offset > log->size) {
        return log->size - base; /* a gap: send it again from here */
    }
    size_t known = (size_t)(log->size - base - extent->offset);
    bool again = false;
    if (!write_marks(log, extent, base, marks)) {
        return log->size - base;
    }
    errno = 0;
    write_new_bytes(log, extent, bytes + known, log_extent_bytes(extent) - known, &again);
    return again ? log->size - base : extent->end;
}

/* The offset that is asked for next, of a log that another coordinator writes now. */
static uint64_t log_files_busy(const struct log_extent *extent)
{
    return extent->disposition == LOG_DISCARDED ? extent->end : extent->offset;
}

/* The same of a log that cannot be opened. */
static uint64_t log_files_unopened(struct log_extent *extent, int open_errno)
{
    if (extent->disposition != LOG_DISCARDED && disk_is_full(open_errno)) {
        return extent->offset;
    }
    extent->lost_errno = extent->disposition != LOG_DISCARDED ? open_errno : 0;
    return extent->end;
}

static bool are_all_discarded(const struct log_io *io)
{
    size_t i = 0;
    while (i < io->count && io->running[i].disposition == LOG_DISCARDED) {
        i++;
    }
    return i == io->count;
}

void log_files_do_io(struct log_io *io)
{
    struct open_log log = {.io = io, .fd = -1, .marks_fd = -1};
    if (!are_all_discarded(io)) { /* else its job may be forgotten, and its folder removed */
        take_log(&log);
    }
    int open_errno = errno;
    const uint8_t *bytes = io->bytes;
    struct log_mark *marks = io->marks;
    for (size_t i = 0; i < io->count; i++) {
        struct log_extent *extent = &io->running[i];
        extent->stored = log.fd < 0 ? log_files_unopened(extent, open_errno)
                         : log.busy ? log_files_busy(extent)
                                    : log_files_append(&log, extent, bytes, marks);
        bytes += log_extent_bytes(extent);
        marks += extent->marks;
    }
    io->total_bytes = log.size;
    if (log.fd >= 0) {
        close(log.fd);
    }
    if (log.marks_fd >= 0) {
        close(log.marks_fd);
    }
}
