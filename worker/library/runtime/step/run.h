/* SPDX-License-Identifier: Apache-2.0
 * The inside of cadre_run. */
#ifndef CADRE_RUNTIME_RUN_H
#define CADRE_RUNTIME_RUN_H

#include "worker/library/runtime/strategy/strategy.h"

/* What cadre_run does once it has entered: for other calls that take a step, too. The outputs are
 * NULL at first. */
cadre_status run_program_step(cadre_strategy *strategy, cadre_replica_function function, void *user,
    cadre_per_replica *input, uint32_t n_outputs, cadre_per_replica *ret_outputs[],
    struct cadre_error *error);

#endif
