/* SPDX-License-Identifier: Apache-2.0
 * A variable that is set back to 0 between steps without a step of the ledger: the reset is the
 * beginning of the next step.
 *
 *     reset ─▶ reads give 0            the state is still the old value: a checkpoint, a comparison
 *       │                              and a task that joins get it, and whether a reset awaits
 *       ▼                              the step, which is registered state (registered.h)
 *     step begins ─▶ from 0 ─▶ undone: the reset awaits the step as before
 *                        └──▶ applied: the state is what the step made of 0
 *
 * All replicas reset the same variables before a step: the fold at its end compares them. */
#ifndef CADRE_RUNTIME_VARIABLE_RESET_H
#define CADRE_RUNTIME_VARIABLE_RESET_H

#include <stdbool.h>
#include <stdint.h>

#include "worker/library/runtime/variables/variable.h"

struct variable_reset {
    uint8_t awaits; /* the next step; 0 or 1, and registered */
    bool done;      /* the value is 0, and `held` is the state */
    struct variable_component held;
};

/* Makes resets of this variable possible, until it is freed; it is a strategy's, holds numbers, and
 * is on the host. RESOURCE_EXHAUSTED. */
cadre_status variable_reset_open(cadre_variable *variable, struct cadre_error *error);

/* Sets it back to 0. In the program's thread, between steps. In a task that has no state yet, or
 * has not reached the others' position, the value follows when the step begins, if a reset still
 * awaits it then: the others' state decides. */
void variable_reset(cadre_variable *variable);

/* The state of a variable that holds numbers. */
const struct variable_component *variable_state(const cadre_variable *variable);

/* Of all variables, in the program's thread, when a step begins or was undone: those with a reset
 * that awaits it are set to 0, and the others get back their old value. */
void variable_resets_settle(cadre_strategy *strategy);
/* The step is applied, here or by others. */
void variable_resets_applied(cadre_strategy *strategy);
/* Other state was received, and with it the resets that await the next step. */
void variable_resets_taken_over(cadre_strategy *strategy);

/* `key` with the resets that await the current step; `text` ("" without any) names the first. */
uint64_t variable_resets_key(
    const cadre_strategy *strategy, uint64_t key, char text[LIMIT_NAME_BYTES + 32]);

#endif
