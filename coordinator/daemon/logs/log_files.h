/* SPDX-License-Identifier: Apache-2.0
 * The files with the output of tasks. A thread of the pool works on the file of a slot, one turn at
 * a time, and writes all that came since the turn before (log_writes.c). */
#ifndef CADRE_COORDINATOR_DAEMON_LOGS_LOG_FILES_H
#define CADRE_COORDINATOR_DAEMON_LOGS_LOG_FILES_H

#include "coordinator/daemon/base/daemon.h"

struct log_copies;

enum log_disposition {
    LOG_STORED,
    LOG_NO_ROOM,   /* it has to be sent again; its bytes are not here */
    LOG_DISCARDED, /* no job needs it any more; its bytes are not here */
};

/* Consecutive chunks of one incarnation of a task, each beginning where the last one ended. */
struct log_extent {
    struct link_id link;
    struct task_ref task;
    enum log_disposition disposition;
    uint64_t offset;
    uint64_t end;
    uint64_t chunks; /* so many: each gets an answer */
    size_t marks;    /* so many of log_io.marks, with offsets as the incarnation's */
    /* The result: */
    uint64_t stored; /* the answer: below this offset all is stored or dropped */
    int lost_errno;  /* not 0: the error for which bytes were lost */
};

/* A thread's input and result. */
struct log_io {
    char *path;
    struct log_copies *copies; /* NULL: the file is where the log lies */
    struct job_id job;         /* with copies: whose it is */
    uint32_t slot;
    uint64_t limit_bytes;
    uint8_t *bytes; /* of the runs that are kept, one behind the other */
    struct log_mark *marks;
    struct log_extent *running;
    size_t count;
    bool written;         /* the file has more than before */
    int64_t change_bytes; /* so many more, or fewer, are kept */
    uint64_t total_bytes; /* of all incarnations of the task; 0: none, or not known */
};

static inline size_t log_extent_bytes(const struct log_extent *extent)
{
    return extent->disposition == LOG_STORED ? (size_t)(extent->end - extent->offset) : 0;
}

/* In a thread. */
void log_files_do_io(struct log_io *io);

#endif
