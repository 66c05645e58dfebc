/* SPDX-License-Identifier: Apache-2.0
 * The output of tasks: one file for each slot, with its incarnations one after the other. Beside it
 * "<slot>.base" has the newest incarnation and the offset at which it begins, and "<slot>.marks"
 * the streams and times of the bytes (common/base/log_marks.h). Beyond the limit the middle of the
 * file is removed (log_hole.h) and offsets do not change. log_writes.c calls it in
 * threads.
 *
 * Several coordinators may share the folder, and one that was replaced may still write beside its
 * successor. A turn holds the lock of the log and begins with what the files say, so that the place
 * of a byte, at the begin of its incarnation plus its offset, is the same for all writers. Where
 * logs lie in an object store (log_copies.h) the file is this coordinator's alone, and bytes are
 * put there before they are written to it. */
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
#include "coordinator/daemon/logs/log_base.h"
#include "coordinator/daemon/logs/log_copies.h"

enum writer { WRITER_NEWEST, WRITER_OLD, WRITER_UNKNOWN };

/* Where the incarnation's output begins. OLD: a newer one writes now. UNKNOWN: the base file could
 * not be written. */
static enum writer find_base(
    const char *log, uint64_t size, uint64_t incarnation, uint64_t *ret_base)
{
    uint64_t newest = 0;
    uint64_t base = 0;
    *ret_base = size;
    bool known = log_base_read(log, &newest, &base) && base <= size;
    if (known && newest >= incarnation) {
        *ret_base = base;
        return newest == incarnation ? WRITER_NEWEST : WRITER_OLD;
    }
    return log_base_write(log, incarnation, size) ? WRITER_NEWEST : WRITER_UNKNOWN;
}

/* The file of a turn. */
struct open_log {
    struct log_io *io;
    struct log_copy *copy; /* of a log in an object store, begun; NULL: it lies in the file */
    int fd;                /* -1: it cannot be opened */
    int marks_fd;          /* -1: not opened yet */
    bool busy;             /* another coordinator writes it now, or the store is away */
    uint64_t size;
};

/* False: the store is away. */
static bool take_copy(struct open_log *log)
{
    struct log_io *io = log->io;
    struct cadre_error error = {0};
    struct log_copy *copy = log_copies_use(io->copies, io->job, io->slot, io->path);
    if (copy == NULL || log_copy_begin(copy, &error) != CADRE_OK) {
        log_copies_done(io->copies, copy);
        return false;
    }
    log->copy = copy;
    return true;
}

/* Opens and locks it; its size is that of then. */
static void take_log(struct open_log *log)
{
    struct stat status;
    if (log->io->copies != NULL && !take_copy(log)) {
        log->busy = true;
        return;
    }
    log->fd = log_base_open_file(log->io->path);
    log->busy = log->fd >= 0 && !file_lock_try(log->fd);
    if (log->fd >= 0 && fstat(log->fd, &status) == 0) {
        log->size = (uint64_t)status.st_size;
    }
}

static bool has_marks_open(struct open_log *log)
{
    CADRE_FREE_AT_EXIT char *path = log->marks_fd < 0 ? log_marks_path(log->io->path) : NULL;
    if (path != NULL) {
        log->marks_fd = log_base_open_file(path);
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
    hole = freed > 0 ? log_hole_read(log->io->path) : hole;
    if (freed > 0 && has_marks_open(log)) {
        log_marks_punch(log->marks_fd, hole.from, hole.to);
    }
    if (freed > 0 && log->copy != NULL) {
        log_copy_drop(log->copy, &hole);
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

/* Puts the `size` bytes from the end of the log on into the store; write_marks() has seen to the
 * marks. False: they have to be sent again. */
static bool put_new_bytes(struct open_log *log, const struct log_extent *extent, uint64_t base,
    const struct log_mark *marks, const uint8_t *bytes, size_t size)
{
    const struct log_segment segment = {.incarnation = extent->task.incarnation,
        .base = base,
        .begin = log->size,
        .end = log->size + size};
    struct cadre_error error = {0};
    size_t first = 0;
    while (first + 1 < extent->marks && marks[first + 1].offset <= segment.begin) {
        first++;
    }
    size_t end = first;
    while (end < extent->marks && marks[end].offset < segment.end) {
        end++;
    }
    return log_copy_put(log->copy, &segment, bytes, marks + first, end - first, &error) == CADRE_OK;
}

/* Appends the new bytes. *ret_again: not all of them, because the disk is full: the rest has to be
 * sent again. */
static void write_new_bytes(struct open_log *log, struct log_extent *extent, const uint8_t *bytes,
    size_t wanted, size_t fresh, bool *ret_again)
{
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
    size_t fresh = log_extent_bytes(extent) - known;
    size_t wanted = up_to_limit(log, fresh);
    if (log->copy != NULL && wanted > 0 &&
        !put_new_bytes(log, extent, base, marks, bytes + known, wanted)) {
        return log->size - base;
    }
    errno = 0;
    write_new_bytes(log, extent, bytes + known, wanted, fresh, &again);
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
        extent->stored = log.busy     ? log_files_busy(extent)
                         : log.fd < 0 ? log_files_unopened(extent, open_errno)
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
    if (log.copy != NULL) {
        log_copy_end(log.copy);
        log_copies_done(io->copies, log.copy);
    }
}
