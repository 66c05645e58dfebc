/* SPDX-License-Identifier: Apache-2.0
 * Changing parameters: one call, and one key, for each push. */
#include <math.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/pure/assert.h"
#include "worker/library/device/argument.h"
#include "worker/library/device/tensor.h"
#include "worker/library/runtime/border/border.h"
#include "worker/library/runtime/parameters/parameter_call.h"
#include "worker/library/runtime/parameters/parameter_check.h"
#include "worker/library/runtime/parameters/parameter_views.h"

static const cadre_push_options no_options = {0};

/* --- the inside --- */

/* One push, of the whole or of rows. */
struct change {
    enum push_kind kind;
    const void *values;
    void *into;                  /* what it is afterwards; or NULL */
    const struct row_list *rows; /* NULL: of the whole */
};

static cadre_status check_kind(
    const cadre_parameter *parameter, enum push_kind kind, struct cadre_error *error)
{
    if (kind == PUSH_UPDATE && parameter->training.optimizer == STORE_NO_OPTIMIZER) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "parameter '%s' was created without an optimizer; assign it, or create it with one",
            parameter->name);
    }
    if ((kind == PUSH_ADD || kind == PUSH_SUB) && parameter->dtype == CADRE_BOOL) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "parameter '%s' holds truth values: nothing can be added to it, only assigned",
            parameter->name);
    }
    return CADRE_OK;
}

static cadre_status check_options(
    const cadre_parameter *parameter, const cadre_push_options *options, struct cadre_error *error)
{
    if (!isfinite(options->rate)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "a push to '%s' with rate %g; give a finite one, or 0 for the optimizer's",
            parameter->name, options->rate);
    }
    if (options->contributions > 0 && options->staleness > 0) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "a push to '%s' with %u contributions and a bound of staleness; it is synchronous or "
            "not, so leave one at 0",
            parameter->name, options->contributions);
    }
    return CADRE_OK;
}

static struct request request_of(const struct change *change, const cadre_push_options *options)
{
    CADRE_ASSERT(options->contributions == 0 ||
                 options->staleness == 0); /* check_options has refused both */
    return (struct request){.kind = change->into == NULL ? REQUEST_PUSH : REQUEST_PUSH_PULL,
        .values = change->values,
        .into = change->into,
        .push = {.kind = change->kind,
            .rate = options->rate == 0 ? (double)NAN : options->rate,
            .based_on = PUSH_ANY_VERSION,
            .staleness = options->staleness == 0 ? 0 : options->staleness - 1,
            .step = options->step,
            .contributions = options->contributions}};
}

/* What each shard is asked: as it was when the program read it. */
static cadre_status find_base(const cadre_parameter *parameter, const cadre_push_options *options,
    uint64_t **ret_based_on, struct cadre_error *error)
{
    CADRE_ASSERT(*ret_based_on == NULL);
    if (options->staleness == 0) {
        return CADRE_OK;
    }
    *ret_based_on = malloc((size_t)parameter->layout.shards * sizeof **ret_based_on);
    if (*ret_based_on == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory for the versions of parameter '%s'", parameter->name);
    }
    parameter_views_find(parameter->views, options->based_on, *ret_based_on);
    return CADRE_OK;
}

static cadre_status push(cadre_parameter *parameter, const struct change *change,
    const cadre_push_options *options, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT uint64_t *based_on = NULL;
    options = options == NULL ? &no_options : options;
    CADRE_TRY(check_kind(parameter, change->kind, error));
    CADRE_TRY(check_options(parameter, options, error));
    CADRE_TRY(find_base(parameter, options, &based_on, error));
    struct request like = request_of(change, options);
    CADRE_TRY(crew_push_key(&like.push.closure, &like.push.ordinal, error));
    CADRE_ASSERT(like.push.closure != 0);
    cadre_status status;
    if (change->rows == NULL) {
        status =
            parameter_call_range(parameter, parameter_all(parameter), &like, based_on, NULL, error);
    } else {
        /* Of a step all shards wait for all contributions, also for those without rows. */
        struct row_list rows = *change->rows;
        rows.all = options->contributions > 0;
        status = parameter_call_rows(parameter, rows, &like, based_on, NULL, error);
    }
    if (status == CADRE_ABORTED && options->staleness > 0) {
        crew_push_again(like.push.closure, like.push.ordinal);
    }
    crew_push_done(like.push.closure);
    return status;
}

/* --- public: of the whole --- */

/* `what` the tensor is called in a sentence. */
static cadre_status push_tensor(cadre_parameter *parameter, const char *function,
    enum push_kind kind, const char *what, const cadre_tensor *value,
    const cadre_push_options *options)
{
    struct cadre_error error = {0};
    cadre_status status = parameter_enter(parameter, function, &error);
    if (status == CADRE_OK) {
        status = tensor_require(value, function, what, &error);
    }
    if (status == CADRE_OK) {
        status = parameter_check_value(parameter, what, value, &error);
    }
    if (status == CADRE_OK) {
        const struct change change = {.kind = kind, .values = cadre_tensor_const_data(value)};
        status = push(parameter, &change, options, &error);
    }
    return border(status, &error);
}

