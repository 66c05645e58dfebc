/* SPDX-License-Identifier: Apache-2.0
 * See custom_ops.h: prepares the calls of the program's functions and checks their results. Called
 * by reduce_to.c and batch_reduce_to.c. */
#include "worker/library/runtime/reductions/custom_ops.h"

#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/device/tensor.h"
#include "worker/library/device/tensor_references.h"
#include "worker/library/input/node/user_call.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/reductions/destinations.h"
#include "worker/library/runtime/reductions/reductions.h"
#include "worker/library/runtime/values/values.h"

/* --- which values --- */

cadre_status custom_ops_check(const cadre_cross_device_ops *ops, struct cadre_error *error)
{
    bool any =
        ops->own.reduce != NULL || ops->own.batch_reduce != NULL || ops->own.broadcast != NULL;
    if (ops->kind != CADRE_CROSS_DEVICE_OWN && any) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "cross-device functions were given with kind %d, which does not call them; use "
            "CADRE_CROSS_DEVICE_OWN",
            (int)ops->kind);
    }
    if (ops->kind == CADRE_CROSS_DEVICE_OWN && ops->own.reduce == NULL) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "CADRE_CROSS_DEVICE_OWN was given without a function `own.reduce`; the other two may "
            "be NULL");
    }
    return CADRE_OK;
}

static const cadre_cross_device_functions *functions_of(const cadre_strategy *strategy)
{
    const cadre_cross_device_ops *ops = &strategy->reductions->cross_device;
    return ops->kind == CADRE_CROSS_DEVICE_OWN ? &ops->own : NULL;
}

bool custom_ops_apply(const cadre_strategy *strategy, const cadre_per_replica *value,
    const cadre_destinations *destinations)
{
    if (functions_of(strategy) == NULL || value == NULL) {
        return functions_of(strategy) != NULL;
    }
    return strategy->local_replicas > 1 ? !per_replica_all_plain(value)
                                        : !destinations_are(strategy, destinations);
}

bool custom_ops_broadcast(const cadre_strategy *strategy)
{
    const cadre_cross_device_functions *functions = functions_of(strategy);
    return functions != NULL && functions->broadcast != NULL;
}

cadre_status custom_ops_require_idle(
    const cadre_strategy *strategy, const char *function, struct cadre_error *error)
{
    return !strategy->reductions->custom_runs
               ? CADRE_OK
               : cadre_error_set(error, CADRE_FAILED_PRECONDITION,
                     "%s was called in a cross-device function of the program's own; combine the "
                     "tensors there that it was given",
                     function);
}

/* --- arguments and results of a call --- */

struct custom_call {
    cadre_strategy *strategy;
    const char *function; /* the public function, for messages */
    cadre_reduce_op op;
    uint32_t count;                   /* of components of values, each a value for the program */
    cadre_cross_device_value *values; /* [count] */
    uint32_t target_count;
    cadre_tensor **targets;             /* all results, in order of the values */
    struct tensor_return_slots *frames; /* over them, as many each */
};

static uint32_t frames_of(const struct custom_call *call)
{
    return (call->target_count + TENSOR_RETURN_SLOTS_MAX - 1) / TENSOR_RETURN_SLOTS_MAX;
}

static cadre_status no_memory(struct cadre_error *error)
{
    return cadre_error_set(
        error, CADRE_RESOURCE_EXHAUSTED, "no memory for a call of cross-device functions");
}

static cadre_status call_open(struct custom_call *call, struct cadre_error *error)
{
    CADRE_ASSERT(call->count > 0);
    CADRE_ASSERT(call->target_count >= call->count);
    call->values = calloc(call->count, sizeof *call->values);
    call->targets = calloc(call->target_count, sizeof(cadre_tensor *));
    call->frames = calloc(frames_of(call), sizeof *call->frames);
    return call->values != NULL && call->targets != NULL && call->frames != NULL ? CADRE_OK
                                                                                 : no_memory(error);
}

static void call_close(struct custom_call *call)
{
    free(call->values);
    free(call->targets);
    free(call->frames);
}

/* Calls the program's function, or functions. */
static cadre_status call_functions(const struct custom_call *call, bool batch)
{
    const cadre_cross_device_functions *functions = functions_of(call->strategy);
    cadre_status status = CADRE_OK;
    if (batch && functions->batch_reduce != NULL) {
        return functions->batch_reduce(call->op, call->values, call->count, functions->user);
    }
    for (uint32_t i = 0; status == CADRE_OK && i < call->count; i++) {
        status = functions->reduce(call->op, &call->values[i], functions->user);
    }
    return status;
}

