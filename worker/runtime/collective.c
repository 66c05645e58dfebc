/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/runtime/collective.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/pure/prng.h"
#include "worker/runtime/axis_sum.h"
#include "worker/runtime/border.h"

/* Hashes of so many bits: the sum of their squares over LIMIT_TASKS_PER_JOB *
 * LIMIT_REPLICAS_PER_TASK (2^22) replicas stays below 2^63. */
#define CHECK_BITS 20

uint64_t collective_key(uint64_t key, uint64_t number)
{
    return prng_mix(key ^ prng_mix(number));
}

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
        [CADRE_U8] = MESH_U8,
    };
    if (dtype < CADRE_F64 || dtype > CADRE_U8) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "a tensor of type %s cannot be summed; use a number type", cadre_dtype_name(dtype));
    }
    *ret_dtype = of[dtype];
    return CADRE_OK;
}

/* Whether a replica's collective is its first of a step: then it tells what it is fed. */
static bool tells_feed(const cadre_strategy *strategy, uint32_t local)
{
    return atomic_load(&strategy->step.running) && !strategy->replicas[local].feed_told;
}

/* The first local replica speaks for its task. */
static void hear_feed(cadre_strategy *strategy, uint32_t local, const struct step_feed *whole)
{
    strategy->replicas[local].feed_told = true;
    if (local == 0) {
        strategy->step.whole = *whole;
        strategy->step.feed_known = true;
    }
}

/* A sum must never mix things that differ. The mesh compares types and sizes; what it cannot see
 * (shapes, the step, the operation) travels as a hash h: with n replicas, n * sum(h^2) equals
 * sum(h)^2 exactly when all h are equal, so every replica comes to the same verdict without another
 * message. */
cadre_status collective_sum(cadre_strategy *strategy, uint32_t local,
    const struct mesh_buffer *buffers, size_t count, uint64_t key, struct cadre_error *error)
{
    int64_t hash = (int64_t)(key & ((UINT64_C(1) << CHECK_BITS) - 1));
    int64_t check[3] = {hash, hash * hash, 1};
    struct step_feed feed = {0};
    bool tells = tells_feed(strategy, local);
    CADRE_FREE_AT_EXIT struct mesh_buffer *list = calloc(count + 2, sizeof *list);
    if (list == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for a list of %zu tensors", count);
    }
    size_t length = 0;
    list[length++] = (struct mesh_buffer){.data = check, .bytes = sizeof check, .dtype = MESH_I64};
    if (tells) {
        if (local == 0) {
            feed = strategy->step.own;
        }
        list[length++] =
            (struct mesh_buffer){.data = &feed, .bytes = sizeof feed, .dtype = MESH_I64};
    }
    for (size_t i = 0; i < count; i++) {
        list[length++] = buffers[i];
    }
    cadre_status status =
        strategy->mesh->ops->all_reduce(strategy->mesh, local, MESH_SUM, list, length, NULL, error);
    if (status == CADRE_INVALID_ARGUMENT) {
        return cadre_error_wrap(error, status, "the replicas disagree in a collective");
    }
    if (status != CADRE_OK) {
        return status;
    }
    cadre_u128 left = (cadre_u128)(uint64_t)check[2] * (cadre_u128)(uint64_t)check[1];
    cadre_u128 right = (cadre_u128)(uint64_t)check[0] * (cadre_u128)(uint64_t)check[0];
    if (left != right) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the replicas disagree in a collective: its operation, its place in the step or the "
            "shapes of its %zu tensors are not the same on all of them",
            count);
    }
    if (tells) {
        hear_feed(strategy, local, &feed);
    }
    return CADRE_OK;
}

/* --- in replica context --- */

static uint64_t tensor_key(uint64_t key, const cadre_tensor *tensor)
{
    key = collective_key(key, (uint64_t)cadre_tensor_dtype(tensor));
    key = collective_key(key, cadre_tensor_rank(tensor));
    for (uint32_t i = 0; i < cadre_tensor_rank(tensor); i++) {
        key = collective_key(key, (uint64_t)cadre_tensor_dim(tensor, i));
    }
    return key;
}

static cadre_status check_list(
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

/* What is asked for, of which place in the step and what tensors. */
static struct step_call call_of(
    const char *function, int64_t root, cadre_tensor *const tensors[], size_t count)
{
    struct step_call call = {.function = function, .root = root, .tensor_count = count};
    call.key = collective_key((uint64_t)root, count);
    for (const char *c = function; *c != '\0'; c++) {
        call.key = collective_key(call.key, (uint64_t)(unsigned char)*c);
    }
    for (size_t i = 0; i < count; i++) {
        call.key = tensor_key(call.key, tensors[i]);
    }
    if (count > 0) {
        call.first.dtype = cadre_tensor_dtype(tensors[0]);
        call.first.rank = cadre_tensor_rank(tensors[0]);
        memcpy(call.first.dims, cadre_tensor_dims(tensors[0]),
            call.first.rank * sizeof call.first.dims[0]);
    }
    return call;
}

static cadre_status describe(cadre_reduce_op op, cadre_tensor *const tensors[], size_t count,
    struct mesh_buffer *buffers, struct cadre_error *error)
{
    for (size_t i = 0; i < count; i++) {
        cadre_dtype dtype = cadre_tensor_dtype(tensors[i]);
        cadre_status status = collective_dtype(dtype, &buffers[i].dtype, error);
        if (status != CADRE_OK) {
            return status;
        }
        if (op == CADRE_MEAN && dtype > CADRE_BF16) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "tensor %zu has type %s; an all-reduce with CADRE_MEAN needs a floating type", i,
                cadre_dtype_name(dtype));
        }
        buffers[i].data = cadre_tensor_data(tensors[i]);
        buffers[i].bytes = cadre_tensor_bytes(tensors[i]);
    }
    return CADRE_OK;
}

