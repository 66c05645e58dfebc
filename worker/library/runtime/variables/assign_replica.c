/* SPDX-License-Identifier: Apache-2.0
 * Assignments in replica context. */
#include <math.h>
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/device/tensor.h"
#include "worker/library/runtime/variables/assign.h"
#include "worker/library/runtime/collectives/collective.h"
#include "worker/library/runtime/variables/change_note.h"
#include "worker/library/runtime/variables/remote_variable.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/variables/variable_share.h"

/* A host number is the same on all replicas; the collective only checks it. */
static cadre_status meet_with_literal(
    cadre_replica *replica, const struct assignment *assignment, struct cadre_error *error)
{
    const cadre_variable *variable = assignment->variable;
    CADRE_ASSERT(assignment->literal);
    if (variable->aggregation == CADRE_AGGREGATION_SUM && replica->strategy->replica_count > 1) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s: variable '%s' sums what its %u replicas assign, and a number is the same on all "
            "of them, so that it is not clear what their sum is to be; give a tensor of each",
            assignment->function, variable->name, replica->strategy->replica_count);
    }
    char value[ASSIGN_VALUE_BYTES];
    char text[CHANGE_TEXT_BYTES];
    uint64_t key = assign_key(assignment, value);
    change_text(assignment->function, variable, value, text);
    return variables_sum_in_step(replica, text, key, NULL, 0, error);
}

/* The caller releases *ret_combined. */
static cadre_status assign_replica_combine(cadre_replica *replica, cadre_aggregation aggregation,
    const cadre_tensor *value, cadre_tensor **ret_combined, struct cadre_error *error)
{
    CADRE_TRY(tensor_copy(value, ret_combined, error));
    switch (aggregation) {
    case CADRE_AGGREGATION_SUM:
        return collective_all_reduce(replica, CADRE_SUM, ret_combined, 1, 0, error);
    case CADRE_AGGREGATION_MEAN:
        return collective_all_reduce(replica, CADRE_MEAN, ret_combined, 1, 0, error);
    case CADRE_AGGREGATION_ONLY_FIRST_REPLICA:
        return collective_broadcast(replica, 0, ret_combined, 1, error);
    case CADRE_AGGREGATION_NONE:
        break;
    }
    return CADRE_OK;
}

/* True: each replica writes its own component, without a collective. */
static bool is_own(const cadre_variable *variable)
{
    return variable->on_read || variable->aggregation == CADRE_AGGREGATION_NONE;
}

static cadre_status assign_replica_write(cadre_replica *replica,
    const struct assignment *assignment, const cadre_tensor *value, struct cadre_error *error)
{
    struct variable_component *component = NULL;
    CADRE_ASSERT(value != NULL);
    cadre_status status = variable_share_begin(replica, assignment->variable, &component, error);
    if (status == CADRE_OK && component != NULL) {
        status = assign_write(assignment->variable, component, value, assignment->how, error);
    }
    return variable_share_end(replica, assignment->variable, status, error);
}

cadre_status assign_in_replica(
    cadre_replica *replica, const struct assignment *assignment, struct cadre_error *error)
{
    cadre_variable *variable = assignment->variable;
    cadre_tensor *combined = NULL;
    if (variable->dtype == CADRE_STRING) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "variable '%s' holds strings, which are assigned between steps only; assign it in "
            "cross-replica context",
            variable->name);
    }
    CADRE_TRY(variable_share_check(replica, variable, error));
    if (is_own(variable)) {
        return assign_replica_write(replica, assignment, assignment->value, error);
    }
    cadre_status status = assignment->literal
                              ? meet_with_literal(replica, assignment, error)
                              : assign_replica_combine(replica, variable->aggregation,
                                    assignment->value, &combined, error);
    if (status == CADRE_OK) {
        status = assign_replica_write(
            replica, assignment, assignment->literal ? assignment->value : combined, error);
    }
    cadre_tensor_release(combined);
    return status;
}

/* --- on servers --- */

cadre_status variable_combine(cadre_replica *replica, const cadre_variable *variable,
    const char *function, const cadre_tensor *value, cadre_tensor **ret_combined,
    struct cadre_error *error)
{
    CADRE_ASSERT(variable->served != NULL);
    if (variable->aggregation != CADRE_AGGREGATION_NONE) {
        return assign_replica_combine(replica, variable->aggregation, value, ret_combined, error);
    }
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
        "%s: variable '%s' is once on parameter servers, and %u replicas would change it in one "
        "step; create it with CADRE_AGGREGATION_SUM, _MEAN or _ONLY_FIRST_REPLICA, or change it "
        "behind cadre_run, or in the function of cadre_merge_call",
        function, variable->name, replica->strategy->replica_count);
}

cadre_status assign_together(
    cadre_replica *replica, const struct assignment *assignment, struct cadre_error *error)
{
    static const cadre_push_options none = {0};
    const cadre_variable *variable = assignment->variable;
    struct variable_push push = {.how = assignment->how, .options = &none};
    cadre_tensor *combined = NULL;
    bool literal = assignment->literal && variable->aggregation != CADRE_AGGREGATION_NONE;
    cadre_status status = literal ? meet_with_literal(replica, assignment, error)
                                  : variable_combine(replica, variable, assignment->function,
                                        assignment->value, &combined, error);
    if (status == CADRE_OK) {
        push.values = cadre_tensor_const_data(literal ? assignment->value : combined);
        status = variable_push_together(replica, variable, assignment->function, &push, error);
    }
    cadre_tensor_release(combined);
    return status;
}
