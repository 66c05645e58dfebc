/* SPDX-License-Identifier: Apache-2.0
 * A task's keeper, on our loop: what it is told, and what it tells. */
#ifndef CADRE_WORKER_AGENT_KEEPER_LINK_H
#define CADRE_WORKER_AGENT_KEEPER_LINK_H

#include "worker/host/agent/agent_state.h"
#include "worker/host/keeper/packed_launch.h"
#include "worker/host/keeper/messages.h"

cadre_status keeper_link_start(
    struct agent_task *task, const struct keeper_launch *launch, struct cadre_error *error);
/* The connection to one that is there already; `socket` is the link's from now on. */
cadre_status keeper_link_attach(struct agent_task *task, int socket, struct cadre_error *error);
void keeper_link_send(struct agent_task *task, uint32_t type, int64_t value);
/* It is not needed any more; the link closes when it is gone. */
void keeper_link_end(struct agent_task *task);

#endif
