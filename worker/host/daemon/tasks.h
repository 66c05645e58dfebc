/* SPDX-License-Identifier: Apache-2.0
 * The agent's front, and the link's: what becomes of a task's files. */
#ifndef CADRE_WORKER_DAEMON_TASKS_H
#define CADRE_WORKER_DAEMON_TASKS_H

#include "worker/host/agent/agent.h"
#include "worker/host/daemon/link.h"

struct daemon;

extern const struct agent_front worker_front;
extern const struct link_front worker_link_front;
/* What waits for room is tried again: see later_open(). */
void tasks_try_again(struct daemon *daemon);
void tasks_free_all(struct daemon *daemon);

#endif
