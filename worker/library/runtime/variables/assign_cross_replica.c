/* SPDX-License-Identifier: Apache-2.0
 * Assignments in cross-replica context. */
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/device/tensor.h"
#include "worker/library/runtime/variables/assign.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/variables/change.h"
#include "worker/library/runtime/collectives/collective.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/values/values.h"

static const cadre_tensor *value_for(const struct assignment *assignment, uint32_t local)
{
    CADRE_ASSERT(assignment->values == NULL || local < assignment->values->replicas);
    return assignment->values == NULL ? assignment->value
                                      : cadre_local_results(assignment->values, 0)[local];
}

/* A part of a sum: a single value on the host. */
static bool is_part(const struct assignment *assignment)
{
    return assignment->variable->on_read && assignment->how == CADRE_ASSIGN &&
           assignment->values == NULL;
}

/* The assigned sum is divided among the components; other values are written to each component. */
static cadre_status write_component(
    const struct change *change, uint32_t local, cadre_tensor **output, struct cadre_error *error)
{
    (void)output;
    const struct assignment *assigned = change->what;
    cadre_variable *variable = change->variable;
    if (variable->dtype == CADRE_STRING) {
        return CADRE_OK;
    }
    struct variable_component *component = variable_component(variable, local);
    CADRE_TRY(component_open_write(variable, component, error));
    if (is_part(assigned)) {
        on_read_part(variable, cadre_tensor_const_data(assigned->value),
            variable->strategy->replica_first + local, component->value);
    } else {
        CADRE_TRY(
            assign_write(variable, component, value_for(assigned, local), assigned->how, error));
    }
    if (change->once != NULL) {
        on_read_settle(variable, component, context_merging());
    }
    return CADRE_OK;
}

/* What a task has once: the total, and strings. */
static cadre_status write_once(const struct change *change, struct cadre_error *error)
{
    const struct assignment *assigned = change->what;
    CADRE_ASSERT(assigned->value != NULL);
    cadre_variable *variable = change->variable;
    if (variable->dtype == CADRE_STRING) {
        cadre_tensor *strings = NULL;
        CADRE_TRY(tensor_copy(assigned->value, &strings, error));
        variable_set_strings(variable, strings);
    } else if (variable->on_read) {
        CADRE_TRY(component_open_write(variable, &variable->total, error));
        CADRE_TRY(assign_write(variable, &variable->total, assigned->value, assigned->how, error));
    }
    return CADRE_OK;
}

static cadre_status assign_cross_replica_check(
    const struct assignment *assigned, struct cadre_error *error)
{
    const cadre_variable *variable = assigned->variable;
    if (is_part(assigned) && variable->aggregation == CADRE_AGGREGATION_NONE) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "variable '%s' is of each replica its own (CADRE_SYNC_ON_READ without aggregation), "
            "and "
            "is not assigned as a whole; assign it in a replica function, or with "
            "cadre_variable_assign_values",
            variable->name);
    }
    if (!variable->on_read || variable->aggregation != CADRE_AGGREGATION_SUM) {
        return CADRE_OK;
    }
    if (assigned->how != CADRE_ASSIGN) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "variable '%s' is the sum of what its replicas hold: in cross-replica context it can "
            "be assigned, and nothing can be added to it",
            variable->name);
    }
    if (assigned->values != NULL) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "variable '%s' is the sum of what its replicas hold, which is assigned as a whole in "
            "cross-replica context; give one tensor, or assign in a replica function",
            variable->name);
    }
    return CADRE_OK;
}

cadre_status assign_cross_replica(const struct assignment *assignment, struct cadre_error *error)
{
    CADRE_TRY(assign_cross_replica_check(assignment, error));
    char value[ASSIGN_VALUE_BYTES];
    const struct change change = {
        .function = assignment->function,
        .strategy = assignment->variable->strategy,
        .variable = assignment->variable,
        .key = assign_key(assignment, value),
        .value = value,
        .each = write_component,
        .once = assignment->values == NULL ? write_once : NULL,
        .what = assignment,
    };
    return change_make(&change, NULL, error);
}

cadre_status assign_component(
    const struct assignment *assignment, uint32_t local, struct cadre_error *error)
{
    CADRE_ASSERT(assignment->variable->kind != CADRE_VARIABLE_REGULAR);
    cadre_variable *variable = assignment->variable;
    if (variable->dtype == CADRE_STRING) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "variable '%s' holds strings, once for all replicas; assign it outside of an update",
            variable->name);
    }
    struct variable_component *component = variable_component(variable, local);
    CADRE_TRY(component_open_write(variable, component, error));
    return assign_write(variable, component, value_for(assignment, local), assignment->how, error);
}
