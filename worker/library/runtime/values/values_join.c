/* SPDX-License-Identifier: Apache-2.0
 * Values made of other values and of tensors. Called by the program's joins and by cadre_run. */
#include "cadre/values.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/pure/assert.h"
#include "worker/library/device/argument.h"
#include "worker/library/device/device.h"
#include "worker/library/input/node/component_names.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/values/values.h"

static cadre_status no_memory(struct cadre_error *error)
{
    return cadre_error_set(
        error, CADRE_RESOURCE_EXHAUSTED, "no memory for the values of the replicas");
}

/* --- copies from devices --- */

static bool on_host(cadre_per_replica *value)
{
    for (uint32_t i = 0; i < value->components; i++) {
        for (uint32_t replica = 0; replica < value->replicas; replica++) {
            if (tensor_device(*per_replica_at(value, i, replica)) != NULL) {
                return false;
            }
        }
    }
    return true;
}

/* A tensor that replicas share is copied once. */
static cadre_status copy_tensor(cadre_per_replica *from, cadre_per_replica *to, uint32_t component,
    uint32_t replica, struct cadre_error *error)
{
    cadre_tensor *tensor = *per_replica_at(from, component, replica);
    CADRE_ASSERT(tensor != NULL);
    cadre_tensor **target = per_replica_at(to, component, replica);
    if (tensor_device(tensor) == NULL) {
        *target = cadre_tensor_retain(tensor);
        return CADRE_OK;
    }
    for (uint32_t i = 0; i < replica; i++) {
        if (*per_replica_at(from, component, i) == tensor) {
            *target = cadre_tensor_retain(*per_replica_at(to, component, i));
            return CADRE_OK;
        }
    }
    return tensor_copy_to(NULL, tensor, target, error);
}

cadre_status values_on_host(
    const cadre_per_replica *value, cadre_per_replica **ret_value, struct cadre_error *error)
{
    cadre_per_replica *from = (cadre_per_replica *)(uintptr_t)value;
    *ret_value = NULL;
    if (on_host(from)) {
        *ret_value = cadre_per_replica_retain(from);
        return CADRE_OK;
    }
    cadre_per_replica *copy = per_replica_new(value->replicas, value->components);
    if (copy == NULL) {
        return no_memory(error);
    }
    cadre_status status = CADRE_OK;
    for (uint32_t i = 0; i < value->components; i++) {
        for (uint32_t replica = 0; status == CADRE_OK && replica < value->replicas; replica++) {
            status = copy_tensor(from, copy, i, replica, error);
        }
    }
    if (status != CADRE_OK) {
        cadre_per_replica_release(copy);
        return status;
    }
    *ret_value = copy;
    return CADRE_OK;
}

/* --- joining --- */

cadre_status per_replica_new_of(uint32_t replicas, uint32_t part_count,
    cadre_per_replica **ret_value, struct cadre_error *error)
{
    CADRE_ASSERT(part_count > 0);
    cadre_per_replica *value = per_replica_new(replicas, 0);
    struct value_part *sources = calloc(part_count, sizeof *sources);
    *ret_value = NULL;
    if (value == NULL || sources == NULL) {
        free(sources);
        cadre_per_replica_release(value);
        return no_memory(error);
    }
    value->sources = sources;
    *ret_value = value;
    return CADRE_OK;
}

void per_replica_add_part(
    cadre_per_replica *whole, cadre_per_replica *value, uint32_t first, uint32_t count)
{
    CADRE_ASSERT(first + count <= value->components);
    whole->sources[whole->part_count++] =
        (struct value_part){.value = per_replica_keep(value), .first = first, .count = count};
    whole->components += count;
}

/* One argument as a value of its own: one reference of the library. */
static cadre_status take_argument(const cadre_strategy *strategy, const cadre_argument *argument,
    uint32_t index, cadre_per_replica **ret_value, struct cadre_error *error)
{
    if ((argument->values == NULL) == (argument->tensor == NULL)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "argument %u of a step has %s; give one of values and tensor", index,
            argument->values == NULL ? "neither values nor a tensor" : "both values and a tensor");
    }
    if (argument->values != NULL) {
        CADRE_TRY(per_replica_require(argument->values, "a step", "values", error));
        if (argument->values->replicas != strategy->local_replicas) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "argument %u of a step has values of %u replicas, and this task has %u; make them "
                "with this strategy",
                index, argument->values->replicas, strategy->local_replicas);
        }
        *ret_value = per_replica_keep(argument->values);
        return CADRE_OK;
    }
    *ret_value = per_replica_new(strategy->local_replicas, 1);
    if (*ret_value == NULL) {
        return no_memory(error);
    }
    for (uint32_t i = 0; i < strategy->local_replicas; i++) {
        *per_replica_at(*ret_value, 0, i) = cadre_tensor_retain(argument->tensor);
    }
    per_replica_lend(*ret_value);
    return CADRE_OK;
}

/* Under the argument's name, or its own names. */
static void name_part(
    struct names_builder *made, const char *argument, const cadre_per_replica *part)
{
    for (uint32_t i = 0; i < part->components; i++) {
        char number[16] = "";
        const char *own = part->names == NULL ? NULL : part->names[i];
        if (argument == NULL) {
            made->names[made->count++] = own; /* kept */
            continue;
        }
        if (own == NULL && part->components > 1) {
            snprintf(number, sizeof number, "%u", i);
        }
        names_builder_add(made, argument, own == NULL ? number : own);
    }
}

