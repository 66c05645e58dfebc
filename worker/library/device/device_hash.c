/* SPDX-License-Identifier: Apache-2.0
 * Hashing memory of a device: full chunks by a kernel of the device, shorter ones on the host after
 * a copy. The runtime calls device_hash for digests of variables. */
#include "worker/library/device/memory_hash.h"

#include <stdlib.h>

#include "common/pure/assert.h"
#include "worker/library/device/tensor_memory.h"

/* At most so many bytes of short chunks are in the host's memory at a time. */
#define SHORT_BYTES ((size_t)4 << 20)

/* Memory of the host that a device copies into, by itself where it is page-locked. */
struct room {
    void *memory; /* NULL: none */
    size_t bytes;
    enum tensor_memory_kind kind;
};

struct hashing {
    struct device *device;
    const struct device_hashed *pieces;
    size_t count;
    struct device_chunks *chunks; /* [count], for the kernel */
    size_t full;                  /* chunks of all pieces that the kernel hashes */
    void *on_device;              /* their hashes; NULL: there are none */
    struct room hashes;           /* likewise, on the host */
    struct room shorts;           /* chunks that are shorter than others */
    size_t first_short;           /* the piece of the first in there */
    size_t short_bytes;           /* that are in there */
};

static cadre_status room_open(struct room *room, size_t bytes, struct cadre_error *error)
{
    room->bytes = bytes > 0 ? bytes : 1;
    room->kind = TENSOR_MEMORY_PINNED;
    room->memory = tensor_memory_get(room->kind, room->bytes);
    if (room->memory == NULL) {
        room->kind = TENSOR_MEMORY_HOST;
        room->memory = tensor_memory_get(room->kind, room->bytes);
    }
    return room->memory != NULL ? CADRE_OK
                                : cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
                                      "no memory on the host for hashes of what is on a device, "
                                      "%zu bytes",
                                      room->bytes);
}

static void room_close(struct room *room)
{
    if (room->memory != NULL) {
        tensor_memory_give(room->kind, room->memory, room->bytes);
    }
}

/* How many chunks of full length are hashed. */
static size_t full_of(const struct device_hashed *piece)
{
    size_t full = piece->size / HASH_CHUNK_BYTES;
    CADRE_ASSERT(piece->turn.stride > 0);
    return full > piece->turn.first ? (full - piece->turn.first - 1) / piece->turn.stride + 1 : 0;
}

/* Whether there is a shorter one, the last, and it is its turn. */
static bool has_short(const struct device_hashed *piece)
{
    size_t last = piece->size / HASH_CHUNK_BYTES;
    return last < hash_chunk_count(piece->size) && last >= piece->turn.first &&
           (last - piece->turn.first) % piece->turn.stride == 0;
}

/* --- chunks of full length --- */

static cadre_status begin_full(struct hashing *hashing, struct cadre_error *error)
{
    struct device *device = hashing->device;
    for (size_t i = 0; i < hashing->count; i++) {
        hashing->full += full_of(&hashing->pieces[i]);
    }
    size_t bytes = hashing->full * sizeof(uint64_t);
    if (bytes == 0) {
        return CADRE_OK;
    }
    CADRE_TRY(room_open(&hashing->hashes, bytes, error));
    CADRE_TRY(
        device->ops->memory_get(device->index, bytes, device->compute, &hashing->on_device, error));
    uint64_t *to = hashing->on_device;
    for (size_t i = 0; i < hashing->count; i++) {
        const struct device_hashed *piece = &hashing->pieces[i];
        size_t full = full_of(piece);
        size_t at = full > 0 ? piece->turn.first * HASH_CHUNK_BYTES : 0;
        hashing->chunks[i] = (struct device_chunks){.data = (const char *)piece->data + at,
            .stride = piece->turn.stride,
            .count = full,
            .hashes = to};
        to += full;
    }
    CADRE_TRY(device->ops->hash(hashing->chunks, hashing->count, device->compute, error));
    return device->ops->copy(
        hashing->hashes.memory, hashing->on_device, bytes, device->compute, error);
}

