/* SPDX-License-Identifier: Apache-2.0
 * What parameter servers with backups hold in a world of ps_world.h: how many changes, in which
 * memory, and in the copy of the server before. What they may answer
 * worker/library/ps/server/backup_record.h says; connections between any two may be cut. A change
 * that was answered is in what a later life takes over, or that begins empty, which all who ask it
 * see. */
#ifndef CADRE_TESTS_UNIT_COORDINATOR_CORE_PS_SERVERS_H
#define CADRE_TESTS_UNIT_COORDINATOR_CORE_PS_SERVERS_H

#include "tests/unit/coordinator_core/ps_world.h"

/* It was started, by a daemon that may keep the memory of the life before. */
void ps_server_start(
    struct ps_world *world, struct task_ref ref, uint32_t worker, uint64_t predecessor);
/* Daemon `worker` was started anew. */
void ps_servers_drop(struct ps_world *world, uint32_t worker);
/* It is told of itself, among the members. */
void ps_server_receive(struct ps_world *world, uint64_t incarnation, struct task_backed backed);
/* One thing that it does next. */
void ps_server_act(struct ps_world *world, struct attempt *attempt);

#endif
