/* SPDX-License-Identifier: Apache-2.0
 * Changes variables on servers: one call, and one key, for each push. Called through the table of
 * remote_variable.h and by the program. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/pure/assert.h"
#include "worker/library/device/argument.h"
#include "worker/library/device/tensor.h"
#include "worker/library/device/device.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/served/served_call.h"
#include "worker/library/runtime/replica/step_admission.h"
#include "worker/library/runtime/served/read_versions.h"
#include "worker/library/runtime/variables/variable_rows.h"

/* --- checks and requests --- */

static cadre_status check_kind(
    const cadre_variable *variable, cadre_assignment how, struct cadre_error *error)
{
    if (how < CADRE_ASSIGN || how > CADRE_ASSIGN_UPDATE) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%d is no way to change variable '%s'; use one of enum cadre_assignment", (int)how,
            variable->name);
    }
    if ((how == CADRE_ASSIGN_ADD || how == CADRE_ASSIGN_SUB) && variable->dtype == CADRE_BOOL) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "variable '%s' holds truth values: nothing can be added to it, only assigned",
            variable->name);
    }
    return CADRE_OK;
}

static cadre_status check_options(
    const cadre_variable *variable, const cadre_push_options *options, struct cadre_error *error)
{
    if (!isfinite(options->rate)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "a push to '%s' with rate %g; give a finite one, or 0 for the optimizer's",
            variable->name, options->rate);
    }
    if (options->contributions > 0 && options->staleness > 0) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "a push to '%s' with %u contributions and a bound of staleness; it is synchronous or "
            "not, so leave one at 0",
            variable->name, options->contributions);
    }
    return CADRE_OK;
}

static struct request request_of(const struct variable_push *push)
{
    static const enum push_kind kinds[] = {[CADRE_ASSIGN] = PUSH_ASSIGN,
        [CADRE_ASSIGN_ADD] = PUSH_ADD,
        [CADRE_ASSIGN_SUB] = PUSH_SUB,
        [CADRE_ASSIGN_UPDATE] = PUSH_UPDATE};
    const cadre_push_options *options = push->options;
    CADRE_ASSERT(options->contributions == 0 ||
                 options->staleness == 0); /* check_options has refused both */
    return (struct request){.kind = push->into == NULL ? REQUEST_PUSH : REQUEST_PUSH_PULL,
        .values = push->values,
        .into = push->into,
        .push = {.kind = kinds[push->how],
            .rate = options->rate == 0 ? (double)NAN : options->rate,
            .based_on = PUSH_ANY_VERSION,
            .staleness = options->staleness == 0 ? 0 : options->staleness - 1,
            .step = options->step,
            .contributions = options->contributions}};
}

/* For each shard the version that this closure, or thread, read last. */
static cadre_status find_base(const cadre_variable *variable, const cadre_push_options *options,
    uint64_t **ret_based_on, struct cadre_error *error)
{
    CADRE_ASSERT(*ret_based_on == NULL);
    if (options->staleness == 0) {
        return CADRE_OK;
    }
    CADRE_TRY(served_versions(variable, ret_based_on, error));
    return read_versions_find(variable->served->views, ps_job_closure(), *ret_based_on)
               ? CADRE_OK
               : cadre_error_set(error, CADRE_FAILED_PRECONDITION,
                     "a push to '%s' with a bound of staleness, which is counted from what was "
                     "read, and nothing of it was read here; call cadre_variable_value or "
                     "cadre_variable_gather before",
                     variable->name);
}

static cadre_status served_push_send(const cadre_variable *variable,
    const struct variable_push *push, const struct request *like, const uint64_t *based_on,
    uint64_t *versions, struct cadre_error *error)
{
    if (push->rows == NULL) {
        return served_call_range(variable, served_all(variable), like, based_on, versions, error);
    }
    /* All shards of a step wait for all contributions, so those without rows get a request too. */
    const struct row_list rows = {.ids = push->rows->ids,
        .count = (size_t)push->rows->count,
        .all = push->options->contributions > 0};
    return served_call_rows(variable, rows, like, based_on, versions, error);
}

