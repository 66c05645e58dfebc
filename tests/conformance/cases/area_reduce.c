/* SPDX-License-Identifier: Apache-2.0
 * Values of replicas made one, and given to all: reduce, gather, all-reduce, losses. */
#include <stdio.h>
#include <string.h>

#include "areas.h"
#include "composites.h"
#include "replicas.h"

static cadre_strategy *strategy_for(struct conformance_case *self, size_t replicas)
{
    if (replicas < 1 || replicas > REPLICAS_MAX) {
        case_skip(self, "%zu replicas", replicas);
        return NULL;
    }
    return case_strategy(self, (uint32_t)replicas);
}

/* --- reduce --- */

/* `axis`: null, a number, or a list of them. */
static bool take_axes(struct conformance_case *self, const json_t *axis,
    int32_t axes[CADRE_RANK_MAX], uint32_t *ret_count)
{
    size_t i;
    json_t *part;
    *ret_count = 0;
    if (axis == NULL || json_is_null(axis)) {
        return true;
    }
    if (json_is_integer(axis)) {
        axes[(*ret_count)++] = (int32_t)json_integer_value(axis);
        return true;
    }
    if (!json_is_array(axis) || json_array_size(axis) > CADRE_RANK_MAX) {
        return case_skip(self, "\"axis\" is no number and no list of a few");
    }
    json_array_foreach(axis, i, part)
    {
        if (!json_is_integer(part)) {
            return case_skip(self, "\"axis\" holds something else than numbers");
        }
        axes[(*ret_count)++] = (int32_t)json_integer_value(part);
    }
    return true;
}

struct reduction {
    cadre_reduce_op op;
    int32_t axes[CADRE_RANK_MAX];
    uint32_t axis_count;
    cadre_dtype dtype;
    bool plain; /* one tensor that is no per-replica value */
    size_t replicas;
};

static bool take_reduction(struct conformance_case *self, struct reduction *ret_reduction,
    const json_t *values, cadre_status *ret_status)
{
    static const char *const known[] = {
        "op", "axis", "per_replica", "dtype", "strategy", "value_kind", "num_replicas", NULL};
    const char *kind = json_string_value(json_object_get(self->given, "value_kind"));
    json_int_t replicas = 0;
    *ret_reduction = (struct reduction){.op = CADRE_SUM};
    if (!case_knows(self, self->given, known) || !case_op(self, &ret_reduction->op, ret_status) ||
        !take_axes(self, json_object_get(self->given, "axis"), ret_reduction->axes,
            &ret_reduction->axis_count) ||
        !case_dtype(self, self->given, case_dtype_of(values), &ret_reduction->dtype)) {
        return false;
    }
    if (kind != NULL && strcmp(kind, "per_replica") != 0 && strcmp(kind, "plain") != 0 &&
        strcmp(kind, "mirrored") != 0) {
        return case_skip(self, "a value of the kind \"%s\" is not known", kind);
    }
    ret_reduction->plain = kind != NULL && strcmp(kind, "per_replica") != 0;
    json_int_t otherwise = (json_int_t)json_array_size(values);
    if (!case_number(self, self->given, "num_replicas", 1, REPLICAS_MAX, otherwise, &replicas)) {
        return false;
    }
    ret_reduction->replicas = (size_t)replicas;
    return true;
}

static cadre_status reduce(struct conformance_case *self, cadre_strategy *strategy,
    const struct reduction *reduction, const json_t *values, cadre_tensor **ret_result,
    bool *ret_reported)
{
    *ret_reported = false;
    if (reduction->plain) {
        cadre_tensor *tensor = NULL;
        if (!case_tensor(self, json_array_get(values, 0), reduction->dtype, &tensor)) {
            return CADRE_UNIMPLEMENTED;
        }
        *ret_reported = true;
        return cadre_reduce_tensor(
            strategy, reduction->op, tensor, reduction->axes, reduction->axis_count, ret_result);
    }
    cadre_per_replica *value = NULL;
    if (!case_values(self, strategy, values, reduction->dtype, &value)) {
        return CADRE_UNIMPLEMENTED;
    }
    *ret_reported = true;
    return cadre_reduce_values(
        strategy, reduction->op, value, reduction->axes, reduction->axis_count, ret_result);
}

