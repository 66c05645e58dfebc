/* SPDX-License-Identifier: Apache-2.0
 * The callbacks of the agent and of the link, for tasks and their files. */
#ifndef CADRE_WORKER_DAEMON_TASKS_H
#define CADRE_WORKER_DAEMON_TASKS_H

#include "worker/host/agent/agent.h"
#include "worker/host/daemon/link.h"

struct daemon;

extern const struct agent_callbacks worker_agent_callbacks;
extern const struct link_callbacks worker_link_callbacks;
/* Tries again what waits for room: see retry_open(). */
void tasks_retry(struct daemon *daemon);
/* Frees all records, at the daemon's end. */
void tasks_free_all(struct daemon *daemon);

#endif
