/* SPDX-License-Identifier: Apache-2.0
 * Reading parameters: as a whole, by row numbers, by slices. */
#include <inttypes.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/pure/assert.h"
#include "worker/library/device/argument.h"
#include "worker/library/device/tensor.h"
#include "worker/library/runtime/border/border.h"
#include "worker/library/runtime/parameters/parameter_call.h"
#include "worker/library/runtime/parameters/parameter_check.h"
#include "worker/library/runtime/parameters/parameter_views.h"
#include "worker/library/runtime/parameters/slice.h"

/* --- the inside --- */

/* Room for a version of each shard, none of which is read yet. */
static cadre_status get_versions(
    const cadre_parameter *parameter, uint64_t **ret_versions, struct cadre_error *error)
{
    CADRE_ASSERT(parameter->layout.shards > 0);
    size_t shards = (size_t)parameter->layout.shards;
    *ret_versions = malloc(shards * sizeof **ret_versions);
    if (*ret_versions == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory for the versions of parameter '%s'", parameter->name);
    }
    for (size_t i = 0; i < shards; i++) {
        (*ret_versions)[i] = VIEW_NONE;
    }
    return CADRE_OK;
}

static void tell_version(
    cadre_parameter *parameter, const uint64_t *versions, cadre_parameter_version *ret_version)
{
    uint64_t least = parameter_views_keep(parameter->views, versions);
    if (ret_version != NULL) {
        *ret_version = least;
    }
}

static cadre_status pull(cadre_parameter *parameter, struct row_range range, uint64_t least_steps,
    void *into, cadre_parameter_version *ret_version, struct cadre_error *error)
{
    CADRE_ASSERT(range.rows <= parameter->layout.rows);
    CADRE_ASSERT(range.first <= parameter->layout.rows - range.rows);
    CADRE_FREE_AT_EXIT uint64_t *versions = NULL;
    const struct request like = {.kind = REQUEST_PULL, .into = into, .least_steps = least_steps};
    CADRE_TRY(get_versions(parameter, &versions, error));
    CADRE_TRY(parameter_call_range(parameter, range, &like, NULL, versions, error));
    if (ret_version != NULL) {
        tell_version(parameter, versions, ret_version);
    }
    return CADRE_OK;
}

static cadre_status gather(cadre_parameter *parameter, const int64_t *ids, size_t count, void *into,
    cadre_parameter_version *ret_version, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT uint64_t *versions = NULL;
    const struct request like = {.kind = REQUEST_GATHER, .into = into};
    struct row_list rows = {.ids = ids, .count = count};
    CADRE_TRY(get_versions(parameter, &versions, error));
    CADRE_TRY(parameter_call_rows(parameter, rows, &like, NULL, versions, error));
    if (ret_version != NULL) {
        tell_version(parameter, versions, ret_version);
    }
    return CADRE_OK;
}

static cadre_status read_whole(cadre_parameter *parameter, cadre_tensor **ret_value,
    cadre_parameter_version *ret_version, struct cadre_error *error)
{
    cadre_tensor *value = NULL;
    CADRE_TRY(
        tensor_create_unset(parameter->dtype, parameter->rank, parameter->dims, &value, error));
    cadre_status status =
        pull(parameter, parameter_all(parameter), 0, cadre_tensor_data(value), ret_version, error);
    if (status != CADRE_OK) {
        cadre_tensor_release(value);
        return status;
    }
    *ret_value = value;
    return CADRE_OK;
}

static cadre_status gather_tensor(cadre_parameter *parameter, const cadre_tensor *ids,
    cadre_tensor **ret_rows, cadre_parameter_version *ret_version, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT int64_t *memory = NULL;
    const int64_t *numbers = NULL;
    struct row_shape shape;
    cadre_tensor *rows = NULL;
    CADRE_TRY(parameter_row_shape(parameter, ids, &shape, error));
    CADRE_TRY(parameter_take_ids(ids, &numbers, &memory, error));
    CADRE_TRY(tensor_create_unset(parameter->dtype, shape.rank, shape.dims, &rows, error));
    cadre_status status = gather(parameter, numbers, (size_t)cadre_tensor_count(ids),
        cadre_tensor_data(rows), ret_version, error);
    if (status != CADRE_OK) {
        cadre_tensor_release(rows);
        return status;
    }
    *ret_rows = rows;
    return CADRE_OK;
}

/* Rows that lie one behind the other are pulled, others gathered. */
static cadre_status read_items(
    cadre_parameter *parameter, struct slice slice, void *into, struct cadre_error *error)
{
    CADRE_ASSERT(slice.count >= 0);
    CADRE_ASSERT(slice.count == 0 || slice.first < parameter->dims[0]);
    if (slice.count == 0 || parameter->row_bytes == 0) {
        return CADRE_OK;
    }
    if (slice.step == 1) {
        struct row_range range = {.first = (uint64_t)slice.first, .rows = (uint64_t)slice.count};
        return pull(parameter, range, 0, into, NULL, error);
    }
    CADRE_FREE_AT_EXIT int64_t *ids = malloc((size_t)slice.count * sizeof *ids);
    if (ids == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for %" PRId64 " row numbers", slice.count);
    }
    for (int64_t i = 0; i < slice.count; i++) {
        ids[i] = slice.first + (i == 0 ? 0 : i * slice.step);
    }
    return gather(parameter, ids, (size_t)slice.count, into, NULL, error);
}

