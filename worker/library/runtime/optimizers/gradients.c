/* SPDX-License-Identifier: Apache-2.0
 * See gradients.h. Called by apply.c and push_gradients.c. */
#include "worker/library/runtime/optimizers/gradients.h"

#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/device/tensor.h"
#include "worker/library/device/device.h"
#include "worker/library/runtime/collectives/buckets.h"
#include "worker/library/runtime/collectives/collective.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/variables/variable.h"

/* --- checks of the arguments --- */

static const cadre_sparse *sparse_of(const struct gradients *gradients, size_t i)
{
    bool has = gradients->sparse != NULL && gradients->sparse[i].values != NULL;
    return has ? &gradients->sparse[i] : NULL;
}

static cadre_tensor *dense_of(const struct gradients *gradients, size_t i)
{
    return gradients->dense == NULL ? NULL : gradients->dense[i];
}

static cadre_status gradients_misfit(const cadre_variable *variable, const cadre_tensor *gradient,
    const char *what, struct cadre_error *error)
{
    char is[TENSOR_SHAPE_TEXT_BYTES];
    char wanted[TENSOR_SHAPE_TEXT_BYTES];
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
        "variable '%s' is %s, and its gradient %s %s; give one that fits", variable->name,
        tensor_shape_text(variable->dtype, variable->rank, variable->dims, wanted), what,
        tensor_shape_text(cadre_tensor_dtype(gradient), cadre_tensor_rank(gradient),
            cadre_tensor_dims(gradient), is));
}

/* The dimensions from `first` on. */
static bool dims_are(const cadre_variable *variable, const cadre_tensor *tensor, uint32_t first)
{
    return cadre_tensor_dtype(tensor) == variable->dtype &&
           cadre_tensor_rank(tensor) == variable->rank &&
           (variable->rank <= first ||
               memcmp(cadre_tensor_dims(tensor) + first, variable->dims + first,
                   (variable->rank - first) * sizeof variable->dims[0]) == 0);
}

static cadre_status check_sparse(
    const cadre_variable *variable, const cadre_sparse *sparse, struct cadre_error *error)
{
    if (variable->rank == 0 || !dims_are(variable, sparse->values, 1)) {
        return gradients_misfit(variable, sparse->values, "has rows", error);
    }
    if (sparse->rows != CADRE_DIMENSION_ANY && sparse->rows != variable->dims[0]) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "variable '%s' has %lld rows, and its gradient is one of %lld; give as many, or "
            "CADRE_DIMENSION_ANY",
            variable->name, (long long)variable->dims[0], (long long)sparse->rows);
    }
    return CADRE_OK;
}

static cadre_status check_one(const cadre_optimizer *optimizer, const struct gradients *gradients,
    size_t i, uint64_t attempt, const struct optimized **ret_of, struct cadre_error *error)
{
    const cadre_tensor *dense = dense_of(gradients, i);
    const cadre_sparse *sparse = sparse_of(gradients, i);
    const cadre_variable *variable = gradients->variables[i];
    if (dense == NULL && sparse == NULL) {
        return CADRE_OK;
    }
    *ret_of = optimizer_find(optimizer, variable, i, attempt);
    if (*ret_of == NULL) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "optimizer '%s' was given a gradient for variable %zu of %zu, which it has no slots "
            "for, and cannot make them here; give it to cadre_optimizer_build before",
            optimizer->name, i, gradients->count);
    }
    if (dense != NULL && sparse != NULL) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "variable '%s' was given a dense and a sparse gradient; give one of them",
            variable->name);
    }
    if (sparse != NULL) {
        return check_sparse(variable, sparse, error);
    }
    return dims_are(variable, dense, 0) ? CADRE_OK : gradients_misfit(variable, dense, "is", error);
}

cadre_status gradients_build(
    cadre_optimizer *optimizer, const struct gradients *gradients, struct cadre_error *error)
{
    static const char function[] = "cadre_optimizer_apply";
    const uint64_t attempt = optimizer_attempt(optimizer);
    for (size_t i = 0; i < gradients->count; i++) {
        cadre_variable *variable = gradients->variables[i];
        bool has = dense_of(gradients, i) != NULL || sparse_of(gradients, i) != NULL;
        if (has && optimizer_find(optimizer, variable, i, attempt) == NULL) {
            CADRE_TRY(optimizer_check_variable(optimizer, variable, i, function, error));
            CADRE_TRY(optimizer_slots_make(optimizer, variable, function, error));
        }
    }
    return CADRE_OK;
}

