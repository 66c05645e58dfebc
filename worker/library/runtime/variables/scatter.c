/* SPDX-License-Identifier: Apache-2.0
 * Scatter: sparse values are combined over the replicas, then applied row by row. The public
 * functions; scatter_rows.c applies. */
#include "cadre/scatter.h"

#include "common/pure/assert.h"
#include "worker/library/device/argument.h"
#include "worker/library/device/tensor.h"
#include "worker/library/device/device.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/arithmetic/axis_sum.h"
#include "worker/library/runtime/collectives/collective.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/variables/change.h"
#include "worker/library/runtime/variables/remote_variable.h"
#include "worker/library/runtime/variables/scatter_rows.h"
#include "worker/library/runtime/variables/variable_device.h"
#include "worker/library/runtime/variables/variable_plain.h"
#include "worker/library/runtime/variables/variable_share.h"

struct scatter {
    const char *function; /* the public function, for messages */
    cadre_scatter how;
    cadre_variable *variable;
    const cadre_sparse *value;
};

/* Rows are changed on the host: a whole component on a device is copied there and back. */
static cadre_status scatter_component(const struct scatter *scatter,
    struct variable_component *component, const cadre_sparse *value, struct cadre_error *error)
{
    CADRE_ASSERT(tensor_device(value->values) == NULL);
    CADRE_ASSERT(tensor_device(value->indices) == NULL);
    void *to = NULL;
    CADRE_TRY(component_edit_begin(scatter->variable, component, &to, error));
    scatter_rows(scatter->variable, to, scatter->how, value);
    return component_edit_end(scatter->variable, component, to, CADRE_OK, error);
}

/* --- checks --- */

static cadre_status check_kind(const struct scatter *scatter, struct cadre_error *error)
{
    const cadre_variable *variable = scatter->variable;
    if (variable->on_read) {
        return cadre_error_set(error, CADRE_UNIMPLEMENTED,
            "%s: variable '%s' is combined when read, and rows of such a one cannot be changed; "
            "assign it as a whole",
            scatter->function, variable->name);
    }
    bool ordered = scatter->how >= CADRE_SCATTER_MIN && variable->kind != CADRE_VARIABLE_REGULAR;
    if (ordered && (variable->aggregation == CADRE_AGGREGATION_SUM ||
                       variable->aggregation == CADRE_AGGREGATION_MEAN)) {
        return cadre_error_set(error, CADRE_UNIMPLEMENTED,
            "%s: variable '%s' aggregates by %s, which is not defined for it; create it with "
            "CADRE_AGGREGATION_ONLY_FIRST_REPLICA or NONE",
            scatter->function, variable->name,
            variable->aggregation == CADRE_AGGREGATION_SUM ? "sum" : "mean");
    }
    bool number = variable->dtype != CADRE_BOOL || scatter->how == CADRE_SCATTER_UPDATE;
    if (variable->dtype == CADRE_STRING || !number) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s: variable '%s' holds %s, which cannot be changed so; assign it as a whole",
            scatter->function, variable->name,
            variable->dtype == CADRE_BOOL ? "truth values" : "strings");
    }
    return CADRE_OK;
}

static cadre_status scatter_misfit(const struct scatter *scatter, struct cadre_error *error)
{
    const cadre_variable *variable = scatter->variable;
    const cadre_tensor *values = scatter->value->values;
    const cadre_tensor *indices = scatter->value->indices;
    char is[TENSOR_SHAPE_TEXT_BYTES];
    char at[TENSOR_SHAPE_TEXT_BYTES];
    char wanted[TENSOR_SHAPE_TEXT_BYTES];
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
        "%s: variable '%s' is %s, and the sparse value has values %s, indices %s and %lld rows "
        "(-1: "
        "any); give values of its type and of its shape behind the first dimension, and one i64 "
        "index for each of their rows",
        scatter->function, variable->name,
        tensor_shape_text(variable->dtype, variable->rank, variable->dims, wanted),
        tensor_shape_text(
            cadre_tensor_dtype(values), cadre_tensor_rank(values), cadre_tensor_dims(values), is),
        tensor_shape_text(cadre_tensor_dtype(indices), cadre_tensor_rank(indices),
            cadre_tensor_dims(indices), at),
        (long long)scatter->value->rows);
}