/* How many of the buffers go into the next pack: one begins once the current is over the limit. */
static size_t pack_length(const struct mesh_buffer *buffers, size_t count, size_t bytes_per_pack)
{
    size_t bytes = 0;
    size_t length = 0;
    while (length < count && (bytes_per_pack == 0 || bytes <= bytes_per_pack)) {
        bytes += buffers[length++].bytes;
    }
    return length;
}

static cadre_status all_reduce(cadre_replica *replica, cadre_reduce_op op,
    cadre_tensor *const tensors[], size_t count, size_t bytes_per_pack, struct cadre_error *error)
{
    cadre_status status = check_list(tensors, count, error);
    if (status != CADRE_OK) {
        return status;
    }
    if (op != CADRE_SUM && op != CADRE_MEAN) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%d is not a reduction; use CADRE_SUM or CADRE_MEAN", (int)op);
    }
    CADRE_FREE_AT_EXIT struct mesh_buffer *buffers = calloc(count + 1, sizeof *buffers);
    if (buffers == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for a list of %zu tensors", count);
    }
    uint32_t index = 0;
    struct step_call call =
        call_of(op == CADRE_SUM ? "cadre_all_reduce(CADRE_SUM)" : "cadre_all_reduce(CADRE_MEAN)",
            -1, tensors, count);
    status = describe(op, tensors, count, buffers, error);
    if (status == CADRE_OK) {
        status = step_collective(replica, &call, &index, error);
    }
    if (status != CADRE_OK) {
        return status;
    }
    cadre_strategy *strategy = replica->strategy;
    uint64_t key = collective_key(collective_key(strategy->step.position, index), call.key);
    size_t done = 0;
    bool more = true; /* also without tensors it is a collective */
    while (more) {
        size_t length = pack_length(buffers + done, count - done, bytes_per_pack);
        status = collective_sum(strategy, replica->local, buffers + done, length, key, error);
        step_collective_end(replica, status, error);
        done += length;
        more = status == CADRE_OK && done < count;
    }
    for (size_t i = 0; status == CADRE_OK && op == CADRE_MEAN && i < count; i++) {
        axis_divide(buffers[i].data, (size_t)cadre_tensor_count(tensors[i]),
            cadre_tensor_dtype(tensors[i]), strategy->replica_count);
    }
    return status;
}

cadre_status collective_all_reduce(cadre_replica *replica, cadre_reduce_op op,
    cadre_tensor *const tensors[], size_t count, size_t bytes_per_pack, struct cadre_error *error)
{
    cadre_status status = step_require(replica, "cadre_all_reduce", error);
    if (status == CADRE_OK) {
        status = all_reduce(replica, op, tensors, count, bytes_per_pack, error);
    }
    if (status != CADRE_OK) {
        step_refused(replica, error);
    }
    return status;
}

static cadre_status broadcast(cadre_replica *replica, uint32_t root, cadre_tensor *const tensors[],
    size_t count, struct cadre_error *error)
{
    cadre_strategy *strategy = replica->strategy;
    if (root >= strategy->replica_count) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "replica %u was named as the source of a broadcast among %u replicas; name one from 0 "
            "to %u",
            root, strategy->replica_count, strategy->replica_count - 1);
    }
    cadre_status status = check_list(tensors, count, error);
    if (status != CADRE_OK) {
        return status;
    }
    CADRE_FREE_AT_EXIT struct mesh_buffer *buffers = calloc(count + 1, sizeof *buffers);
    if (buffers == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for a list of %zu tensors", count);
    }
    for (size_t i = 0; i < count; i++) {
        if (cadre_tensor_dtype(tensors[i]) == CADRE_STRING) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "tensor %zu holds strings, which cannot be broadcast; use a number type", i);
        }
        buffers[i] = (struct mesh_buffer){.data = cadre_tensor_data(tensors[i]),
            .bytes = cadre_tensor_bytes(tensors[i]),
            .dtype = MESH_U8};
    }
    uint32_t index = 0;
    struct step_call call = call_of("cadre_broadcast", root, tensors, count);
    status = step_collective(replica, &call, &index, error);
    if (status != CADRE_OK) {
        return status;
    }
    /* The mesh sees bytes only, so types and shapes are compared before. */
    uint64_t key = collective_key(collective_key(strategy->step.position, index), call.key);
    status = collective_sum(strategy, replica->local, NULL, 0, key, error);
    if (status == CADRE_OK) {
        status = strategy->mesh->ops->broadcast(
            strategy->mesh, replica->local, root, buffers, count, NULL, error);
    }
    return step_collective_end(replica, status, error);
}

