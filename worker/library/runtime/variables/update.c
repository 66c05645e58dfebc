/* SPDX-License-Identifier: Apache-2.0
 * cadre_variable_update and cadre_update_non_slot: a function of the program for each component of
 * a variable, or for each device that variables are on. */
#include "cadre/assign.h"

#include <stdio.h>

#include "common/pure/assert.h"
#include "worker/library/device/argument.h"
#include "worker/library/device/tensor_references.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/replica/step_admission.h"
#include "worker/library/runtime/variables/change.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/values/values.h"

struct update {
    cadre_update_function function;
    cadre_non_slot_function non_slot; /* instead, without a variable */
    cadre_per_replica *inputs;        /* NULL: none */
    void *user;
    bool outputs; /* the caller takes them */
};

/* The component or device, for messages. */
#define TARGET_BYTES (LIMIT_NAME_BYTES + CADRE_DEVICE_NAME_BYTES)
static const char *device_text(const struct change *change, uint32_t local, char text[TARGET_BYTES])
{
    if (change->variable == NULL) {
        snprintf(text, TARGET_BYTES, "device %s",
            strategy_parameter_devices(change->strategy)->pointers[local]);
    } else {
        snprintf(
            text, TARGET_BYTES, "component %u of variable '%s'", local, change->variable->name);
    }
    return text;
}

/* Calls the program's function. *ret_released: it released the tensor that it left as its
 * output. */
static cadre_status call_program(
    const struct change *change, uint32_t local, cadre_tensor **output, bool *ret_released)
{
    const struct update *update = change->what;
    cadre_tensor *inputs[CADRE_ELEMENT_TENSORS_MAX] = {NULL};
    struct context_frame frame;
    struct tensor_return_slots slots;
    CADRE_ASSERT((update->function == NULL) == (change->variable == NULL));
    CADRE_ASSERT(update->inputs == NULL || local < update->inputs->replicas);
    for (uint32_t i = 0; update->inputs != NULL && i < update->inputs->components; i++) {
        inputs[i] = *per_replica_at(update->inputs, i, local);
    }
    cadre_error_publish(&(struct cadre_error){.code = CADRE_OK});
    context_update_enter(&frame, change->strategy, local);
    tensor_return_slots_enter(&slots, output, 1);
    const struct device_list *devices = strategy_parameter_devices(change->strategy);
    cadre_status status =
        change->variable != NULL
            ? update->function(change->variable, inputs, output, update->user)
            : update->non_slot(devices->pointers[local], inputs, output, update->user);
    *ret_released = tensor_return_slots_leave(&slots) == 0;
    context_update_leave(&frame);
    return argument_status(status);
}

/* In the thread of the step, or of the program. What the function does to other variables is done
 * by the same replica. */
static cadre_status call_function(
    const struct change *change, uint32_t local, cadre_tensor **output, struct cadre_error *error)
{
    const struct update *update = change->what;
    char target[TARGET_BYTES];
    bool released = false;
    cadre_status status = call_program(change, local, output, &released);
    if (status != CADRE_OK) {
        const char *message = cadre_error_message();
        return cadre_error_set(error, status, "%s: %s", device_text(change, local, target),
            message[0] != '\0' ? message : "its update left no message; say why with cadre_fail");
    }
    if (update->outputs && *output == NULL) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s: its update left no output, and the call takes outputs; give it a tensor",
            device_text(change, local, target));
    }
    if (released) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s: its update released its output, whose reference the library takes; leave that "
            "one, or retain the tensor before releasing it",
            device_text(change, local, target));
    }
    return CADRE_OK;
}

/* --- checks of a call --- */

static cadre_status require_output(const char *function, struct cadre_error *error)
{
    uint32_t local = 0;
    if (context_replica() != NULL) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s was called inside a replica function; use cadre_merge_call to call it for all of "
            "this task's replicas",
            function);
    }
    if (context_update(&local)) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s was called inside an update; assign to other variables there directly", function);
    }
    return CADRE_OK;
}

static cadre_status require_variable(const cadre_strategy *strategy, const cadre_variable *variable,
    const char *function, struct strategy_call *call, struct cadre_error *error)
{
    CADRE_TRY(require_output(function, error));
    CADRE_TRY(argument_require(strategy, function, "strategy", error));
    CADRE_TRY(variable_enter(variable, function, call, error));
    if (variable->kind != CADRE_VARIABLE_REGULAR && variable->strategy != strategy) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s: variable '%s' is of another strategy; give the one it was created in", function,
            variable->name);
    }
    return CADRE_OK;
}