static cadre_status check_shapes(const struct scatter *scatter, struct cadre_error *error)
{
    const cadre_variable *variable = scatter->variable;
    const cadre_tensor *values = scatter->value->values;
    const cadre_tensor *indices = scatter->value->indices;
    CADRE_TRY(argument_require(values, scatter->function, "value->values", error));
    CADRE_TRY(argument_require(indices, scatter->function, "value->indices", error));
    bool fits =
        variable->rank >= 1 && cadre_tensor_dtype(values) == variable->dtype &&
        cadre_tensor_rank(values) == variable->rank && cadre_tensor_dtype(indices) == CADRE_I64 &&
        cadre_tensor_rank(indices) == 1 &&
        cadre_tensor_rows(indices) == cadre_tensor_rows(values) &&
        (scatter->value->rows == CADRE_DIMENSION_ANY || scatter->value->rows == variable->dims[0]);
    for (uint32_t axis = 1; fits && axis < variable->rank; axis++) {
        fits = cadre_tensor_dim(values, axis) == variable->dims[axis];
    }
    return fits ? CADRE_OK : scatter_misfit(scatter, error);
}

/* --- in replica context --- */

/* The tensors that a replica contributes: its own value, or nothing when only the first one's
 * counts. */
static cadre_status scatter_offer(const cadre_replica *replica, const struct scatter *scatter,
    cadre_tensor *ret_pair[2], struct cadre_error *error)
{
    const cadre_sparse *value = scatter->value;
    int64_t dims[CADRE_RANK_MAX] = {0};
    if (scatter->variable->aggregation != CADRE_AGGREGATION_ONLY_FIRST_REPLICA ||
        replica->id == 0) {
        ret_pair[0] = cadre_tensor_retain(value->values);
        ret_pair[1] = cadre_tensor_retain(value->indices);
        return CADRE_OK;
    }
    for (uint32_t axis = 1; axis < scatter->variable->rank; axis++) {
        dims[axis] = scatter->variable->dims[axis];
    }
    CADRE_TRY(tensor_create(
        scatter->variable->dtype, scatter->variable->rank, dims, &ret_pair[0], error));
    return tensor_create(CADRE_I64, 1, dims, &ret_pair[1], error);
}

static cadre_status scatter_gather(cadre_replica *replica, const struct scatter *scatter,
    cadre_tensor *const pair[2], cadre_tensor *ret_all[2], struct cadre_error *error)
{
    const struct step_call call = {.function = scatter->function,
        .key = collective_key_tensor(change_key(scatter->function, scatter->variable), pair[0], 0),
        .root = -1,
        .tensor_count = 1,
        .first = pair[0]};
    struct step_note note;
    CADRE_TRY(collective_enter(replica, &call, &note, error));
    cadre_status status = collective_gather(
        replica->strategy, replica->local, pair, 2, 0, &note.mesh, ret_all, error);
    return step_collective_end(replica, status, error);
}

/* The values of all replicas, or of the first; the caller clears them. */
static cadre_status scatter_combine(cadre_replica *replica, const struct scatter *scatter,
    cadre_sparse *ret_combined, struct cadre_error *error)
{
    cadre_tensor *pair[2] = {NULL, NULL};
    CADRE_ASSERT(scatter->variable->aggregation != CADRE_AGGREGATION_NONE);
    cadre_tensor *all[2] = {NULL, NULL};
    cadre_status status = scatter_offer(replica, scatter, pair, error);
    if (status == CADRE_OK) {
        status = scatter_gather(replica, scatter, pair, all, error);
    }
    cadre_tensor_release(pair[0]);
    cadre_tensor_release(pair[1]);
    if (status != CADRE_OK) {
        return status;
    }
    if (scatter->variable->aggregation == CADRE_AGGREGATION_MEAN) {
        axis_divide(cadre_tensor_data(all[0]), (size_t)cadre_tensor_count(all[0]),
            scatter->variable->dtype, replica->strategy->replica_count);
    }
    *ret_combined = (cadre_sparse){.values = all[0], .indices = all[1]};
    return CADRE_OK;
}