cadre_status collective_broadcast(cadre_replica *replica, uint32_t root,
    cadre_tensor *const tensors[], size_t count, struct cadre_error *error)
{
    cadre_status status = step_require(replica, "cadre_broadcast", error);
    if (status == CADRE_OK) {
        status = broadcast(replica, root, tensors, count, error);
    }
    if (status != CADRE_OK) {
        step_refused(replica, error);
    }
    return status;
}

cadre_status collective_implicit(cadre_replica *replica, struct cadre_error *error)
{
    const struct step_call none = {.root = -1};
    cadre_status status = step_collective(replica, &none, NULL, error);
    if (status == CADRE_OK) {
        uint64_t key = collective_key(replica->strategy->step.position, UINT64_MAX);
        status = collective_sum(replica->strategy, replica->local, NULL, 0, key, error);
        step_collective_end(replica, status, error);
    }
    return status;
}

/* --- public --- */

cadre_status cadre_all_reduce(cadre_replica *replica, cadre_reduce_op op,
    cadre_tensor *const tensors[], size_t count, const cadre_collective_options *options)
{
    struct cadre_error error = {0};
    size_t bytes_per_pack = options == NULL ? 0 : options->bytes_per_pack;
    return border(
        collective_all_reduce(replica, op, tensors, count, bytes_per_pack, &error), &error);
}

cadre_status cadre_broadcast(
    cadre_replica *replica, uint32_t root, cadre_tensor *const tensors[], size_t count)
{
    struct cadre_error error = {0};
    return border(collective_broadcast(replica, root, tensors, count, &error), &error);
}

static cadre_status barrier_in_step(cadre_replica *replica, struct cadre_error *error)
{
    struct step_call call = call_of("cadre_barrier", -1, NULL, 0);
    uint32_t index = 0;
    CADRE_TRY(step_collective(replica, &call, &index, error));
    uint64_t key = collective_key(replica->strategy->step.position, index);
    key = collective_key(key, call.key);
    cadre_status status = collective_sum(replica->strategy, replica->local, NULL, 0, key, error);
    return step_collective_end(replica, status, error);
}

static cadre_status barrier_here(
    cadre_strategy *strategy, uint32_t local, void *user, struct cadre_error *error)
{
    (void)user;
    return strategy->mesh->ops->barrier(strategy->mesh, local, NULL, error);
}

cadre_status cadre_barrier(void)
{
    struct cadre_error error = {0};
    cadre_replica *replica = context_replica();
    if (replica != NULL) {
        return border(barrier_in_step(replica, &error), &error);
    }
    cadre_strategy *strategy = strategy_current();
    if (strategy == NULL) {
        return border(cadre_error_set(&error, CADRE_FAILED_PRECONDITION,
                          "there is nobody to wait for: make a strategy before cadre_barrier"),
            &error);
    }
    cadre_status status = strategy_check(strategy, &error);
    if (status == CADRE_OK) {
        status = strategy_outside(strategy, barrier_here, NULL, &error);
    }
    return border(status, &error);
}

/* --- why one could not --- */

cadre_status collective_hear(cadre_strategy *strategy, uint32_t local, uint32_t rank,
    const struct cadre_error *own, struct cadre_error *ret_theirs, struct cadre_error *error)
{
    struct cadre_error told = {0};
    if (local == 0 && strategy->roster.rank == rank) {
        told = *own;
    }
    struct mesh_buffer text = {.data = told.text, .bytes = sizeof told.text, .dtype = MESH_U8};
    cadre_status status = strategy->mesh->ops->broadcast(
        strategy->mesh, local, rank * strategy->local_replicas, &text, 1, NULL, error);
    if (status == CADRE_OK && local == 0) {
        cadre_error_set(ret_theirs, CADRE_ABORTED, "task %u could not: %.*s", rank,
            (int)sizeof told.text - 1, told.text);
    }
    return status;
}

cadre_status collective_hear_lowest(cadre_strategy *strategy, uint32_t local,
    const struct cadre_error *own, struct cadre_error *ret_theirs, struct cadre_error *error)
{
    bool mine = local == 0 && own->code != CADRE_OK;
    int64_t rank = mine ? (int64_t)strategy->roster.rank : INT64_MAX;
    const struct mesh_buffer buffer = {.data = &rank, .bytes = sizeof rank, .dtype = MESH_I64};
    CADRE_TRY(
        strategy->mesh->ops->all_reduce(strategy->mesh, local, MESH_MIN, &buffer, 1, NULL, error));
    return collective_hear(strategy, local, (uint32_t)rank, own, ret_theirs, error);
}