cadre_status gradients_list(const cadre_optimizer *optimizer, const struct gradients *gradients,
    struct pending_update *turn, struct cadre_error *error)
{
    const uint64_t attempt = optimizer_attempt(optimizer);
    CADRE_ASSERT(turn->count == 0);
    CADRE_ASSERT(gradients->count <= turn->capacity || gradients->count == 0);
    for (size_t i = 0; i < gradients->count; i++) {
        const struct optimized *of = NULL;
        CADRE_TRY(check_one(optimizer, gradients, i, attempt, &of, error));
        if (of != NULL) {
            turn->variables[turn->count++] = (struct pending_update_part){.of = of, .given = i};
        }
    }
    return turn->count > 0
               ? CADRE_OK
               : cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                     "optimizer '%s' was given no gradient for any of %zu variables; give one at "
                     "least",
                     optimizer->name, gradients->count);
}

/* --- over the replicas --- */

static cadre_status reduce_dense(cadre_replica *replica, const struct gradients *gradients,
    const cadre_apply_options *options, struct pending_update *turn, struct cadre_error *error)
{
    size_t count = 0;
    size_t bytes = 0;
    for (size_t i = 0; i < turn->count; i++) {
        cadre_tensor *dense = dense_of(gradients, turn->variables[i].given);
        if (dense != NULL) {
            turn->variables[i].gradient = cadre_tensor_retain(dense);
            turn->tensors[count++] = dense;
            bytes += cadre_tensor_bytes(dense);
        }
    }
    if (count == 0 || replica == NULL) {
        return CADRE_OK;
    }
    cadre_reduce_op op = options->gradients == CADRE_GRADIENTS_MEAN ? CADRE_MEAN : CADRE_SUM;
    size_t first = options->buckets.first_bytes;
    /* Gradients that fit into the first bucket are reduced faster without a thread of their own. */
    if (bytes <= (first > 0 ? first : CADRE_BUCKET_FIRST_BYTES) &&
        count <= COLLECTIVE_TENSORS_MAX) {
        return collective_all_reduce(
            replica, op, turn->tensors, count, &options->buckets.collective, error);
    }
    return buckets_reduce(replica, op, turn->tensors, count, &options->buckets, error);
}

static cadre_status reduce_sparse(cadre_replica *replica, const struct gradients *gradients,
    const cadre_apply_options *options, struct pending_update_part *part, struct cadre_error *error)
{
    cadre_sparse joined = {0};
    cadre_sparse given = *sparse_of(gradients, part->given);
    given.rows = part->of->variable->dims[0];
    if (replica == NULL) {
        CADRE_TRY(collective_sparse_check(&given, error));
        return gradient_rows(&given, &part->gradient, &part->rows, error);
    }
    cadre_reduce_op op = options->gradients == CADRE_GRADIENTS_MEAN ? CADRE_MEAN : CADRE_SUM;
    CADRE_TRY(collective_all_reduce_sparse(
        replica, op, &given, &options->buckets.collective, &joined, error));
    cadre_tensor *values = NULL;
    cadre_tensor *indices = NULL;
    cadre_status status = tensor_on_host(joined.values, &values, error);
    if (status == CADRE_OK) {
        status = tensor_on_host(joined.indices, &indices, error);
    }
    if (status == CADRE_OK) {
        const cadre_sparse here = {.values = values, .indices = indices, .rows = joined.rows};
        status = gradient_rows(&here, &part->gradient, &part->rows, error);
    }
    cadre_tensor_release(values);
    cadre_tensor_release(indices);
    cadre_sparse_release(&joined);
    return status;
}

cadre_status gradients_reduce(cadre_replica *replica, const struct gradients *gradients,
    const cadre_apply_options *options, struct pending_update *turn, struct cadre_error *error)
{
    CADRE_TRY(reduce_dense(replica, gradients, options, turn, error));
    for (size_t i = 0; i < turn->count; i++) {
        if (turn->variables[i].gradient == NULL) {
            CADRE_TRY(reduce_sparse(replica, gradients, options, &turn->variables[i], error));
        }
    }
    return CADRE_OK;
}

/* --- to the components' devices --- */

static cadre_status gradients_bring(
    struct device *device, cadre_tensor **gradient, struct cadre_error *error)
{
    cadre_tensor *here = NULL;
    if (tensor_device(*gradient) == device) {
        return CADRE_OK;
    }
    CADRE_TRY(device == NULL ? tensor_on_host(*gradient, &here, error)
                             : tensor_copy_to(device, *gradient, &here, error));
    cadre_tensor_release(*gradient);
    *gradient = here;
    return CADRE_OK;
}

cadre_status gradients_move(struct pending_update *turn, uint32_t local, struct cadre_error *error)
{
    for (size_t i = 0; i < turn->count; i++) {
        struct device *device = variable_component(turn->variables[i].of->variable, local)->device;
        CADRE_TRY(gradients_bring(device, &turn->variables[i].gradient, error));
    }
    return CADRE_OK;
}
