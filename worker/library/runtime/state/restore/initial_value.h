/* SPDX-License-Identifier: Apache-2.0
 * The initial value of a variable: of the checkpoint that the job goes on from, of the file that
 * its program has named, or of its initializer. The first task has it, and sends it. And that of
 * registered state. */
#ifndef CADRE_RUNTIME_RESTORE_INITIAL_VALUE_H
#define CADRE_RUNTIME_RESTORE_INITIAL_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"
#include "worker/library/runtime/state/layout/state_part.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/variables/variable.h"

/* Finds its source. INVALID_ARGUMENT: the source has another one of this name. */
cadre_status initial_value_find(
    const cadre_variable *variable, struct initial_value *value, struct cadre_error *error);

/* Writes it to `values`, in the host's memory; on an error `value->own` is set. */
cadre_status initial_value_evaluate(
    const cadre_variable *variable, struct initial_value *value, void *values);

/* Whether each replica has a component that gets it. */
bool initial_value_is_shared(const cadre_variable *variable);

/* --- register.c --- */

/* Before the first step, in all tasks together: registered state `i` gets its value of the
 * strategy's restoration, if there is one. Errors are final, but INVALID_ARGUMENT, which means that
 * it has another size there. */
cadre_status registered_take_restored(
    cadre_strategy *strategy, uint32_t i, struct cadre_error *error);

#endif
