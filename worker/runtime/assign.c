/* SPDX-License-Identifier: Apache-2.0
 * Assignments: combine over the replicas as the aggregation says, then write. */
#include <string.h>

#include "worker/device/argument.h"
#include "worker/device/tensor.h"
#include "worker/mesh/half.h"
#include "worker/runtime/border.h"
#include "worker/runtime/collective.h"
#include "worker/runtime/strategy.h"
#include "worker/runtime/variable.h"

enum assignment { ASSIGN, ASSIGN_ADD, ASSIGN_SUB };

/* Integers wrap around. */
#define ADD_LOOP(type, wide)                                                                       \
    for (int64_t i = 0; i < count; i++) {                                                          \
        wide a = (wide)((const type *)to)[i];                                                      \
        wide b = (wide)((const type *)from)[i];                                                    \
        ((type *)to)[i] = (type)(subtract ? a - b : a + b);                                        \
    }

#define HALF_LOOP(widen, narrow)                                                                   \
    for (int64_t i = 0; i < count; i++) {                                                          \
        float a = widen(((const uint16_t *)to)[i]);                                                \
        float b = widen(((const uint16_t *)from)[i]);                                              \
        ((uint16_t *)to)[i] = narrow(subtract ? a - b : a + b);                                    \
    }

static void add(void *to, const void *from, int64_t count, cadre_dtype dtype, bool subtract)
{
    switch (dtype) {
    case CADRE_F64:
        ADD_LOOP(double, double)
        break;
    case CADRE_F32:
        ADD_LOOP(float, float)
        break;
    case CADRE_F16:
        HALF_LOOP(half_from_f16, half_to_f16)
        break;
    case CADRE_BF16:
        HALF_LOOP(half_from_bf16, half_to_bf16)
        break;
    case CADRE_I64:
        ADD_LOOP(int64_t, uint64_t)
        break;
    case CADRE_I32:
        ADD_LOOP(int32_t, uint32_t)
        break;
    case CADRE_I16:
        ADD_LOOP(int16_t, uint32_t)
        break;
    case CADRE_I8:
        ADD_LOOP(int8_t, uint32_t)
        break;
    default:
        ADD_LOOP(uint8_t, uint32_t)
        break;
    }
}

static void write_value(
    const cadre_variable *variable, void *to, const void *from, enum assignment how)
{
    if (how == ASSIGN) {
        memcpy(to, from, variable->bytes);
    } else {
        add(to, from, variable->count, variable->dtype, how == ASSIGN_SUB);
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
    if (how != ASSIGN && variable->dtype == CADRE_BOOL) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "variable '%s' is boolean: nothing can be added to it, only assigned", variable->name);
    }
    return CADRE_OK;
}

/* Before the first step the program may set its variables up; all tasks must do it alike. */
static cadre_status assign_everywhere(cadre_variable *variable, const cadre_tensor *value,
    enum assignment how, struct cadre_error *error)
{
    if (strategy_position(variable->strategy) > 0) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "variable '%s' was assigned outside of a step after the first one; assign it in a "
            "replica function",
            variable->name);
    }
    for (uint32_t i = 0; i < variable->component_count; i++) {
        write_value(variable, variable->components[i].value, cadre_tensor_const_data(value), how);
    }
    return CADRE_OK;
}

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
    cadre_status status = combine(replica, variable, value, &combined, error);
    if (status == CADRE_OK) {
        status = variable_open_write(variable, replica->local, &to, error);
    }
    if (status == CADRE_OK) {
        write_value(variable, to, cadre_tensor_const_data(combined), how);
    }
    cadre_tensor_release(combined);
    return status;
}

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
        status = strategy_enter(strategy_current(), functions[how], &error);
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