/* Notices a release of results by the program meanwhile. */
static void call_begin(struct custom_call *call)
{
    uint32_t frames = frames_of(call);
    for (uint32_t i = 0; i < frames; i++) {
        uint32_t left = call->target_count - i * TENSOR_RETURN_SLOTS_MAX;
        tensor_return_slots_enter(&call->frames[i],
            call->targets + (size_t)i * TENSOR_RETURN_SLOTS_MAX,
            left < TENSOR_RETURN_SLOTS_MAX ? left : TENSOR_RETURN_SLOTS_MAX);
    }
    CADRE_ASSERT(!call->strategy->reductions->custom_runs);
    call->strategy->reductions->custom_runs = true;
    user_call_begin();
}

static cadre_status call_end(
    struct custom_call *call, cadre_status returned, struct cadre_error *error)
{
    bool released = false;
    call->strategy->reductions->custom_runs = false;
    for (uint32_t i = frames_of(call); i > 0; i--) {
        uint32_t count = call->frames[i - 1].count;
        released = tensor_return_slots_leave(&call->frames[i - 1]) < count || released;
    }
    CADRE_TRY(user_call_end(returned, call->function, error));
    return released ? cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                          "%s: the function released a result that it left, whose reference the "
                          "library takes; leave that one, or retain the tensor before releasing it",
                          call->function)
                    : CADRE_OK;
}

static cadre_status check_result(const struct custom_call *call,
    const cadre_cross_device_value *value, uint32_t target, bool reduces, struct cadre_error *error)
{
    const cadre_tensor *is = value->ret_tensors[target];
    const cadre_tensor *from = value->tensors[0];
    cadre_dtype dtype = cadre_tensor_dtype(from);
    if (is == NULL) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s: the function left no tensor for place %u of %u, %s; leave one for each",
            call->function, target, value->device_count, value->devices[target]);
    }
    dtype = reduces && call->op == CADRE_MEAN && dtype > CADRE_BF16 ? CADRE_F64 : dtype;
    uint32_t rank = cadre_tensor_rank(from);
    if (cadre_tensor_dtype(is) == dtype && cadre_tensor_rank(is) == rank &&
        memcmp(cadre_tensor_dims(is), cadre_tensor_dims(from), rank * sizeof(int64_t)) == 0) {
        return CADRE_OK;
    }
    char found[TENSOR_SHAPE_TEXT_BYTES];
    char wanted[TENSOR_SHAPE_TEXT_BYTES];
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
        "%s: the function left %s for %s, where %s was to come of it", call->function,
        tensor_shape_text(
            cadre_tensor_dtype(is), cadre_tensor_rank(is), cadre_tensor_dims(is), found),
        value->devices[target], tensor_shape_text(dtype, rank, cadre_tensor_dims(from), wanted));
}

static cadre_status check_results(
    const struct custom_call *call, bool reduces, struct cadre_error *error)
{
    for (uint32_t i = 0; i < call->count; i++) {
        for (uint32_t target = 0; target < call->values[i].device_count; target++) {
            CADRE_TRY(check_result(call, &call->values[i], target, reduces, error));
        }
    }
    return CADRE_OK;
}

/* Moves the results into a value, which owns them. NULL: no memory, and they are released. */
static cadre_per_replica *take_results(
    cadre_tensor *const targets[], uint32_t target_count, uint32_t components)
{
    cadre_per_replica *value = per_replica_new(target_count, components);
    for (uint32_t c = 0; c < components; c++) {
        for (uint32_t i = 0; i < target_count; i++) {
            cadre_tensor *tensor = targets[(size_t)c * target_count + i];
            if (value != NULL) {
                *per_replica_at(value, c, i) = tensor;
            } else {
                (void)tensor_take(tensor);
                tensor_drop(tensor);
            }
        }
    }
    if (value != NULL) {
        per_replica_show(value);
    }
    return value;
}

/* --- reduce --- */

/* One value of the program's caller: on the host, with the devices of its results. */
struct custom_part {
    cadre_per_replica *here;
    struct device_list devices;
};

static void inputs_close(struct custom_part *inputs, uint32_t count)
{
    for (uint32_t i = 0; inputs != NULL && i < count; i++) {
        cadre_per_replica_release(inputs[i].here);
        device_list_clear(&inputs[i].devices);
    }
    free(inputs);
}

