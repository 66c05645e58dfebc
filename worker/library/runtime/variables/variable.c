/* SPDX-License-Identifier: Apache-2.0
 * Variables: their memory, and what can be asked about them. */
#include "worker/library/runtime/values/value_memory.h"
#include "worker/library/runtime/variables/variable.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/device/argument.h"
#include "worker/library/device/tensor.h"
#include "worker/library/runtime/border/border.h"
#include "worker/library/runtime/variables/caching_scope.h"
#include "worker/library/runtime/variables/elsewhere.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/variables/variable_device.h"
#include "worker/library/runtime/variables/variable_living.h"
#include "worker/library/runtime/variables/variable_memory.h"
#include "worker/library/runtime/variables/variable_reset.h"

/* --- memory --- */

static void component_clear(const cadre_variable *variable, struct variable_component *component)
{
    value_free(variable, component->device, component->value);
    value_free(variable, component->device, component->kept);
    value_free(variable, NULL, component->delta);
}

void variable_free(cadre_variable *variable)
{
    if (variable == NULL) {
        return;
    }
    variable_ends(variable);
    if (variable->served != NULL) {
        variable_elsewhere()->free(variable->served);
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
    }
    cadre_tensor_release(variable->strings);
    cadre_tensor_release(variable->strings_kept);
    free(variable);
}

const char *variable_short_name(const cadre_variable *variable, char text[VARIABLE_SHORT_BYTES])
{
    const char *name = variable->name;
    size_t length = strlen(name);
    if (length < VARIABLE_SHORT_BYTES) {
        memcpy(text, name, length + 1);
    } else {
        snprintf(text, VARIABLE_SHORT_BYTES, "%.20s...%s", name, name + length - 20);
    }
    return text;
}

/* Strings live in a tensor, all others in components. */
static cadre_status allocate(cadre_variable *variable, struct cadre_error *error)
{
    CADRE_ASSERT((variable->component_count > 0) == (variable->served == NULL));
    if (!variable_begins(variable)) {
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

static cadre_kind kind_of(const struct variable_plan *plan)
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

static bool is_single(cadre_kind kind)
{
    return kind == CADRE_VARIABLE_REGULAR || kind == CADRE_VARIABLE_AGGREGATING;
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
    cadre_kind kind = kind_of(plan);
    uint32_t components = kind == CADRE_VARIABLE_SERVED ? 0
                          : is_single(kind)             ? 1
                                                        : plan->strategy->local_replicas;
    cadre_variable *variable =
        calloc(1, sizeof *variable + components * sizeof variable->components[0]);
    if (variable == NULL) {
        if (plan->served != NULL) {
            variable_elsewhere()->free(plan->served);
        }
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for the variable '%s'", plan->name);
    }
    variable->kind = kind;
    variable->component_count = components;
    variable->counts = plan->counts;
    cadre_status status = fill_in(variable, plan, error);
    if (status == CADRE_OK) {
        status = allocate(variable, error);
        if (status == CADRE_RESOURCE_EXHAUSTED) {
            cadre_error_wrap(error, status,
                "no memory for the variable '%s', which takes %zu bytes on each of %u local "
                "replicas",
                plan->name, variable->bytes, components);
        }
    }
    if (status != CADRE_OK) {
        variable_free(variable);
        return status;
    }
    *ret_variable = variable;
    return CADRE_OK;
}

struct variable_component *variable_component(cadre_variable *variable, uint32_t local)
{
    uint32_t at = is_single(variable->kind) ? 0 : local;
    CADRE_ASSERT(at < variable->component_count);
    return &variable->components[at];
}

/* --- looking at them --- */

bool variable_place(const cadre_strategy *strategy, const char *name, uint32_t *ret_place)
{
    uint32_t low = 0;
    uint32_t high = strategy->variables->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (strcmp(strategy->variables->list[middle]->name, name) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    *ret_place = low;
    CADRE_ASSERT(low <= strategy->variables->count);
    return low < strategy->variables->count &&
           strcmp(strategy->variables->list[low]->name, name) == 0;
}

cadre_variable *variable_known(const cadre_strategy *strategy, const char *name)
{
    uint32_t place = 0;
    return variable_place(strategy, name, &place) ? strategy->variables->list[place] : NULL;
}

cadre_kind cadre_variable_kind(const cadre_variable *variable)
{
    return !variable_lives(variable) ? CADRE_VARIABLE_REGULAR : variable->kind;
}

bool cadre_variable_created_in_scope(const cadre_strategy *strategy, const cadre_variable *variable)
{
    if (variable_lives(variable) && variable->served != NULL) { /* as far as this task knows */
        return strategy_lives(strategy) && strategy->kind == STRATEGY_PARAMETER_SERVER;
    }
    const cadre_strategy *its = strategy_is_default(strategy) ? NULL : strategy;
    return strategy != NULL && variable_lives(variable) && variable->strategy == its;
}

uint32_t cadre_variable_components(const cadre_variable *variable)
{
    return !variable_lives(variable)         ? 0
           : variable->served != NULL        ? variable_elsewhere()->shards(variable)
           : variable->dtype == CADRE_STRING ? 1
                                             : variable->component_count;
}

/* The number in its name: of the replica, or of the shard. 0 is called as the variable, but of
 * several shards. */
static const char *suffix_of(
    const cadre_variable *variable, uint32_t component, uint32_t *ret_number)
{
    bool single = is_single(variable->kind) || variable->dtype == CADRE_STRING;
    if (variable->served != NULL) {
        *ret_number = component;
        return variable_elsewhere()->shards(variable) > 1 ? "/part_" : NULL;
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
        status = variable_require_living(variable, __func__, &error);
    }
    if (status == CADRE_OK && component >= components) {
        status = cadre_error_set(&error, CADRE_OUT_OF_RANGE,
            "variable '%s' has no component %u on this task; it has %u", variable->name, component,
            components);
    }
    if (status == CADRE_OK) {
        const struct variable_shard shard =
            variable->served != NULL
                ? variable_elsewhere()->shard(variable, component)
                : (struct variable_shard){.rows = variable->rank == 0 ? 1 : variable->dims[0]};
        *ret_first = shard.first;
        *ret_rows = shard.rows;
    }
    return border(status, &error);
}

const char *cadre_variable_name(const cadre_variable *variable)
{
    return !variable_lives(variable) ? "" : variable->name;
}

cadre_dtype cadre_variable_dtype(const cadre_variable *variable)
{
    return !variable_lives(variable) ? CADRE_DTYPE_NONE : variable->dtype;
}

uint32_t cadre_variable_rank(const cadre_variable *variable)
{
    return !variable_lives(variable) ? 0 : variable->rank;
}

const int64_t *cadre_variable_dims(const cadre_variable *variable)
{
    return !variable_lives(variable) ? NULL : variable->dims;
}

int64_t cadre_variable_count(const cadre_variable *variable)
{
    return !variable_lives(variable) ? 0 : variable->count;
}