static cadre_status scatter_write(cadre_replica *replica, const struct scatter *scatter,
    const cadre_sparse *value, struct cadre_error *error)
{
    struct variable_component *component = NULL;
    CADRE_TRY(scatter_check_rows(scatter->variable, scatter->how, value, error));
    cadre_status status = variable_share_begin(replica, scatter->variable, &component, error);
    if (status == CADRE_OK && component != NULL) {
        status = scatter_component(scatter, component, value, error);
    }
    return variable_share_end(replica, scatter->variable, status, error);
}

static cadre_status scatter_in_replica(
    cadre_replica *replica, const struct scatter *scatter, struct cadre_error *error)
{
    cadre_sparse combined = {0};
    CADRE_ASSERT(scatter->variable->strategy == replica->strategy);
    CADRE_TRY(variable_share_check(replica, scatter->variable, error));
    if (scatter->variable->aggregation == CADRE_AGGREGATION_NONE) {
        return scatter_write(replica, scatter, scatter->value, error);
    }
    CADRE_TRY(scatter_combine(replica, scatter, &combined, error));
    cadre_status status = scatter_write(replica, scatter, &combined, error);
    if (status == CADRE_INVALID_ARGUMENT) {
        step_collective_end(replica, status, error); /* all replicas get the same result */
    }
    cadre_sparse_release(&combined);
    return status;
}

/* --- in other contexts --- */

static cadre_status write_local(
    const struct scatter *scatter, uint32_t local, struct cadre_error *error)
{
    struct variable_component *component = variable_component(scatter->variable, local);
    CADRE_TRY(component_open_write(scatter->variable, component, error));
    return scatter_component(scatter, component, scatter->value, error);
}

static cadre_status write_component(
    const struct change *change, uint32_t local, cadre_tensor **output, struct cadre_error *error)
{
    (void)output;
    return write_local(change->what, local, error);
}

static cadre_status scatter_everywhere(const struct scatter *scatter, struct cadre_error *error)
{
    const cadre_sparse *value = scatter->value;
    struct change change = {.function = scatter->function,
        .strategy = scatter->variable->strategy,
        .variable = scatter->variable,
        .key = change_key(scatter->function, scatter->variable),
        .each = write_component,
        .what = scatter};
    change.key = change_key_bytes(
        change.key, cadre_tensor_const_data(value->values), cadre_tensor_bytes(value->values));
    change.key = change_key_bytes(
        change.key, cadre_tensor_const_data(value->indices), cadre_tensor_bytes(value->indices));
    return change_make(&change, NULL, error);
}

static cadre_status scatter_outside(const struct scatter *scatter, struct cadre_error *error)
{
    cadre_variable *variable = scatter->variable;
    uint32_t local = 0;
    void *to = NULL;
    CADRE_TRY(scatter_check_rows(variable, scatter->how, scatter->value, error));
    if (variable->kind == CADRE_VARIABLE_REGULAR) {
        to = plain_open(variable);
        scatter_rows(variable, to, scatter->how, scatter->value);
        plain_close();
        return CADRE_OK;
    }
    if (!context_update(&local)) {
        return scatter_everywhere(scatter, error);
    }
    return write_local(scatter, local, error);
}

/* --- on servers --- */

