/* SPDX-License-Identifier: Apache-2.0
 * Recursive doubling over the tree of hosts: agreement, and with it small data. At each level a
 * host that has its block's result exchanges that with one host of the sibling block. Where the
 * last block is short, a host without a partner there gets the sibling's from a host of its own
 * block:
 *
 *     5 hosts    level 0     level 1     level 2
 *                0 <-> 1     0 <-> 2     0 <-> 4
 *                2 <-> 3     1 <-> 3     then 0 --> 1, 0 --> 2, 1 --> 3 send on what 4 sent
 *
 * Called by the leader through hosts.c. */
#include <inttypes.h>
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/mesh/wire/fault.h"
#include "worker/library/mesh/reduce/reduce_kernels.h"
#include "worker/library/mesh/wire/wire_state.h"

/* What is done with the data of a collective; `data` holds those of the own block. */
struct small {
    struct wire_call *call;
    uint8_t *data;
    /* Where in `data` the part of the hosts [first, end) is. */
    void (*part)(
        const struct small *small, uint32_t first, uint32_t end, size_t *ret_at, size_t *ret_bytes);
    /* Joins the sibling's data with the own ones. */
    void (*merge)(const struct small *small, const struct wire_step *step, const uint8_t *came);
    enum mesh_op op;
    const struct layout *layout;
    size_t bytes;
    uint32_t root;
    const size_t *ends; /* [host_count]: where the part of each host ends */
    bool opens;         /* large data may follow */
};

/* A frame to send, or one that was received: it is sent on as it is. */
struct message {
    uint8_t head[WIRE_FRAME_BYTES + WIRE_RECORD_BYTES];
    struct iovec pieces[2];
};

static void wire_small_compose(struct host_mesh *host, const struct agreement *agreement,
    const uint8_t *data, size_t bytes, struct message *ret_message)
{
    struct wire_frame frame = {
        .type = WIRE_CALL,
        .generation = host->generation,
        .nonce = host->nonce,
        .sequence = host->wire->sequence,
        .rank = host->rank,
        .data_bytes = (uint32_t)bytes,
    };
    frame.agreement.differs = agreement->differs;
    frame.agreement.first = agreement->first;
    mesh_wire_frame_encode(&frame, ret_message->head);
    size_t head_bytes = WIRE_FRAME_BYTES;
    if (agreement->differs) {
        mesh_wire_record_encode(&agreement->other, ret_message->head + head_bytes);
        head_bytes += WIRE_RECORD_BYTES;
    }
    ret_message->pieces[0] = (struct iovec){.iov_base = ret_message->head, .iov_len = head_bytes};
    ret_message->pieces[1] = (struct iovec){.iov_base = (void *)(uintptr_t)data, .iov_len = bytes};
}

static void step_over(struct iovec pieces[2], size_t bytes)
{
    for (size_t i = 0; i < 2; i++) {
        size_t step = bytes < pieces[i].iov_len ? bytes : pieces[i].iov_len;
        pieces[i].iov_base = (uint8_t *)pieces[i].iov_base + step;
        pieces[i].iov_len -= step;
        bytes -= step;
    }
}

/* Sends more of a message. */
static cadre_status wire_small_push(
    struct host_mesh *host, uint32_t to, struct iovec pieces[2], bool *ret_moved)
{
    struct wire_peer *peer = &host->wire->peers[to];
    if (!peer->wants_out) {
        return CADRE_OK;
    }
    size_t bytes;
    size_t first = pieces[0].iov_len > 0 ? 0 : 1;
    CADRE_TRY(mesh_wire_send(host, to, pieces + first, 2 - first, &bytes));
    step_over(pieces, bytes);
    *ret_moved = *ret_moved || bytes > 0;
    peer->wants_out = pieces[0].iov_len + pieces[1].iov_len > 0;
    peer->between = !peer->wants_out && !peer->broken;
    return CADRE_OK;
}

/* A message that is being received. */
struct arrival {
    struct wire_frame frame;
    size_t got;
    size_t due; /* its expected bytes, then those that its frame has */
    bool known; /* the frame was read */
    const uint8_t *data;
};

