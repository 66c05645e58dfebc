/* SPDX-License-Identifier: Apache-2.0
 * Gradients in buckets, each an all-reduce that is started when its last gradient is ready. A
 * replica owns one set; replica functions and optimizers/ call it. */
#include "worker/library/runtime/collectives/buckets.h"

#include <stdlib.h>
#include <string.h>

#include "cadre/buckets.h"
#include "common/base/fault.h"
#include "common/pure/assert.h"
#include "worker/library/device/argument.h"
#include "worker/library/device/device.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/collectives/collective.h"
#include "worker/library/runtime/collectives/collective_queue.h"
#include "worker/library/runtime/strategy/strategy.h"

struct bucket {
    size_t first; /* of the tensors */
    size_t count;
    size_t missing; /* that are not ready */
    cadre_collective *handle;
};

/* The buckets of one replica. Not freed before the strategy ends, so that using them too long is an
 * error and not a crash. */
struct cadre_buckets {
    cadre_replica *replica;
    bool open;
    cadre_reduce_op op;
    cadre_collective_options options;
    size_t count;
    size_t capacity;        /* of the three lists */
    cadre_tensor **tensors; /* the program's */
    uint32_t *bucket_of;    /* of each tensor */
    bool *ready;
    struct bucket *buckets; /* as many as tensors at most */
    size_t bucket_count;
    size_t started; /* the first so many buckets */
};

/* --- memory --- */

static void free_lists(struct cadre_buckets *buckets)
{
    free(buckets->tensors);
    free(buckets->bucket_of);
    free(buckets->ready);
    free(buckets->buckets);
    buckets->tensors = NULL;
    buckets->bucket_of = NULL;
    buckets->ready = NULL;
    buckets->buckets = NULL;
    buckets->capacity = 0;
}

void buckets_free(cadre_replica *replica)
{
    CADRE_ASSERT(!replica->active);
    if (replica->buckets != NULL) {
        free_lists(replica->buckets);
        free(replica->buckets);
        replica->buckets = NULL;
    }
}

static cadre_status get_room(struct cadre_buckets *buckets, size_t count, struct cadre_error *error)
{
    CADRE_ASSERT(!buckets->open);
    if (count <= buckets->capacity) {
        return CADRE_OK;
    }
    free_lists(buckets);
    buckets->tensors = calloc(count, sizeof(cadre_tensor *));
    buckets->bucket_of = calloc(count, sizeof buckets->bucket_of[0]);
    buckets->ready = calloc(count, sizeof buckets->ready[0]);
    buckets->buckets = fault_point("buckets.lists") ? NULL : calloc(count, sizeof(struct bucket));
    if (buckets->tensors == NULL || buckets->bucket_of == NULL || buckets->ready == NULL ||
        buckets->buckets == NULL) {
        free_lists(buckets);
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for buckets of %zu tensors", count);
    }
    buckets->capacity = count;
    return CADRE_OK;
}

static cadre_status get_buckets(
    cadre_replica *replica, struct cadre_buckets **ret_buckets, struct cadre_error *error)
{
    if (replica->buckets == NULL) {
        replica->buckets = fault_point("buckets") ? NULL : calloc(1, sizeof *replica->buckets);
        if (replica->buckets == NULL) {
            return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for buckets");
        }
        replica->buckets->replica = replica;
    }
    *ret_buckets = replica->buckets;
    return CADRE_OK;
}

/* --- beginning --- */

/* In the order of the list: a bucket closes at its size, or at the most tensors of a call. */
static void buckets_fill(struct cadre_buckets *buckets, size_t first_bytes, size_t bucket_bytes)
{
    size_t bytes = 0;
    buckets->bucket_count = 0;
    buckets->started = 0;
    for (size_t i = 0; i < buckets->count; i++) {
        size_t limit = buckets->bucket_count <= 1 ? first_bytes : bucket_bytes;
        struct bucket *last =
            buckets->bucket_count == 0 ? NULL : &buckets->buckets[buckets->bucket_count - 1];
        if (last == NULL || bytes >= limit || last->count == COLLECTIVE_TENSORS_MAX) {
            last = &buckets->buckets[buckets->bucket_count++];
            *last = (struct bucket){.first = i};
            bytes = 0;
        }
        last->count++;
        last->missing++;
        bytes += cadre_tensor_bytes(buckets->tensors[i]);
        buckets->bucket_of[i] = (uint32_t)(buckets->bucket_count - 1);
        buckets->ready[i] = false;
    }
    CADRE_ASSERT(buckets->bucket_count <= buckets->count);
}

