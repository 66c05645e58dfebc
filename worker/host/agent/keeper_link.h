/* SPDX-License-Identifier: Apache-2.0
 * The connection to a task's keeper, on our loop: messages to it and from it. */
#ifndef CADRE_WORKER_AGENT_KEEPER_LINK_H
#define CADRE_WORKER_AGENT_KEEPER_LINK_H

#include "worker/host/agent/agent_state.h"
#include "worker/host/keeper/packed_launch.h"
#include "worker/host/keeper/messages.h"

/* Starts a keeper and connects to it. */
cadre_status keeper_link_start(
    struct agent_task *task, const struct keeper_launch *launch, struct cadre_error *error);
/* Attaches to a keeper that runs already; `socket` is the link's from now on. */
cadre_status keeper_link_attach(struct agent_task *task, int socket, struct cadre_error *error);
/* Sends a message to the keeper; drops it without a connection. */
void keeper_link_send(struct agent_task *task, uint32_t type, int64_t value);
/* Tells the keeper to end its task and exit; the link closes when it has. */
void keeper_link_end(struct agent_task *task);

#endif
