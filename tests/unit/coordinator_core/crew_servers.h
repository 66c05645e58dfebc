/* SPDX-License-Identifier: Apache-2.0
 * What parameter servers with backups hold in a world of crew_world.h: how many changes, in which
 * memory, and in the copy of the server before. What they may answer worker/library/ps/backing.h
 * says; connections between any two may be cut. A change that was answered is in what a later life
 * takes over, or that begins empty, which all who ask it see. */
#ifndef CADRE_TESTS_UNIT_COORDINATOR_CORE_CREW_SERVERS_H
#define CADRE_TESTS_UNIT_COORDINATOR_CORE_CREW_SERVERS_H

#include "tests/unit/coordinator_core/crew_world.h"

/* It was started, by a daemon that may keep the memory of the life before. */
void crew_server_starts(
    struct crew_world *world, struct task_ref ref, uint32_t worker, uint64_t predecessor);
/* Daemon `worker` was started anew. */
void crew_servers_drop(struct crew_world *world, uint32_t worker);
/* It is told of itself, among the members. */
void crew_server_hears(struct crew_world *world, uint64_t incarnation, struct task_backed backed);
/* One thing that it does next. */
void crew_server_acts(struct crew_world *world, struct life *life);

#endif
