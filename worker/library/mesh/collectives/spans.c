/* SPDX-License-Identifier: Apache-2.0
 * Spans: posting them, and looking them up with all bounds checked. Addresses of tasks whose memory
 * is attached to cannot be checked so; they are posted with a hash, which finds what another
 * process spoilt. */
#include "worker/library/mesh/collectives/collective.h"

#include <inttypes.h>

#include "common/pure/prng.h"
#include "worker/library/arena/arena.h"
#include "worker/library/mesh/bytes.h"
#include "worker/library/mesh/wire/fault.h"

/* The values that stand for a buffer's addresses in a post. False: the tasks do not share it. */
static bool locate_span(const struct call *call, const struct mesh_buffer *buffer, bool addresses,
    struct span *ret_span)
{
    size_t written = call->written ? buffer->bytes : 0;
    size_t given = buffer->bytes * call->given_times;
    const void *from = mesh_source(buffer);
    *ret_span = (struct span){.data = 0};
    if (addresses) {
        ret_span->data = written > 0 ? (uintptr_t)buffer->data : 0;
        ret_span->from = given > 0 ? (uintptr_t)from : 0;
        return true;
    }
    bool shared = written == 0 || arena_locate(buffer->data, written, &ret_span->data);
    return (given == 0 || arena_locate(from, given, &ret_span->from)) && shared;
}

/* Whether all buffers of the call are in memory that the tasks of the host share. */
static bool all_shared(const struct call *call)
{
    struct span span;
    for (size_t i = 0; i < call->shape.count; i++) {
        if (!locate_span(call, &call->buffers[i], false, &span)) {
            return false;
        }
    }
    return true;
}

static uint64_t hash_begin(const struct replica *replica, uint32_t slot, size_t first)
{
    uint64_t hash = prng_mix(bytes_get_u64(replica->host->key) ^ replica->sequence);
    return prng_mix(hash ^ ((uint64_t)slot << 32) ^ first);
}

static uint64_t hash_span(uint64_t hash, const struct span *span)
{
    return prng_mix(prng_mix(hash ^ span->data) ^ span->from);
}

uint8_t mesh_reach_post(
    struct replica *replica, const struct call *call, struct group_post *post, size_t first)
{
    const struct host_mesh *host = replica->host;
    bool tasks = host->group.fd >= 0;
    size_t count = (size_t)call->shape.count;
    if (first == 0) { /* at once for all buffers, for all slots to see */
        replica->lists_addresses = !tasks || !all_shared(call);
    }
    bool addresses = tasks && replica->lists_addresses;
    uint64_t hash = addresses ? hash_begin(replica, replica->slot, first) : 0;
    for (size_t i = first; i < count && i < first + GROUP_SPANS_MAX; i++) {
        struct span value;
        struct group_span *span = &post->payload.spans[i - first];
        (void)locate_span(call, &call->buffers[i], replica->lists_addresses, &value);
        atomic_store_explicit(&span->data, value.data, memory_order_relaxed);
        atomic_store_explicit(&span->from, value.from, memory_order_relaxed);
        hash = addresses ? hash_span(hash, &value) : 0;
    }
    post->tag = (uint32_t)hash;
    /* Between hosts, chunks do not follow which buffers are posted. */
    bool listed = host->topology.host_count == 1 || count <= GROUP_SPANS_MAX;
    bool reached = listed && !addresses;
    return (uint8_t)((reached ? 0 : GROUP_PRIVATE) | (host->attachable ? 0 : GROUP_APART));
}

static uint8_t *reach_reach(struct replica *replica, uint32_t slot, uint64_t value, size_t bytes)
{
    struct host_mesh *host = replica->host;
    const struct slab_allocator *memory = &host->memories[slot];
    if (bytes == 0) {
        return replica->scratch; /* an empty buffer has no address, which is no failure */
    }
    if (value > memory->bytes || bytes > memory->bytes - value) {
        mesh_fault_raise(host, CADRE_DATA_LOSS,
            "replica %" PRIu32 " gave collective %" PRIu64
            " an address outside of what its task shares",
            host->globals[slot], replica->sequence);
        return NULL;
    }
    return (uint8_t *)(memory->base + (uintptr_t)value);
}

const uint8_t *mesh_reach_from(struct replica *replica, uint32_t slot, size_t buffer, size_t bytes)
{
    const struct group_span *span =
        &mesh_posted(replica, slot)->payload.spans[buffer % GROUP_SPANS_MAX];
    return reach_reach(
        replica, slot, atomic_load_explicit(&span->from, memory_order_relaxed), bytes);
}

uint8_t *mesh_reach_data(struct replica *replica, uint32_t slot, size_t buffer, size_t bytes)
{
    const struct group_span *span =
        &mesh_posted(replica, slot)->payload.spans[buffer % GROUP_SPANS_MAX];
    return reach_reach(
        replica, slot, atomic_load_explicit(&span->data, memory_order_relaxed), bytes);
}

const struct span *mesh_reach_addresses(
    struct replica *replica, uint32_t slot, size_t first, size_t count)
{
    const struct group_post *post = mesh_posted(replica, slot);
    struct span *spans = replica->spans + (size_t)slot * GROUP_SPANS_MAX;
    uint64_t hash = hash_begin(replica, slot, first);
    for (size_t i = 0; i < count; i++) {
        const struct group_span *span = &post->payload.spans[i];
        spans[i] = (struct span){
            .data = atomic_load_explicit(&span->data, memory_order_relaxed),
            .from = atomic_load_explicit(&span->from, memory_order_relaxed),
        };
        hash = hash_span(hash, &spans[i]);
    }
    if (post->tag != (uint32_t)hash) {
        mesh_fault_raise(replica->host, CADRE_DATA_LOSS,
            "the addresses that replica %" PRIu32 " gave collective %" PRIu64
            " were overwritten by another task of this host",
            replica->host->globals[slot], replica->sequence);
        return NULL;
    }
    return spans;
}
