/* SPDX-License-Identifier: Apache-2.0
 * From a plan to a generation: roster, mesh, state, inputs. */
#ifndef CADRE_RUNTIME_GENERATION_H
#define CADRE_RUNTIME_GENERATION_H

#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/replica/each_replica.h"

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

#endif
