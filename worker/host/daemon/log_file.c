/* SPDX-License-Identifier: Apache-2.0
 * The file with a task's output: appends, frees what the coordinator has as a hole at the
 * beginning, and writes a text line into the log where bytes are lost. Called by logs.c in a
 * thread of the pool. */
#include "worker/host/daemon/log_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/fault.h"

/* Holes begin and end at blocks of the disk, so that log_file_open() finds where they end. */
#define HOLE_BYTES ((uint64_t)4096)

/* Appends; returns how many bytes were written. */
static size_t log_file_append(struct log_file *file, const uint8_t *bytes, size_t size)
{
    size_t done = 0;
    while (done < size) {
        if (fault_point("logs.write")) {
            errno = ENOSPC;
            break;
        }
        ssize_t written = pwrite(file->fd, bytes + done, size - done, (off_t)file->bytes);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            break;
        }
        file->bytes += (uint64_t)written;
        done += (size_t)written;
    }
    return done;
}

static void note_lost(struct log_io *io, size_t lost, int errnum)
{
    if (lost > 0 && io->file.lost == 0) {
        io->lost_errno = errnum;
    }
    io->file.lost += lost;
}

/* Records the marks of bytes before these are written: after a kill in between, marks of bytes that
 * are not there are removed by the next turn. */
static void append_marks(struct log_file *file, const struct log_mark *marks, size_t count)
{
    if (file->marks_fd >= 0) {
        (void)log_marks_append(file->marks_fd, file->bytes, marks, count);
    }
}

/* Appends a text line of the daemon's: whole or not at all. False: there is no room for it. */
static bool append_text_line(struct log_file *file, const char *text_line)
{
    uint64_t begin = file->bytes;
    size_t length = strlen(text_line);
    const struct log_mark mark = {
        .offset = begin, .stream = LOG_STREAM_STDERR, .received_us = clock_wall_us()};
    append_marks(file, &mark, 1);
    if (log_file_append(file, (const uint8_t *)text_line, length) < length) {
        file->bytes = begin; /* an incomplete line is removed */
        return false;
    }
    return true;
}

/* Writes into the log how much of it is missing here. False: there is no room for that either. */
static bool log_lost(struct log_io *io)
{
    struct log_file *file = &io->file;
    char text_line[160];
    if (file->lost == 0) {
        return true;
    }
    snprintf(text_line, sizeof text_line,
        "\n[cadre: %llu bytes of output are lost here: the worker could not write them]\n",
        (unsigned long long)file->lost);
    if (!append_text_line(file, text_line)) {
        return false;
    }
    io->logged_lost = file->lost;
    file->lost = 0;
    return true;
}

static void log_file_keep(struct log_io *io, const uint8_t *bytes, size_t size)
{
    size_t done = 0;
    if (log_lost(io) && size > 0) {
        for (size_t i = 0; i < io->mark_count; i++) {
            io->marks[i].offset += io->file.bytes;
        }
        append_marks(&io->file, io->marks, io->mark_count);
        done = log_file_append(&io->file, bytes, size);
    }
    note_lost(io, size - done, errno);
}

/* Opens the file with the marks; -1 as of open(). */
static int open_marks(const char *folder, int flags)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/log.marks", folder);
    return open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
}

int log_file_make(const char *folder, int *ret_fd, int *ret_marks_fd)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/log", folder);
    *ret_fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    *ret_marks_fd = *ret_fd >= 0 ? open_marks(folder, O_TRUNC) : -1;
    if (*ret_marks_fd < 0) {
        int number = errno;
        if (*ret_fd >= 0) {
            close(*ret_fd);
        }
        *ret_fd = -1;
        return number;
    }
    return 0;
}

void log_file_close(struct log_file *file)
{
    if (file->fd >= 0) {
        close(file->fd);
    }
    if (file->marks_fd >= 0) {
        close(file->marks_fd);
    }
    file->fd = -1;
    file->marks_fd = -1;
}

