/* SPDX-License-Identifier: Apache-2.0
 * A variable that is set back to 0 between steps without a step of the ledger: the reset is the
 * beginning of the step that comes, whichever that is.
 *
 *     reset ─▶ reads give 0            the state is still what it held: a checkpoint, a comparison
 *       │                              and a task that comes get that, and whether a reset awaits
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
 * lies on the host. RESOURCE_EXHAUSTED. */
cadre_status variable_reset_open(cadre_variable *variable, struct cadre_error *error);

/* Sets it back. In the program's thread, between steps. In a task that has no state yet, or is on
 * its way to where the others stand, the value follows when the step begins, if a reset still
 * awaits it then: what the others did decides. */
void variable_reset(cadre_variable *variable);

/* What the state has of a variable that holds numbers. */
const struct variable_component *variable_state(const cadre_variable *variable);

/* Of all variables, in the program's thread. A step begins, or what awaits it was given back: those
 * that await it are set back, and those that were set back and do not are what they were. */
void variable_resets_settle(cadre_strategy *strategy);
/* The step is applied, here or by others. */
void variable_resets_applied(cadre_strategy *strategy);
/* Other state was taken over, and with it what awaits the next step. */
void variable_resets_taken_over(cadre_strategy *strategy);

/* `key` with those that await the step at hand; `text` ("" without any) names the first. */
uint64_t variable_resets_key(
    const cadre_strategy *strategy, uint64_t key, char text[LIMIT_NAME_BYTES + 32]);

#endif