/* The frame is complete: checks it, and the size of the rest that it names. */
static cadre_status read_frame(struct host_mesh *host, uint32_t from, struct arrival *arrival)
{
    struct wire *wire = host->wire;
    struct wire_frame *frame = &arrival->frame;
    bool good = mesh_wire_frame_decode(wire->inbox, frame);
    size_t most = frame->type == WIRE_FAULT ? WIRE_REASON_BYTES - 1 : wire->small_bytes;
    if (!good || frame->data_bytes > most) {
        return mesh_fault_raise(host, CADRE_DATA_LOSS,
            "the task of rank %" PRIu32 " sent something that is no frame of this mesh where "
            "collective %" PRIu64 " was due",
            host_number(host, wire->peers[from].rank), wire->sequence);
    }
    size_t head = WIRE_FRAME_BYTES;
    head += frame->agreement.differs ? WIRE_RECORD_BYTES : 0;
    arrival->known = true;
    arrival->data = wire->inbox + head;
    arrival->due = head + frame->data_bytes;
    return CADRE_OK;
}

/* Receives more of a message. */
static cadre_status wire_small_pull(
    struct host_mesh *host, uint32_t from, struct arrival *arrival, bool *ret_moved)
{
    struct wire *wire = host->wire;
    struct wire_peer *peer = &wire->peers[from];
    if (!peer->wants_in) {
        return CADRE_OK;
    }
    size_t bytes;
    struct iovec piece = {
        .iov_base = wire->inbox + arrival->got, .iov_len = arrival->due - arrival->got};
    CADRE_TRY(mesh_wire_receive(host, from, &piece, 1, &bytes));
    arrival->got += bytes;
    *ret_moved = *ret_moved || bytes > 0;
    if (!arrival->known && arrival->got >= WIRE_FRAME_BYTES) {
        CADRE_TRY(read_frame(host, from, arrival));
    }
    if (!arrival->known || arrival->got < arrival->due) {
        return CADRE_OK;
    }
    peer->wants_in = false;
    if (arrival->frame.agreement.differs) {
        mesh_wire_record_decode(wire->inbox + WIRE_FRAME_BYTES, &arrival->frame.agreement.other);
    }
    CADRE_TRY(mesh_wire_check_frame(host, from, &arrival->frame, arrival->data));
    /* It is shorter than expected, and the sender's next message follows. */
    return arrival->got > arrival->due ? mesh_wire_unread(host, from, wire->inbox + arrival->due,
                                             arrival->got - arrival->due)
                                       : CADRE_OK;
}

/* Sends `message` (NULL: nothing) to one host while receiving from another. */
static cadre_status wire_small_exchange(struct host_mesh *host, uint32_t to,
    struct message *message, uint32_t from, struct arrival *arrival)
{
    struct wire *wire = host->wire;
    bool sends = message != NULL && to != WIRE_NO_HOST;
    if (sends) {
        wire->peers[to].wants_out = true;
    }
    if (arrival != NULL) {
        wire->peers[from].wants_in = true;
    }
    while (true) {
        bool moved = false;
        if (sends) {
            CADRE_TRY(wire_small_push(host, to, message->pieces, &moved));
        }
        if (arrival != NULL) {
            CADRE_TRY(wire_small_pull(host, from, arrival, &moved));
        }
        if ((!sends || !wire->peers[to].wants_out) &&
            (arrival == NULL || !wire->peers[from].wants_in)) {
            return CADRE_OK;
        }
        CADRE_TRY(mesh_wire_wait(host, moved));
    }
}

/* What the sibling block must have sent. */
static cadre_status check_size(struct host_mesh *host, const struct wire_step *step,
    const struct small *small, const struct arrival *arrival)
{
    size_t at;
    size_t bytes;
    small->part(small, step->sibling_first, step->sibling_end, &at, &bytes);
    if (arrival->frame.data_bytes == bytes) {
        return CADRE_OK;
    }
    return mesh_fault_raise(host, CADRE_DATA_LOSS,
        "the task of rank %" PRIu32 " sent %" PRIu32 " bytes with collective %" PRIu64
        " where %zu were due",
        host_number(host, host->wire->peers[step->from].rank), arrival->frame.data_bytes,
        host->wire->sequence, bytes);
}

