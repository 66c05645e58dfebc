/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/values/shape_check.h"

#include "common/pure/assert.h"
#include "worker/library/composite/composite.h"
#include "worker/library/device/tensor.h"

cadre_status shape_check_replicas(
    const cadre_strategy *strategy, const cadre_per_replica *value, struct cadre_error *error)
{
    if (value->replicas != strategy->local_replicas || value->components == 0) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "a value of %u components for %u replicas was given where this task has %u replicas; "
            "give outputs of cadre_run, or make values with this strategy",
            value->components, value->replicas, strategy->local_replicas);
    }
    return CADRE_OK;
}

static const char *text_of(const cadre_tensor *tensor, char text[TENSOR_SHAPE_TEXT_BYTES])
{
    return tensor_shape_text(
        cadre_tensor_dtype(tensor), cadre_tensor_rank(tensor), cadre_tensor_dims(tensor), text);
}

static bool values_shape_check_alike(
    const cadre_tensor *a, const cadre_tensor *b, const bool along[CADRE_RANK_MAX])
{
    bool same = cadre_tensor_dtype(a) == cadre_tensor_dtype(b) &&
                cadre_tensor_rank(a) == cadre_tensor_rank(b);
    for (uint32_t axis = 0; same && axis < cadre_tensor_rank(a); axis++) {
        same = along[axis] || cadre_tensor_dim(a, axis) == cadre_tensor_dim(b, axis);
    }
    return same;
}

cadre_status shape_check_alike(cadre_per_replica *value, uint32_t component,
    const bool along[CADRE_RANK_MAX], const char *done, struct cadre_error *error)
{
    const cadre_tensor *first = *per_replica_at(value, component, 0);
    CADRE_ASSERT(first != NULL);
    bool any = false;
    for (uint32_t axis = 0; axis < CADRE_RANK_MAX; axis++) {
        any = any || along[axis];
    }
    for (uint32_t i = 1; i < value->replicas; i++) {
        const cadre_tensor *other = *per_replica_at(value, component, i);
        if (!values_shape_check_alike(first, other, along)) {
            char shape[TENSOR_SHAPE_TEXT_BYTES];
            char another[TENSOR_SHAPE_TEXT_BYTES];
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "the outputs of local replicas 0 and %u are %s and %s; to be %s they must be "
                "equal in type and shape%s",
                i, text_of(first, shape), text_of(other, another), done,
                any ? ", but for the size along the axis" : "");
        }
    }
    return CADRE_OK;
}

cadre_status shape_check_plain(
    const cadre_per_replica *value, const char *done, struct cadre_error *error)
{
    const cadre_element element = per_replica_element(value, 0);
    for (uint32_t i = 0; i < element.count; i++) {
        const struct composite composite = composite_of_element(&element, i);
        if (composite.kind != CADRE_COMPOSITE_NONE) {
            char text[COMPOSITE_TEXT_BYTES];
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "%s of the value cannot be %s, for the rows of replicas differ; return what a "
                "replica function computes of its rows, or join them (cadre_gather)",
                composite_text(&composite, text), done);
        }
    }
    return CADRE_OK;
}

cadre_status shape_check_composites(const cadre_per_replica *value, struct cadre_error *error)
{
    const cadre_element first = per_replica_element(value, 0);
    for (uint32_t replica = 0; replica < value->replicas; replica++) {
        const cadre_element own = per_replica_element(value, replica);
        struct composite at = {.count = 0};
        for (uint32_t i = 0; i < own.count; i += at.count) {
            const struct composite same = composite_of_element(&first, i);
            char text[COMPOSITE_TEXT_BYTES];
            at = composite_of_element(&own, i);
            if (at.kind != same.kind) {
                return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                    "%s of local replica 0 are not alike on local replica %u; all replicas give "
                    "ragged, sparse or plain ones",
                    composite_text(&same, text), replica);
            }
            cadre_status status = composite_check(at.kind, own.tensors + i, error);
            if (status != CADRE_OK) {
                return cadre_error_wrap(
                    error, status, "%s of local replica %u", composite_text(&at, text), replica);
            }
        }
    }
    return CADRE_OK;
}
