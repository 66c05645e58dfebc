/* SPDX-License-Identifier: Apache-2.0
 * reduce_to, batch_reduce_to and broadcast_to: results on devices that are named. Results
 * are in the memory of the host, wherever the values were: there once, and referred to by each. */
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/pure/assert.h"
#include "worker/library/device/argument.h"
#include "worker/library/runtime/border/border.h"
#include "worker/library/runtime/reductions/cross_device.h"
#include "worker/library/runtime/reductions/reduce.h"
#include "worker/library/runtime/values/shape_check.h"
#include "worker/library/runtime/values/values.h"
#include "worker/library/runtime/variables/variable.h"

/* Also in the function of a merge call: it speaks for this task, which must be the only one. */
static cadre_status enter(
    const cadre_strategy *strategy, const char *function, struct cadre_error *error)
{
    if (!context_merging() || context_strategy() != strategy) {
        return strategy_enter(strategy, function, error);
    }
    if (strategy->environment->tasks > 1) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s was called inside cadre_merge_call in a job of %u tasks, which do not meet there; "
            "use cadre_all_reduce before it",
            function, strategy->environment->tasks);
    }
    return strategy_check(strategy, error);
}

/* --- where to --- */

static bool has_device(const cadre_strategy *strategy, const char *name)
{
    bool has = false;
    for (uint32_t i = 0; i < strategy->devices.count && !has; i++) {
        has = strcmp(strategy->devices.pointers[i], name) == 0;
    }
    return has;
}

/* A device of this task: one of the replicas', or its processor. */
static cadre_status check_device(
    const cadre_strategy *strategy, const char *device, struct cadre_error *error)
{
    cadre_device_spec spec;
    cadre_device_spec own;
    char name[CADRE_DEVICE_NAME_BYTES];
    CADRE_TRY(argument_require(device, "cadre_reduce_to", "destinations", error));
    CADRE_TRY(device_name_parse(device, &spec, error));
    CADRE_TRY(device_name_parse(strategy->devices.pointers[0], &own, error));
    own.index = 0;
    bool typed = spec.type[0] != '\0';
    device_name_fill(&spec, &own);
    device_name_text(&spec, name);
    bool processor = strcmp(spec.type, "CPU") == 0 && spec.index == 0 && spec.task == own.task &&
                     strcmp(spec.job, own.job) == 0;
    if (!has_device(strategy, name) && !processor) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "device %s%s%s is none of this task's; the first that it has is %s", device,
            typed ? "" : ", which is ", typed ? "" : name, strategy->devices.pointers[0]);
    }
    return CADRE_OK;
}

/* How many places a result goes to. */
static cadre_status count_places(const cadre_strategy *strategy,
    const cadre_destinations *destinations, uint32_t *ret_places, struct cadre_error *error)
{
    const cadre_destinations everywhere = {0};
    destinations = destinations == NULL ? &everywhere : destinations;
    *ret_places = strategy->local_replicas;
    if (destinations->variable != NULL && destinations->device_count > 0) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "a variable and %u devices were given as destinations; give one of the two",
            destinations->device_count);
    }
    if (destinations->variable != NULL) {
        if (!variable_lives(destinations->variable)) {
            return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
                "the variable that was given as a destination is gone, with its strategy; give one "
                "that lives");
        }
        if (destinations->variable->strategy != strategy) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "variable '%s' is of another strategy; name a destination of this one",
                destinations->variable->name);
        }
        *ret_places = destinations->variable->component_count;
    } else if (destinations->device_count > 0) {
        CADRE_TRY(
            argument_require(destinations->devices, "cadre_reduce_to", "destinations", error));
        for (uint32_t i = 0; i < destinations->device_count; i++) {
            CADRE_TRY(check_device(strategy, destinations->devices[i], error));
        }
        *ret_places = destinations->device_count;
    }
    *ret_places = *ret_places == 0 ? 1 : *ret_places;
    return CADRE_OK;
}

