/* SPDX-License-Identifier: Apache-2.0
 * Assignments: combine over the replicas as the aggregation says, then write. */
#include <string.h>

#include "cadre/replica.h"
#include "worker/device/argument.h"
#include "worker/device/tensor.h"
#include "worker/runtime/border.h"
#include "worker/runtime/collective.h"
#include "worker/runtime/living.h"
#include "worker/runtime/outside.h"
#include "worker/runtime/strategy.h"
#include "worker/runtime/variable.h"
#include "worker/runtime/variable_numbers.h"

enum assignment { ASSIGN, ASSIGN_ADD, ASSIGN_SUB };

static void write_value(
    const cadre_variable *variable, void *to, const void *from, enum assignment how)
{
    if (how == ASSIGN) {
        memcpy(to, from, variable->bytes);
    } else {
        numbers_add(to, from, variable->count, variable->dtype, how == ASSIGN_SUB);
    }
}

static cadre_status check_value(const cadre_variable *variable, const cadre_tensor *value,
    enum assignment how, struct cadre_error *error)
{
    bool same = cadre_tensor_dtype(value) == variable->dtype &&
                cadre_tensor_rank(value) == variable->rank &&
                memcmp(cadre_tensor_dims(value), variable->dims,
                    variable->rank * sizeof variable->dims[0]) == 0;
    if (!same) {
        char is[TENSOR_SHAPE_TEXT_BYTES];
        char wanted[TENSOR_SHAPE_TEXT_BYTES];
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "variable '%s' is %s and cannot be assigned %s; give a tensor of its type and shape",
            variable->name,
            tensor_shape_text(variable->dtype, variable->rank, variable->dims, wanted),
            tensor_shape_text(
                cadre_tensor_dtype(value), cadre_tensor_rank(value), cadre_tensor_dims(value), is));
    }
    bool number = variable->dtype != CADRE_BOOL && variable->dtype != CADRE_STRING;
    if (how != ASSIGN && !number) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "variable '%s' holds %s: nothing can be added to it, only assigned", variable->name,
            variable->dtype == CADRE_BOOL ? "truth values" : "strings");
    }
    return CADRE_OK;
}

/* --- in replica context --- */

/* *ret_combined is a tensor to release. */
static cadre_status combine(cadre_replica *replica, const cadre_variable *variable,
    const cadre_tensor *value, cadre_tensor **ret_combined, struct cadre_error *error)
{
    cadre_status status = tensor_copy(value, ret_combined, error);
    if (status != CADRE_OK) {
        return status;
    }
    switch (variable->aggregation) {
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

static cadre_status assign_in_replica(cadre_replica *replica, cadre_variable *variable,
    const cadre_tensor *value, enum assignment how, struct cadre_error *error)
{
    cadre_tensor *combined = NULL;
    void *to = NULL;
    if (variable->dtype == CADRE_STRING) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "variable '%s' holds strings, which are assigned between steps only; assign it in "
            "cross-replica context",
            variable->name);
    }
    cadre_status status =
        variable->on_read ? CADRE_OK : combine(replica, variable, value, &combined, error);
    if (status == CADRE_OK) {
        status = variable_open_write(variable, replica->local, &to, error);
    }
    if (status == CADRE_OK) {
        write_value(variable, to,
            variable->on_read ? cadre_tensor_const_data(value) : cadre_tensor_const_data(combined),
            how);
    }
    cadre_tensor_release(combined);
    return status;
}

/* --- in cross-replica context --- */

struct everywhere {
    cadre_variable *variable;
    const cadre_tensor *value;
    enum assignment how;
    uint64_t key; /* of what is assigned */
};

/* The value that a sum comes to is dealt out; everything else is done to each component. */
static cadre_status write_component(
    const struct everywhere *assigned, uint32_t local, uint32_t id, struct cadre_error *error)
{
    cadre_variable *variable = assigned->variable;
    const void *from = cadre_tensor_const_data(assigned->value);
    struct variable_component *component = &variable->components[local];
    cadre_status status = component_open_write(variable, component, error);
    if (status != CADRE_OK) {
        return status;
    }
    if (variable->on_read && assigned->how == ASSIGN) {
        on_read_part(variable, from, id, component->value);
    } else {
        write_value(variable, component->value, from, assigned->how);
    }
    component->settled = variable->on_read;
    return CADRE_OK;
}

/* What a task has once: the total, and strings. */
static cadre_status write_once(const struct everywhere *assigned, struct cadre_error *error)
{
    cadre_variable *variable = assigned->variable;
    cadre_tensor *strings = NULL;
    cadre_status status = CADRE_OK;
    if (variable->dtype == CADRE_STRING) {
        status = tensor_copy(assigned->value, &strings, error);
        if (status == CADRE_OK) {
            variable_set_strings(variable, strings);
        }
    } else if (variable->on_read) {
        status = component_open_write(variable, &variable->total, error);
        if (status == CADRE_OK) {
            write_value(variable, variable->total.value, cadre_tensor_const_data(assigned->value),
                assigned->how);
        }
    }
    return status;
}

