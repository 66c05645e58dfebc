/* SPDX-License-Identifier: Apache-2.0
 * Reducing a share of buffers that the tasks of a host do not share: the replica attaches to the
 * other tasks' memory, block by block (attach.h). A block stays in the second-level cache from
 * being read until its result is written.
 *
 *     each other slot's block ── read ──► copies ─┐
 *     own block ──────────────────────────────────┴── reduce ──► own buffer ── write ──► each other
 *
 * all_reduce.c calls it. */
#include "worker/library/mesh/collectives/attached.h"

#include "worker/library/mesh/reduce/reduce_kernels.h"

/* One replica's pass over its share of a window of buffers. */
struct pass {
    struct replica *replica;
    const struct call *call;
    size_t first;
    size_t at;  /* packed: reduced up to here */
    size_t end; /* of the block */
    uint32_t piece_count;
    struct layout_piece pieces[ATTACH_PIECES_MAX]; /* of the block */
};

/* The next block: up to so many bytes and pieces. False: there is none. */
static bool next_block(struct pass *pass, size_t high)
{
    size_t most = pass->replica->host->copy_bytes;
    const struct layout *layout = &pass->replica->layout;
    size_t stop = high - pass->at <= most ? high : mesh_layout_cut(layout, pass->at + most);
    size_t at = pass->at;
    pass->piece_count = 0;
    while (pass->piece_count < ATTACH_PIECES_MAX &&
           mesh_layout_next(layout, &at, stop, &pass->pieces[pass->piece_count])) {
        pass->piece_count++;
    }
    pass->end = at;
    return pass->at < high;
}

/* Asked once a window: another process may change the post. */
static bool take_addresses(struct replica *replica, size_t first, size_t count)
{
    for (uint32_t slot = 0; slot < replica->host->group.slot_count; slot++) {
        bool addresses = (mesh_posted(replica, slot)->flags & GROUP_PRIVATE) != 0;
        replica->by_address[slot] = addresses && slot != replica->slot;
        if (replica->by_address[slot] &&
            mesh_reach_addresses(replica, slot, first, count) == NULL) {
            return false;
        }
    }
    return true;
}

static uint8_t *copy_of(const struct replica *replica, uint32_t slot)
{
    return replica->copies + (size_t)slot * replica->host->copy_bytes;
}

/* The block of a slot as pieces of its task's memory, where it is read or (`data`) written. */
static void list_block(
    const struct pass *pass, uint32_t slot, bool data, struct attach_list *ret_list)
{
    const struct span *spans = pass->replica->spans + (size_t)slot * GROUP_SPANS_MAX;
    mesh_attach_clear(ret_list);
    for (uint32_t i = 0; i < pass->piece_count; i++) {
        const struct layout_piece *piece = &pass->pieces[i];
        const struct span *span = &spans[piece->buffer - pass->first];
        mesh_attach_add(ret_list, (data ? span->data : span->from) + piece->at, piece->bytes);
    }
}

static bool read_block(const struct pass *pass)
{
    const struct host_mesh *host = pass->replica->host;
    struct attach_list from;
    for (uint32_t slot = 0; slot < host->group.slot_count; slot++) {
        if (pass->replica->by_address[slot]) {
            list_block(pass, slot, false, &from);
            if (!mesh_attach_read(&host->attaches[slot], &from, copy_of(pass->replica, slot))) {
                return false;
            }
        }
    }
    return true;
}

/* False: the task of *ret_slot could not be written to. */
static bool write_block(const struct pass *pass, uint32_t *ret_slot)
{
    const struct host_mesh *host = pass->replica->host;
    struct attach_list from;
    struct attach_list into;
    mesh_attach_clear(&from);
    for (uint32_t i = 0; i < pass->piece_count; i++) {
        const struct layout_piece *piece = &pass->pieces[i];
        const uint8_t *own = pass->call->buffers[piece->buffer].data;
        mesh_attach_add(&from, (uintptr_t)own + piece->at, piece->bytes);
    }
    for (uint32_t slot = 0; slot < host->group.slot_count; slot++) {
        if (pass->replica->by_address[slot]) {
            list_block(pass, slot, true, &into);
            if (!mesh_attach_write(&host->attaches[slot], &into, &from)) {
                *ret_slot = slot;
                return false;
            }
        }
    }
    return true;
}

/* Into the own buffers, and those in shared memory. False: an address is outside of it. */
static bool reduce_block(const struct pass *pass)
{
    struct replica *replica = pass->replica;
    size_t packed = 0;
    for (uint32_t i = 0; i < pass->piece_count; i++) {
        const struct layout_piece *piece = &pass->pieces[i];
        const struct mesh_buffer *own = &pass->call->buffers[piece->buffer];
        size_t out_count = 0;
        replica->outs[out_count++] = (uint8_t *)own->data + piece->at;
        for (uint32_t slot = 0; slot < replica->host->group.slot_count; slot++) {
            if (slot == replica->slot) {
                replica->ins[slot] = mesh_source(own) + piece->at;
            } else if (replica->by_address[slot]) {
                replica->ins[slot] = copy_of(replica, slot) + packed;
            } else {
                const uint8_t *from = mesh_reach_from(replica, slot, piece->buffer, own->bytes);
                uint8_t *data = mesh_reach_data(replica, slot, piece->buffer, own->bytes);
                if (from == NULL || data == NULL) {
                    return false;
                }
                replica->ins[slot] = from + piece->at;
                replica->outs[out_count++] = data + piece->at;
            }
        }
        mesh_reduce_many((enum mesh_op)pass->call->shape.op, piece->dtype, replica->outs, out_count,
            replica->ins, replica->host->group.slot_count, 0, piece->bytes, replica->scratch);
        packed += piece->bytes;
    }
    return true;
}

bool mesh_attached_reduce(struct replica *replica, const struct call *call, size_t first,
    size_t count, size_t low, size_t high, uint64_t *ret_reached)
{
    const struct group *group = &replica->host->group;
    struct pass pass = {.replica = replica, .call = call, .first = first, .at = low};
    if (!take_addresses(replica, first, count)) {
        return false;
    }
    *ret_reached = low;
    for (; next_block(&pass, high); pass.at = pass.end) {
        uint32_t unwritten;
        if (group_is_broken(group)) {
            return false;
        }
        if (!read_block(&pass)) {
            return true;
        }
        if (!reduce_block(&pass)) {
            return false;
        }
        if (!write_block(&pass, &unwritten)) {
            *ret_reached = ATTACHED_UNWRITTEN - unwritten;
            return true;
        }
        *ret_reached = pass.end;
    }
    return true;
}
