/* SPDX-License-Identifier: Apache-2.0
 * Assignments: the public functions, their checks, and the choice by context. */
#include "worker/library/runtime/variables/assign.h"

#include <math.h>
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/device/argument.h"
#include "worker/library/device/tensor.h"
#include "worker/library/device/device.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/values/values.h"
#include "worker/library/runtime/variables/remote_variable.h"
#include "worker/library/runtime/variables/variable_device.h"
#include "worker/library/runtime/replica/step_admission.h"

/* --- checks --- */

static cadre_status check_how(
    const cadre_variable *variable, cadre_assignment how, struct cadre_error *error)
{
    if (variable->served != NULL && how == CADRE_ASSIGN_UPDATE) {
        return CADRE_OK; /* the optimizer of the servers decides */
    }
    if (how < CADRE_ASSIGN || how > CADRE_ASSIGN_SUB) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%d is no way to assign; use CADRE_ASSIGN, CADRE_ASSIGN_ADD or CADRE_ASSIGN_SUB",
            (int)how);
    }
    bool number = variable->dtype != CADRE_BOOL && variable->dtype != CADRE_STRING;
    if (how != CADRE_ASSIGN && !number) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "variable '%s' holds %s: nothing can be added to it, only assigned", variable->name,
            variable->dtype == CADRE_BOOL ? "truth values" : "strings");
    }
    return CADRE_OK;
}

cadre_status variable_check_value(
    const cadre_variable *variable, const cadre_tensor *value, struct cadre_error *error)
{
    char is[TENSOR_SHAPE_TEXT_BYTES];
    char wanted[TENSOR_SHAPE_TEXT_BYTES];
    bool same = cadre_tensor_dtype(value) == variable->dtype &&
                cadre_tensor_rank(value) == variable->rank &&
                memcmp(cadre_tensor_dims(value), variable->dims,
                    variable->rank * sizeof variable->dims[0]) == 0;
    return same ? CADRE_OK
                : cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                      "variable '%s' is %s and cannot be assigned %s; give a tensor of its type "
                      "and shape",
                      variable->name,
                      tensor_shape_text(variable->dtype, variable->rank, variable->dims, wanted),
                      tensor_shape_text(cadre_tensor_dtype(value), cadre_tensor_rank(value),
                          cadre_tensor_dims(value), is));
}

/* Whether the value fits the variable and the variable can be changed in this way:
 * INVALID_ARGUMENT. */
static cadre_status check_value(
    const struct assignment *assignment, const cadre_tensor *value, struct cadre_error *error)
{
    CADRE_TRY(variable_check_value(assignment->variable, value, error));
    return check_how(assignment->variable, assignment->how, error);
}

static cadre_status check_values(const struct assignment *assignment, struct cadre_error *error)
{
    const cadre_variable *variable = assignment->variable;
    const cadre_per_replica *values = assignment->values;
    if (variable->kind == CADRE_VARIABLE_REGULAR || variable->dtype == CADRE_STRING) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "variable '%s' has no components of replicas, being %s; assign one tensor",
            variable->name,
            variable->dtype == CADRE_STRING ? "strings" : "created outside of any strategy");
    }
    if (values->components != 1 || values->replicas != variable->component_count) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s takes one tensor for each component of variable '%s' on this task (%u), and was "
            "given %u tensors for each of %u replicas",
            assignment->function, variable->name, variable->component_count, values->components,
            values->replicas);
    }
    for (uint32_t local = 0; local < values->replicas; local++) {
        CADRE_TRY(check_value(assignment, cadre_local_results(values, 0)[local], error));
    }
    return CADRE_OK;
}

/* --- by context --- */

static cadre_status check_context(cadre_replica *replica, const struct assignment *assignment,
    struct strategy_call *call, struct cadre_error *error)
{
    if (replica == NULL) {
        return variable_enter(assignment->variable, assignment->function, call, error);
    }
    CADRE_TRY(argument_require(assignment->variable, assignment->function, "variable", error));
    CADRE_TRY(step_require_own_thread(replica, assignment->function, error));
    return variable_require_own(replica, assignment->variable, assignment->function, error);
}

/* On servers: one push, in any context, which no step undoes; several replicas of a step make
 * one. */
static cadre_status assign_remote(
    cadre_replica *replica, const struct assignment *assignment, struct cadre_error *error)
{
    static const cadre_push_options none = {0};
    struct variable_push push = {.how = assignment->how, .options = &none};
    struct assignment placed = *assignment;
    cadre_tensor *value = NULL;
    if (replica != NULL) {
        CADRE_TRY(step_require_own_thread(replica, assignment->function, error));
    }
    if (assignment->values != NULL) {
        return variable_require_local(
            assignment->variable, assignment->function, "cadre_variable_assign", error);
    }
    CADRE_TRY(argument_require(assignment->value, assignment->function, "value", error));
    CADRE_TRY(check_value(assignment, assignment->value, error));
    CADRE_TRY(tensor_on_host(assignment->value, &value, error));
    placed.value = value;
    push.values = cadre_tensor_const_data(value);
    cadre_status status = variable_is_changed_together(replica, &replica)
                              ? assign_together(replica, &placed, error)
                              : remote_variable_ops()->push(assignment->variable, &push, error);
    cadre_tensor_release(value);
    return status;
}