static cadre_status push_memory(cadre_parameter *parameter, const char *function,
    const void *gradient, void *into, bool pulls, const cadre_push_options *options)
{
    struct cadre_error error = {0};
    cadre_status status = parameter_enter(parameter, function, &error);
    if (status == CADRE_OK) {
        status = argument_require(gradient, function, "gradient", &error);
    }
    if (status == CADRE_OK && pulls) {
        status = argument_require(into, function, "into", &error);
    }
    if (status == CADRE_OK) {
        const struct change change = {.kind = PUSH_UPDATE, .values = gradient, .into = into};
        status = push(parameter, &change, options, &error);
    }
    return border(status, &error);
}

cadre_status cadre_parameter_update(
    cadre_parameter *parameter, const cadre_tensor *gradient, const cadre_push_options *options)
{
    return push_tensor(parameter, __func__, PUSH_UPDATE, "gradient", gradient, options);
}

cadre_status cadre_parameter_push(
    cadre_parameter *parameter, const void *gradient, const cadre_push_options *options)
{
    return push_memory(parameter, __func__, gradient, NULL, false, options);
}

cadre_status cadre_parameter_push_pull(
    cadre_parameter *parameter, const void *gradient, void *into, const cadre_push_options *options)
{
    return push_memory(parameter, __func__, gradient, into, true, options);
}

cadre_status cadre_parameter_assign(cadre_parameter *parameter, const cadre_tensor *value)
{
    return push_tensor(parameter, __func__, PUSH_ASSIGN, "value", value, NULL);
}

cadre_status cadre_parameter_assign_add(
    cadre_parameter *parameter, const cadre_tensor *value, const cadre_push_options *options)
{
    return push_tensor(parameter, __func__, PUSH_ADD, "value", value, options);
}

cadre_status cadre_parameter_assign_sub(
    cadre_parameter *parameter, const cadre_tensor *value, const cadre_push_options *options)
{
    return push_tensor(parameter, __func__, PUSH_SUB, "value", value, options);
}

/* --- public: of rows --- */

static cadre_status push_row_tensors(cadre_parameter *parameter, enum push_kind kind,
    const cadre_tensor *ids, const cadre_tensor *rows, const cadre_push_options *options,
    struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT int64_t *memory = NULL;
    struct row_list list = {.count = (size_t)cadre_tensor_count(ids)};
    struct row_shape shape;
    CADRE_TRY(parameter_row_shape(parameter, ids, &shape, error));
    CADRE_TRY(parameter_check_row_values(parameter, &shape, rows, error));
    CADRE_TRY(parameter_take_ids(ids, &list.ids, &memory, error));
    const struct change change = {
        .kind = kind, .values = cadre_tensor_const_data(rows), .rows = &list};
    return push(parameter, &change, options, error);
}

static cadre_status push_rows(cadre_parameter *parameter, const char *function, enum push_kind kind,
    const cadre_tensor *ids, const cadre_tensor *rows, const cadre_push_options *options)
{
    struct cadre_error error = {0};
    cadre_status status = parameter_enter(parameter, function, &error);
    if (status == CADRE_OK) {
        status = tensor_require(ids, function, "ids", &error);
    }
    if (status == CADRE_OK) {
        status = tensor_require(rows, function, "rows", &error);
    }
    if (status == CADRE_OK) {
        status = push_row_tensors(parameter, kind, ids, rows, options, &error);
    }
    return border(status, &error);
}

cadre_status cadre_parameter_update_rows(cadre_parameter *parameter, const cadre_tensor *ids,
    const cadre_tensor *rows, const cadre_push_options *options)
{
    return push_rows(parameter, __func__, PUSH_UPDATE, ids, rows, options);
}

cadre_status cadre_parameter_push_rows(cadre_parameter *parameter, const int64_t *ids, size_t count,
    const void *rows, const cadre_push_options *options)
{
    struct cadre_error error = {0};
    const struct row_list list = {.ids = ids, .count = count};
    const struct change change = {.kind = PUSH_UPDATE, .values = rows, .rows = &list};
    cadre_status status = parameter_enter(parameter, __func__, &error);
    if (status == CADRE_OK && count > 0) {
        status = argument_require(ids, __func__, "ids", &error);
    }
    if (status == CADRE_OK && count > 0) {
        status = argument_require(rows, __func__, "rows", &error);
    }
    if (status == CADRE_OK) {
        status = parameter_check_rows(parameter, &error);
    }
    if (status == CADRE_OK) {
        status = push(parameter, &change, options, &error);
    }
    return border(status, &error);
}

cadre_status cadre_parameter_scatter_add(
    cadre_parameter *parameter, const cadre_tensor *ids, const cadre_tensor *rows)
{
    return push_rows(parameter, __func__, PUSH_ADD, ids, rows, NULL);
}

cadre_status cadre_parameter_scatter_sub(
    cadre_parameter *parameter, const cadre_tensor *ids, const cadre_tensor *rows)
{
    return push_rows(parameter, __func__, PUSH_SUB, ids, rows, NULL);
}

cadre_status cadre_parameter_scatter_update(
    cadre_parameter *parameter, const cadre_tensor *ids, const cadre_tensor *rows)
{
    return push_rows(parameter, __func__, PUSH_ASSIGN, ids, rows, NULL);
}
