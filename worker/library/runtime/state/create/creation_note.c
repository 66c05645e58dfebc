/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/state/create/variable_create.h"

#include <stdio.h>
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/device/tensor.h"
#include "worker/library/runtime/replica/collective_key.h"

static const char *const aggregations[] = {[CADRE_AGGREGATION_NONE] = "NONE",
    [CADRE_AGGREGATION_SUM] = "SUM",
    [CADRE_AGGREGATION_MEAN] = "MEAN",
    [CADRE_AGGREGATION_ONLY_FIRST_REPLICA] = "ONLY_FIRST_REPLICA"};

static const char *const kinds[] = {[CADRE_VARIABLE_REGULAR] = "regular",
    [CADRE_VARIABLE_MIRRORED] = "mirrored",
    [CADRE_VARIABLE_SYNC_ON_READ] = "combined when read",
    [CADRE_VARIABLE_AGGREGATING] = "stored once"};

uint64_t creation_key(const struct variable_plan *plan)
{
    uint64_t key = collective_key(0, (uint64_t)plan->dtype);
    key = collective_key(key, (uint64_t)plan->options->aggregation);
    key = collective_key(key, variable_kind_of(plan));
    for (uint32_t i = 0; i < plan->rank; i++) {
        key = collective_key(key, (uint64_t)plan->dims[i]);
    }
    return collective_key_text(key, plan->name);
}

const char *creation_text(
    const struct variable_plan *plan, uint32_t nth, char text[STRATEGY_CALL_TEXT_BYTES])
{
    char name[VARIABLE_SHORT_BYTES];
    char shape[TENSOR_SHAPE_TEXT_BYTES];
    char ordinal[24] = "";
    CADRE_ASSERT(plan->options->aggregation <= CADRE_AGGREGATION_ONLY_FIRST_REPLICA);
    tensor_shape_text(plan->dtype, plan->rank, plan->dims, shape);
    if (nth > 0) {
        snprintf(ordinal, sizeof ordinal, " as variable %u", nth);
    }
    snprintf(text, STRATEGY_CALL_TEXT_BYTES, "cadre_variable_create('%s', %.44s, %s)%s",
        variable_short_name(plan->name, name), shape, aggregations[plan->options->aggregation],
        ordinal);
    return text;
}

static cadre_status creation_note_misfit(
    const char *name, const char *is, const char *wanted, struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
        "variable '%s' was created %s before, and now %s; create it alike, or give it "
        "another name",
        name, is, wanted);
}

cadre_status creation_fits(
    const struct variable_plan *plan, const cadre_variable *variable, struct cadre_error *error)
{
    cadre_kind kind = variable_kind_of(plan);
    cadre_aggregation wanted = plan->options->aggregation;
    if (variable->dtype != plan->dtype || variable->rank != plan->rank ||
        (plan->rank > 0 && /* else dims may be NULL */
            memcmp(variable->dims, plan->dims, plan->rank * sizeof plan->dims[0]) != 0)) {
        char is[TENSOR_SHAPE_TEXT_BYTES];
        char shape[TENSOR_SHAPE_TEXT_BYTES];
        tensor_shape_text(variable->dtype, variable->rank, variable->dims, is);
        tensor_shape_text(plan->dtype, plan->rank, plan->dims, shape);
        return creation_note_misfit(variable->name, is, shape, error);
    }
    if (variable->kind != kind) {
        return creation_note_misfit(variable->name, kinds[variable->kind], kinds[kind], error);
    }
    if (variable->aggregation != wanted) {
        return creation_note_misfit(
            variable->name, aggregations[variable->aggregation], aggregations[wanted], error);
    }
    return variable->keep_on_host == plan->options->keep_on_host
               ? CADRE_OK
               : creation_note_misfit(variable->name,
                     variable->keep_on_host ? "on the host" : "on devices",
                     variable->keep_on_host ? "on devices" : "on the host", error);
}