/* The joined value of all arguments; an error is one of the caller's. */
static cadre_status values_join_join(const cadre_strategy *strategy,
    const cadre_argument arguments[], uint32_t argument_count, cadre_per_replica *joined,
    struct cadre_error *error)
{
    const cadre_per_replica *batch = NULL;
    bool any_name = false;
    struct names_builder made;
    made.count = 0;
    made.no_memory = false;
    for (uint32_t i = 0; i < argument_count; i++) {
        cadre_per_replica *part = NULL;
        CADRE_TRY(take_argument(strategy, &arguments[i], i, &part, error));
        bool fits = joined->components + part->components <= CADRE_ELEMENT_TENSORS_MAX;
        const cadre_per_replica *of = per_replica_batch(part);
        bool another = of != NULL && batch != NULL && of != batch;
        if (fits && !another) {
            per_replica_add_part(joined, part, 0, part->components);
            name_part(&made, arguments[i].name, part);
            any_name = any_name || arguments[i].name != NULL || part->names != NULL;
            batch = of != NULL ? of : batch;
        }
        uint32_t components = joined->components + part->components;
        per_replica_drop(part);
        if (another) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "argument %u of a step is a batch of another dataset or another step than one "
                "before it, and a step is one of the ledger's of one dataset: put the datasets "
                "together with cadre_dataset_zip, distribute that, and take its batches apart "
                "with cadre_values_named",
                i);
        }
        if (!fits) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "the first %u arguments of a step have %u tensors; at most %d are possible", i + 1,
                components, CADRE_ELEMENT_TENSORS_MAX);
        }
    }
    joined->names =
        any_name && !made.no_memory ? component_names_list(made.names, made.count) : NULL;
    return any_name && joined->names == NULL ? no_memory(error) : CADRE_OK;
}

cadre_status values_join(const cadre_strategy *strategy, const cadre_argument arguments[],
    uint32_t argument_count, cadre_per_replica **ret_values, struct cadre_error *error)
{
    *ret_values = NULL;
    if (argument_count == 0 || argument_count > CADRE_ELEMENT_TENSORS_MAX) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%u arguments were given to a step; give 1 to %d", argument_count,
            CADRE_ELEMENT_TENSORS_MAX);
    }
    cadre_per_replica *joined = NULL;
    CADRE_TRY(per_replica_new_of(strategy->local_replicas, argument_count, &joined, error));
    cadre_status status = values_join_join(strategy, arguments, argument_count, joined, error);
    if (status != CADRE_OK) {
        cadre_per_replica_release(joined);
        return status;
    }
    *ret_values = joined;
    return CADRE_OK;
}

cadre_status cadre_values_join(cadre_strategy *strategy, const cadre_argument arguments[],
    uint32_t argument_count, cadre_per_replica **ret_values)
{
    STRATEGY_CALL call = {0};
    struct cadre_error error = {0};
    cadre_status status = argument_require(ret_values, __func__, "ret_values", &error);
    if (status == CADRE_OK) {
        *ret_values = NULL;
        status = strategy_require_inside(strategy, __func__, &call, &error);
    }
    if (status == CADRE_OK) {
        status = argument_require(arguments, __func__, "arguments", &error);
    }
    if (status == CADRE_OK) {
        status = values_join(strategy, arguments, argument_count, ret_values, &error);
    }
    return api_return(status, &error);
}

cadre_status cadre_values_from_tensors(cadre_strategy *strategy, cadre_tensor *const tensors[],
    uint32_t tensor_count, cadre_per_replica **ret_values)
{
    STRATEGY_CALL call = {0};
    struct cadre_error error = {0};
    cadre_status status = argument_require(ret_values, __func__, "ret_values", &error);
    if (status == CADRE_OK) {
        *ret_values = NULL;
        status = strategy_require_inside(strategy, __func__, &call, &error);
    }
    if (status == CADRE_OK) {
        status = argument_require(tensors, __func__, "tensors", &error);
    }
    if (status == CADRE_OK && tensor_count != strategy->local_replicas && tensor_count != 1) {
        status = cadre_error_set(&error, CADRE_INVALID_ARGUMENT,
            "%u tensors were given for the %u replicas of this task; give one for each, or one "
            "alone",
            tensor_count, strategy->local_replicas);
    }
    for (uint32_t i = 0; status == CADRE_OK && i < tensor_count; i++) {
        if (tensors[i] == NULL) {
            status = cadre_error_set(
                &error, CADRE_INVALID_ARGUMENT, "the tensor of local replica %u is NULL", i);
        }
    }
    if (status != CADRE_OK) {
        return api_return(status, &error);
    }
    cadre_per_replica *value = per_replica_new(tensor_count, 1);
    if (value == NULL) {
        return api_return(no_memory(&error), &error);
    }
    for (uint32_t i = 0; i < tensor_count; i++) {
        *per_replica_at(value, 0, i) = cadre_tensor_retain(tensors[i]);
    }
    per_replica_show(value);
    *ret_values = value;
    return CADRE_OK;
}

bool cadre_per_replica_is_plain(const cadre_per_replica *value, uint32_t component)
{
    cadre_tensor *const *tensors = cadre_local_results(value, component);
    bool plain = tensors != NULL;
    for (uint32_t i = 1; plain && i < value->replicas; i++) {
        plain = tensors[i] == tensors[0];
    }
    return plain;
}

cadre_element per_replica_element(const cadre_per_replica *value, uint32_t replica)
{
    cadre_element element = {.count = value->components};
    CADRE_ASSERT(value->components <= CADRE_ELEMENT_TENSORS_MAX);
    CADRE_ASSERT(replica < value->replicas);
    for (uint32_t i = 0; i < value->components; i++) {
        element.tensors[i] = cadre_local_results(value, i)[replica];
    }
    return element;
}

bool per_replica_all_plain(const cadre_per_replica *value)
{
    bool plain = true;
    for (uint32_t i = 0; i < value->components; i++) {
        plain = plain && cadre_per_replica_is_plain(value, i);
    }
    return plain;
}