/* `rank` axes of the parameter's are left, the first of `count` items where it is. */
static cadre_status read_slice(cadre_parameter *parameter, struct slice slice, bool keep_axis,
    cadre_tensor **ret_rows, struct cadre_error *error)
{
    CADRE_ASSERT(parameter->rank > 0);
    int64_t dims[CADRE_RANK_MAX] = {slice.count};
    uint32_t kept = keep_axis ? 1 : 0;
    cadre_tensor *rows = NULL;
    for (uint32_t axis = 1; axis < parameter->rank; axis++) {
        dims[axis - 1 + kept] = parameter->dims[axis];
    }
    CADRE_TRY(
        tensor_create_unset(parameter->dtype, parameter->rank - 1 + kept, dims, &rows, error));
    cadre_status status = read_items(parameter, slice, cadre_tensor_data(rows), error);
    if (status != CADRE_OK) {
        cadre_tensor_release(rows);
        return status;
    }
    *ret_rows = rows;
    return CADRE_OK;
}

static cadre_status read_row(
    cadre_parameter *parameter, int64_t row, cadre_tensor **ret_row, struct cadre_error *error)
{
    struct slice slice = {.count = 1, .step = 1};
    CADRE_TRY(parameter_check_rows(parameter, error));
    if (!slice_item(parameter->dims[0], row, &slice.first)) {
        return cadre_error_set(error, CADRE_OUT_OF_RANGE,
            "there is no row %" PRId64 " in parameter '%s', which has %" PRId64, row,
            parameter->name, parameter->dims[0]);
    }
    return read_slice(parameter, slice, false, ret_row, error);
}

/* --- public --- */

/* What each of them asks first; `ret` is where a tensor or rows are to go. */
static cadre_status enter(const cadre_parameter *parameter, const char *function, const void *ret,
    const char *ret_name, struct cadre_error *error)
{
    CADRE_TRY(parameter_enter(parameter, function, error));
    return argument_require(ret, function, ret_name, error);
}

cadre_status cadre_parameter_read(
    cadre_parameter *parameter, cadre_tensor **ret_value, cadre_parameter_version *ret_version)
{
    struct cadre_error error = {0};
    cadre_status status = enter(parameter, __func__, ret_value, "ret_value", &error);
    if (status == CADRE_OK) {
        *ret_value = NULL;
        status = read_whole(parameter, ret_value, ret_version, &error);
    }
    return border(status, &error);
}

cadre_status cadre_parameter_pull(
    cadre_parameter *parameter, void *into, cadre_parameter_version *ret_version)
{
    struct cadre_error error = {0};
    cadre_status status = enter(parameter, __func__, into, "into", &error);
    if (status == CADRE_OK) {
        status = pull(parameter, parameter_all(parameter), 0, into, ret_version, &error);
    }
    return border(status, &error);
}

cadre_status cadre_parameter_pull_step(cadre_parameter *parameter, uint64_t step, void *into)
{
    struct cadre_error error = {0};
    cadre_status status = enter(parameter, __func__, into, "into", &error);
    if (status == CADRE_OK) {
        status = pull(parameter, parameter_all(parameter), step, into, NULL, &error);
    }
    return border(status, &error);
}

cadre_status cadre_parameter_gather(cadre_parameter *parameter, const cadre_tensor *ids,
    cadre_tensor **ret_rows, cadre_parameter_version *ret_version)
{
    struct cadre_error error = {0};
    cadre_status status = enter(parameter, __func__, ret_rows, "ret_rows", &error);
    if (status == CADRE_OK) {
        *ret_rows = NULL;
        status = tensor_require(ids, __func__, "ids", &error);
    }
    if (status == CADRE_OK) {
        status = gather_tensor(parameter, ids, ret_rows, ret_version, &error);
    }
    return border(status, &error);
}

cadre_status cadre_parameter_gather_rows(cadre_parameter *parameter, const int64_t *ids,
    size_t count, void *into, cadre_parameter_version *ret_version)
{
    struct cadre_error error = {0};
    cadre_status status = parameter_enter(parameter, __func__, &error);
    if (status == CADRE_OK && count > 0) {
        status = argument_require(ids, __func__, "ids", &error);
    }
    if (status == CADRE_OK && count > 0) {
        status = argument_require(into, __func__, "into", &error);
    }
    if (status == CADRE_OK) {
        status = parameter_check_rows(parameter, &error);
    }
    if (status == CADRE_OK) {
        status = gather(parameter, ids, count, into, ret_version, &error);
    }
    return border(status, &error);
}

cadre_status cadre_parameter_slice(
    cadre_parameter *parameter, int64_t begin, int64_t end, int64_t step, cadre_tensor **ret_rows)
{
    struct cadre_error error = {0};
    cadre_status status = enter(parameter, __func__, ret_rows, "ret_rows", &error);
    if (status == CADRE_OK) {
        *ret_rows = NULL;
        status = parameter_check_rows(parameter, &error);
    }
    if (status == CADRE_OK && step == 0) {
        status = cadre_error_set(&error, CADRE_INVALID_ARGUMENT,
            "a slice of parameter '%s' with step 0; give another one, or CADRE_SLICE_DEFAULT for 1",
            parameter->name);
    }
    if (status == CADRE_OK) {
        int64_t by = step == CADRE_SLICE_DEFAULT ? 1 : step;
        status = read_slice(
            parameter, slice_of(parameter->dims[0], begin, end, by), true, ret_rows, &error);
    }
    return border(status, &error);
}

cadre_status cadre_parameter_row(cadre_parameter *parameter, int64_t row, cadre_tensor **ret_row)
{
    struct cadre_error error = {0};
    cadre_status status = enter(parameter, __func__, ret_row, "ret_row", &error);
    if (status == CADRE_OK) {
        *ret_row = NULL;
        status = read_row(parameter, row, ret_row, &error);
    }
    return border(status, &error);
}
