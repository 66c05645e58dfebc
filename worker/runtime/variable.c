/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/runtime/variable.h"

#include <stdlib.h>
#include <string.h>

#include "worker/device/argument.h"
#include "worker/device/tensor.h"
#include "worker/runtime/border.h"
#include "worker/runtime/checkpoint.h"
#include "worker/runtime/collective.h"
#include "worker/runtime/name.h"
#include "worker/runtime/strategy.h"

/* --- memory --- */

static void *value_new(size_t bytes)
{
    size_t rounded = (bytes / CADRE_TENSOR_ALIGN + 1) * CADRE_TENSOR_ALIGN;
    void *value = aligned_alloc(CADRE_TENSOR_ALIGN, rounded);
    if (value != NULL) {
        memset(value, 0, rounded);
    }
    return value;
}

void variable_free(cadre_variable *variable)
{
    if (variable == NULL) {
        return;
    }
    for (uint32_t i = 0; i < variable->component_count; i++) {
        free(variable->components[i].value);
        free(variable->components[i].kept);
    }
    free(variable);
}

static cadre_status variable_new(cadre_strategy *strategy, const char *name, cadre_dtype dtype,
    uint32_t rank, const int64_t *dims, cadre_variable **ret_variable, struct cadre_error *error)
{
    uint32_t components = strategy->local_replicas;
    cadre_variable *variable =
        calloc(1, sizeof *variable + components * sizeof variable->components[0]);
    if (variable == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for the variable '%s'", name);
    }
    variable->strategy = strategy;
    variable->dtype = dtype;
    variable->rank = rank;
    variable->component_count = components;
    memcpy(variable->name, name, strlen(name) + 1);
    cadre_status status =
        tensor_shape_check(dtype, rank, dims, &variable->count, &variable->bytes, error);
    if (status != CADRE_OK) {
        variable_free(variable);
        return cadre_error_wrap(error, status, "variable '%s'", name);
    }
    for (uint32_t i = 0; i < rank; i++) {
        variable->dims[i] = dims[i];
    }
    for (uint32_t i = 0; i < components; i++) {
        variable->components[i].value = value_new(variable->bytes);
        if (variable->components[i].value == NULL) {
            status = cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
                "no memory for the %zu bytes of component %u of the variable '%s'", variable->bytes,
                i, name);
            variable_free(variable);
            return status;
        }
    }
    *ret_variable = variable;
    return CADRE_OK;
}

/* --- creation --- */

static cadre_status check_creation(cadre_strategy *strategy, const char *name, cadre_dtype dtype,
    const cadre_variable_options *options, struct cadre_error *error)
{
    cadre_status status = name_check("variable", name, error);
    if (status != CADRE_OK) {
        return status;
    }
    if (cadre_variable_find(strategy, name) != NULL) {
        return cadre_error_set(error, CADRE_ALREADY_EXISTS,
            "a variable '%s' exists in this strategy; give the new one another name", name);
    }
    if (dtype == CADRE_STRING) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "variable '%s': strings are not trainable state; use another type", name);
    }
    if (options->synchronization == CADRE_SYNC_ON_READ) {
        return cadre_error_set(error, CADRE_UNIMPLEMENTED,
            "variable '%s': variables that are combined when read (CADRE_SYNC_ON_READ) are not "
            "there yet; all-reduce the value in the step and write it to a mirrored variable",
            name);
    }
    if (options->synchronization != CADRE_SYNC_AUTO &&
        options->synchronization != CADRE_SYNC_ON_WRITE) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "variable '%s': synchronization %d is not one a distributed variable can have; use "
            "CADRE_SYNC_AUTO",
            name, (int)options->synchronization);
    }
    if (options->aggregation < CADRE_AGGREGATION_NONE ||
        options->aggregation > CADRE_AGGREGATION_ONLY_FIRST_REPLICA) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "variable '%s': %d is no aggregation; use one of enum cadre_aggregation", name,
            (int)options->aggregation);
    }
    if (options->aggregation == CADRE_AGGREGATION_MEAN && dtype > CADRE_BF16) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "variable '%s': CADRE_AGGREGATION_MEAN needs a floating type, not %s", name,
            cadre_dtype_name(dtype));
    }
    if (strategy_position(strategy) > 0) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "variable '%s' was created after the first step; create all variables before", name);
    }
    return CADRE_OK;
}

