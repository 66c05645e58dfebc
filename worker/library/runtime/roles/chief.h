/* SPDX-License-Identifier: Apache-2.0
 * What a chief's strategy owns: its variables on servers, the scheduler of its closures, and by
 * hand the threads that are the other tasks. */
#ifndef CADRE_RUNTIME_ROLES_CHIEF_H
#define CADRE_RUNTIME_ROLES_CHIEF_H

#include "worker/library/runtime/ps_job/ps_job.h"
#include "worker/library/runtime/strategy/strategy_hooks.h"

/* The process is this chief from now on; waits until the servers are connected. Ended by chief_end,
 * also after an error. */
cadre_status chief_begin(
    struct ps_job_state *ps_job, cadre_strategy *strategy, bool by_hand, struct cadre_error *error);

/* The ps job as a part of the chief's strategy. */
extern const struct strategy_hooks ps_job_hooks;

/* --- local_servers.c: servers and workers that are threads of the chief's program, by hand --- */

struct local_servers;

/* Makes all of them for a chief that listens: afterwards its directory has all tasks, and its
 * servers serve. In chief->hands, to be ended also after an error. */
cadre_status local_servers_open(struct ps_job_state *chief, struct cadre_error *error);

/* Starts the threads of its workers; one that fails ends the chief's directory. */
cadre_status local_servers_start_workers(
    struct local_servers *local_servers, struct cadre_error *error);

/* Ends the workers first, because what they push is still served. Accepts NULL. */
void local_servers_end_workers(struct local_servers *local_servers);
/* Ends the servers, and frees all. Accepts NULL. */
void local_servers_end_servers(struct local_servers *local_servers);

#endif
