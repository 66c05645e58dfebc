/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/state/restore/initial_value.h"

#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/device/tensor.h"
#include "worker/library/runtime/state/restore/restoration.h"
#include "worker/library/runtime/state/restore/restore.h"
#include "worker/library/runtime/state/layout/state_part.h"
#include "worker/library/runtime/strategy/strategy.h"

bool initial_value_is_shared(const cadre_variable *variable)
{
    return variable->kind != CADRE_VARIABLE_AGGREGATING && variable->dtype != CADRE_STRING;
}

cadre_status initial_value_find(
    const cadre_variable *variable, struct initial_value *value, struct cadre_error *error)
{
    const cadre_strategy *strategy = variable->strategy;
    const struct state_tensor tensor = state_tensor_of(variable);
    struct restoration *restoration = strategy->state_part->restoration;
    value->restored = strategy->state == STATE_RESTORES;
    if (value->restored || restoration_find(restoration, tensor.name) == NULL) {
        return CADRE_OK;
    }
    CADRE_TRY(restoration_fits(restoration, &tensor, error));
    value->from = restoration;
    value->restored = true;
    return CADRE_OK;
}

static cadre_status evaluate_restored(
    const cadre_variable *variable, struct initial_value *value, void *values)
{
    cadre_strategy *strategy = variable->strategy;
    CADRE_ASSERT(strategy->state == STATE_RESTORES || value->from != NULL);
    if (variable->dtype == CADRE_STRING) {
        cadre_tensor_release(value->strings);
        return value->from != NULL
                   ? restoration_strings(value->from, variable, &value->strings, &value->own)
                   : restore_strings(strategy, variable, &value->strings, &value->own);
    }
    const struct state_tensor tensor = state_tensor_of(variable);
    return value->from != NULL ? restoration_read(value->from, &tensor, values, &value->own)
                               : restore_tensor(strategy, &tensor, values, &value->own);
}

cadre_status initial_value_evaluate(
    const cadre_variable *variable, struct initial_value *value, void *values)
{
    value->own = (struct cadre_error){0};
    if (value->restored) {
        cadre_status status = evaluate_restored(variable, value, values);
        if (status != CADRE_NOT_FOUND || !value->may_lack) {
            return status;
        }
        value->own = (struct cadre_error){0};
    }
    if (variable->dtype == CADRE_STRING) {
        return CADRE_OK; /* it begins empty */
    }
    memset(values, 0, variable->bytes);
    return initializer_fill(
        value->initializer, variable->name, variable->dtype, variable->count, values, &value->own);
}