cadre_status log_file_open(struct log_file *file, const char *folder, struct cadre_error *error)
{
    char path[4096];
    struct stat status;
    snprintf(path, sizeof path, "%s/log", folder);
    file->marks_fd = -1;
    file->fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (file->fd < 0 || fstat(file->fd, &status) != 0) {
        return cadre_error_errno(error, errno, "cannot open %s", path);
    }
    file->bytes = (uint64_t)status.st_size;
    off_t first = lseek(file->fd, 0, SEEK_DATA); /* punch_hole() freed what was before */
    file->gone = first > 0 ? (uint64_t)first : 0;
    file->marks_fd = open_marks(folder, 0); /* of an earlier version's task there is none yet */
    return CADRE_OK;
}

/* Frees what the coordinator has, but for half of the limit: it may request a lost end again.
 * Offsets stay as they are. */
static void punch_hole(struct log_io *io)
{
    struct log_file *file = &io->file;
    uint64_t half = io->limit_bytes / 2;
    half = half >= 2 * HOLE_BYTES ? half : 0; /* with a small limit there would hardly ever be
                                               * room again */
    uint64_t to = file->bytes > half ? file->bytes - half : 0;
    to = to < io->acked ? to : io->acked;
    to -= to % HOLE_BYTES;
    if (to > file->gone && fallocate(file->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                               (off_t)file->gone, (off_t)(to - file->gone)) == 0) {
        file->gone = to;
        log_marks_punch(file->marks_fd, 0, to);
    }
}

/* Bytes that still fit. */
static uint64_t log_file_room(struct log_io *io)
{
    const struct log_file *file = &io->file;
    uint64_t limit = io->limit_bytes;
    if (file->bytes - file->gone >= limit - limit / 4) {
        punch_hole(io);
    }
    uint64_t kept = file->bytes - file->gone;
    return kept < limit ? limit - kept : 0;
}

/* Writes into the log how much was dropped, once something fits again. */
static void log_dropped(struct log_io *io)
{
    char text_line[160];
    snprintf(text_line, sizeof text_line,
        "\n[cadre: %llu bytes of output were dropped here: the coordinator did not take them in "
        "time, see cadre-worker --log-limit]\n",
        (unsigned long long)io->file.dropped);
    if (log_file_room(io) >= 2 * sizeof text_line && log_lost(io) &&
        append_text_line(&io->file, text_line)) {
        io->file.dropped = 0;
    }
}

static void write_incoming_bytes(struct log_io *io)
{
    struct log_file *file = &io->file;
    if (file->dropped > 0) {
        log_dropped(io);
    }
    if (io->size > 0) {
        uint64_t fits = file->dropped > 0 ? 0 : log_file_room(io);
        size_t taken = fits < io->size ? (size_t)fits : io->size;
        log_file_keep(io, io->bytes, taken);
        io->dropped_bytes = io->size - taken;
        file->dropped += io->dropped_bytes;
    }
    note_lost(io, io->missed, ENOMEM);
}

/* Reads what is sent next. Where neither this file nor the coordinator has the bytes any more,
 * text lines that report the loss take their place: offsets stay as they are. */
static void read_next(struct log_io *io)
{
    static const char text_line[] =
        "[cadre: here 64 bytes were lost: with the coordinator's disk..]\n";
    const struct log_file *file = &io->file;
    uint64_t at = io->read_at;
    uint64_t end = at < file->gone ? file->gone : file->bytes;
    uint64_t there = end > at ? end - at : 0;
    size_t size = there < io->read_max ? (size_t)there : io->read_max;
    if (at >= file->gone) {
        ssize_t got = size > 0 ? pread(file->fd, io->read, size, (off_t)at) : 0;
        uint64_t to = at + (got > 0 ? (uint64_t)got : 0);
        io->read_mark_count =
            log_marks_read(file->marks_fd, at, to, io->read_marks, LOG_FILE_MARKS, &to);
        io->got = (size_t)(to - at);
        return;
    }
    io->read_marks[0] = (struct log_mark){.offset = at};
    io->read_mark_count = 1;
    for (size_t i = 0; i < size; i++) {
        io->read[i] = (uint8_t)text_line[(at + i) % (sizeof text_line - 1)];
    }
    io->got = size;
}

void log_file_do_io(struct log_io *io)
{
    write_incoming_bytes(io);
    if (io->read != NULL) {
        read_next(io);
    }
}
