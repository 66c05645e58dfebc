/* SPDX-License-Identifier: Apache-2.0
 * From a plan to a generation: roster, mesh, state, inputs. */
#ifndef CADRE_RUNTIME_GENERATION_H
#define CADRE_RUNTIME_GENERATION_H

#include "worker/library/runtime/replica/replica_pool.h"
#include "worker/library/runtime/strategy/strategy.h"

/* The strategy's first: waits for the plan and enters its generation; or, where the job is under
 * way, prepares alone (STATE_WARM) with a mesh of this task only. */
cadre_status generation_open(cadre_strategy *strategy, struct cadre_error *error);

/* Waits for plans until one leads to a generation: with its mesh, the state at its first position
 * and the inputs cut for it. The old mesh is closed once the plan is there, not before, because
 * others may still be in its last collective. An error is final. */
cadre_status generation_next(cadre_strategy *strategy, struct cadre_error *error);

/* Forms the mesh of the present roster again, after the old one was aborted: only by hand, where no
 * other task has to agree. */
cadre_status generation_repair(cadre_strategy *strategy, struct cadre_error *error);

/* Closes the mesh. */
void generation_close_mesh(cadre_strategy *strategy);

/* strategy_each_replica with a mesh of this task alone; its generation is what it was. */
cadre_status generation_alone(
    cadre_strategy *strategy, strategy_function function, void *user, struct cadre_error *error);

/* --- join.c: how a task enters a job that is under way, or that goes on from a checkpoint --- */

/* Whether a program that waits for a step need not wait, because the others have done it. */
typedef bool (*join_passes)(const void *user);

/* The program comes to a step of `stream` (0: one without a batch): a warm task reports it and
 * waits until it is in a generation with the job's state, or `passes` (NULL: never; called first,
 * and when the others have gone on) returns that it is not to wait: then it is warm still. A
 * restored one loads the state. Nothing for all others. An error is final. */
cadre_status join_job(cadre_strategy *strategy, uint32_t stream, join_passes passes,
    const void *user, bool *ret_passed, struct cadre_error *error);

/* --- sync.c: the state at the first position; members that lack it receive it --- */

/* On the formed mesh of a generation that the task core has: all exchange their statuses; what a
 * member lacks is passed on, into staging; the task core is notified that it is there; and only
 * then it counts (protocol, rule 11). ABORTED when the task was frozen meanwhile: its state is as
 * before. INVALID_ARGUMENT: the programs are not the same. In the program's thread, with no replica
 * running. */
cadre_status sync_state(cadre_strategy *strategy, struct cadre_error *error);

/* The strategy is in a generation that goes on from a checkpoint (STATE_RESTORES), and its program
 * has made all variables: rank 0 loads what they do not hold yet, and passes it to all. Nothing for
 * any other strategy. Peers may be lost meanwhile. */
cadre_status sync_restore(cadre_strategy *strategy, struct cadre_error *error);

#endif
