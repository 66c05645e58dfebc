/* SPDX-License-Identifier: Apache-2.0
 * Values of variables as tensors, of all kinds of variables: all of it, rows by number, slices.
 * Public functions. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/pure/assert.h"
#include "worker/library/device/argument.h"
#include "worker/library/device/tensor.h"
#include "worker/library/device/device.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/variables/remote_variable.h"
#include "worker/library/runtime/variables/slice.h"
#include "worker/library/runtime/variables/variable_device.h"
#include "worker/library/runtime/variables/variable_rows.h"
#include "worker/library/runtime/variables/variable_view.h"

_Static_assert(CADRE_SLICE_DEFAULT == SLICE_NONE, "an absent bound is the same in both");

/* A read: what is read, in which context, and into which tensor. */
struct reading {
    const char *function;
    const cadre_replica *replica;
    cadre_variable *variable;
    cadre_read_options options;
    struct variable_view view; /* of one in this process */
};

/* --- the result's tensor --- */

/* The caller's tensor, or a new one, of that shape. */
static cadre_status open_into(const struct reading *reading, const struct row_shape *shape,
    cadre_tensor **ret_tensor, struct cadre_error *error)
{
    cadre_tensor *into = reading->options.into;
    if (into == NULL) {
        return tensor_create_unset(
            reading->variable->dtype, shape->rank, shape->dims, ret_tensor, error);
    }
    CADRE_TRY(tensor_require(into, reading->function, "options->into", error));
    CADRE_TRY(variable_check_row_values(reading->variable, shape, into, error));
    *ret_tensor = cadre_tensor_retain(into);
    return CADRE_OK;
}

static cadre_status close_into(cadre_tensor *tensor, cadre_status status, cadre_tensor **ret_tensor)
{
    if (status == CADRE_OK && ret_tensor != NULL) {
        *ret_tensor = tensor;
    } else {
        cadre_tensor_release(tensor);
    }
    return status;
}

/* --- rows of a variable in this process --- */

/* The whole value in the host's memory: itself, or a copy, *ret_memory, which the caller frees. */
static cadre_status variable_value_bring(const struct reading *reading, const char **ret_values,
    void **ret_memory, struct cadre_error *error)
{
    const cadre_variable *variable = reading->variable;
    *ret_values = reading->view.value;
    if (reading->view.on_device == NULL) {
        return CADRE_OK;
    }
    *ret_memory = malloc(variable->bytes + 1);
    if (*ret_memory == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory on the host to read variable '%s' (%zu bytes)", variable->name,
            variable->bytes);
    }
    *ret_values = *ret_memory;
    return variable_to_host(
        variable, reading->view.on_device, 0, *ret_memory, variable->bytes, error);
}

static cadre_status copy_rows(const struct reading *reading, const struct variable_rows *rows,
    char *into, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT void *memory = NULL;
    const cadre_variable *variable = reading->variable;
    const char *values = NULL;
    uint64_t all = variable->rank == 0 ? 1 : (uint64_t)variable->dims[0];
    size_t bytes = all == 0 ? 0 : variable->bytes / all; /* of a row */
    for (uint64_t i = 0; rows->ids != NULL && i < rows->count; i++) {
        if (rows->ids[i] < 0 || (uint64_t)rows->ids[i] >= all) {
            return variable_no_row(variable, rows->ids[i], error);
        }
    }
    CADRE_TRY(variable_value_bring(reading, &values, &memory, error));
    if (rows->ids == NULL) {
        CADRE_ASSERT(rows->first + rows->count <= all);
        memcpy(into, values + rows->first * bytes, rows->count * bytes);
        return CADRE_OK;
    }
    for (uint64_t i = 0; i < rows->count; i++) {
        memcpy(into + i * bytes, values + (size_t)rows->ids[i] * bytes, bytes);
    }
    return CADRE_OK;
}

/* --- of all kinds --- */