void area_reduce(struct conformance_case *self)
{
    const json_t *values = json_object_get(self->given, "per_replica");
    struct reduction reduction;
    cadre_status status = CADRE_OK;
    cadre_tensor *result = NULL;
    bool complete = true;
    if (json_object_get(self->given, "kind") != NULL) {
        composites_reduce(self);
        return;
    }
    if (!json_is_array(values) || json_array_size(values) == 0) {
        case_skip(self, "no values of replicas");
        return;
    }
    if (!take_reduction(self, &reduction, values, &status)) {
        return;
    }
    cadre_strategy *strategy = case_strategy_of(self,
        json_string_value(json_object_get(self->given, "strategy")), (uint32_t)reduction.replicas);
    if (strategy == NULL) {
        return;
    }
    if (status == CADRE_OK) {
        status = reduce(self, strategy, &reduction, values, &result, &complete);
    }
    case_keep(self, result, case_release_tensor);
    /* "example_weights" explains the result; it is nothing that a function gives. */
    if (complete && case_verdict(self, status, "cadre_reduce")) {
        case_equal(
            self, "the result", json_object_get(self->expect, "result"), case_json(self, result));
    }
}

/* --- in a step --- */

struct step {
    struct conformance_case *self;
    cadre_reduce_op op;
    int32_t axis;
    cadre_tensor **inputs;   /* by replica id */
    cadre_tensor **upstream; /* likewise, of a gradient */
    cadre_sparse *sparse;    /* likewise, in and out */
};

static cadre_status all_reduce_dense(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    const struct step *step = user;
    CADRE_TRY(cadre_tensor_copy(step->inputs[cadre_replica_id(replica)], &outputs[0]));
    return cadre_all_reduce(replica, step->op, outputs, 1, NULL);
}

static cadre_status all_reduce_sparse(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    const struct step *step = user;
    cadre_sparse sum = {0};
    CADRE_TRY(cadre_all_reduce_sparse(
        replica, step->op, &step->sparse[cadre_replica_id(replica)], NULL, &sum));
    outputs[0] = sum.values;
    outputs[1] = sum.indices;
    return CADRE_OK;
}

static cadre_status all_gather(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    const struct step *step = user;
    return cadre_all_gather(
        replica, &step->inputs[cadre_replica_id(replica)], 1, step->axis, NULL, outputs);
}

static cadre_status all_gather_gradient(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    const struct step *step = user;
    uint32_t id = cadre_replica_id(replica);
    int64_t own = cadre_tensor_dim(step->inputs[id], (uint32_t)step->axis);
    return cadre_all_gather_gradient(
        replica, step->upstream[id], step->axis, own, NULL, &outputs[0]);
}

static cadre_tensor **take_tensors(
    struct conformance_case *self, const json_t *values, cadre_dtype dtype)
{
    size_t count = json_array_size(values);
    cadre_tensor **tensors = case_alloc(self, count + 1, sizeof(cadre_tensor *));
    for (size_t i = 0; i < count; i++) {
        if (!case_tensor(self, json_array_get(values, i), dtype, &tensors[i])) {
            return NULL;
        }
    }
    return tensors;
}

/* Runs the step; its outputs, one list for each. */
static bool run_step(struct conformance_case *self, cadre_strategy *strategy,
    cadre_replica_function function, struct step *step, uint32_t n_outputs, json_t *ret_lists[])
{
    cadre_per_replica *outputs[2] = {NULL};
    cadre_status status = cadre_run(strategy, function, step, NULL, n_outputs, outputs);
    if (!case_verdict(self, status, "the step")) {
        return false;
    }
    for (uint32_t i = 0; i < n_outputs; i++) {
        ret_lists[i] = case_results(self, outputs[i], 0);
    }
    return true;
}

static bool take_sparse(
    struct conformance_case *self, const json_t *value, cadre_sparse *ret_sparse)
{
    static const char *const known[] = {"values", "indices", "dense_shape", NULL};
    if (!json_is_object(value) || !case_knows(self, value, known) ||
        !case_tensor(self, json_object_get(value, "values"), CADRE_F32, &ret_sparse->values) ||
        !case_tensor(self, json_object_get(value, "indices"), CADRE_I64, &ret_sparse->indices)) {
        return case_skip(self, "a sparse value is not known");
    }
    const json_t *rows = json_array_get(json_object_get(value, "dense_shape"), 0);
    ret_sparse->rows = json_is_integer(rows) ? json_integer_value(rows) : CADRE_DIMENSION_ANY;
    return true;
}