/* One level; *holds: whether the data are still valid. */
static cadre_status wire_small_climb(
    struct host_mesh *host, const struct wire_step *step, const struct small *small, bool *holds)
{
    struct wire *wire = host->wire;
    struct agreement *own = &small->call->agreement;
    struct message message;
    struct arrival arrival = {.got = 0};
    size_t at = 0;
    size_t bytes = 0;
    size_t due = 0;
    if (*holds) {
        small->part(small, step->sibling_first, step->sibling_end, &at, &due);
        small->part(small, step->own_first, step->own_end, &at, &bytes);
    }
    arrival.due = WIRE_FRAME_BYTES + due;
    uint32_t level = (uint32_t)__builtin_ctz(step->own_first ^ step->sibling_first);
    wire->timeout_us = mesh_wire_timeout_us(
        small->call->timeout_us, step->to == WIRE_NO_HOST ? level + 2 : level + 1);
    wire_small_compose(host, own, small->data + at, bytes, &message);
    CADRE_TRY(wire_small_exchange(host, step->to, &message, step->from, &arrival));
    for (uint32_t i = 0; i < step->child_count; i++) {
        wire_small_compose(
            host, &arrival.frame.agreement, arrival.data, arrival.frame.data_bytes, &message);
        CADRE_TRY(wire_small_exchange(
            host, wire->children[step->first_child + i], &message, WIRE_NO_HOST, NULL));
    }
    struct agreement *sibling = &arrival.frame.agreement;
    if (step->own_is_left) {
        mesh_agreement_join(own, sibling);
    } else {
        mesh_agreement_join(sibling, own);
        *own = *sibling;
    }
    *holds = *holds && mesh_agreement_holds(own);
    if (*holds) {
        CADRE_TRY(check_size(host, step, small, &arrival));
        small->merge(small, step, arrival.data);
    }
    return CADRE_OK;
}

static cadre_status wire_small_run(struct host_mesh *host, const struct small *small)
{
    struct wire *wire = host->wire;
    struct wire_call *call = small->call;
    if (!mesh_fault_enter_streams(host)) {
        return CADRE_ABORTED;
    }
    wire->sequence = call->sequence;
    wire->timeout_us = call->timeout_us;
    wire->kind = call->agreement.first.shape.kind;
    wire->idle_since_us = 0;
    for (uint32_t i = 0; i < wire->host_count; i++) {
        wire->peers[i].wants_in = wire->peers[i].wants_out = wire->peers[i].looked = false;
    }
    bool holds = mesh_agreement_holds(&call->agreement);
    wire->open = wire->raw = false;
    cadre_status status = mesh_wire_check_peers(host);
    for (uint32_t i = 0; i < wire->step_count && status == CADRE_OK; i++) {
        status = wire_small_climb(host, &wire->steps[i], small, &holds);
    }
    wire->timeout_us = call->timeout_us;
    wire->open = status == CADRE_OK && small->opens && holds && !call->over;
    mesh_fault_leave_streams(host);
    return status;
}

/* --- agreement --- */

static void no_part(
    const struct small *small, uint32_t first, uint32_t end, size_t *ret_at, size_t *ret_bytes)
{
    (void)small;
    (void)first;
    (void)end;
    *ret_at = *ret_bytes = 0;
}

static void no_merge(const struct small *small, const struct wire_step *step, const uint8_t *came)
{
    (void)small;
    (void)step;
    (void)came;
}

cadre_status mesh_wire_agree(struct host_mesh *host, struct wire_call *call)
{
    struct small small = {.call = call,
        .data = host->wire->outbox,
        .part = no_part,
        .merge = no_merge,
        .opens = true};
    return wire_small_run(host, &small);
}

/* --- all_reduce --- */

static void sum_part(
    const struct small *small, uint32_t first, uint32_t end, size_t *ret_at, size_t *ret_bytes)
{
    (void)first;
    (void)end;
    *ret_at = 0;
    *ret_bytes = small->bytes;
}

static void sum_merge(const struct small *small, const struct wire_step *step, const uint8_t *came)
{
    struct layout_piece piece;
    size_t offset = 0;
    for (size_t at = 0; mesh_layout_next(small->layout, &offset, small->bytes, &piece);
         at = offset) {
        uint8_t *own = small->data + at;
        const uint8_t *left = step->own_is_left ? own : came + at;
        const uint8_t *right = step->own_is_left ? came + at : own;
        mesh_reduce_pair(small->op, piece.dtype, own, left, right, piece.bytes);
    }
}