/* `components` tensors, whose references are taken over, at each place. */
static cadre_status place(uint32_t places, uint32_t components, cadre_tensor *tensors[],
    cadre_per_replica **ret_value, struct cadre_error *error)
{
    *ret_value = per_replica_new(places, components);
    for (uint32_t c = 0; c < components; c++) {
        for (uint32_t i = 0; *ret_value != NULL && i < places; i++) {
            *per_replica_at(*ret_value, c, i) = cadre_tensor_retain(tensors[c]);
        }
        cadre_tensor_release(tensors[c]);
        tensors[c] = NULL;
    }
    if (*ret_value != NULL) {
        per_replica_show(*ret_value);
    }
    return *ret_value != NULL
               ? CADRE_OK
               : cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a value");
}

/* --- what --- */

/* A component that is the same tensor on all replicas is a mirrored one. */
static cadre_status take_mirrored(const cadre_strategy *strategy, cadre_reduce_op op,
    const cadre_per_replica *value, uint32_t component, cadre_tensor **ret_tensor,
    struct cadre_error *error)
{
    cadre_tensor *tensor = cadre_local_results(value, component)[0];
    CADRE_ASSERT(cadre_per_replica_is_plain(value, component));
    if (op == CADRE_SUM && !reduce_is_zero(tensor)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "component %u of the value is one tensor that all %u replicas share, and was to be "
            "summed over them; give what the replicas made themselves, or use CADRE_MEAN",
            component, strategy->local_replicas);
    }
    *ret_tensor = cadre_tensor_retain(tensor);
    return CADRE_OK;
}

/* All components of one value, here, without a collective. */
static cadre_status reduce_locally(const cadre_strategy *strategy, cadre_cross_device_kind kind,
    cadre_reduce_op op, const cadre_per_replica *value, cadre_tensor *ret_tensors[],
    struct cadre_error *error)
{
    cadre_status status = CADRE_OK;
    uint32_t done = 0;
    CADRE_ASSERT(value->replicas == strategy->local_replicas);
    for (; status == CADRE_OK && done < value->components; done++) {
        status = cross_device_sum(kind, op, cadre_local_results(value, done),
            strategy->local_replicas, &ret_tensors[done], error);
    }
    for (uint32_t i = 0; status != CADRE_OK && i < done; i++) {
        cadre_tensor_release(ret_tensors[i]);
        ret_tensors[i] = NULL;
    }
    return status;
}

static bool all_plain(const cadre_per_replica *value)
{
    bool plain = true;
    for (uint32_t i = 0; i < value->components; i++) {
        plain = plain && cadre_per_replica_is_plain(value, i);
    }
    return plain;
}

static cadre_status reduce_mirrored(const cadre_strategy *strategy, cadre_reduce_op op,
    const cadre_per_replica *value, cadre_tensor *ret_tensors[], struct cadre_error *error)
{
    cadre_status status = CADRE_OK;
    for (uint32_t i = 0; status == CADRE_OK && i < value->components; i++) {
        status = take_mirrored(strategy, op, value, i, &ret_tensors[i], error);
    }
    for (uint32_t i = 0; status != CADRE_OK && i < value->components; i++) {
        cadre_tensor_release(ret_tensors[i]);
        ret_tensors[i] = NULL;
    }
    return status;
}

static cadre_status check_reduction(const cadre_strategy *strategy, cadre_reduce_op op,
    cadre_per_replica *value, struct cadre_error *error)
{
    const bool along[CADRE_RANK_MAX] = {false};
    CADRE_TRY(per_replica_require(value, "cadre_reduce_to", "value", error));
    if (op != CADRE_SUM && op != CADRE_MEAN) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%d is not a reduction; use CADRE_SUM or CADRE_MEAN", (int)op);
    }
    CADRE_TRY(shape_check_replicas(strategy, value, error));
    for (uint32_t i = 0; i < value->components; i++) {
        cadre_dtype dtype = cadre_tensor_dtype(*per_replica_at(value, i, 0));
        if (dtype < CADRE_F64 || dtype > CADRE_U8) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "component %u of the value is of type %s, which cannot be summed; use a number "
                "type",
                i, cadre_dtype_name(dtype));
        }
        CADRE_TRY(shape_check_alike(value, i, along, "reduced", error));
    }
    return CADRE_OK;
}