static void check_sparse(struct conformance_case *self, cadre_strategy *strategy, struct step *step,
    const json_t *values)
{
    json_t *lists[2];
    size_t count = json_array_size(values);
    step->sparse = case_alloc(self, count, sizeof(cadre_sparse));
    for (size_t i = 0; i < count; i++) {
        if (!take_sparse(self, json_array_get(values, i), &step->sparse[i])) {
            return;
        }
    }
    if (!run_step(self, strategy, all_reduce_sparse, step, 2, lists)) {
        return;
    }
    json_t *got = case_keep(self, json_array(), case_release_json);
    for (size_t i = 0; i < count; i++) {
        const json_t *shape = json_object_get(json_array_get(values, i), "dense_shape");
        json_array_append_new(
            got, json_pack("{sO, sO, sO}", "values", json_array_get(lists[0], i), "indices",
                     json_array_get(lists[1], i), "dense_shape", shape));
    }
    case_equal(self, "the sums", json_object_get(self->expect, "per_replica"), got);
}

void area_all_reduce(struct conformance_case *self)
{
    static const char *const known[] = {
        "op", "kind", "per_replica", "upstream_per_replica", "dtype", NULL};
    const char *kind = json_string_value(json_object_get(self->given, "kind"));
    bool gradient = kind != NULL && strcmp(kind, "gradient") == 0;
    const json_t *values =
        json_object_get(self->given, gradient ? "upstream_per_replica" : "per_replica");
    struct step step = {.self = self};
    cadre_status status = CADRE_OK;
    cadre_dtype dtype;
    json_t *sums;
    if (!case_knows(self, self->given, known) || !case_op(self, &step.op, &status) ||
        !case_dtype(self, self->given, case_dtype_of(values), &dtype)) {
        return;
    }
    cadre_strategy *strategy = strategy_for(self, json_array_size(values));
    if (strategy == NULL ||
        (status != CADRE_OK && !case_verdict(self, status, "cadre_reduce_op_parse"))) {
        return;
    }
    if (kind != NULL && strcmp(kind, "sparse") == 0) {
        check_sparse(self, strategy, &step, values);
        return;
    }
    if (kind != NULL && strcmp(kind, "dense") != 0 && !gradient) {
        case_skip(self, "the kind \"%s\" is not known", kind);
        return;
    }
    step.inputs = take_tensors(self, values, dtype);
    if (step.inputs != NULL && run_step(self, strategy, all_reduce_dense, &step, 1, &sums)) {
        const char *key = gradient ? "grad_per_replica" : "per_replica";
        case_equal(self, "the sums", json_object_get(self->expect, key), sums);
    }
}

/* --- gather --- */

/* "strategy": of one device, or the default one; else as many replicas as are asked for. */
static cadre_strategy *gather_strategy(struct conformance_case *self, size_t otherwise)
{
    const char *strategy = json_string_value(json_object_get(self->given, "strategy"));
    json_int_t replicas = 0;
    if (!case_number(
            self, self->given, "num_replicas", 1, REPLICAS_MAX, (json_int_t)otherwise, &replicas)) {
        return NULL;
    }
    return case_strategy_of(self, strategy, (uint32_t)replicas);
}

/* One tensor that is no per-replica value. */
static bool gather_plain(struct conformance_case *self, cadre_strategy *strategy, int32_t axis,
    const json_t *values, cadre_dtype dtype, json_t **ret_result)
{
    cadre_tensor *tensor = NULL;
    cadre_tensor *result = NULL;
    if (!case_tensor(self, json_array_get(values, 0), dtype, &tensor)) {
        return false;
    }
    cadre_status status = cadre_gather_tensor(strategy, tensor, axis, &result);
    case_keep(self, result, case_release_tensor);
    if (!case_verdict(self, status, "cadre_gather_tensor")) {
        return false;
    }
    *ret_result = case_json(self, result);
    return true;
}

