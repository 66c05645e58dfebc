/* SPDX-License-Identifier: Apache-2.0
 * A variable by its plan: allocation and devices of the components. */
#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/device/tensor.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/values/value_memory.h"
#include "worker/library/runtime/variables/remote_variable.h"
#include "worker/library/runtime/variables/variable.h"
#include "worker/library/runtime/variables/variable_device.h"
#include "worker/library/runtime/variables/variable_list.h"
#include "worker/library/runtime/variables/variable_registry.h"
#include "worker/library/runtime/variables/variable_memory.h"

/* Strings are in a tensor, all others in components. */
static cadre_status variable_new_allocate(cadre_variable *variable, struct cadre_error *error)
{
    CADRE_ASSERT((variable->component_count > 0) == (variable->served == NULL));
    if (!variable_registry_add(variable)) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "the host has none");
    }
    if (variable->served != NULL) {
        return CADRE_OK;
    }
    if (variable->dtype == CADRE_STRING) {
        variable->component_count = 0;
        variable->bytes = 0;
        return tensor_create(
            CADRE_STRING, variable->rank, variable->dims, &variable->strings, error);
    }
    for (uint32_t i = 0; i < variable->component_count; i++) {
        struct variable_component *component = &variable->components[i];
        component->device = variable_home(variable, i);
        CADRE_TRY(value_new(variable, component->device, &component->value, error));
        if (variable->on_read) {
            CADRE_TRY(value_new(variable, NULL, &component->delta, error));
        }
    }
    if (variable->on_read) {
        CADRE_TRY(value_new(variable, NULL, &variable->total.value, error));
    }
    return variable_host_open(variable, error);
}

cadre_kind variable_kind_of(const struct variable_plan *plan)
{
    if (plan->served != NULL) {
        return CADRE_VARIABLE_SERVED;
    }
    if (plan->strategy == NULL) {
        return CADRE_VARIABLE_REGULAR;
    }
    if (plan->strategy->kind == STRATEGY_CENTRAL_STORAGE) {
        return CADRE_VARIABLE_AGGREGATING;
    }
    return plan->options->synchronization == CADRE_SYNC_ON_READ ? CADRE_VARIABLE_SYNC_ON_READ
                                                                : CADRE_VARIABLE_MIRRORED;
}

static cadre_status fill_in(
    cadre_variable *variable, const struct variable_plan *plan, struct cadre_error *error)
{
    variable->strategy = plan->strategy;
    variable->served = plan->served;
    CADRE_ASSERT(strlen(plan->name) < sizeof variable->name); /* it was checked */
    variable->dtype = plan->dtype;
    variable->rank = plan->rank;
    variable->aggregation = plan->options->aggregation;
    variable->on_read = variable->kind == CADRE_VARIABLE_SYNC_ON_READ;
    variable->keep_on_host = plan->options->keep_on_host;
    variable->memory = value_memory(plan->strategy);
    memcpy(variable->name, plan->name, strlen(plan->name) + 1);
    cadre_status status = tensor_shape_check(
        plan->dtype, plan->rank, plan->dims, &variable->count, &variable->bytes, error);
    for (uint32_t i = 0; status == CADRE_OK && i < plan->rank; i++) {
        variable->dims[i] = plan->dims[i];
    }
    return status == CADRE_OK ? status
                              : cadre_error_wrap(error, status, "variable '%s'", plan->name);
}

cadre_status variable_new(
    const struct variable_plan *plan, cadre_variable **ret_variable, struct cadre_error *error)
{
    cadre_kind kind = variable_kind_of(plan);
    uint32_t components = kind == CADRE_VARIABLE_SERVED ? 0
                          : variable_is_single(kind)    ? 1
                                                        : plan->strategy->local_replicas;
    cadre_variable *variable = variables_revive(plan, kind, components);
    if (variable == NULL) {
        variable = calloc(1, sizeof *variable + components * sizeof variable->components[0]);
    }
    if (variable == NULL) {
        if (plan->served != NULL) {
            remote_variable_ops()->free(plan->served);
        }
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for the variable '%s'", plan->name);
    }
    variable->kind = kind;
    variable->room = components;
    variable->counts = plan->counts;
    variable->component_count = components;
    cadre_status status = fill_in(variable, plan, error);
    if (status == CADRE_OK) {
        status = variable_new_allocate(variable, error);
        if (status == CADRE_RESOURCE_EXHAUSTED) {
            cadre_error_wrap(error, status,
                "no memory for the variable '%s', which takes %zu bytes on each of %u local "
                "replicas",
                plan->name, variable->bytes, components);
        }
    }
    if (status != CADRE_OK) {
        variable_discard(variable);
        return status;
    }
    *ret_variable = variable;
    return CADRE_OK;
}
