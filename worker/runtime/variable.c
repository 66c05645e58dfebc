/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/runtime/variable.h"

#include <stdlib.h>
#include <string.h>

#include "worker/device/argument.h"
#include "worker/device/tensor.h"
#include "worker/runtime/border.h"
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

static void component_clear(struct variable_component *component)
{
    free(component->value);
    free(component->kept);
    free(component->delta);
}

void variable_free(cadre_variable *variable)
{
    if (variable == NULL) {
        return;
    }
    for (uint32_t i = 0; i < variable->component_count; i++) {
        component_clear(&variable->components[i]);
    }
    component_clear(&variable->total);
    cadre_tensor_release(variable->strings);
    cadre_tensor_release(variable->strings_kept);
    free(variable);
}

/* Strings live in a tensor, all others in components. */
static bool allocate(cadre_variable *variable)
{
    bool whole = true;
    if (variable->dtype == CADRE_STRING) {
        variable->component_count = 0;
        variable->bytes = 0;
        return cadre_tensor_create(
                   CADRE_STRING, variable->rank, variable->dims, &variable->strings) == CADRE_OK;
    }
    for (uint32_t i = 0; whole && i < variable->component_count; i++) {
        struct variable_component *component = &variable->components[i];
        component->value = value_new(variable->bytes);
        component->delta = variable->on_read ? value_new(variable->bytes) : NULL;
        whole = component->value != NULL && (component->delta != NULL || !variable->on_read);
    }
    variable->total.value = variable->on_read ? value_new(variable->bytes) : NULL;
    return whole && (variable->total.value != NULL || !variable->on_read);
}

cadre_status variable_new(cadre_strategy *strategy, const char *name, cadre_dtype dtype,
    uint32_t rank, const int64_t *dims, const cadre_variable_options *options,
    cadre_variable **ret_variable, struct cadre_error *error)
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
    variable->aggregation = options->aggregation;
    variable->on_read = options->synchronization == CADRE_SYNC_ON_READ;
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
    size_t bytes = variable->bytes;
    if (!allocate(variable)) {
        variable_free(variable);
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory for the variable '%s': it takes %zu bytes on each of %u local replicas",
            name, bytes, components);
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
    if (variable->dtype == CADRE_STRING) {
        return cadre_tensor_const_data(variable->strings);
    }
    replica = replica == NULL ? context_replica() : replica;
    if (replica == NULL && variable->on_read) {
        return variable->total.value;
    }
    return variable->components[replica == NULL ? 0 : replica->local].value;
}

/* --- writing --- */

cadre_status component_open_write(
    cadre_variable *variable, struct variable_component *component, struct cadre_error *error)
{
    if (!component->written) {
        if (component->kept == NULL && (component->kept = value_new(variable->bytes)) == NULL) {
            return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
                "variable '%s': no memory to keep its value from before the step", variable->name);
        }
        memcpy(component->kept, component->value, variable->bytes);
        component->written = true;
        component->undone = false;
    }
    return CADRE_OK;
}

cadre_status variable_open_write(
    cadre_variable *variable, uint32_t local, void **ret_value, struct cadre_error *error)
{
    struct variable_component *component = &variable->components[local];
    cadre_status status = component_open_write(variable, component, error);
    *ret_value = status == CADRE_OK ? component->value : NULL;
    return status;
}

void variable_set_strings(cadre_variable *variable, cadre_tensor *strings)
{
    if (variable->strings_kept == NULL) {
        variable->strings_kept = variable->strings;
    } else {
        cadre_tensor_release(variable->strings);
    }
    variable->strings = strings;
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
                   "variable '%s' was opened for writing outside of a replica function; use "
                   "cadre_variable_assign there",
                   variable->name),
            &error);
        return NULL;
    }
    if (variable->dtype == CADRE_STRING) {
        cadre_error_set(&error, CADRE_FAILED_PRECONDITION,
            "variable '%s' holds strings, which are assigned between steps only; use "
            "cadre_variable_assign in cross-replica context",
            variable->name);
        step_refused(replica, &error);
        border(error.code, &error);
        return NULL;
    }
    border(variable_open_write(variable, replica->local, &value, &error), &error);
    return value;
}

/* Pointers to values stay, so the bytes go. */
static void swap_bytes(char *a, char *b, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        char of_a = a[i];
        a[i] = b[i];
        b[i] = of_a;
    }
}

static void end_component(
    const cadre_variable *variable, struct variable_component *component, bool restore)
{
    if (component->written && restore && variable->on_read) {
        swap_bytes(component->value, component->kept, variable->bytes);
    } else if (component->written && restore) {
        memcpy(component->value, component->kept, variable->bytes);
    }
    component->undone = restore && (component->undone || (component->written && variable->on_read));
    component->written = false;
    component->settled = false;
}

static void end_strings(cadre_variable *variable, bool restore)
{
    if (variable->strings_kept == NULL) {
        return;
    }
    cadre_tensor *dropped = restore ? variable->strings : variable->strings_kept;
    variable->strings = restore ? variable->strings_kept : variable->strings;
    variable->strings_kept = NULL;
    cadre_tensor_release(dropped);
}

static void end_step(cadre_strategy *strategy, bool restore)
{
    for (uint32_t i = 0; i < strategy->variable_count; i++) {
        cadre_variable *variable = strategy->variables[i];
        for (uint32_t local = 0; local < variable->component_count; local++) {
            end_component(variable, &variable->components[local], restore);
        }
        end_component(variable, &variable->total, restore);
        end_strings(variable, restore);
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