/* Stores the hashes that have come. Returns how many bytes they are of. */
static size_t take_full(const struct hashing *hashing)
{
    const uint64_t *from = hashing->hashes.memory;
    for (size_t i = 0; i < hashing->count && hashing->full > 0; i++) {
        const struct device_hashed *piece = &hashing->pieces[i];
        for (size_t k = 0; k < hashing->chunks[i].count; k++) {
            piece->chunks[piece->turn.first + k * piece->turn.stride] = *from++;
        }
    }
    return hashing->full * HASH_CHUNK_BYTES;
}

/* --- shorter ones --- */

/* Hashes those that have come, of pieces before `end`. Returns how many bytes they have. */
static size_t take_shorts(struct hashing *hashing, size_t end)
{
    const char *from = hashing->shorts.memory;
    for (size_t i = hashing->first_short; i < end; i++) {
        const struct device_hashed *piece = &hashing->pieces[i];
        size_t bytes = piece->size % HASH_CHUNK_BYTES;
        if (has_short(piece)) {
            piece->chunks[piece->size / HASH_CHUNK_BYTES] = hash_plain(from, bytes);
            from = bytes > 0 ? from + bytes : from;
        }
    }
    size_t taken = hashing->short_bytes;
    CADRE_ASSERT((size_t)(from - (const char *)hashing->shorts.memory) == taken);
    hashing->first_short = end;
    hashing->short_bytes = 0;
    return taken;
}

static cadre_status bring_shorts(struct hashing *hashing, size_t *hashed, struct cadre_error *error)
{
    struct device *device = hashing->device;
    for (size_t i = 0; i < hashing->count; i++) {
        const struct device_hashed *piece = &hashing->pieces[i];
        size_t bytes = piece->size % HASH_CHUNK_BYTES;
        if (!has_short(piece) || bytes == 0) {
            continue;
        }
        if (hashing->shorts.memory == NULL) {
            CADRE_TRY(room_open(&hashing->shorts, SHORT_BYTES, error));
        }
        if (bytes > SHORT_BYTES - hashing->short_bytes) {
            CADRE_TRY(device_wait_stream(device, device->compute, 0, NULL, NULL, error));
            *hashed += take_shorts(hashing, i);
        }
        CADRE_TRY(device->ops->copy((char *)hashing->shorts.memory + hashing->short_bytes,
            (const char *)piece->data + piece->size - bytes, bytes, device->compute, error));
        hashing->short_bytes += bytes;
    }
    return CADRE_OK;
}

/* --- both --- */

static cadre_status hash_all(struct hashing *hashing, size_t *hashed, struct cadre_error *error)
{
    struct device *device = hashing->device;
    cadre_status status = begin_full(hashing, error);
    if (status == CADRE_OK) {
        status = bring_shorts(hashing, hashed, error);
    }
    /* Also before the memory is freed. */
    cadre_status waited = device_wait_stream(
        device, device->compute, 0, NULL, NULL, status == CADRE_OK ? error : NULL);
    status = status == CADRE_OK ? waited : status;
    if (status == CADRE_OK) {
        *hashed += take_full(hashing);
        *hashed += take_shorts(hashing, hashing->count);
    }
    return status;
}

cadre_status device_hash(struct device *device, const struct device_hashed pieces[], size_t count,
    size_t *hashed, struct cadre_error *error)
{
    struct hashing hashing = {.device = device, .pieces = pieces, .count = count};
    if (count == 0) {
        return CADRE_OK;
    }
    hashing.chunks = calloc(count, sizeof *hashing.chunks);
    if (hashing.chunks == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory to hash %zu tensors on a device", count);
    }
    cadre_status status = hash_all(&hashing, hashed, error);
    if (hashing.on_device != NULL) {
        device->ops->memory_give(device->index, hashing.on_device, device->compute);
    }
    room_close(&hashing.hashes);
    room_close(&hashing.shorts);
    free(hashing.chunks);
    return status;
}