/* Along one axis, through the function that the case names. */
static bool gather_along(struct conformance_case *self, cadre_strategy *strategy, const char *call,
    struct step *step, const json_t *values, cadre_dtype dtype, json_t **ret_result)
{
    json_t *list;
    const char *kind = json_string_value(json_object_get(self->given, "value_kind"));
    if (kind != NULL && strcmp(kind, "plain") == 0 && strcmp(call, "gather") == 0) {
        return gather_plain(self, strategy, step->axis, values, dtype, ret_result);
    }
    if (strcmp(call, "gather") == 0) {
        cadre_per_replica *value = NULL;
        cadre_tensor *result = NULL;
        if (!case_values(self, strategy, values, dtype, &value)) {
            return false;
        }
        cadre_status status = cadre_gather(strategy, value, step->axis, &result);
        case_keep(self, result, case_release_tensor);
        if (!case_verdict(self, status, "cadre_gather")) {
            return false;
        }
        *ret_result = case_json(self, result);
        return true;
    }
    if (!run_step(self, strategy, all_gather, step, 1, &list)) {
        return false;
    }
    for (size_t i = 1; i < json_array_size(list); i++) {
        if (!json_equal(json_array_get(list, i), json_array_get(list, 0))) {
            return case_fail(self, "replicas 0 and %zu got different results", i);
        }
    }
    *ret_result = json_array_get(list, 0);
    return true;
}

static void gather_gradient(
    struct conformance_case *self, cadre_strategy *strategy, struct step *step, cadre_dtype dtype)
{
    const json_t *upstream = json_object_get(self->given, "upstream_per_replica");
    json_t *list;
    step->upstream = take_tensors(self, upstream, dtype);
    if (!json_is_array(upstream) || step->upstream == NULL) {
        case_skip(self, "no \"upstream_per_replica\"");
    } else if (run_step(self, strategy, all_gather_gradient, step, 1, &list)) {
        case_equal(self, "the gradients", json_object_get(self->expect, "grad_per_replica"), list);
    }
}

void area_gather(struct conformance_case *self)
{
    static const char *const known[] = {"call", "axis", "per_replica", "upstream_per_replica",
        "dtype", "strategy", "value_kind", "num_replicas", NULL};
    const char *call = json_string_value(json_object_get(self->given, "call"));
    const json_t *values = json_object_get(self->given, "per_replica");
    const json_t *axis = json_object_get(self->given, "axis");
    struct step step = {.self = self};
    cadre_dtype dtype;
    int32_t axes[CADRE_RANK_MAX];
    uint32_t count = 0;
    if (json_object_get(self->given, "kind") != NULL) {
        composites_gather(self);
        return;
    }
    if (!case_knows(self, self->given, known) || !take_axes(self, axis, axes, &count) ||
        !case_dtype(self, self->given, case_dtype_of(values), &dtype)) {
        return;
    }
    cadre_strategy *strategy = gather_strategy(self, json_array_size(values));
    if (strategy == NULL || (step.inputs = take_tensors(self, values, dtype)) == NULL) {
        return;
    }
    if (call == NULL || count == 0 ||
        (strcmp(call, "gather") != 0 && strncmp(call, "all_gather", 10) != 0)) {
        case_skip(self, "no axis, or the call is not known");
        return;
    }
    step.axis = axes[0];
    if (strcmp(call, "all_gather_gradient") == 0) {
        gather_gradient(self, strategy, &step, dtype);
        return;
    }
    json_t *results = case_keep(self, json_array(), case_release_json);
    json_t *result = NULL;
    for (uint32_t i = 0; i < count; i++) {
        step.axis = axes[i];
        if (!gather_along(self, strategy, call, &step, values, dtype, &result)) {
            return;
        }
        json_array_append(results, result);
    }
    bool several = json_is_array(axis);
    case_equal(self, "the result", json_object_get(self->expect, several ? "results" : "result"),
        several ? results : result);
}

/* --- losses --- */

