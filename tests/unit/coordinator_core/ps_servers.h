/* SPDX-License-Identifier: Apache-2.0
 * The variables that parameter servers with backups hold in a world of ps_world.h: how many
 * changes, in which memory, and in the copy of the server before.
 * worker/library/ps/server/backup_record.h says which may answer; connections between any two may
 * be cut. An answered change is in what a later incarnation takes over, or that begins empty, which
 * all its clients see. */
#ifndef CADRE_TESTS_UNIT_COORDINATOR_CORE_PS_SERVERS_H
#define CADRE_TESTS_UNIT_COORDINATOR_CORE_PS_SERVERS_H

#include "tests/unit/coordinator_core/ps_world.h"

/* It was started, by a daemon that may keep the memory of the last incarnation. */
void ps_server_start(
    struct ps_world *world, struct task_ref ref, uint32_t worker, uint64_t predecessor);
/* Daemon `worker` was started again. */
void ps_servers_drop(struct ps_world *world, uint32_t worker);
/* It receives MEMBERS, with its own entry. */
void ps_server_receive(struct ps_world *world, uint64_t incarnation, struct task_backed backed);
/* One thing that it does next. */
void ps_server_act(struct ps_world *world, struct attempt *attempt);

#endif
