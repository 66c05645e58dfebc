/* SPDX-License-Identifier: Apache-2.0
 * What other folders of the runtime do for a crew that begins and ends. */
#ifndef CADRE_RUNTIME_CREW_PARTS_H
#define CADRE_RUNTIME_CREW_PARTS_H

#include "worker/runtime/crew/crew.h"

/* Of a worker, in a thread that stands for it: connects to the chief and runs its closures, until
 * the directory has ended. CADRE_OK in order. (worker/runtime/closures) */
cadre_status closure_worker_run(struct crew_state *crew, struct cadre_error *error);

/* Of a chief: its workers are told that it is over. (worker/runtime/closures) */
void scheduler_end(struct crew_state *crew);

/* Those that the crew knows are gone. (worker/runtime/parameters) */
void parameters_end(struct crew_state *crew);

#endif