static cadre_status read_rows(const struct reading *reading, const struct variable_rows *rows,
    const struct row_shape *shape, cadre_tensor **ret_rows, struct cadre_error *error)
{
    cadre_tensor *tensor = NULL;
    cadre_variable *variable = reading->variable;
    CADRE_TRY(open_into(reading, shape, &tensor, error));
    void *into = cadre_tensor_data(tensor);
    cadre_status status = variable->served != NULL ? remote_variable_ops()->read(variable, rows,
                                                         reading->options.step, into, error)
                                                   : copy_rows(reading, rows, into, error);
    return close_into(tensor, status, ret_rows);
}

/* A tensor over the component, which stays in its memory; of one on a device a copy there. */
static cadre_status variable_value_lend(
    const struct reading *reading, cadre_tensor **ret_value, struct cadre_error *error)
{
    const cadre_variable *variable = reading->variable;
    const struct variable_component *component = reading->view.on_device;
    if (variable->dtype == CADRE_STRING) {
        *ret_value = cadre_tensor_retain(variable->strings);
        return CADRE_OK;
    }
    if (component == NULL) {
        const struct tensor_lent lent = {.dtype = variable->dtype,
            .rank = variable->rank,
            .dims = variable->dims,
            .data = (void *)(uintptr_t)reading->view.value};
        return tensor_over(&lent, ret_value, error);
    }
    cadre_tensor *copy = NULL;
    CADRE_TRY(tensor_create_on(
        component->device, NULL, variable->dtype, variable->rank, variable->dims, &copy, error));
    return close_into(copy,
        component_copy(variable, component, cadre_tensor_data(copy), component->value, error),
        ret_value);
}

static cadre_status read_whole(
    const struct reading *reading, cadre_tensor **ret_value, struct cadre_error *error)
{
    const cadre_variable *variable = reading->variable;
    struct row_shape shape = {.rank = variable->rank};
    const struct variable_rows all = {
        .count = variable->rank == 0 ? 1 : (uint64_t)variable->dims[0]};
    if (variable->served == NULL && reading->options.into == NULL) {
        return variable_value_lend(reading, ret_value, error);
    }
    if (variable->dtype == CADRE_STRING) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s: variable '%s' holds strings, which go into no memory of the program; read it "
            "without options->into",
            reading->function, variable->name);
    }
    memcpy(shape.dims, variable->dims, sizeof shape.dims);
    return read_rows(reading, &all, &shape, ret_value, error);
}

static cadre_status variable_value_gather(const struct reading *reading, const cadre_tensor *given,
    cadre_tensor **ret_rows, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT int64_t *memory = NULL;
    cadre_tensor *ids = NULL;
    struct row_shape shape;
    struct variable_rows rows = {.count = (uint64_t)cadre_tensor_count(given)};
    CADRE_TRY(variable_row_shape(reading->variable, given, &shape, error));
    CADRE_TRY(tensor_on_host(given, &ids, error));
    cadre_status status = variable_take_ids(ids, &rows.ids, &memory, error);
    if (status == CADRE_OK) {
        status = read_rows(reading, &rows, &shape, ret_rows, error);
    }
    cadre_tensor_release(ids);
    return status;
}

/* Adjacent rows are a range, others are listed. `keep_axis`: the first axis is that of the items;
 * otherwise there is one item, and that axis is left out. */
static cadre_status read_slice(const struct reading *reading, struct slice slice, bool keep_axis,
    cadre_tensor **ret_rows, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT int64_t *ids = NULL;
    const cadre_variable *variable = reading->variable;
    struct row_shape shape = {.rank = variable->rank - (keep_axis ? 0 : 1)};
    struct variable_rows rows = {.first = (uint64_t)slice.first, .count = (uint64_t)slice.count};
    CADRE_ASSERT(variable->rank > 0);
    shape.dims[0] = slice.count;
    for (uint32_t axis = 1; axis < variable->rank; axis++) {
        shape.dims[axis - (keep_axis ? 0 : 1)] = variable->dims[axis];
    }
    if (slice.step != 1 && slice.count > 0) {
        ids = malloc((size_t)slice.count * sizeof *ids);
        if (ids == NULL) {
            return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
                "no memory for %" PRId64 " row numbers", slice.count);
        }
        for (int64_t i = 0; i < slice.count; i++) {
            ids[i] = slice.first + (i == 0 ? 0 : i * slice.step);
        }
        rows.ids = ids;
    }
    return read_rows(reading, &rows, &shape, ret_rows, error);
}