static const char *text_of(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

struct losses {
    cadre_tensor **inputs;
    cadre_tensor **weights; /* NULL: none */
    cadre_tensor *size;
    bool regularization;
};

static cadre_status scale(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    const struct losses *losses = user;
    uint32_t id = cadre_replica_id(replica);
    return losses->regularization
               ? cadre_scale_regularization_loss(replica, losses->inputs[id], &outputs[0])
               : cadre_compute_average_loss(replica, losses->inputs[id],
                     losses->weights == NULL ? NULL : losses->weights[id], losses->size,
                     &outputs[0]);
}

/* The weights of each replica. Given are a list for each, one number for each replica, or, where
 * replicas have rows, a number for each row: of one replica's, which all have then, or of all
 * replicas' one after the other; or one number for all. */
static const json_t *weights_by_replica(
    struct conformance_case *self, const json_t *weights, const json_t *losses)
{
    size_t replicas = json_array_size(losses);
    size_t rows = json_array_size(json_array_get(losses, 0));
    size_t count = json_array_size(weights);
    size_t all = 0;
    bool even = true;
    json_t *each = case_keep(self, json_array(), case_release_json);
    for (size_t r = 0; r < replicas; r++) {
        size_t here = json_array_size(json_array_get(losses, r));
        even = even && here == rows;
        all += here;
    }
    if (json_is_array(json_array_get(weights, 0)) && count == replicas) {
        return weights;
    }
    size_t at = 0;
    for (size_t r = 0; r < replicas; r++) {
        size_t here = json_array_size(json_array_get(losses, r));
        if (json_is_number(weights) || (even && count == rows)) {
            json_array_append(each, (json_t *)(uintptr_t)weights);
        } else if (count == all) {
            json_t *part = json_array();
            for (size_t i = 0; i < here; i++) {
                json_array_append(part, json_array_get(weights, at++));
            }
            json_array_append_new(each, part);
        } else if (count == replicas) {
            json_array_append(each, json_array_get(weights, r));
        } else {
            case_skip(self, "%zu weights of %zu losses on %zu replicas", count, all, replicas);
            return NULL;
        }
    }
    return each;
}

void area_loss_scaling(struct conformance_case *self)
{
    static const char *const known[] = {
        "call", "per_replica", "sample_weight", "global_batch_size", "context", "then", NULL};
    const char *call = text_of(self->given, "call");
    const char *context = text_of(self->given, "context");
    const char *then = text_of(self->given, "then");
    const json_t *values = json_object_get(self->given, "per_replica");
    const json_t *weights = json_object_get(self->given, "sample_weight");
    const json_t *size = json_object_get(self->given, "global_batch_size");
    struct losses losses = {0};
    bool regularization = call != NULL && strstr(call, "regularization") != NULL;
    if (!case_knows(self, self->given, known) || call == NULL ||
        (!regularization && strstr(call, "average_loss") == NULL) ||
        (then != NULL && strcmp(then, "reduce SUM") != 0)) {
        case_skip(self, "the call, or what follows it, is not known");
        return;
    }
    losses.regularization = regularization;
    losses.inputs = take_tensors(self, values, CADRE_F32);
    if (weights != NULL && (weights = weights_by_replica(self, weights, values)) == NULL) {
        return;
    }
    losses.weights = weights == NULL ? NULL : take_tensors(self, weights, CADRE_F32);
    if (losses.inputs == NULL || (weights != NULL && losses.weights == NULL) ||
        (size != NULL &&
            !case_tensor(self, size, json_is_real(size) ? CADRE_F32 : CADRE_I64, &losses.size))) {
        return;
    }
    cadre_strategy *strategy = strategy_for(self, json_array_size(values));
    cadre_per_replica *output;
    cadre_tensor *sum = NULL;
    if (strategy == NULL) {
        return;
    }
    if (context != NULL && strstr(context, "cross") != NULL) {
        cadre_status status =
            regularization
                ? cadre_scale_regularization_loss(NULL, losses.inputs[0], &sum)
                : cadre_compute_average_loss(NULL, losses.inputs[0],
                      losses.weights == NULL ? NULL : losses.weights[0], losses.size, &sum);
        case_keep(self, sum, case_release_tensor);
        if (case_verdict(self, status, call)) {
            case_equal(
                self, "the loss", json_object_get(self->expect, "result"), case_json(self, sum));
        }
        return;
    }
    cadre_status status = cadre_run(strategy, scale, &losses, NULL, 1, &output);
    if (!case_verdict(self, status, call)) {
        return;
    }
    if (json_object_get(self->expect, "per_replica") != NULL) {
        case_equal(self, "the losses", json_object_get(self->expect, "per_replica"),
            case_results(self, output, 0));
        return;
    }
    status = cadre_reduce(strategy, CADRE_SUM, output, CADRE_AXIS_NONE, &sum);
    case_keep(self, sum, case_release_tensor);
    if (case_ok(self, status, "cadre_reduce")) {
        case_equal(self, "the loss", json_object_get(self->expect, "result"), case_json(self, sum));
    }
}