static cadre_status check_components(
    const cadre_variable *variable, const char *function, struct cadre_error *error)
{
    if (variable->kind == CADRE_VARIABLE_REGULAR || variable->dtype == CADRE_STRING) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s: variable '%s' has no components of replicas, being %s; assign it instead",
            function, variable->name,
            variable->dtype == CADRE_STRING ? "strings" : "created outside of any strategy");
    }
    return CADRE_OK;
}

static cadre_status require_devices(const cadre_strategy *strategy, const char *function,
    struct strategy_call *call, struct cadre_error *error)
{
    CADRE_TRY(require_output(function, error));
    CADRE_TRY(strategy_require_inside(strategy, function, call, error));
    return strategy_check(strategy, error);
}

static cadre_status check_inputs(const struct change *change, const cadre_per_replica *inputs,
    uint32_t pieces, struct cadre_error *error)
{
    if (inputs == NULL) {
        return CADRE_OK;
    }
    CADRE_TRY(per_replica_require(inputs, change->function, "inputs", error));
    if (inputs->replicas != pieces && change->variable == NULL) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s was given inputs of %u replicas, and it is called for %u device%s; give one for "
            "each",
            change->function, inputs->replicas, pieces, pieces == 1 ? "" : "s");
    }
    if (inputs->replicas != pieces) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s was given inputs of %u replicas for variable '%s' of %u components; give one for "
            "each",
            change->function, inputs->replicas, change->variable->name, pieces);
    }
    if (inputs->components > CADRE_ELEMENT_TENSORS_MAX) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s was given %u inputs for each component; at most %d are possible", change->function,
            inputs->components, CADRE_ELEMENT_TENSORS_MAX);
    }
    return CADRE_OK;
}

static cadre_status update_make(const struct change *change, struct update *update,
    const cadre_per_replica *inputs, cadre_per_replica **ret_outputs, struct cadre_error *error)
{
    if (update->function == NULL && update->non_slot == NULL) {
        return argument_require(NULL, change->function, "function", error);
    }
    if (change->variable != NULL) {
        CADRE_TRY(check_components(change->variable, change->function, error));
    }
    CADRE_TRY(
        check_inputs(change, inputs, strategy_parameter_devices(change->strategy)->count, error));
    /* They may be outputs of a step, which cadre_run releases at the next step: this one. */
    update->inputs = cadre_per_replica_retain((cadre_per_replica *)(uintptr_t)inputs);
    cadre_status status = change_make(change, ret_outputs, error);
    cadre_per_replica_release(update->inputs);
    return status;
}

/* --- public --- */

static cadre_status update_finish(cadre_status status, struct cadre_error *error)
{
    if (status != CADRE_OK) {
        step_record_refusal(step_current_replica(), error);
    }
    return api_return(status, error);
}

cadre_status cadre_variable_update(cadre_strategy *strategy, cadre_variable *variable,
    cadre_update_function function, void *user, const cadre_per_replica *inputs,
    cadre_per_replica **ret_outputs)
{
    STRATEGY_CALL call = {0};
    struct cadre_error error = {0};
    if (ret_outputs != NULL) {
        *ret_outputs = NULL;
    }
    cadre_status status = require_variable(strategy, variable, __func__, &call, &error);
    if (status == CADRE_OK) {
        struct update update = {.function = function, .user = user, .outputs = ret_outputs != NULL};
        const struct change change = {.function = __func__,
            .strategy = strategy,
            .variable = variable,
            .key = change_key(__func__, variable),
            .each = call_function,
            .goes_on = true,
            .what = &update};
        status = update_make(&change, &update, inputs, ret_outputs, &error);
    }
    return update_finish(status, &error);
}

cadre_status cadre_update_non_slot(cadre_strategy *strategy, cadre_non_slot_function function,
    void *user, const cadre_per_replica *inputs, cadre_per_replica **ret_outputs)
{
    STRATEGY_CALL call = {0};
    struct cadre_error error = {0};
    if (ret_outputs != NULL) {
        *ret_outputs = NULL;
    }
    cadre_status status = require_devices(strategy, __func__, &call, &error);
    if (status == CADRE_OK) {
        struct update update = {.non_slot = function, .user = user, .outputs = ret_outputs != NULL};
        const struct change change = {.function = __func__,
            .strategy = strategy,
            .key = change_key(__func__, NULL),
            .each = call_function,
            .goes_on = true,
            .what = &update};
        status = update_make(&change, &update, inputs, ret_outputs, &error);
    }
    return update_finish(status, &error);
}