static size_t default_bytes(const struct cadre_buckets *buckets)
{
    bool gpu = buckets->count > 0 && tensor_device(buckets->tensors[0]) != NULL;
    return gpu ? CADRE_BUCKET_BYTES_GPU : CADRE_BUCKET_BYTES_CPU;
}

static cadre_status buckets_check(
    cadre_tensor *const tensors[], size_t count, cadre_buckets **ret, struct cadre_error *error)
{
    static const char function[] = "cadre_buckets_begin";
    CADRE_TRY(argument_require(ret, function, "ret_buckets", error));
    *ret = NULL;
    if (count > 0) {
        CADRE_TRY(argument_require(tensors, function, "tensors", error));
    }
    if (count > UINT32_MAX) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%zu tensors were to be put into buckets; give less than 2^32", count);
    }
    for (size_t i = 0; i < count; i++) {
        if (tensors[i] == NULL) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "tensor %zu of %zu that were to be put into buckets is NULL", i, count);
        }
    }
    return CADRE_OK;
}

static cadre_status buckets_begin(cadre_replica *replica, cadre_reduce_op op,
    cadre_tensor *const tensors[], size_t count, const cadre_bucket_options *options,
    cadre_buckets **ret_buckets, struct cadre_error *error)
{
    static const cadre_bucket_options defaults = {0};
    struct cadre_buckets *buckets = NULL;
    CADRE_TRY(buckets_check(tensors, count, ret_buckets, error));
    CADRE_TRY(step_require_own_thread(replica, "cadre_buckets_begin", error));
    CADRE_TRY(get_buckets(replica, &buckets, error));
    if (buckets->open) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "cadre_buckets_begin was called by replica %u, whose buckets are not over; call "
            "cadre_buckets_wait first",
            replica->id);
    }
    CADRE_TRY(get_room(buckets, count, error));
    options = options == NULL ? &defaults : options;
    buckets->op = op;
    buckets->options = options->collective;
    buckets->count = count;
    if (count > 0) {
        memcpy(buckets->tensors, tensors, count * sizeof tensors[0]);
    }
    size_t bytes = options->bucket_bytes > 0 ? options->bucket_bytes : default_bytes(buckets);
    size_t first = options->first_bytes > 0 ? options->first_bytes : CADRE_BUCKET_FIRST_BYTES;
    buckets_fill(buckets, first, bytes);
    buckets->open = true;
    *ret_buckets = buckets;
    return CADRE_OK;
}

/* --- from one gradient to the next --- */

static cadre_status require_open(
    const cadre_buckets *buckets, const char *function, struct cadre_error *error)
{
    CADRE_TRY(argument_require(buckets, function, "buckets", error));
    if (context_replica() == NULL || context_replica()->buckets != buckets) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s was called outside of the replica function that began the buckets; call it there",
            function);
    }
    if (!buckets->open) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s was called for buckets that are over; begin them in each step, and wait once",
            function);
    }
    return CADRE_OK;
}

/* Starts all buckets that are full and have no bucket before them that is not. */
static cadre_status start_full(cadre_buckets *buckets, struct cadre_error *error)
{
    CADRE_ASSERT(buckets->started <= buckets->bucket_count);
    while (buckets->started < buckets->bucket_count &&
           buckets->buckets[buckets->started].missing == 0) {
        struct bucket *bucket = &buckets->buckets[buckets->started];
        CADRE_ASSERT(bucket->count > 0);
        CADRE_TRY(collective_start(buckets->replica, buckets->op, buckets->tensors + bucket->first,
            bucket->count, &buckets->options, &bucket->handle, error));
        buckets->started++;
    }
    return CADRE_OK;
}