/* One value in the memory of the host: its results, one for each component. */
static cadre_status reduce_here(cadre_strategy *strategy, const char *function, cadre_reduce_op op,
    const cadre_per_replica *value, cadre_tensor *ret_tensors[], struct cadre_error *error)
{
    cadre_cross_device_ops ops;
    CADRE_ASSERT(value->components > 0);
    cadre_dtype dtype = cadre_tensor_dtype(cadre_local_results(value, 0)[0]);
    bool alone = strategy->environment->tasks <= 1;
    CADRE_TRY(cross_device_choose(strategy, dtype, &ops, error));
    if (alone && strategy->local_replicas > 1 && all_plain(value)) {
        return reduce_mirrored(strategy, op, value, ret_tensors, error);
    }
    if (ops.kind != CADRE_CROSS_DEVICE_COLLECTIVE || context_merging()) {
        return reduce_locally(strategy, ops.kind, op, value, ret_tensors, error);
    }
    return reduce_elementwise(strategy, function, op, value, ret_tensors, error);
}

static cadre_status reduce_one(cadre_strategy *strategy, const char *function, cadre_reduce_op op,
    const cadre_per_replica *value, cadre_tensor *ret_tensors[], struct cadre_error *error)
{
    cadre_per_replica *here;
    CADRE_TRY(values_on_host(value, &here, error));
    cadre_status status = reduce_here(strategy, function, op, here, ret_tensors, error);
    cadre_per_replica_release(here);
    return status;
}

cadre_status cadre_reduce_to(cadre_strategy *strategy, cadre_reduce_op op,
    const cadre_per_replica *value, const cadre_destinations *destinations,
    cadre_per_replica **ret_value)
{
    struct cadre_error error = {0};
    cadre_tensor *tensors[CADRE_ELEMENT_TENSORS_MAX] = {NULL};
    uint32_t places = 0;
    cadre_status status = argument_require(ret_value, __func__, "ret_value", &error);
    if (status == CADRE_OK) {
        *ret_value = NULL;
        status = enter(strategy, __func__, &error);
    }
    if (status == CADRE_OK) {
        status = check_reduction(strategy, op, (cadre_per_replica *)(uintptr_t)value, &error);
    }
    if (status == CADRE_OK) {
        status = count_places(strategy, destinations, &places, &error);
    }
    if (status == CADRE_OK) {
        status = reduce_one(strategy, __func__, op, value, tensors, &error);
    }
    if (status == CADRE_OK) {
        status = place(places, value->components, tensors, ret_value, &error);
    }
    return border(status, &error);
}

/* --- a batch --- */

/* Joined, so many values are one, whose components go in one collective. */
static cadre_status reduce_pack(cadre_strategy *strategy, cadre_reduce_op op,
    const cadre_per_replica *const values[], size_t count, cadre_tensor *results[],
    struct cadre_error *error)
{
    cadre_argument arguments[CADRE_ELEMENT_TENSORS_MAX];
    cadre_per_replica *joined = NULL;
    CADRE_ASSERT(count > 0);
    CADRE_ASSERT(count <= CADRE_ELEMENT_TENSORS_MAX);
    for (size_t i = 0; i < count; i++) {
        arguments[i] = (cadre_argument){.values = (cadre_per_replica *)(uintptr_t)values[i]};
    }
    CADRE_TRY(values_join(strategy, arguments, (uint32_t)count, &joined, error));
    cadre_status status = reduce_one(strategy, "cadre_batch_reduce_to", op, joined, results, error);
    cadre_per_replica_release(joined);
    return status;
}

static size_t bytes_of(const cadre_per_replica *value)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < value->components; i++) {
        bytes += cadre_tensor_bytes(cadre_local_results(value, i)[0]);
    }
    return bytes;
}

/* The size of a pack when so many are asked for. */
static size_t pack_bytes(
    const cadre_cross_device_ops *ops, const cadre_per_replica *const values[], uint32_t count)
{
    size_t all = 0;
    if (ops->bytes_per_pack > 0 || ops->num_packs <= 1) {
        return ops->bytes_per_pack;
    }
    for (uint32_t i = 0; i < count; i++) {
        all += bytes_of(values[i]);
    }
    size_t each = all / ops->num_packs;
    return each == 0 ? 1 : each;
}

