/* SPDX-License-Identifier: Apache-2.0
 * Clients that read or follow logs, and which slots have new bytes for them: log_writes.c marks
 * them here, logs.c reads and sends at the end of the turn. Called on the loop only. */
#ifndef CADRE_COORDINATOR_DAEMON_LOGS_LOG_FOLLOWERS_H
#define CADRE_COORDINATOR_DAEMON_LOGS_LOG_FOLLOWERS_H

#include "common/rpc/file_work.h"
#include "common/rpc/server.h"
#include "common/wire/wire.h"

struct daemon;
struct log_read;

struct log_follower {
    struct log_follower *next;
    struct daemon *daemon;
    struct rpc_call *call; /* NULL: it was cancelled while a thread reads */
    struct logs_request request;
    uint64_t *offsets; /* of each task; what was sent so far. The thread's while it reads */
    bool *has_more;    /* of each task; there may be more than that */
    uint32_t tasks;    /* 0: nothing more to read */
    uint32_t next_slot;
    bool dirty;            /* there are new bytes, or the job may have ended */
    struct log_read *read; /* NULL: no thread reads */
    struct file_work work;
};

/* Whether the client's request includes the slot. */
bool log_follower_wants(const struct log_follower *log_follower, uint32_t slot);

/* More bytes of the slot are in its file. */
void log_followers_written(struct daemon *daemon, struct job_id job, uint32_t slot);
/* The job changed, and may have ended; or nothing of one of its slots waits to be written now. */
void log_followers_job_changed(struct daemon *daemon, struct job_id job);

#endif
