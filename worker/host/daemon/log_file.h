/* SPDX-License-Identifier: Apache-2.0
 * The file that a task's output is kept in, until the coordinator has it. A thread of the pool
 * works on it, one turn at a time: it writes what came and reads what is sent next. */
#ifndef CADRE_WORKER_DAEMON_LOG_FILE_H
#define CADRE_WORKER_DAEMON_LOG_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/base/log_marks.h"

/* Marks that one turn reads at most, and a chunk has. */
#define LOG_FILE_MARKS 1024

struct log_file {
    int fd;           /* -1: none */
    int marks_fd;     /* of the file with its marks; -1: none, and nothing is recorded of it */
    uint64_t bytes;   /* written here */
    uint64_t gone;    /* bytes before this offset are not kept any more */
    uint64_t dropped; /* in the current gap, which the log does not report yet */
    uint64_t lost;    /* bytes for which there was no room here; reported in the log when there
                       * is */
};

/* One turn of a thread: the work that the loop set, and the result. */
struct log_io {
    struct log_file file; /* before the turn, then after it */
    uint64_t limit_bytes;
    uint64_t acked; /* the coordinator has the bytes before this offset */
    uint8_t *bytes; /* to be written; NULL: nothing */
    size_t size;
    struct log_mark *marks; /* of them; offsets count from the first of these bytes */
    size_t mark_count;
    size_t missed; /* bytes after these for which there was no memory */
    uint64_t read_at;
    uint8_t *read;               /* NULL: nothing is to be read */
    struct log_mark *read_marks; /* room for LOG_FILE_MARKS; NULL with `read` */
    size_t read_mark_count;
    size_t read_max;
    size_t got;
    uint64_t dropped_bytes; /* of `size`, for want of room */
    int lost_errno;         /* not 0: the errno of the first loss */
    uint64_t logged_lost;   /* the loss that the log now reports */
};

/* Opens the log in the folder of a task; the hole at its beginning is the part that was freed. */
cadre_status log_file_open(struct log_file *file, const char *folder, struct cadre_error *error);
/* Makes the files of a new log in the folder; the caller's are *ret_fd and *ret_marks_fd. Errno. */
int log_file_make(const char *folder, int *ret_fd, int *ret_marks_fd);
/* Closes its files. */
void log_file_close(struct log_file *file);
/* Does one turn, in a thread. */
void log_file_do_io(struct log_io *io);

#endif
