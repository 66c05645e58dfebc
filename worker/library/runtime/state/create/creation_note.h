/* SPDX-License-Identifier: Apache-2.0
 * How tasks that create variables find that they create different ones, and name the difference. */
#ifndef CADRE_RUNTIME_CREATE_CREATION_NOTE_H
#define CADRE_RUNTIME_CREATE_CREATION_NOTE_H

#include <stdint.h>

#include "worker/library/runtime/regroup/between_steps.h"
#include "worker/library/runtime/variables/variable.h"

/* A key of all that must be equal on all tasks. */
uint64_t creation_key(const struct variable_plan *plan);

/* "cadre_variable_create('w', f32 [2, 3], SUM) as variable 3"; `nth` 0: without that. Returns
 * `text`. */
const char *creation_text(
    const struct variable_plan *plan, uint32_t nth, char text[STRATEGY_CALL_TEXT_BYTES]);

/* INVALID_ARGUMENT: the existing variable is another one than is planned. */
cadre_status creation_fits(
    const struct variable_plan *plan, const cadre_variable *variable, struct cadre_error *error);

#endif
