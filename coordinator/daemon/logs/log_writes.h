/* SPDX-License-Identifier: Apache-2.0
 * What tasks write, on its way to the disk. Of the loop alone; threads write it (log_files.h). */
#ifndef CADRE_COORDINATOR_DAEMON_LOGS_LOG_WRITES_H
#define CADRE_COORDINATOR_DAEMON_LOGS_LOG_WRITES_H

#include "coordinator/engine/engine.h"

struct daemon;

/* A thread writes it; then the link is told the offset below which everything is stored or dropped:
 * without room, on the disk or here, one below the end of the chunk, and the agent sends it again
 * later. Not `wanted`: it is dropped. */
void logs_append(
    struct daemon *daemon, struct link_id link, const struct agent_log *chunk, bool wanted);
/* Something that came of the slot is not written yet. */
bool logs_are_unwritten(struct daemon *daemon, struct job_id job, uint32_t slot);
/* The files of the job are being removed. */
void logs_forget(struct daemon *daemon, struct job_id job);
/* Before the last threads are waited for: what they do not work on yet is not begun. */
void logs_close(struct daemon *daemon);

#endif
