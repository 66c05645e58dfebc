/* SPDX-License-Identifier: Apache-2.0
 * What a variable begins with: what the checkpoint holds of it that the job goes on from, or the
 * file that its program has named, or its initial value. The first task knows it, and tells it. */
#ifndef CADRE_RUNTIME_RESTORE_INITIAL_VALUE_H
#define CADRE_RUNTIME_RESTORE_INITIAL_VALUE_H

#include <stdbool.h>

#include "common/base/error.h"
#include "worker/library/runtime/state/layout/state_part.h"
#include "worker/library/runtime/variables/variable.h"

/* Where it is to come from. INVALID_ARGUMENT: that holds another one of this name. */
cadre_status initial_value_find(
    const cadre_variable *variable, struct initial_value *value, struct cadre_error *error);

/* Into `values`, in the host's memory; `value->own` is why not. */
cadre_status initial_value_evaluate(
    const cadre_variable *variable, struct initial_value *value, void *values);

/* Whether each replica has a component that gets it. */
bool initial_value_is_shared(const cadre_variable *variable);

#endif