static cadre_status inputs_open(const cadre_strategy *strategy, const struct custom_values *values,
    struct custom_part *inputs, struct custom_call *call, struct cadre_error *error)
{
    for (uint32_t i = 0; i < values->count; i++) {
        CADRE_TRY(destinations_list(strategy,
            values->destinations == NULL ? NULL : &values->destinations[i], &inputs[i].devices,
            error));
        CADRE_TRY(values_on_host(values->values[i], &inputs[i].here, error));
        per_replica_show(inputs[i].here);
        call->count += inputs[i].here->components;
        call->target_count += inputs[i].here->components * inputs[i].devices.count;
    }
    return call_open(call, error);
}

static void custom_ops_describe(
    struct custom_call *call, const struct custom_part *inputs, uint32_t count)
{
    cadre_cross_device_value *next = call->values;
    cadre_tensor **targets = call->targets;
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t c = 0; c < inputs[i].here->components; c++) {
            *next++ = (cadre_cross_device_value){.tensors = cadre_local_results(inputs[i].here, c),
                .tensor_count = inputs[i].here->replicas,
                .devices = inputs[i].devices.pointers,
                .device_count = inputs[i].devices.count,
                .ret_tensors = targets};
            targets += inputs[i].devices.count;
        }
    }
    CADRE_ASSERT(next == call->values + call->count);
    CADRE_ASSERT(targets == call->targets + call->target_count);
}

static cadre_status run_call(struct custom_call *call, const struct custom_part *inputs,
    const struct custom_values *values, cadre_per_replica *ret_values[], struct cadre_error *error)
{
    custom_ops_describe(call, inputs, values->count);
    call_begin(call);
    cadre_status status =
        call_end(call, call_functions(call, values->batch || call->count > 1), error);
    if (status == CADRE_OK) {
        status = check_results(call, true, error);
    }
    cadre_tensor **targets = call->targets;
    for (uint32_t i = 0; i < values->count; i++) {
        uint32_t components = inputs[i].here->components;
        ret_values[i] = take_results(targets, inputs[i].devices.count, components);
        targets += (size_t)components * inputs[i].devices.count;
        if (ret_values[i] == NULL && status == CADRE_OK) {
            status = no_memory(error);
        }
    }
    for (uint32_t i = 0; status != CADRE_OK && i < values->count; i++) {
        cadre_per_replica_release(ret_values[i]);
        ret_values[i] = NULL;
    }
    return status;
}

cadre_status custom_ops_reduce(cadre_strategy *strategy, const char *function, cadre_reduce_op op,
    const struct custom_values *values, cadre_per_replica *ret_values[], struct cadre_error *error)
{
    struct custom_call call = {.strategy = strategy, .function = function, .op = op};
    CADRE_ASSERT(values->count > 0);
    struct custom_part *inputs = calloc(values->count, sizeof *inputs);
    cadre_status status =
        inputs == NULL ? no_memory(error) : inputs_open(strategy, values, inputs, &call, error);
    if (status == CADRE_OK) {
        status = run_call(&call, inputs, values, ret_values, error);
    }
    call_close(&call);
    inputs_close(inputs, values->count);
    return status;
}

/* --- broadcast --- */

cadre_status custom_ops_broadcast_to(cadre_strategy *strategy, cadre_tensor *tensor,
    const cadre_destinations *destinations, cadre_per_replica **ret_value,
    struct cadre_error *error)
{
    struct device_list devices;
    const cadre_cross_device_functions *functions = functions_of(strategy);
    CADRE_TRY(destinations_list(strategy, destinations, &devices, error));
    struct custom_call call = {.strategy = strategy,
        .function = "cadre_broadcast_to",
        .count = 1,
        .target_count = devices.count};
    cadre_status status = call_open(&call, error);
    if (status == CADRE_OK) {
        call.values[0] = (cadre_cross_device_value){.tensors = &tensor,
            .tensor_count = 1,
            .devices = devices.pointers,
            .device_count = devices.count,
            .ret_tensors = call.targets};
        call_begin(&call);
        status = call_end(&call, functions->broadcast(&call.values[0], functions->user), error);
        if (status == CADRE_OK) {
            status = check_results(&call, false, error);
        }
        *ret_value = take_results(call.targets, devices.count, 1);
        status = *ret_value == NULL && status == CADRE_OK ? no_memory(error) : status;
    }
    if (status != CADRE_OK) {
        cadre_per_replica_release(*ret_value);
        *ret_value = NULL;
    }
    call_close(&call);
    device_list_clear(&devices);
    return status;
}