static uint64_t variable_key(const cadre_variable *variable)
{
    uint64_t key = collective_key(0, (uint64_t)variable->dtype);
    key = collective_key(key, (uint64_t)variable->aggregation);
    for (uint32_t i = 0; i < variable->rank; i++) {
        key = collective_key(key, (uint64_t)variable->dims[i]);
    }
    for (size_t i = 0; variable->name[i] != '\0'; i++) {
        key = collective_key(key, (uint64_t)(unsigned char)variable->name[i]);
    }
    return key;
}

struct sharing {
    cadre_variable *variable;
    bool chief_failed;
    int64_t failures; /* over all replicas; of local replica 0 */
};

/* First all agree on what is created and whether the chief could, then they get its value. */
static cadre_status share_here(
    cadre_strategy *strategy, uint32_t local, void *user, struct cadre_error *error)
{
    struct sharing *sharing = user;
    cadre_variable *variable = sharing->variable;
    int64_t failures = sharing->chief_failed && local == 0 ? 1 : 0;
    struct mesh_buffer flag = {.data = &failures, .bytes = sizeof failures, .dtype = MESH_I64};
    cadre_status status = collective_sum(strategy, local, &flag, 1, variable_key(variable), error);
    if (status == CADRE_INVALID_ARGUMENT) {
        return cadre_error_set(error, status,
            "variable '%s': the tasks do not create the same variables in the same order",
            variable->name);
    }
    if (local == 0) {
        sharing->failures = failures;
    }
    if (status != CADRE_OK || failures != 0) {
        return status;
    }
    struct mesh_buffer value = {
        .data = variable->components[local].value, .bytes = variable->bytes, .dtype = MESH_U8};
    return strategy->mesh->ops->broadcast(strategy->mesh, local, 0, &value, 1, error);
}

/* The chief's first replica evaluates the initial value; all components get it. */
static cadre_status initialize(cadre_strategy *strategy, cadre_variable *variable,
    const cadre_initializer *initializer, struct cadre_error *error)
{
    struct cadre_error own = {0};
    cadre_status status = CADRE_OK;
    if (strategy->roster.rank == 0 && strategy->variable_count == 0) {
        /* Better than after hours of training. */
        status = checkpoint_probe(strategy->environment->output_folder, &own);
    }
    if (strategy->roster.rank == 0 && status == CADRE_OK) {
        status = initializer_fill(initializer, variable->name, variable->dtype, variable->count,
            variable->components[0].value, &own);
    }
    struct sharing sharing = {.variable = variable, .chief_failed = status != CADRE_OK};
    cadre_status shared = strategy_each_replica(strategy, share_here, &sharing, error);
    if (status != CADRE_OK) {
        return cadre_error_set(error, status, "%s", own.text);
    }
    if (shared != CADRE_OK) {
        return shared == CADRE_INVALID_ARGUMENT ? shared : strategy_fail(strategy, error);
    }
    if (sharing.failures != 0) {
        return cadre_error_set(error, CADRE_ABORTED,
            "variable '%s': the chief could not create it, and says why", variable->name);
    }
    return CADRE_OK;
}

static cadre_status keep_variable(
    cadre_strategy *strategy, cadre_variable *variable, struct cadre_error *error)
{
    if (strategy->variable_count == strategy->variable_capacity) {
        uint32_t capacity = strategy->variable_capacity == 0 ? 16 : strategy->variable_capacity * 2;
        cadre_variable **grown =
            realloc(strategy->variables, capacity * sizeof strategy->variables[0]);
        if (grown == NULL) {
            return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for %u variables",
                strategy->variable_count + 1);
        }
        strategy->variables = grown;
        strategy->variable_capacity = capacity;
    }
    strategy->variables[strategy->variable_count++] = variable;
    return CADRE_OK;
}

