/* SPDX-License-Identifier: Apache-2.0
 * The file that a task's output is kept in, until the coordinator has it. A thread of the pool
 * works on it, one turn at a time: what came is written, what goes next is read. */
#ifndef CADRE_WORKER_DAEMON_LOG_FILE_H
#define CADRE_WORKER_DAEMON_LOG_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"

struct log_file {
    int fd;           /* -1: none */
    uint64_t bytes;   /* written here */
    uint64_t gone;    /* what lies before is not kept any more */
    uint64_t dropped; /* in the gap at hand, which was not told yet */
    uint64_t lost;    /* bytes for which there was no room here; told in the log when there is */
};

/* What the loop asks of a thread, and what came of it. */
struct log_io {
    struct log_file file; /* as it is before, then as it is after */
    uint64_t limit_bytes;
    uint64_t acked; /* the coordinator has what lies before */
    uint8_t *bytes; /* to be written; NULL: nothing */
    size_t size;
    size_t missed; /* so many came after them, for which there was no memory */
    uint64_t read_at;
    uint8_t *read; /* NULL: nothing is asked for */
    size_t read_max;
    size_t got;
    uint64_t dropped_bytes; /* of `size`, for want of room */
    int lost_errno;         /* not 0: why the first of what is lost is lost */
    uint64_t logged_lost;   /* the log says now that so many are */
};

/* Opens the log in the folder of a task; what is let go in it is known by its hole. */
cadre_status log_file_open(struct log_file *file, const char *folder, struct cadre_error *error);
/* In a thread. */
void log_file_do_io(struct log_io *io);

#endif
