/* SPDX-License-Identifier: Apache-2.0
 * Variables: their memory, and public functions that return facts about them. */
#include "worker/library/runtime/variables/variable.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/device/argument.h"
#include "worker/library/device/tensor.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/variables/caching_scope.h"
#include "worker/library/runtime/variables/remote_variable.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/variables/variable_device.h"
#include "worker/library/runtime/variables/variable_registry.h"
#include "worker/library/runtime/variables/variable_memory.h"
#include "worker/library/runtime/variables/variable_reset.h"

/* --- memory --- */

static void component_clear(const cadre_variable *variable, struct variable_component *component)
{
    value_free(variable, component->device, component->value);
    value_free(variable, component->device, component->kept);
    value_free(variable, NULL, component->delta);
    *component = (struct variable_component){0};
}

void variable_clear(cadre_variable *variable)
{
    variable_registry_remove(variable);
    if (variable->served != NULL) {
        remote_variable_ops()->free(variable->served);
        variable->served = NULL;
    }
    caching_scope_forget(variable);
    for (uint32_t i = 0; i < variable->component_count; i++) {
        component_clear(variable, &variable->components[i]);
    }
    component_clear(variable, &variable->total);
    variable_host_close(variable);
    if (variable->reset != NULL) {
        free(variable->reset->held.value);
        free(variable->reset);
        variable->reset = NULL;
    }
    cadre_tensor_release(variable->strings);
    cadre_tensor_release(variable->strings_kept);
    variable->strings = NULL;
    variable->strings_kept = NULL;
}

void variable_free(cadre_variable *variable)
{
    if (variable != NULL) {
        variable_clear(variable);
        free(variable);
    }
}

const char *variable_short_name(const char *name, char text[VARIABLE_SHORT_BYTES])
{
    size_t length = strlen(name);
    if (length < VARIABLE_SHORT_BYTES) {
        memcpy(text, name, length + 1);
    } else {
        snprintf(text, VARIABLE_SHORT_BYTES, "%.20s...%s", name, name + length - 20);
    }
    return text;
}

bool variable_is_single(cadre_kind kind)
{
    return kind == CADRE_VARIABLE_REGULAR || kind == CADRE_VARIABLE_AGGREGATING;
}

struct variable_component *variable_component(cadre_variable *variable, uint32_t local)
{
    uint32_t at = variable_is_single(variable->kind) ? 0 : local;
    CADRE_ASSERT(at < variable->component_count);
    return &variable->components[at];
}

/* --- lookups --- */

cadre_kind cadre_variable_kind(const cadre_variable *variable)
{
    return !variable_is_registered(variable) ? CADRE_VARIABLE_REGULAR : variable->kind;
}

bool cadre_variable_created_in_scope(const cadre_strategy *strategy, const cadre_variable *variable)
{
    if (variable_is_registered(variable) &&
        variable->served != NULL) { /* as far as this task has received it */
        return strategy_is_registered(strategy) && strategy->kind == STRATEGY_PARAMETER_SERVER;
    }
    const cadre_strategy *its = strategy_is_default(strategy) ? NULL : strategy;
    return strategy != NULL && variable_is_registered(variable) && variable->strategy == its;
}

uint32_t cadre_variable_components(const cadre_variable *variable)
{
    return !variable_is_registered(variable) ? 0
           : variable->served != NULL        ? remote_variable_ops()->shards(variable)
           : variable->dtype == CADRE_STRING ? 1
                                             : variable->component_count;
}

/* The number in a component's name: of the replica, or of the shard. Component 0 has the variable's
 * name, unless there are several shards. */
static const char *suffix_of(
    const cadre_variable *variable, uint32_t component, uint32_t *ret_number)
{
    bool single = variable_is_single(variable->kind) || variable->dtype == CADRE_STRING;
    if (variable->served != NULL) {
        *ret_number = component;
        return remote_variable_ops()->shards(variable) > 1 ? "/part_" : NULL;
    }
    *ret_number = component + (single ? 0 : variable->strategy->replica_first);
    return *ret_number > 0 ? "/replica_" : NULL;
}

size_t cadre_variable_component_name(
    const cadre_variable *variable, uint32_t component, char *buffer, size_t size)
{
    if (component >= cadre_variable_components(variable)) {
        return (size_t)snprintf(buffer, size, "%s", "");
    }
    uint32_t number = 0;
    const char *suffix = suffix_of(variable, component, &number);
    int length = suffix == NULL ? snprintf(buffer, size, "%s", variable->name)
                                : snprintf(buffer, size, "%s%s%u", variable->name, suffix, number);
    return (size_t)length;
}

cadre_status cadre_variable_component_rows(
    const cadre_variable *variable, uint32_t component, int64_t *ret_first, int64_t *ret_rows)
{
    struct cadre_error error = {0};
    uint32_t components = cadre_variable_components(variable);
    cadre_status status = argument_require(variable, __func__, "variable", &error);
    if (status == CADRE_OK) {
        status = variable_require_registered(variable, __func__, &error);
    }
    if (status == CADRE_OK && component >= components) {
        status = cadre_error_set(&error, CADRE_OUT_OF_RANGE,
            "variable '%s' has no component %u on this task; it has %u", variable->name, component,
            components);
    }
    if (status == CADRE_OK) {
        const struct variable_shard shard =
            variable->served != NULL
                ? remote_variable_ops()->shard(variable, component)
                : (struct variable_shard){.rows = variable->rank == 0 ? 1 : variable->dims[0]};
        *ret_first = shard.first;
        *ret_rows = shard.rows;
    }
    return api_return(status, &error);
}

const char *cadre_variable_name(const cadre_variable *variable)
{
    return !variable_is_registered(variable) ? "" : variable->name;
}

cadre_dtype cadre_variable_dtype(const cadre_variable *variable)
{
    return !variable_is_registered(variable) ? CADRE_DTYPE_NONE : variable->dtype;
}

uint32_t cadre_variable_rank(const cadre_variable *variable)
{
    return !variable_is_registered(variable) ? 0 : variable->rank;
}

const int64_t *cadre_variable_dims(const cadre_variable *variable)
{
    return !variable_is_registered(variable) ? NULL : variable->dims;
}

int64_t cadre_variable_count(const cadre_variable *variable)
{
    return !variable_is_registered(variable) ? 0 : variable->count;
}