static cadre_status buckets_ready(cadre_buckets *buckets, size_t index, struct cadre_error *error)
{
    CADRE_TRY(require_open(buckets, "cadre_buckets_ready", error));
    if (index >= buckets->count) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "tensor %zu is not one of the %zu in buckets; number them from 0, as they were "
            "listed",
            index, buckets->count);
    }
    if (buckets->ready[index]) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "tensor %zu of %zu in buckets was reported ready twice; report it once, when its "
            "gradient is whole",
            index, buckets->count);
    }
    buckets->ready[index] = true;
    CADRE_ASSERT(buckets->bucket_of[index] < buckets->bucket_count);
    CADRE_ASSERT(buckets->buckets[buckets->bucket_of[index]].missing > 0);
    buckets->buckets[buckets->bucket_of[index]].missing--;
    return start_full(buckets, error);
}

static cadre_status check_ready(const cadre_buckets *buckets, struct cadre_error *error)
{
    for (size_t i = 0; i < buckets->count; i++) {
        if (!buckets->ready[i]) {
            return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
                "cadre_buckets_wait was called when tensor %zu of %zu was not ready; call "
                "cadre_buckets_ready for each of them before",
                i, buckets->count);
        }
    }
    return CADRE_OK;
}

/* Waits for all. The first failure counts; one from before the wait comes first. */
static cadre_status wait_for_all(cadre_buckets *buckets, struct cadre_error *error)
{
    CADRE_TRY(require_open(buckets, "cadre_buckets_wait", error));
    cadre_status status = check_ready(buckets, error);
    if (status != CADRE_OK) {
        /* Those that were started end with the function, because others may never come to them. */
        buckets->open = false;
        return status;
    }
    for (size_t i = 0; i < buckets->started; i++) {
        struct cadre_error other;
        CADRE_ASSERT(buckets->buckets[i].handle != NULL);
        cadre_status ended = collective_wait_for(buckets->buckets[i].handle, &other);
        if (ended != CADRE_OK && status == CADRE_OK) {
            *error = other;
            status = ended;
        }
    }
    if (status == CADRE_OK && buckets->started < buckets->bucket_count) {
        status = cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "cadre_buckets_wait was called after a bucket could not be started; look at what "
            "cadre_buckets_ready returns");
    }
    buckets->open = false;
    return status;
}

cadre_status buckets_reduce(cadre_replica *replica, cadre_reduce_op op,
    cadre_tensor *const tensors[], size_t count, const cadre_bucket_options *options,
    struct cadre_error *error)
{
    cadre_buckets *buckets = NULL;
    CADRE_TRY(buckets_begin(replica, op, tensors, count, options, &buckets, error));
    cadre_status status = CADRE_OK;
    for (size_t i = 0; i < count && status == CADRE_OK; i++) {
        status = buckets_ready(buckets, i, error);
    }
    if (status != CADRE_OK) { /* what was started ends with the function */
        buckets->open = false;
        return status;
    }
    return wait_for_all(buckets, error);
}

void buckets_end(cadre_replica *replica)
{
    if (replica->buckets != NULL) {
        replica->buckets->open = false;
    }
}

/* --- public --- */

static cadre_status collectives_buckets_end(
    cadre_replica *replica, cadre_status status, struct cadre_error *error)
{
    if (status != CADRE_OK) {
        step_record_refusal(replica, error);
    }
    return api_return(status, error);
}

cadre_status cadre_buckets_begin(cadre_replica *replica, cadre_reduce_op op,
    cadre_tensor *const tensors[], size_t count, const cadre_bucket_options *options,
    cadre_buckets **ret_buckets)
{
    struct cadre_error error;
    cadre_status status = buckets_begin(replica, op, tensors, count, options, ret_buckets, &error);
    return collectives_buckets_end(replica, status, &error);
}

cadre_status cadre_buckets_ready(cadre_buckets *buckets, size_t index)
{
    struct cadre_error error;
    cadre_status status = buckets_ready(buckets, index, &error);
    return collectives_buckets_end(context_replica(), status, &error);
}

cadre_status cadre_buckets_wait(cadre_buckets *buckets)
{
    struct cadre_error error;
    cadre_status status = wait_for_all(buckets, &error);
    return collectives_buckets_end(context_replica(), status, &error);
}