cadre_status cadre_variable_create(cadre_strategy *strategy, const char *name, cadre_dtype dtype,
    uint32_t rank, const int64_t *dims, const cadre_variable_options *options,
    cadre_variable **ret_variable)
{
    static const cadre_variable_options defaults = {0};
    struct cadre_error error = {0};
    cadre_variable *variable = NULL;
    options = options == NULL ? &defaults : options;
    cadre_status status = argument_require(ret_variable, __func__, "ret_variable", &error);
    if (status == CADRE_OK) {
        *ret_variable = NULL;
        status = strategy_enter(strategy, __func__, &error);
    }
    if (status == CADRE_OK) {
        status = check_creation(strategy, name, dtype, options, &error);
    }
    if (status == CADRE_OK) {
        status = variable_new(strategy, name, dtype, rank, dims, &variable, &error);
    }
    if (status == CADRE_OK) {
        variable->aggregation = options->aggregation;
        status = initialize(strategy, variable, &options->initializer, &error);
    }
    if (status == CADRE_OK) {
        status = keep_variable(strategy, variable, &error);
    }
    if (status != CADRE_OK) {
        variable_free(variable);
        return border(status, &error);
    }
    *ret_variable = variable;
    return CADRE_OK;
}

/* --- looking at them --- */

cadre_variable *cadre_variable_find(const cadre_strategy *strategy, const char *name)
{
    if (!strategy_lives(strategy) || name == NULL) {
        return NULL;
    }
    for (uint32_t i = 0; i < strategy->variable_count; i++) {
        if (strcmp(strategy->variables[i]->name, name) == 0) {
            return strategy->variables[i];
        }
    }
    return NULL;
}

const char *cadre_variable_name(const cadre_variable *variable)
{
    return variable == NULL ? "" : variable->name;
}

cadre_dtype cadre_variable_dtype(const cadre_variable *variable)
{
    return variable == NULL ? CADRE_DTYPE_NONE : variable->dtype;
}

uint32_t cadre_variable_rank(const cadre_variable *variable)
{
    return variable == NULL ? 0 : variable->rank;
}

const int64_t *cadre_variable_dims(const cadre_variable *variable)
{
    return variable == NULL ? NULL : variable->dims;
}

int64_t cadre_variable_count(const cadre_variable *variable)
{
    return variable == NULL ? 0 : variable->count;
}

const void *cadre_variable_read(const cadre_replica *replica, const cadre_variable *variable)
{
    struct cadre_error error = {0};
    if (argument_require(variable, __func__, "variable", &error) != CADRE_OK) {
        border(error.code, &error);
        return NULL;
    }
    replica = replica == NULL ? context_replica() : replica;
    return variable->components[replica == NULL ? 0 : replica->local].value;
}

/* --- writing --- */

cadre_status variable_open_write(
    cadre_variable *variable, uint32_t local, void **ret_value, struct cadre_error *error)
{
    struct variable_component *component = &variable->components[local];
    *ret_value = NULL;
    if (!component->written) {
        if (component->kept == NULL && (component->kept = value_new(variable->bytes)) == NULL) {
            return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
                "variable '%s': no memory to keep its value from before the step", variable->name);
        }
        memcpy(component->kept, component->value, variable->bytes);
        component->written = true;
    }
    *ret_value = component->value;
    return CADRE_OK;
}

void *cadre_variable_write(cadre_replica *replica, cadre_variable *variable)
{
    struct cadre_error error = {0};
    void *value = NULL;
    if (argument_require(variable, __func__, "variable", &error) != CADRE_OK) {
        border(error.code, &error);
        return NULL;
    }
    if (replica == NULL || !replica->active) {
        border(cadre_error_set(&error, CADRE_FAILED_PRECONDITION,
                   "variable '%s' was opened for writing outside of a replica function; before "
                   "the first step use cadre_variable_assign, after it write in a step",
                   variable->name),
            &error);
        return NULL;
    }
    border(variable_open_write(variable, replica->local, &value, &error), &error);
    return value;
}

static void end_step(cadre_strategy *strategy, bool restore)
{
    for (uint32_t i = 0; i < strategy->variable_count; i++) {
        cadre_variable *variable = strategy->variables[i];
        for (uint32_t local = 0; local < variable->component_count; local++) {
            struct variable_component *component = &variable->components[local];
            if (component->written && restore) {
                memcpy(component->value, component->kept, variable->bytes);
            }
            component->written = false;
        }
    }
}

void variables_commit(cadre_strategy *strategy)
{
    end_step(strategy, false);
}

void variables_restore(cadre_strategy *strategy)
{
    end_step(strategy, true);
}