cadre_status served_push(
    const cadre_variable *variable, const struct variable_push *push, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT uint64_t *based_on = NULL;
    CADRE_FREE_AT_EXIT uint64_t *versions = NULL;
    CADRE_TRY(served_require_no_slot(variable, error));
    CADRE_TRY(check_kind(variable, push->how, error));
    CADRE_TRY(check_options(variable, push->options, error));
    CADRE_TRY(find_base(variable, push->options, &based_on, error));
    if (push->into != NULL) {
        CADRE_TRY(served_versions(variable, &versions, error));
    }
    struct request like = request_of(push);
    CADRE_TRY(served_set_trust(variable, &like.push, error));
    CADRE_TRY(ps_job_push_key(&like.push.closure, &like.push.ordinal, error));
    CADRE_ASSERT(like.push.closure != 0);
    cadre_status status = served_push_send(variable, push, &like, based_on, versions, error);
    if (status == CADRE_ABORTED && push->options->staleness > 0) {
        ps_job_push_retry(like.push.closure, like.push.ordinal);
    }
    if (status == CADRE_OK && versions != NULL) {
        read_versions_record(variable->served->views, ps_job_closure(), versions);
    }
    ps_job_push_done(like.push.closure);
    return status;
}

/* --- public --- */

/* A push of all rows: *values and, with options->into, the memory for the rows afterwards. */
static cadre_status check_whole(const cadre_variable *variable, const cadre_tensor *values,
    const cadre_push_options *options, struct cadre_error *error)
{
    CADRE_TRY(variable_check_value(variable, values, error));
    if (options->into != NULL) {
        CADRE_TRY(tensor_require(options->into, "cadre_variable_push", "options->into", error));
        CADRE_TRY(variable_check_value(variable, options->into, error));
    }
    return CADRE_OK;
}

/* A push of a sparse value, whose rows are those of all replicas. */
static cadre_status take_sparse(const cadre_variable *variable, const struct variable_push *push,
    cadre_sparse *ret_value, struct cadre_error *error)
{
    int64_t dims[CADRE_RANK_MAX];
    const int64_t count[] = {(int64_t)push->rows->count};
    memcpy(dims, variable->dims, variable->rank * sizeof dims[0]);
    dims[0] = count[0];
    CADRE_TRY(
        tensor_create_unset(variable->dtype, variable->rank, dims, &ret_value->values, error));
    CADRE_TRY(tensor_create_unset(CADRE_I64, 1, count, &ret_value->indices, error));
    memcpy(
        cadre_tensor_data(ret_value->values), push->values, cadre_tensor_bytes(ret_value->values));
    memcpy(cadre_tensor_data(ret_value->indices), push->rows->ids,
        cadre_tensor_bytes(ret_value->indices));
    return CADRE_OK;
}

static cadre_status push_rows_together(cadre_replica *replica, cadre_variable *variable,
    struct variable_push *push, struct cadre_error *error)
{
    cadre_sparse own = {.rows = variable->dims[0]};
    cadre_sparse all = {0};
    struct variable_rows rows = {0};
    cadre_status status = take_sparse(variable, push, &own, error);
    if (status == CADRE_OK) {
        status = variable_combine_rows(replica, variable, "cadre_variable_push", &own, &all, error);
    }
    if (status == CADRE_OK) {
        rows.ids = cadre_tensor_const_data(all.indices);
        rows.count = (uint64_t)cadre_tensor_count(all.indices);
        push->rows = &rows;
        push->values = cadre_tensor_const_data(all.values);
        status = variable_push_together(replica, variable, "cadre_variable_push", push, error);
    }
    cadre_tensor_release(own.values);
    cadre_tensor_release(own.indices);
    cadre_tensor_release(all.values);
    cadre_tensor_release(all.indices);
    return status;
}

