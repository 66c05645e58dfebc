/* SPDX-License-Identifier: Apache-2.0
 * Sums of the mesh with a note and a key, in a step and outside of one. All collectives of this
 * folder, and the parts that make tasks agree, call it. */
#include "worker/library/runtime/collectives/collective.h"

#include <stdio.h>
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/runtime/collectives/piggyback.h"
#include "worker/library/runtime/regroup/between_steps.h"
#include "worker/library/runtime/regroup/regroup.h"
#include "worker/library/runtime/replica/collective_list.h"

cadre_status collective_dtype(
    cadre_dtype dtype, enum mesh_dtype *ret_dtype, struct cadre_error *error)
{
    static const enum mesh_dtype of[] = {
        [CADRE_F64] = MESH_F64,
        [CADRE_F32] = MESH_F32,
        [CADRE_F16] = MESH_F16,
        [CADRE_BF16] = MESH_BF16,
        [CADRE_I64] = MESH_I64,
        [CADRE_I32] = MESH_I32,
        [CADRE_I16] = MESH_I16,
        [CADRE_I8] = MESH_I8,
        [CADRE_U32] = MESH_U32,
        [CADRE_U16] = MESH_U16,
        [CADRE_U8] = MESH_U8,
    };
    if (dtype < CADRE_F64 || dtype > CADRE_U8) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "a tensor of type %s cannot be summed; use a number type", cadre_dtype_name(dtype));
    }
    *ret_dtype = of[dtype];
    return CADRE_OK;
}

cadre_status collective_check(
    cadre_tensor *const tensors[], size_t count, struct cadre_error *error)
{
    if (tensors == NULL && count > 0) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "a collective was given NULL for its list of %zu tensors", count);
    }
    if (count > COLLECTIVE_TENSORS_MAX) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%zu tensors were given to one collective; at most %d are possible, call it again for "
            "the others",
            count, COLLECTIVE_TENSORS_MAX);
    }
    for (size_t i = 0; i < count; i++) {
        if (tensors[i] == NULL) {
            return cadre_error_set(
                error, CADRE_INVALID_ARGUMENT, "tensor %zu of a collective is NULL", i);
        }
    }
    return CADRE_OK;
}

/* --- the piggyback --- */

cadre_status collective_explain(cadre_status status, struct cadre_error *error)
{
    return status == CADRE_INVALID_ARGUMENT
               ? cadre_error_wrap(error, status, "the replicas disagree in a collective")
               : status;
}

cadre_status collective_send_piggyback(cadre_strategy *strategy, uint32_t local,
    const struct mesh_note *note, struct cadre_error *error)
{
    if (!piggyback_due(strategy, local)) {
        return CADRE_OK;
    }
    union piggyback_buffer piggyback;
    const struct mesh_buffer buffer = piggyback_make(strategy, local, &piggyback);
    cadre_status status =
        strategy->mesh->ops->all_reduce(strategy->mesh, local, MESH_SUM, &buffer, 1, note, error);
    return status == CADRE_OK ? piggyback_receive(strategy, local, &piggyback, error)
                              : collective_explain(status, error);
}

cadre_status collective_reduce(cadre_strategy *strategy, uint32_t local, enum mesh_op op,
    struct mesh_buffer *buffers, size_t count, const struct mesh_note *note,
    struct cadre_error *error)
{
    struct mesh *mesh = strategy->mesh;
    CADRE_ASSERT(mesh != NULL);
    CADRE_ASSERT(count <= COLLECTIVE_TENSORS_MAX);
    /* Not where some replicas are on devices: their buffers are not sent with the host's. */
    bool along =
        op == MESH_SUM && !strategy->regroup->device_summary.any && piggyback_due(strategy, local);
    if (!along) {
        CADRE_TRY(collective_send_piggyback(strategy, local, note, error));
        return collective_explain(
            mesh->ops->all_reduce(mesh, local, op, buffers, count, note, error), error);
    }
    union piggyback_buffer piggyback;
    buffers[-1] = piggyback_make(strategy, local, &piggyback);
    cadre_status status =
        mesh->ops->all_reduce(mesh, local, op, buffers - 1, count + 1, note, error);
    return status == CADRE_OK ? piggyback_receive(strategy, local, &piggyback, error)
                              : collective_explain(status, error);
}

/* Like collective_sum. The piggyback, if it is due, needs room in the list. */
cadre_status collective_sum_noted(cadre_strategy *strategy, uint32_t local,
    const struct mesh_buffer *buffers, size_t count, const struct mesh_note *note,
    struct cadre_error *error)
{
    if (!piggyback_due(strategy, local)) {
        return collective_explain(strategy->mesh->ops->all_reduce(
                                      strategy->mesh, local, MESH_SUM, buffers, count, note, error),
            error);
    }
    struct mesh_buffer *list;
    CADRE_TRY(collective_list_room(&strategy->replicas[local].list, count, &list, error));
    for (size_t i = 0; i < count; i++) {
        list[i] = buffers[i];
    }
    return collective_reduce(strategy, local, MESH_SUM, list, count, note, error);
}

cadre_status collective_sum(cadre_strategy *strategy, uint32_t local,
    const struct mesh_buffer *buffers, size_t count, uint64_t key, struct cadre_error *error)
{
    const struct mesh_note note = {.key = key};
    return collective_sum_noted(strategy, local, buffers, count, &note, error);
}

cadre_status collective_meet_between_steps(cadre_strategy *strategy, uint32_t local,
    const char *what, uint64_t key, struct cadre_error *error)
{
    char text[MESH_NOTE_BYTES];
    CADRE_ASSERT(strlen(what) < STRATEGY_CALL_TEXT_BYTES);
    snprintf(text, sizeof text, "replica %u calls %s", strategy->replicas[local].id, what);
    const struct mesh_note note = {.key = key, .text = text};
    return collective_sum_noted(strategy, local, NULL, 0, &note, error);
}

/* --- errors that are shared --- */

cadre_status collective_share_error(cadre_strategy *strategy, uint32_t local, uint32_t rank,
    const struct cadre_error *own, struct cadre_error *ret_theirs, struct cadre_error *error)
{
    struct cadre_error piggyback = {0};
    CADRE_ASSERT(local < strategy->local_replicas);
    if (local == 0 && strategy->roster.rank == rank) {
        piggyback = *own;
    }
    struct mesh_buffer text = {
        .data = piggyback.text, .bytes = sizeof piggyback.text, .dtype = MESH_U8};
    cadre_status status = strategy->mesh->ops->broadcast(
        strategy->mesh, local, rank * strategy->local_replicas, &text, 1, NULL, error);
    if (status == CADRE_OK && local == 0) {
        cadre_error_set(ret_theirs, CADRE_ABORTED, "task %u could not: %.*s", rank,
            (int)sizeof piggyback.text - 1, piggyback.text);
    }
    return status;
}

cadre_status collective_share_first_error(cadre_strategy *strategy, uint32_t local,
    const struct cadre_error *own, struct cadre_error *ret_theirs, struct cadre_error *error)
{
    bool mine = local == 0 && own->code != CADRE_OK;
    int64_t rank = mine ? (int64_t)strategy->roster.rank : INT64_MAX;
    const struct mesh_buffer buffer = {.data = &rank, .bytes = sizeof rank, .dtype = MESH_I64};
    CADRE_TRY(
        strategy->mesh->ops->all_reduce(strategy->mesh, local, MESH_MIN, &buffer, 1, NULL, error));
    return collective_share_error(strategy, local, (uint32_t)rank, own, ret_theirs, error);
}