static cadre_status check_on_servers(const struct scatter *scatter, struct cadre_error *error)
{
    CADRE_TRY(argument_require(scatter->value, scatter->function, "value", error));
    if (scatter->how != CADRE_SCATTER_ADD && scatter->how != CADRE_SCATTER_SUB &&
        scatter->how != CADRE_SCATTER_UPDATE) {
        return variable_require_local(scatter->variable, scatter->function,
            "CADRE_SCATTER_ADD, CADRE_SCATTER_SUB or CADRE_SCATTER_UPDATE", error);
    }
    CADRE_TRY(check_kind(scatter, error));
    return check_shapes(scatter, error);
}

cadre_status variable_combine_rows(cadre_replica *replica, cadre_variable *variable,
    const char *function, const cadre_sparse *value, cadre_sparse *ret_combined,
    struct cadre_error *error)
{
    const struct scatter scatter = {.function = function, .variable = variable, .value = value};
    CADRE_ASSERT(variable->served != NULL);
    if (variable->aggregation != CADRE_AGGREGATION_NONE) {
        return scatter_combine(replica, &scatter, ret_combined, error);
    }
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
        "%s: variable '%s' is once on parameter servers, and %u replicas would change its rows "
        "in one step; create it with CADRE_AGGREGATION_SUM, _MEAN or _ONLY_FIRST_REPLICA, or "
        "change it behind cadre_run, or in the function of cadre_merge_call",
        function, variable->name, replica->strategy->replica_count);
}

/* Replaces the replica's value by that of all replicas. */
static cadre_status combine_remote(cadre_replica *replica, const struct scatter *scatter,
    cadre_sparse *value, struct cadre_error *error)
{
    cadre_sparse combined = {0};
    CADRE_TRY(variable_combine_rows(
        replica, scatter->variable, scatter->function, value, &combined, error));
    combined.rows = value->rows;
    cadre_sparse_release(value);
    *value = combined;
    return CADRE_OK;
}

/* One push, in any context, which no step undoes; several replicas of a step make one. */
static cadre_status scatter_remote(
    cadre_replica *replica, const struct scatter *scatter, struct cadre_error *error)
{
    static const cadre_push_options none = {0};
    if (replica != NULL) {
        CADRE_TRY(step_require_own_thread(replica, scatter->function, error));
    }
    CADRE_TRY(check_on_servers(scatter, error));
    cadre_sparse value = {.rows = scatter->value->rows};
    cadre_status status = tensor_on_host(scatter->value->values, &value.values, error);
    if (status == CADRE_OK) {
        status = tensor_on_host(scatter->value->indices, &value.indices, error);
    }
    if (status == CADRE_OK) {
        status = scatter_check_rows(scatter->variable, scatter->how, &value, error);
    }
    bool together = variable_is_changed_together(replica, &replica);
    if (status == CADRE_OK && together) {
        status = combine_remote(replica, scatter, &value, error);
    }
    if (status == CADRE_OK) {
        const struct variable_rows rows = {.ids = cadre_tensor_const_data(value.indices),
            .count = (uint64_t)cadre_tensor_count(value.indices)};
        const struct variable_push push = {
            .how = scatter->how == CADRE_SCATTER_ADD   ? CADRE_ASSIGN_ADD
                   : scatter->how == CADRE_SCATTER_SUB ? CADRE_ASSIGN_SUB
                                                       : CADRE_ASSIGN,
            .values = cadre_tensor_const_data(value.values),
            .rows = &rows,
            .options = &none};
        status = together ? variable_push_together(
                                replica, scatter->variable, scatter->function, &push, error)
                          : remote_variable_ops()->push(scatter->variable, &push, error);
    }
    cadre_sparse_release(&value);
    return status;
}

/* --- public --- */

