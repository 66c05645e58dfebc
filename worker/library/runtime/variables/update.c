/* SPDX-License-Identifier: Apache-2.0
 * cadre_variable_update: a function of the program for each component of a variable. */
#include "cadre/assign.h"

#include "common/pure/assert.h"
#include "worker/library/device/argument.h"
#include "worker/library/device/tensor_references.h"
#include "worker/library/runtime/border/border.h"
#include "worker/library/runtime/replica/step_admission.h"
#include "worker/library/runtime/variables/change.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/values/values.h"

struct update {
    cadre_update_function function;
    cadre_per_replica *inputs; /* NULL: none */
    void *user;
    bool outputs; /* are asked for */
};

/* In the thread of the step, or of the program. What the function does to other variables counts
 * from the same replica. */
static cadre_status call_function(
    const struct change *change, uint32_t local, cadre_tensor **output, struct cadre_error *error)
{
    const struct update *update = change->what;
    CADRE_ASSERT(update->inputs == NULL || local < update->inputs->replicas);
    cadre_variable *variable = change->variable;
    cadre_tensor *inputs[CADRE_ELEMENT_TENSORS_MAX] = {NULL};
    struct context_frame frame;
    for (uint32_t i = 0; update->inputs != NULL && i < update->inputs->components; i++) {
        inputs[i] = *per_replica_at(update->inputs, i, local);
    }
    cadre_error_publish(&(struct cadre_error){.code = CADRE_OK});
    struct tensor_places places;
    context_update_enter(&frame, variable->strategy, local);
    tensor_places_enter(&places, output, 1);
    cadre_status status = argument_status(update->function(variable, inputs, output, update->user));
    bool released = tensor_places_leave(&places) == 0;
    context_update_leave(&frame);
    if (status != CADRE_OK) {
        const char *message = cadre_error_message();
        return cadre_error_set(error, status, "component %u of variable '%s': %s", local,
            variable->name,
            message[0] != '\0' ? message : "its update left no message; say why with cadre_fail");
    }
    if (update->outputs && *output == NULL) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "component %u of variable '%s': its update left no output, and outputs were asked for; "
            "give it a tensor",
            local, variable->name);
    }
    if (released) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "component %u of variable '%s': its update released its output, whose reference the "
            "library takes; leave that one, or retain the tensor before releasing it",
            local, variable->name);
    }
    return CADRE_OK;
}

static cadre_status check(const cadre_variable *variable, const cadre_per_replica *inputs,
    const char *function, struct cadre_error *error)
{
    if (variable->kind == CADRE_VARIABLE_REGULAR || variable->dtype == CADRE_STRING) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s: variable '%s' has no components of replicas, being %s; assign it instead",
            function, variable->name,
            variable->dtype == CADRE_STRING ? "strings" : "created outside of any strategy");
    }
    if (inputs != NULL && inputs->replicas != variable->component_count) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s was given inputs of %u replicas for variable '%s' of %u components; give one for "
            "each",
            function, inputs->replicas, variable->name, variable->component_count);
    }
    if (inputs != NULL && inputs->components > CADRE_ELEMENT_TENSORS_MAX) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s was given %u inputs for each component; at most %d are possible", function,
            inputs->components, CADRE_ELEMENT_TENSORS_MAX);
    }
    return CADRE_OK;
}

static cadre_status require(const cadre_strategy *strategy, const cadre_variable *variable,
    const char *function, struct strategy_call *call, struct cadre_error *error)
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
    CADRE_TRY(argument_require(strategy, function, "strategy", error));
    CADRE_TRY(variable_enter(variable, function, call, error));
    if (variable->kind != CADRE_VARIABLE_REGULAR && variable->strategy != strategy) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s: variable '%s' is of another strategy; give the one it was created in", function,
            variable->name);
    }
    return CADRE_OK;
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
    cadre_status status = require(strategy, variable, __func__, &call, &error);
    if (status == CADRE_OK && function == NULL) {
        status = argument_require(NULL, __func__, "function", &error);
    }
    if (status == CADRE_OK && inputs != NULL) {
        status = per_replica_require(inputs, __func__, "inputs", &error);
    }
    if (status == CADRE_OK) {
        status = check(variable, inputs, __func__, &error);
    }
    if (status != CADRE_OK) {
        step_refused(step_writer(), &error);
        return border(status, &error);
    }
    /* They may be outputs, which the step that this is gives back. */
    cadre_per_replica *kept = cadre_per_replica_retain((cadre_per_replica *)(uintptr_t)inputs);
    const struct update update = {
        .function = function, .inputs = kept, .user = user, .outputs = ret_outputs != NULL};
    const struct change change = {.function = __func__,
        .variable = variable,
        .key = change_key(__func__, variable),
        .each = call_function,
        .goes_on = true,
        .what = &update};
    status = change_make(&change, ret_outputs, &error);
    cadre_per_replica_release(kept);
    if (status != CADRE_OK) {
        step_refused(step_writer(), &error);
    }
    return border(status, &error);
}