static uint64_t bytes_key(uint64_t key, const char *bytes, size_t size)
{
    for (; size >= sizeof key; bytes += sizeof key, size -= sizeof key) {
        uint64_t word;
        memcpy(&word, bytes, sizeof word);
        key = collective_key(key, word);
    }
    for (; size > 0; bytes++, size--) {
        key = collective_key(key, (uint64_t)(unsigned char)*bytes);
    }
    return key;
}

static uint64_t assigned_key(
    const cadre_variable *variable, const cadre_tensor *value, enum assignment how)
{
    uint64_t key = bytes_key((uint64_t)how, variable->name, strlen(variable->name));
    if (variable->dtype != CADRE_STRING) {
        return bytes_key(key, cadre_tensor_const_data(value), cadre_tensor_bytes(value));
    }
    const cadre_string *strings = cadre_tensor_const_data(value);
    for (int64_t i = 0; i < variable->count; i++) {
        key = bytes_key(collective_key(key, strings[i].size), strings[i].bytes, strings[i].size);
    }
    return key;
}

/* The function of the ledger step that an assignment between steps is. */
static cadre_status assign_here(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    const struct everywhere *assigned = user;
    struct cadre_error error = {0};
    cadre_status status = variables_meet(
        replica, "cadre_variable_assign between steps", assigned->key, NULL, 0, &error);
    if (status == CADRE_OK && assigned->variable->component_count > 0) {
        status = write_component(assigned, replica->local, replica->id, &error);
    }
    if (status == CADRE_OK && replica->local == 0) {
        status = write_once(assigned, &error);
    }
    return border(status, &error);
}

/* Before the first step the program sets its variables up, and a task that comes later does again
 * what the others did: neither is a step. */
static cadre_status assign_at_once(const struct everywhere *assigned, struct cadre_error *error)
{
    cadre_variable *variable = assigned->variable;
    cadre_strategy *strategy = variable->strategy;
    outside_settle(strategy, variable);
    cadre_status status = write_once(assigned, error);
    for (uint32_t i = 0; status == CADRE_OK && i < variable->component_count; i++) {
        status = write_component(assigned, i, strategy->replica_first + i, error);
    }
    if (status == CADRE_OK) {
        variables_commit(strategy);
    } else {
        variables_restore(strategy);
    }
    return status;
}

static cadre_status assign_everywhere(cadre_variable *variable, const cadre_tensor *value,
    enum assignment how, struct cadre_error *error)
{
    struct everywhere assigned = {.variable = variable, .value = value, .how = how};
    if (variable->on_read && variable->aggregation == CADRE_AGGREGATION_SUM && how != ASSIGN) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "variable '%s' is the sum of what its replicas hold: in cross-replica context it can "
            "be assigned, and nothing can be added to it",
            variable->name);
    }
    if (strategy_arrives(variable->strategy)) {
        return CADRE_OK; /* others assigned it, and what became of that since is what it holds */
    }
    if (strategy_position(variable->strategy) == 0 || strategy_warm(variable->strategy)) {
        return assign_at_once(&assigned, error);
    }
    assigned.key = assigned_key(variable, value, how);
    cadre_status status = cadre_run(variable->strategy, assign_here, NULL, 0, &assigned, NULL);
    return status == CADRE_OK ? CADRE_OK
                              : cadre_error_set(error, status, "variable '%s' was not assigned: %s",
                                    variable->name, cadre_error_message());
}

/* --- public --- */

static cadre_status assign(cadre_replica *replica, cadre_variable *variable,
    const cadre_tensor *value, enum assignment how)
{
    static const char *const functions[] = {[ASSIGN] = "cadre_variable_assign",
        [ASSIGN_ADD] = "cadre_variable_assign_add",
        [ASSIGN_SUB] = "cadre_variable_assign_sub"};
    struct cadre_error error = {0};
    cadre_status status = argument_require(variable, functions[how], "variable", &error);
    if (status == CADRE_OK) {
        status = argument_require(value, functions[how], "value", &error);
    }
    if (status == CADRE_OK && replica != NULL) {
        status = step_require(replica, functions[how], &error);
    } else if (status == CADRE_OK) {
        status = strategy_enter(living_of_variable(variable), functions[how], &error);
    }
    if (status == CADRE_OK) {
        status = check_value(variable, value, how, &error);
    }
    if (status == CADRE_OK && replica != NULL) {
        status = assign_in_replica(replica, variable, value, how, &error);
    } else if (status == CADRE_OK) {
        status = assign_everywhere(variable, value, how, &error);
    }
    if (status != CADRE_OK) {
        step_refused(replica, &error);
    }
    return border(status, &error);
}

cadre_status cadre_variable_assign(
    cadre_replica *replica, cadre_variable *variable, const cadre_tensor *value)
{
    return assign(replica, variable, value, ASSIGN);
}

cadre_status cadre_variable_assign_add(
    cadre_replica *replica, cadre_variable *variable, const cadre_tensor *value)
{
    return assign(replica, variable, value, ASSIGN_ADD);
}

cadre_status cadre_variable_assign_sub(
    cadre_replica *replica, cadre_variable *variable, const cadre_tensor *value)
{
    return assign(replica, variable, value, ASSIGN_SUB);
}
