/* SPDX-License-Identifier: Apache-2.0
 * Lists of vectors, reduced or broadcast. Large ones go as they are, in one group; many small ones
 * are packed, by their types, into one block on the device, and out of it again:
 *
 *    buffers   f32 9 M   f32 7 K   f16 1 K   f32 64   f16 3 K ...
 *    pack      | f32: 7 K, 64, ... | f16: 1 K, 3 K, ... |         up to 64 MiB, then another one
 *    groups    { 9 M, ... }, then { f32 of the pack, f16 of the pack }
 *
 * All in the order of the comm stream. How a list is cut depends on its types and sizes alone,
 * because all replicas must cut it alike. connected.c calls it. */
#include <stdint.h>

#include "worker/library/mesh/device/device_mesh.h"
#include "worker/library/mesh/collectives/collective.h"

#define SEGMENT_ALIGN 256u
#define ROOM_MIN      ((size_t)1 << 20)

cadre_status device_pack_room(
    struct device_replica *device_replica, size_t bytes, struct cadre_error *error)
{
    struct device *device = device_replica->device;
    if (device_replica->pack_bytes >= bytes) {
        return CADRE_OK;
    }
    size_t wanted = ROOM_MIN;
    while (wanted < bytes) {
        wanted *= 2;
    }
    if (device_replica->pack != NULL) {
        device->ops->memory_give(device->index, device_replica->pack, device->comm);
        device_replica->pack = NULL;
        device_replica->pack_bytes = 0;
    }
    CADRE_TRY(
        device->ops->memory_get(device->index, wanted, device->comm, &device_replica->pack, error));
    device_replica->pack_bytes = wanted;
    return CADRE_OK;
}

/* The state of packing one list. */
struct packing {
    struct device_call *call;
    bool gives;       /* this replica's elements are read */
    bool small_packs; /* small vectors are packed */
    struct device_vector *vectors;
    size_t vector_count;
    struct device_piece *ins;
    struct device_piece *outs;
    size_t in_count;
    size_t out_count;
    size_t used; /* bytes of the pack */
};

static bool pack_packs(const struct packing *packing, size_t index)
{
    size_t bytes = packing->call->buffers[index].bytes;
    return packing->small_packs && bytes > 0 && bytes < PACK_VECTOR_BYTES;
}

static bool is_broadcast(const struct packing *packing)
{
    return packing->call->kind == MESH_BROADCAST;
}

/* A broadcast takes all types for bytes. */
static size_t element_bytes(const struct packing *packing, enum mesh_dtype dtype)
{
    return is_broadcast(packing) ? 1 : mesh_dtype_bytes(dtype);
}

static cadre_dtype element_dtype(const struct packing *packing, enum mesh_dtype dtype)
{
    return is_broadcast(packing) ? CADRE_U8 : device_mesh_dtype(dtype);
}

static bool pack_is_aligned(const struct packing *packing, const struct mesh_buffer *buffer)
{
    uintptr_t both = (uintptr_t)mesh_source(buffer) | (uintptr_t)buffer->data;
    return both % element_bytes(packing, buffer->dtype) == 0;
}

/* Adds a large vector; through other memory where its address is not aligned, which the library
 * cannot take and the other replicas do not know of. */
static cadre_status add_large(
    struct packing *packing, const struct mesh_buffer *buffer, struct cadre_error *error)
{
    const struct device *device = packing->call->on;
    struct device_vector *vector = &packing->vectors[packing->vector_count];
    *vector = (struct device_vector){
        .from = packing->gives ? mesh_source(buffer) : buffer->data,
        .to = buffer->data,
        .count = buffer->bytes / element_bytes(packing, buffer->dtype),
        .dtype = element_dtype(packing, buffer->dtype),
    };
    packing->vector_count++;
    if (pack_is_aligned(packing, buffer)) {
        return CADRE_OK;
    }
    void *aside = NULL;
    CADRE_TRY(device->ops->memory_get(device->index, buffer->bytes, device->comm, &aside, error));
    vector->to = aside;
    vector->from = aside;
    return device->ops->copy(aside, mesh_source(buffer), buffer->bytes, device->comm, error);
}

/* Copies the results of those to their buffers, unless the call failed. */
static cadre_status take_large(
    struct packing *packing, size_t count, bool good, struct cadre_error *error)
{
    const struct device_call *call = packing->call;
    const struct device *device = call->on;
    size_t next = 0;
    cadre_status status = CADRE_OK;
    for (size_t i = 0; next < count; i++) {
        const struct mesh_buffer *buffer = &call->buffers[i];
        if (buffer->bytes == 0 || pack_packs(packing, i)) {
            continue;
        }
        struct device_vector *vector = &packing->vectors[next++];
        if (vector->to == buffer->data) {
            continue;
        }
        if (good && status == CADRE_OK) {
            status =
                device->ops->copy(buffer->data, vector->to, buffer->bytes, device->comm, error);
        }
        device->ops->memory_give(device->index, vector->to, device->comm);
    }
    return status;
}

/* One turn: runs what is in the lists, and empties them. */
static cadre_status pack_flush(struct packing *packing, struct cadre_error *error)
{
    struct device_call *call = packing->call;
    struct device_replica *device_replica = call->device_replica;
    const struct device_ops *ops = call->on->ops;
    struct cadre_error reason;
    cadre_status status = CADRE_OK;
    if (packing->vector_count == 0) {
        return CADRE_OK;
    }
    if (packing->in_count > 0) {
        status = ops->pack(
            packing->ins, packing->in_count, device_replica->pack, call->on->comm, &reason);
    }
    if (status == CADRE_OK) {
        CADRE_TRY(device_comm_call(
            call, call->kind, call->root, packing->vectors, packing->vector_count, error));
        if (packing->out_count > 0) {
            status = ops->unpack(
                packing->outs, packing->out_count, device_replica->pack, call->on->comm, &reason);
        }
    }
    packing->vector_count = 0;
    packing->in_count = 0;
    packing->out_count = 0;
    packing->used = 0;
    return status == CADRE_OK ? status
                              : device_mesh_fail(device_replica, status,
                                    "could not pack its vectors", &reason, error);
}

