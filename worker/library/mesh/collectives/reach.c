/* SPDX-License-Identifier: Apache-2.0
 * Spans: posting them, and looking them up with all bounds checked. */
#include "worker/library/mesh/collectives/collective.h"

#include <inttypes.h>

#include "worker/library/arena/arena.h"
#include "worker/library/mesh/wire/fault.h"

/* The value that stands for an address in a post; false when the others cannot reach it. */
static bool reach_locate(
    const struct host_mesh *host, const void *memory, size_t bytes, uint64_t *ret_value)
{
    *ret_value = 0;
    if (bytes == 0) {
        return true;
    }
    if (host->group.fd < 0) {
        *ret_value = (uintptr_t)memory;
        return true;
    }
    return arena_locate(memory, bytes, ret_value);
}

uint8_t mesh_reach_post(
    const struct replica *replica, const struct call *call, struct group_post *post, size_t first)
{
    bool reached = true;
    size_t count = (size_t)call->shape.count;
    /* Beyond one task, whether all buffers can be reached is decided at once, for all slots to
     * see. */
    size_t last = first == 0 && replica->host->group.fd >= 0 ? count : first + GROUP_SPANS_MAX;
    for (size_t i = first; i < count && i < last; i++) {
        const struct mesh_buffer *buffer = &call->buffers[i];
        uint64_t data;
        uint64_t from;
        size_t written = call->written ? buffer->bytes : 0;
        size_t given = buffer->bytes * call->given_times;
        reached = reach_locate(replica->host, buffer->data, written, &data) && reached;
        reached = reach_locate(replica->host, mesh_source(buffer), given, &from) && reached;
        if (i < first + GROUP_SPANS_MAX) {
            struct group_span *span = &post->payload.spans[i - first];
            atomic_store_explicit(&span->data, data, memory_order_relaxed);
            atomic_store_explicit(&span->from, from, memory_order_relaxed);
        }
    }
    /* Between hosts, chunks do not follow which buffers are posted. */
    bool listed = replica->host->topology.host_count == 1 || count <= GROUP_SPANS_MAX;
    return reached && listed ? 0 : GROUP_PRIVATE;
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

cadre_status mesh_reach_run(struct replica *replica, const struct call *call, reach_work *work)
{
    struct group *group = &replica->host->group;
    size_t count = (size_t)call->shape.count;
    for (size_t first = 0; first < count; first += GROUP_SPANS_MAX) {
        size_t window = count - first < GROUP_SPANS_MAX ? count - first : GROUP_SPANS_MAX;
        if (first > 0) {
            struct group_post *own = &group->slots[replica->slot].posts[replica->sequence & 1];
            (void)mesh_reach_post(replica, call, own, first);
            CADRE_TRY(mesh_step(replica, call));
        }
        if (!group_touch_begin(group, replica->slot)) {
            return mesh_broken(replica);
        }
        cadre_status status = work(replica, call, first, window);
        group_touch_end(group, replica->slot);
        CADRE_TRY(status);
        CADRE_TRY(mesh_step(replica, call));
    }
    return CADRE_OK;
}