static cadre_status assign_on_replica(cadre_replica *replica, const struct assignment *assignment,
    uint32_t *updates, struct cadre_error *error)
{
    CADRE_ASSERT((assignment->value == NULL) != (assignment->values == NULL));
    CADRE_ASSERT(updates == NULL || replica == NULL);
    cadre_variable *variable = assignment->variable;
    CADRE_TRY(assignment->values != NULL ? check_values(assignment, error)
                                         : check_value(assignment, assignment->value, error));
    if (variable->kind == CADRE_VARIABLE_REGULAR) {
        return assign_plain(assignment, error);
    }
    if (updates != NULL) {
        return assign_component(assignment, *updates, error);
    }
    return replica != NULL ? assign_in_replica(replica, assignment, error)
                           : assign_cross_replica(assignment, error);
}

/* In cross-replica context all tasks compare what is assigned, and regular variables are in the
 * host's memory: there a value on a device is copied to the host first, once. */
static cadre_status assign_placed(cadre_replica *replica, const struct assignment *assignment,
    uint32_t *updates, struct cadre_error *error)
{
    const cadre_variable *variable = assignment->variable;
    bool on_host = variable->kind == CADRE_VARIABLE_REGULAR || variable->on_read ||
                   (replica == NULL && updates == NULL);
    if (assignment->values != NULL || !on_host || tensor_device(assignment->value) == NULL) {
        return assign_on_replica(replica, assignment, updates, error);
    }
    cadre_tensor *value = NULL;
    struct assignment placed = *assignment;
    CADRE_TRY(tensor_copy_to(NULL, assignment->value, &value, error));
    placed.value = value;
    cadre_status status = assign_on_replica(replica, &placed, updates, error);
    cadre_tensor_release(value);
    return status;
}

/* In a context that was checked. */
static cadre_status assign_entered(
    cadre_replica *replica, const struct assignment *assignment, struct cadre_error *error)
{
    uint32_t local = 0;
    CADRE_ASSERT(assignment->function != NULL);
    bool updates = replica == NULL && context_update(&local);
    if (assignment->values == NULL) {
        CADRE_TRY(argument_require(assignment->value, assignment->function, "value", error));
    }
    return assign_placed(replica, assignment, updates ? &local : NULL, error);
}

cadre_status assign_make(
    cadre_replica *replica, const struct assignment *assignment, struct cadre_error *error)
{
    STRATEGY_CALL call = {0};
    if (variable_is_registered(assignment->variable) && assignment->variable->served != NULL) {
        return assign_remote(replica, assignment, error);
    }
    cadre_status status = check_context(replica, assignment, &call, error);
    if (status == CADRE_OK) {
        status = assign_entered(replica, assignment, error);
    }
    if (status != CADRE_OK) {
        step_record_refusal(replica != NULL ? replica : step_current_replica(), error);
    }
    return status;
}

/* --- public: tensors --- */

cadre_status cadre_variable_assign(cadre_replica *replica, cadre_variable *variable,
    cadre_assignment how, const cadre_tensor *value)
{
    struct cadre_error error = {0};
    const struct assignment assignment = {
        .function = __func__, .how = how, .variable = variable, .value = value};
    return api_return(assign_make(replica, &assignment, &error), &error);
}

cadre_status cadre_variable_assign_values(
    cadre_variable *variable, cadre_assignment how, const cadre_per_replica *values)
{
    struct cadre_error error = {0};
    const struct assignment assignment = {
        .function = __func__, .how = how, .variable = variable, .values = values};
    cadre_status status = per_replica_require(values, __func__, "values", &error);
    if (status == CADRE_OK) {
        status = assign_make(NULL, &assignment, &error);
    }
    return api_return(status, &error);
}

/* --- public: numbers --- */

static cadre_status assign_number(
    cadre_replica *replica, struct assignment *assignment, double number, struct cadre_error *error)
{
    STRATEGY_CALL call = {0};
    cadre_tensor *tensor = NULL;
    cadre_variable *variable = assignment->variable;
    bool remote = variable_is_registered(variable) && variable->served != NULL;
    cadre_status status = remote ? CADRE_OK : check_context(replica, assignment, &call, error);
    if (status == CADRE_OK) {
        status = literal_tensor(variable, number, &tensor, error);
    }
    if (status == CADRE_OK) {
        assignment->value = tensor;
        status = remote ? assign_remote(replica, assignment, error)
                        : assign_entered(replica, assignment, error);
    }
    if (status != CADRE_OK && !remote) {
        step_record_refusal(replica != NULL ? replica : step_current_replica(), error);
    }
    cadre_tensor_release(tensor);
    return status;
}

cadre_status cadre_variable_assign_literal(
    cadre_replica *replica, cadre_variable *variable, cadre_assignment how, double value)
{
    struct cadre_error error = {0};
    struct assignment assignment = {
        .function = __func__, .how = how, .variable = variable, .literal = true};
    return api_return(assign_number(replica, &assignment, value, &error), &error);
}