static void add_small(struct packing *packing, const struct mesh_buffer *buffer)
{
    const uint8_t *from = mesh_source(buffer);
    struct device_piece piece = {.offset = packing->used, .bytes = buffer->bytes};
    if (packing->gives) {
        piece.data = (void *)(uintptr_t)from; /* only read */
        packing->ins[packing->in_count++] = piece;
    }
    /* The root of an in-place broadcast has its result. */
    if (!is_broadcast(packing) || !packing->gives || from != buffer->data) {
        piece.data = buffer->data;
        packing->outs[packing->out_count++] = piece;
    }
    packing->used += buffer->bytes;
}

/* All small vectors of one type (a broadcast: of all), as many segments as packs are needed. */
static cadre_status add_segments(
    struct packing *packing, enum mesh_dtype dtype, struct cadre_error *error)
{
    struct device_call *call = packing->call;
    uint8_t *pack = call->device_replica->pack;
    size_t bytes = element_bytes(packing, dtype);
    size_t begin = 0;
    bool open = false;
    for (size_t i = 0; i < call->count; i++) {
        const struct mesh_buffer *buffer = &call->buffers[i];
        if (!pack_packs(packing, i) || (!is_broadcast(packing) && buffer->dtype != dtype)) {
            continue;
        }
        if (packing->used + buffer->bytes + SEGMENT_ALIGN > PACK_BYTES_MAX) {
            CADRE_TRY(pack_flush(packing, error));
            open = false;
        }
        if (!open) {
            packing->used = (packing->used + SEGMENT_ALIGN - 1) / SEGMENT_ALIGN * SEGMENT_ALIGN;
            begin = packing->used;
            packing->vectors[packing->vector_count++] = (struct device_vector){
                .from = pack + begin, .to = pack + begin, .dtype = element_dtype(packing, dtype)};
            open = true;
        }
        add_small(packing, buffer);
        packing->vectors[packing->vector_count - 1].count = (packing->used - begin) / bytes;
    }
    return CADRE_OK;
}

/* Reserves lists for any turn, and the pack. */
static cadre_status make_room(struct packing *packing, struct cadre_error *error)
{
    struct device_call *call = packing->call;
    struct device_replica *device_replica = call->device_replica;
    size_t small_bytes = 0;
    size_t small_count = 0;
    for (size_t i = 0; i < call->count; i++) {
        size_t bytes = call->buffers[i].bytes;
        small_count += bytes > 0 && bytes < PACK_VECTOR_BYTES ? 1 : 0;
        small_bytes += bytes < PACK_VECTOR_BYTES ? bytes : 0;
    }
    packing->small_packs = small_count >= PACK_VECTORS_MIN;
    packing->vectors = scratch_reserve(
        &device_replica->vectors, call->count + MESH_DTYPE_COUNT, sizeof *packing->vectors);
    packing->ins = scratch_reserve(&device_replica->pieces, 2 * call->count, sizeof *packing->ins);
    if (packing->vectors == NULL || packing->ins == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for a list of %zu vectors", call->count);
    }
    packing->outs = packing->ins + call->count;
    if (!packing->small_packs) {
        return CADRE_OK;
    }
    small_bytes += (size_t)SEGMENT_ALIGN * MESH_DTYPE_COUNT;
    return device_pack_room(
        device_replica, small_bytes < PACK_BYTES_MAX ? small_bytes : PACK_BYTES_MAX, error);
}

/* In a group of their own, so that the pack can be laid out by itself. */
static cadre_status run_large(struct packing *packing, struct cadre_error *error)
{
    const struct device_call *call = packing->call;
    struct cadre_error reason;
    cadre_status status = CADRE_OK;
    for (size_t i = 0; status == CADRE_OK && i < call->count; i++) {
        if (call->buffers[i].bytes > 0 && !pack_packs(packing, i)) {
            status = add_large(packing, &call->buffers[i], &reason);
        }
    }
    size_t count = packing->vector_count;
    cadre_status run = status == CADRE_OK ? pack_flush(packing, error) : CADRE_OK;
    cadre_status taken = take_large(packing, count, status == CADRE_OK && run == CADRE_OK, &reason);
    status = status == CADRE_OK ? taken : status;
    CADRE_TRY(run);
    return status == CADRE_OK ? status
                              : device_mesh_fail(call->device_replica, status,
                                    "could not copy its vectors", &reason, error);
}

cadre_status device_pack_run(struct device_call *call, struct cadre_error *error)
{
    struct device_replica *device_replica = call->device_replica;
    struct packing packing = {.call = call,
        .gives = call->kind != MESH_BROADCAST || call->root == device_replica->global};
    struct cadre_error reason;
    cadre_status status = make_room(&packing, &reason);
    if (status != CADRE_OK) {
        return device_mesh_fail(
            device_replica, status, "could not prepare its vectors", &reason, error);
    }
    CADRE_TRY(run_large(&packing, error));
    unsigned types = call->kind == MESH_BROADCAST ? 1 : MESH_DTYPE_COUNT;
    for (unsigned dtype = 0; packing.small_packs && dtype < types; dtype++) {
        CADRE_TRY(add_segments(&packing, (enum mesh_dtype)dtype, error));
    }
    return pack_flush(&packing, error);
}
