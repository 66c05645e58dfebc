/* SPDX-License-Identifier: Apache-2.0
 * The files that keep what tasks write. A thread of the pool works on the file of a slot, one turn
 * at a time: all that came since the turn before is written (log_writes.c). */
#ifndef CADRE_COORDINATOR_DAEMON_LOGS_LOG_FILES_H
#define CADRE_COORDINATOR_DAEMON_LOGS_LOG_FILES_H

#include "coordinator/daemon/base/daemon.h"

enum log_disposition {
    LOG_STORED,
    LOG_NO_ROOM,   /* it is to come again; its bytes are not here */
    LOG_DISCARDED, /* nobody wants it any more; its bytes are not here */
};

/* Chunks of one life of a task that came one after the other, each where the last one ended. */
struct log_extent {
    struct link_id link;
    struct task_ref task;
    enum log_disposition disposition;
    uint64_t offset;
    uint64_t end;
    uint64_t chunks; /* so many: each gets an answer */
    /* What came of it: */
    uint64_t stored; /* the answer: below this offset all is stored or dropped */
    int lost_errno;  /* not 0: why what is lost is lost */
};

/* What the loop asks of a thread, and what came of it. */
struct log_io {
    char *path;
    uint64_t limit_bytes;
    uint8_t *bytes; /* of the runs that are kept, one behind the other */
    struct log_extent *running;
    size_t count;
    bool written;         /* the file has more than before */
    int64_t change_bytes; /* so many more, or fewer, are kept */
    uint64_t total_bytes; /* of all lives of the task */
};

static inline size_t log_extent_bytes(const struct log_extent *extent)
{
    return extent->disposition == LOG_STORED ? (size_t)(extent->end - extent->offset) : 0;
}

/* In a thread. */
void log_files_do_io(struct log_io *io);

#endif
