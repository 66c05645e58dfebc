/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/regroup/transfer.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/pure/assert.h"
#include "common/pure/prng.h"

#define CHUNK_BYTES ((size_t)4 << 20)

/* 128 bits that depend on every byte and its offset. It guards against faults, not against an
 * adversary. */
struct check {
    uint64_t lane[2];
};

static uint64_t transfer_rotate(uint64_t value, unsigned bits)
{
    return value << bits | value >> (64 - bits);
}

static void check_word(struct check *check, uint64_t word)
{
    check->lane[0] = transfer_rotate(check->lane[0] ^ word, 29) * UINT64_C(0x9E3779B97F4A7C15);
    check->lane[1] = transfer_rotate(check->lane[1] + word, 37) * UINT64_C(0xC2B2AE3D27D4EB4F);
}

static void check_add(struct check *check, const uint8_t *bytes, size_t count)
{
    size_t at = 0;
    for (; at + 8 <= count; at += 8) {
        uint64_t word;
        memcpy(&word, bytes + at, sizeof word);
        check_word(check, word);
    }
    for (; at < count; at++) {
        check_word(check, UINT64_C(0x100) + bytes[at]);
    }
}

static cadre_status transfer_share(cadre_strategy *strategy, uint32_t local, uint32_t source,
    void *data, size_t bytes, struct cadre_error *error)
{
    CADRE_ASSERT(source < strategy->roster.member_count);
    struct mesh_buffer buffer = {.data = data, .bytes = bytes, .dtype = MESH_U8};
    uint32_t root = source * strategy->local_replicas; /* its first replica */
    return strategy->mesh->ops->broadcast(strategy->mesh, local, root, &buffer, 1, NULL, error);
}

/* The chunks. All replicas get each in turn; the first local one does the work. */
static cadre_status share_chunks(cadre_strategy *strategy, uint32_t local,
    const struct transfer *transfer, uint64_t total, struct check *check, struct cadre_error *error)
{
    bool sends = strategy->roster.rank == transfer->source;
    size_t room = total < CHUNK_BYTES ? (size_t)total : CHUNK_BYTES;
    CADRE_FREE_AT_EXIT uint8_t *chunk = malloc(room + 1);
    if (chunk == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory to pass on %s", transfer->what);
    }
    for (uint64_t offset = 0; offset < total;) {
        size_t bytes = total - offset < room ? (size_t)(total - offset) : room;
        if (sends && local == 0) {
            CADRE_TRY(transfer->read(transfer->user, (size_t)offset, chunk, bytes, error));
        }
        CADRE_TRY(transfer_share(strategy, local, transfer->source, chunk, bytes, error));
        if (local == 0 && (sends || transfer->write != NULL)) {
            check_add(check, chunk, bytes);
        }
        if (local == 0 && !sends && transfer->write != NULL) {
            CADRE_TRY(transfer->write(transfer->user, total, (size_t)offset, chunk, bytes, error));
        }
        offset += bytes;
    }
    return CADRE_OK;
}

cadre_status transfer_run(cadre_strategy *strategy, uint32_t local, const struct transfer *transfer,
    struct cadre_error *error)
{
    CADRE_ASSERT(local < strategy->local_replicas);
    CADRE_ASSERT(transfer->read != NULL);
    bool sends = strategy->roster.rank == transfer->source;
    bool takes = !sends && local == 0 && transfer->write != NULL;
    uint64_t total = transfer->bytes;
    struct check check = {{0, 0}};
    CADRE_TRY(transfer_share(strategy, local, transfer->source, &total, sizeof total, error));
    if (takes && total == 0) {
        CADRE_TRY(transfer->write(transfer->user, 0, 0, NULL, 0, error));
    }
    CADRE_TRY(share_chunks(strategy, local, transfer, total, &check, error));
    struct check sent = check;
    CADRE_TRY(transfer_share(strategy, local, transfer->source, &sent, sizeof sent, error));
    if (takes && (sent.lane[0] != check.lane[0] || sent.lane[1] != check.lane[1])) {
        return cadre_error_set(error, CADRE_ABORTED,
            "%s came damaged from the task of rank %u: its digest is not the one that was sent",
            transfer->what, transfer->source);
    }
    return CADRE_OK;
}
