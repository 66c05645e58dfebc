/* SPDX-License-Identifier: Apache-2.0
 * Clients that read and follow logs. */
#ifndef CADRE_COORDINATOR_DAEMON_LOGS_LOGS_H
#define CADRE_COORDINATOR_DAEMON_LOGS_LOGS_H

#include "coordinator/engine/engine.h"

struct daemon;

/* At the end of a turn: sends new bytes to followers (log_followers.h). */
void logs_flush(struct daemon *daemon);

/* ---- log_writes.c: queues the output of tasks for the disk; called on the loop only ---- */

/* A thread writes it; then the link gets the offset up to which everything is stored or dropped:
 * without room, on the disk or in memory, one before the end of the chunk, and the agent sends it
 * again. Not `wanted`: it is dropped. */
void logs_append(
    struct daemon *daemon, struct link_id link, const struct agent_log *chunk, bool wanted);
/* Whether bytes of the slot are not written yet. */
bool logs_are_unwritten(struct daemon *daemon, struct job_id job, uint32_t slot);
/* The files of the job are being removed. */
void logs_forget(struct daemon *daemon, struct job_id job);
/* Drops what no thread works on yet; called before the threads are waited for. */
void logs_close(struct daemon *daemon);

#endif