static cadre_status variable_value_slice(const struct reading *reading, int64_t begin, int64_t end,
    int64_t step, cadre_tensor **ret_rows, struct cadre_error *error)
{
    const cadre_variable *variable = reading->variable;
    CADRE_TRY(variable_require_rows(variable, error));
    if (end == CADRE_SLICE_ROW) {
        struct slice one = {.count = 1, .step = 1};
        return slice_item(variable->dims[0], begin, &one.first)
                   ? read_slice(reading, one, false, ret_rows, error)
                   : variable_no_row(variable, begin, error);
    }
    if (step == 0) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "a slice of variable '%s' with step 0; give another one, or CADRE_SLICE_DEFAULT for 1",
            variable->name);
    }
    int64_t by = step == CADRE_SLICE_DEFAULT ? 1 : step;
    return read_slice(reading, slice_of(variable->dims[0], begin, end, by), true, ret_rows, error);
}

/* --- public --- */

/* The result's tensor is checked first: `ret` may be NULL when the caller's tensor is filled. */
static cadre_status variable_value_enter(struct reading *reading, const char *function,
    const cadre_read_options *options, cadre_tensor **ret, const char *ret_name,
    struct cadre_error *error)
{
    reading->function = function;
    reading->options = options != NULL ? *options : (cadre_read_options){0};
    if (reading->options.into == NULL) {
        CADRE_TRY(argument_require(ret, function, ret_name, error));
    }
    if (ret != NULL) {
        *ret = NULL;
    }
    CADRE_TRY(argument_require(reading->variable, function, "variable", error));
    CADRE_TRY(variable_require_registered(reading->variable, function, error));
    return reading->variable->served != NULL
               ? CADRE_OK
               : variable_view_get(
                     reading->replica, reading->variable, function, &reading->view, error);
}

cadre_status cadre_variable_value(const cadre_replica *replica, cadre_variable *variable,
    const cadre_read_options *options, cadre_tensor **ret_value)
{
    struct cadre_error error = {0};
    struct reading reading = {.replica = replica, .variable = variable};
    cadre_status status =
        variable_value_enter(&reading, __func__, options, ret_value, "ret_value", &error);
    if (status == CADRE_OK) {
        status = read_whole(&reading, ret_value, &error);
    }
    return api_return(status, &error);
}

cadre_status cadre_variable_gather(const cadre_replica *replica, cadre_variable *variable,
    const cadre_tensor *ids, const cadre_read_options *options, cadre_tensor **ret_rows)
{
    struct cadre_error error = {0};
    struct reading reading = {.replica = replica, .variable = variable};
    cadre_status status =
        variable_value_enter(&reading, __func__, options, ret_rows, "ret_rows", &error);
    if (status == CADRE_OK) {
        status = argument_require(ids, __func__, "ids", &error);
    }
    if (status == CADRE_OK) {
        status = variable_require_numbers(variable, __func__, &error);
    }
    if (status == CADRE_OK) {
        status = variable_value_gather(&reading, ids, ret_rows, &error);
    }
    return api_return(status, &error);
}

cadre_status cadre_variable_slice(const cadre_replica *replica, cadre_variable *variable,
    int64_t begin, int64_t end, int64_t step, cadre_tensor **ret_rows)
{
    struct cadre_error error = {0};
    struct reading reading = {.replica = replica, .variable = variable};
    cadre_status status =
        variable_value_enter(&reading, __func__, NULL, ret_rows, "ret_rows", &error);
    if (status == CADRE_OK) {
        status = variable_require_numbers(variable, __func__, &error);
    }
    if (status == CADRE_OK) {
        status = variable_value_slice(&reading, begin, end, step, ret_rows, &error);
    }
    return api_return(status, &error);
}