/* How many of the next values fit into one: by size, by components, of one kind. */
static size_t next_pack(const cadre_per_replica *const values[], size_t count, size_t most_bytes)
{
    size_t length = 0;
    size_t bytes = 0;
    uint32_t components = 0;
    bool plain = all_plain(values[0]);
    while (length < count && (most_bytes == 0 || bytes <= most_bytes) &&
           components + values[length]->components <= CADRE_ELEMENT_TENSORS_MAX &&
           all_plain(values[length]) == plain) {
        components += values[length]->components;
        bytes += bytes_of(values[length++]);
    }
    return length;
}

static cadre_status reduce_batch(cadre_strategy *strategy, cadre_reduce_op op,
    const cadre_per_replica *const values[], const uint32_t places[], uint32_t count,
    cadre_per_replica *ret_values[], struct cadre_error *error)
{
    size_t most = pack_bytes(&strategy->cross_device, values, count);
    for (size_t at = 0; at < count;) {
        cadre_tensor *results[CADRE_ELEMENT_TENSORS_MAX] = {NULL};
        size_t length = next_pack(values + at, count - at, most);
        CADRE_ASSERT(length > 0);
        CADRE_TRY(reduce_pack(strategy, op, values + at, length, results, error));
        cadre_tensor **next = results;
        for (size_t i = at; i < at + length; i++) {
            uint32_t components = values[i]->components;
            cadre_status status = place(places[i], components, next, &ret_values[i], error);
            if (status != CADRE_OK) {
                for (size_t rest = 0; rest < CADRE_ELEMENT_TENSORS_MAX; rest++) {
                    cadre_tensor_release(results[rest]);
                }
                return status;
            }
            next += components;
        }
        at += length;
    }
    return CADRE_OK;
}

static cadre_status batch_reduce(cadre_strategy *strategy, cadre_reduce_op op,
    const cadre_per_replica *const values[], const cadre_destinations destinations[],
    uint32_t count, cadre_per_replica *ret_values[], struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT uint32_t *places = calloc((size_t)count + 1, sizeof *places);
    if (places == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for a batch of %u values", count);
    }
    for (uint32_t i = 0; i < count; i++) {
        CADRE_TRY(check_reduction(strategy, op, (cadre_per_replica *)(uintptr_t)values[i], error));
        CADRE_TRY(count_places(
            strategy, destinations == NULL ? NULL : &destinations[i], &places[i], error));
    }
    cadre_status status = reduce_batch(strategy, op, values, places, count, ret_values, error);
    for (uint32_t i = 0; status != CADRE_OK && i < count; i++) {
        cadre_per_replica_release(ret_values[i]);
        ret_values[i] = NULL;
    }
    return status;
}

cadre_status cadre_batch_reduce_to(cadre_strategy *strategy, cadre_reduce_op op,
    const cadre_per_replica *const values[], const cadre_destinations destinations[],
    uint32_t count, cadre_per_replica *ret_values[])
{
    struct cadre_error error = {0};
    cadre_status status =
        count == 0 ? CADRE_OK : argument_require(ret_values, __func__, "ret_values", &error);
    for (uint32_t i = 0; status == CADRE_OK && i < count; i++) {
        ret_values[i] = NULL;
    }
    if (status == CADRE_OK) {
        status = enter(strategy, __func__, &error);
    }
    if (status == CADRE_OK && count > 0) {
        status = argument_require(values, __func__, "values", &error);
    }
    if (status == CADRE_OK) {
        status = batch_reduce(strategy, op, values, destinations, count, ret_values, &error);
    }
    return border(status, &error);
}

cadre_status cadre_broadcast_to(cadre_strategy *strategy, cadre_tensor *tensor,
    const cadre_destinations *destinations, cadre_per_replica **ret_value)
{
    struct cadre_error error = {0};
    uint32_t places = 0;
    cadre_status status = argument_require(ret_value, __func__, "ret_value", &error);
    if (status == CADRE_OK) {
        *ret_value = NULL;
        status = enter(strategy, __func__, &error);
    }
    if (status == CADRE_OK) {
        status = argument_require(tensor, __func__, "tensor", &error);
    }
    if (status == CADRE_OK) {
        status = count_places(strategy, destinations, &places, &error);
    }
    if (status == CADRE_OK) {
        cadre_tensor *tensors[1] = {cadre_tensor_retain(tensor)};
        status = place(places, 1, tensors, ret_value, &error);
    }
    return border(status, &error);
}