cadre_status mesh_wire_all_reduce_small(struct host_mesh *host, struct wire_call *call,
    enum mesh_op op, const struct layout *layout, uint8_t *data)
{
    CADRE_ASSERT(layout->bytes <= host->wire->small_bytes);
    struct small small = {.call = call,
        .data = data,
        .part = sum_part,
        .merge = sum_merge,
        .op = op,
        .layout = layout,
        .bytes = layout->bytes};
    return wire_small_run(host, &small);
}

/* --- broadcast --- */

static void root_part(
    const struct small *small, uint32_t first, uint32_t end, size_t *ret_at, size_t *ret_bytes)
{
    *ret_at = 0;
    *ret_bytes = small->root >= first && small->root < end ? small->bytes : 0;
}

static void root_merge(const struct small *small, const struct wire_step *step, const uint8_t *came)
{
    if (small->root >= step->sibling_first && small->root < step->sibling_end) {
        memcpy(small->data, came, small->bytes);
    }
}

cadre_status mesh_wire_broadcast_small(
    struct host_mesh *host, struct wire_call *call, uint32_t root, uint8_t *data, size_t bytes)
{
    CADRE_ASSERT(bytes <= host->wire->small_bytes && root < host->wire->host_count);
    struct small small = {.call = call,
        .data = data,
        .part = root_part,
        .merge = root_merge,
        .bytes = bytes,
        .root = root};
    return wire_small_run(host, &small);
}

/* --- all_gather --- */

static void gather_part(
    const struct small *small, uint32_t first, uint32_t end, size_t *ret_at, size_t *ret_bytes)
{
    *ret_at = first > 0 ? small->ends[first - 1] : 0;
    *ret_bytes = small->ends[end - 1] - *ret_at;
}

static void gather_merge(
    const struct small *small, const struct wire_step *step, const uint8_t *came)
{
    size_t at;
    size_t bytes;
    gather_part(small, step->sibling_first, step->sibling_end, &at, &bytes);
    memcpy(small->data + at, came, bytes);
}

/* Between the global order of `into` and the canonical one of the outbox, for the given hosts. */
static void wire_small_rearrange(const struct host_mesh *host, uint32_t first, uint32_t end,
    const size_t *offsets, const size_t *ends, uint8_t *into, bool out)
{
    for (uint32_t i = first; i < end; i++) {
        uint8_t *box = host->wire->outbox + (i > 0 ? ends[i - 1] : 0);
        const uint32_t *replicas = mesh_topology_replicas(&host->topology, i);
        for (uint32_t slot = 0; slot < host->topology.hosts[i].slot_count; slot++) {
            size_t at = offsets[replicas[slot]];
            size_t bytes = offsets[replicas[slot] + 1] - at;
            if (bytes > 0) {
                memcpy(out ? into + at : box, out ? box : into + at, bytes);
            }
            box += bytes;
        }
    }
}

cadre_status mesh_wire_all_gather_small(
    struct host_mesh *host, struct wire_call *call, const size_t *offsets, uint8_t *into)
{
    struct wire *wire = host->wire;
    size_t end = 0;
    CADRE_ASSERT(offsets[host->topology.replica_count] <= wire->small_bytes);
    for (uint32_t i = 0; i < wire->host_count; i++) {
        const uint32_t *replicas = mesh_topology_replicas(&host->topology, i);
        for (uint32_t slot = 0; slot < host->topology.hosts[i].slot_count; slot++) {
            end += offsets[replicas[slot] + 1] - offsets[replicas[slot]];
        }
        wire->ends[i] = end;
    }
    wire_small_rearrange(host, wire->own, wire->own + 1, offsets, wire->ends, into, false);
    struct small small = {.call = call,
        .data = wire->outbox,
        .part = gather_part,
        .merge = gather_merge,
        .ends = wire->ends};
    CADRE_TRY(wire_small_run(host, &small));
    if (mesh_agreement_holds(&call->agreement)) {
        wire_small_rearrange(host, 0, wire->own, offsets, wire->ends, into, true);
        wire_small_rearrange(
            host, wire->own + 1, wire->host_count, offsets, wire->ends, into, true);
    }
    return CADRE_OK;
}
