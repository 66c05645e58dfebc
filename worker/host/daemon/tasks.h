/* SPDX-License-Identifier: Apache-2.0
 * The agent's front, and the link's: what becomes of a task's files. */
#ifndef CADRE_WORKER_DAEMON_TASKS_H
#define CADRE_WORKER_DAEMON_TASKS_H

#include "worker/host/agent/agent.h"
#include "worker/host/daemon/link.h"

struct daemon;

extern const struct agent_callbacks worker_agent_callbacks;
extern const struct link_callbacks worker_link_callbacks;
/* What waits for room is tried again: see retry_open(). */
void tasks_retry(struct daemon *daemon);
void tasks_free_all(struct daemon *daemon);

#endif