static cadre_status push_rows(cadre_variable *variable, struct variable_push *push,
    const cadre_tensor *ids, const cadre_tensor *values, struct cadre_error *error)
{
    cadre_replica *replica = NULL;
    CADRE_FREE_AT_EXIT int64_t *memory = NULL;
    struct variable_rows rows = {.count = (uint64_t)cadre_tensor_count(ids)};
    struct row_shape shape;
    CADRE_TRY(variable_row_shape(variable, ids, &shape, error));
    CADRE_TRY(variable_check_row_values(variable, &shape, values, error));
    if (push->options->into != NULL) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "a push of rows of '%s' with options->into, which is for the whole; read the rows by "
            "cadre_variable_gather",
            variable->name);
    }
    CADRE_TRY(variable_take_ids(ids, &rows.ids, &memory, error));
    push->rows = &rows;
    push->values = cadre_tensor_const_data(values);
    return variable_is_changed_together(NULL, &replica)
               ? push_rows_together(replica, variable, push, error)
               : served_push(variable, push, error);
}

static cadre_status push_whole(const cadre_variable *variable, struct variable_push *push,
    const cadre_tensor *values, struct cadre_error *error)
{
    cadre_replica *replica = NULL;
    cadre_tensor *combined = NULL;
    CADRE_TRY(check_whole(variable, values, push->options, error));
    if (!variable_is_changed_together(NULL, &replica)) {
        push->values = cadre_tensor_const_data(values);
        push->into = push->options->into == NULL ? NULL : cadre_tensor_data(push->options->into);
        return served_push(variable, push, error);
    }
    if (push->options->into != NULL) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "a push to '%s' by several replicas with options->into, which the first alone would "
            "get; read it by cadre_variable_value",
            variable->name);
    }
    cadre_status status =
        variable_combine(replica, variable, "cadre_variable_push", values, &combined, error);
    if (status == CADRE_OK) {
        push->values = cadre_tensor_const_data(combined);
        status = variable_push_together(replica, variable, "cadre_variable_push", push, error);
    }
    cadre_tensor_release(combined);
    return status;
}

/* Tensors in the host's memory. */
static cadre_status push_tensors(cadre_variable *variable, struct variable_push *push,
    const cadre_tensor *values, const cadre_tensor *ids, struct cadre_error *error)
{
    return ids != NULL ? push_rows(variable, push, ids, values, error)
                       : push_whole(variable, push, values, error);
}

static cadre_status push_placed(cadre_variable *variable, struct variable_push *push,
    const cadre_tensor *values, const cadre_tensor *ids, struct cadre_error *error)
{
    cadre_tensor *values_here = NULL;
    cadre_tensor *ids_here = NULL;
    cadre_status status = tensor_on_host(values, &values_here, error);
    if (status == CADRE_OK && ids != NULL) {
        status = tensor_on_host(ids, &ids_here, error);
    }
    if (status == CADRE_OK) {
        status = push_tensors(variable, push, values_here, ids_here, error);
    }
    cadre_tensor_release(ids_here);
    cadre_tensor_release(values_here);
    return status;
}

static cadre_status served_push_enter(const cadre_replica *replica, const cadre_variable *variable,
    const char *function, struct cadre_error *error)
{
    CADRE_TRY(served_require(
        variable, function, "use cadre_variable_assign or cadre_variable_scatter", error));
    return replica == NULL ? CADRE_OK : step_require_own_thread(replica, function, error);
}

cadre_status cadre_variable_push(cadre_replica *replica, cadre_variable *variable,
    cadre_assignment how, const cadre_tensor *values, const cadre_tensor *ids,
    const cadre_push_options *options)
{
    static const cadre_push_options none = {0};
    struct cadre_error error = {0};
    struct variable_push push = {.how = how, .options = options != NULL ? options : &none};
    cadre_status status = served_push_enter(replica, variable, __func__, &error);
    if (status == CADRE_OK) {
        status = argument_require(values, __func__, "values", &error);
    }
    if (status == CADRE_OK) {
        status = check_kind(variable, how, &error);
    }
    if (status == CADRE_OK) {
        status = push_placed(variable, &push, values, ids, &error);
    }
    return api_return(status, &error);
}
