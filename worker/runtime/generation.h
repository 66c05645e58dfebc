/* SPDX-License-Identifier: Apache-2.0
 * From a plan to a mesh: how a strategy gets into a generation. */
#ifndef CADRE_RUNTIME_GENERATION_H
#define CADRE_RUNTIME_GENERATION_H

#include "worker/runtime/strategy.h"

/* Waits for the plan, forms its mesh, and tells the coordinator. On success the strategy's roster,
 * mesh and counts are set. */
cadre_status generation_join(cadre_strategy *strategy, struct cadre_error *error);

/* Forms the mesh of the present roster again, after the old one was aborted: only in a job of one
 * task, where nobody else has to agree. */
cadre_status generation_repair(cadre_strategy *strategy, struct cadre_error *error);

/* Closes the mesh. */
void generation_leave(cadre_strategy *strategy);

#endif