static cadre_status scatter_check(const cadre_replica *replica, const struct scatter *scatter,
    struct strategy_call *call, struct cadre_error *error)
{
    if (replica != NULL) {
        CADRE_TRY(step_require_own_thread(replica, scatter->function, error));
        CADRE_TRY(variable_require_own(replica, scatter->variable, scatter->function, error));
    } else {
        CADRE_TRY(variable_enter(scatter->variable, scatter->function, call, error));
    }
    CADRE_TRY(argument_require(scatter->value, scatter->function, "value", error));
    CADRE_TRY(check_kind(scatter, error));
    return check_shapes(scatter, error);
}

/* A copy in the host's memory, which no other thread changes. */
static cadre_status copy_on_host(
    const cadre_tensor *tensor, cadre_tensor **ret_copy, struct cadre_error *error)
{
    return tensor_device(tensor) == NULL ? tensor_copy(tensor, ret_copy, error)
                                         : tensor_on_host(tensor, ret_copy, error);
}

/* With indices and values in the host's memory. They are copied before the check, because another
 * thread of the program may change its own ones between check and use. */
static cadre_status scatter_make(
    cadre_replica *replica, const struct scatter *scatter, struct cadre_error *error)
{
    cadre_sparse value = {.rows = scatter->value->rows};
    struct scatter placed = *scatter;
    placed.value = &value;
    bool checks = scatter_checks_values(scatter->variable, scatter->how);
    cadre_status status = checks ? copy_on_host(scatter->value->values, &value.values, error)
                                 : tensor_on_host(scatter->value->values, &value.values, error);
    if (status == CADRE_OK) {
        status = copy_on_host(scatter->value->indices, &value.indices, error);
    }
    if (status == CADRE_OK) {
        bool own = replica != NULL && scatter->variable->kind != CADRE_VARIABLE_REGULAR;
        status =
            own ? scatter_in_replica(replica, &placed, error) : scatter_outside(&placed, error);
    }
    cadre_tensor_release(value.values);
    cadre_tensor_release(value.indices);
    return status;
}

/* The names of the call in messages and in the replicas' comparison. */
static const char *const calls[] = {
    [CADRE_SCATTER_ADD] = "cadre_variable_scatter with CADRE_SCATTER_ADD",
    [CADRE_SCATTER_SUB] = "cadre_variable_scatter with CADRE_SCATTER_SUB",
    [CADRE_SCATTER_MUL] = "cadre_variable_scatter with CADRE_SCATTER_MUL",
    [CADRE_SCATTER_DIV] = "cadre_variable_scatter with CADRE_SCATTER_DIV",
    [CADRE_SCATTER_MIN] = "cadre_variable_scatter with CADRE_SCATTER_MIN",
    [CADRE_SCATTER_MAX] = "cadre_variable_scatter with CADRE_SCATTER_MAX",
    [CADRE_SCATTER_UPDATE] = "cadre_variable_scatter with CADRE_SCATTER_UPDATE",
};

cadre_status cadre_variable_scatter(
    cadre_replica *replica, cadre_variable *variable, cadre_scatter how, const cadre_sparse *value)
{
    STRATEGY_CALL call = {0};
    struct cadre_error error = {0};
    bool known = how >= CADRE_SCATTER_ADD && how <= CADRE_SCATTER_UPDATE;
    const struct scatter scatter = {.function = known ? calls[how] : __func__,
        .how = how,
        .variable = variable,
        .value = value};
    if (known && variable_is_registered(variable) && variable->served != NULL) {
        return api_return(scatter_remote(replica, &scatter, &error), &error);
    }
    cadre_status status = known ? scatter_check(replica, &scatter, &call, &error)
                                : cadre_error_set(&error, CADRE_INVALID_ARGUMENT,
                                      "%s: %d is no way to change rows; use CADRE_SCATTER_ADD to "
                                      "CADRE_SCATTER_UPDATE",
                                      __func__, (int)how);
    if (status == CADRE_OK) {
        status = scatter_make(replica, &scatter, &error);
    }
    if (status != CADRE_OK) {
        step_record_refusal(replica != NULL ? replica : step_current_replica(), &error);
    }
    return api_return(status, &error);
}
