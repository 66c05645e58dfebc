/* SPDX-License-Identifier: Apache-2.0
 * The entry of all collectives and the barrier, which is nothing but the entry. */
#include "worker/mesh/collective.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "common/pure/prng.h"
#include "worker/mesh/agree.h"
#include "worker/mesh/exchange.h"
#include "worker/mesh/fault.h"
#include "worker/mesh/rendezvous.h"

static const struct collective_kind *kind_of(const struct call_shape *shape)
{
    static const struct collective_kind *const kinds[] = {
        [MESH_ALL_REDUCE] = &host_all_reduce_kind,
        [MESH_BROADCAST] = &host_broadcast_kind,
        [MESH_ALL_GATHER] = &host_all_gather_kind,
        [MESH_BARRIER] = &host_barrier_kind,
    };
    CADRE_ASSERT(shape->kind >= MESH_ALL_REDUCE && shape->kind <= MESH_BARRIER);
    return kinds[shape->kind];
}

/* Says what is wrong with a call by itself; the other replicas hear it too. */
__attribute__((format(printf, 2, 3))) static void blame(struct call *call, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(call->text, sizeof call->text, format, arguments);
    va_end(arguments);
    call->problem = call->text;
}

/* Checks a list of buffers and takes its shape. */
static void describe(struct call *call, const struct mesh_buffer *buffers, size_t count)
{
    struct call_shape *shape = &call->shape;
    uint64_t layout = prng_mix(count);
    shape->count = count;
    shape->dtype = FRAME_DTYPE_MIXED;
    call->buffers = buffers;
    if (count > 0 && buffers == NULL) {
        blame(call, "a NULL list of %zu buffers", count);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        const struct mesh_buffer *buffer = &buffers[i];
        unsigned dtype = (unsigned)buffer->dtype;
        if (!mesh_dtype_valid(dtype)) {
            blame(call, "element type %u of buffer %zu, which does not exist", dtype, i);
            return;
        }
        if (buffer->bytes > 0 && buffer->data == NULL) {
            blame(call, "buffer %zu of %zu bytes at NULL", i, buffer->bytes);
            return;
        }
        if (buffer->bytes % mesh_dtype_bytes(buffer->dtype) != 0) {
            blame(call, "buffer %zu of %zu bytes, which is not a whole number of %s", i,
                buffer->bytes, mesh_dtype_name(dtype));
            return;
        }
        if (shape->bytes + buffer->bytes > PTRDIFF_MAX) {
            blame(call, "more bytes than fit into memory");
            return;
        }
        shape->bytes += buffer->bytes;
        layout = prng_mix(layout ^ prng_mix(buffer->bytes * MESH_DTYPE_COUNT + dtype));
        bool same = i == 0 || shape->dtype == (uint8_t)dtype;
        shape->dtype = same ? (uint8_t)dtype : FRAME_DTYPE_MIXED;
    }
    shape->layout = layout;
}

/* The leader's talk with the other tasks at the start of a collective. */
static cadre_status consult(struct host_mesh *host, const struct collective_kind *kind, bool small)
{
    struct verdict *verdict = &host->verdict;
    struct frame frame = {
        .type = verdict->mismatch ? FRAME_PROBLEM : FRAME_CALL,
        .generation = host->generation,
        .nonce = host->nonce,
        .sequence = host->sequence,
        .rank = host->rank,
        .shape = host->shape,
    };
    if (verdict->mismatch) {
        frame.inline_bytes = (uint32_t)strlen(verdict->text);
        memcpy(host->inline_out, verdict->text, frame.inline_bytes);
    } else {
        if (!mesh_touch_begin(host)) {
            return CADRE_ABORTED;
        }
        frame.inline_bytes = (uint32_t)kind->pack(host, host->inline_out);
        mesh_touch_end(host);
    }
    CADRE_TRY(mesh_exchange_frames(host, &frame, verdict->mismatch || small));
    mesh_agree_tasks(host);
    for (uint32_t rank = 0; rank < host->task_count && !verdict->mismatch; rank++) {
        uint32_t came =
            rank == host->rank ? frame.inline_bytes : host->peers[rank].frame.inline_bytes;
        if (came != kind->expected(host, rank)) {
            return mesh_fault_raise(host, CADRE_DATA_LOSS,
                "the task of rank %" PRIu32 " sent %" PRIu32 " bytes with collective %" PRIu64
                " where %zu were due",
                rank, came, host->sequence, kind->expected(host, rank));
        }
    }
    return CADRE_OK;
}

/* What the last local replica to come does while the others wait. */
static cadre_status lead(struct host_mesh *host)
{
    struct cadre_error error;
    if (!mesh_touch_begin(host)) {
        return CADRE_ABORTED;
    }
    host->sequence++;
    mesh_agree_local(host);
    const struct call *first = host->slots[0].call;
    cadre_status status = CADRE_OK;
    if (!host->verdict.mismatch) {
        status = mesh_layout_set(&host->layout, first->buffers, (size_t)host->shape.count, &error);
    }
    mesh_touch_end(host);
    if (status != CADRE_OK) {
        return mesh_fault_raise(host, status, "%s", error.text);
    }
    const struct collective_kind *kind = kind_of(&host->shape);
    bool small = kind->small(host);
    if (host->task_count > 1) {
        CADRE_TRY(consult(host, kind, small));
    }
    host->verdict.finished = small && !host->verdict.mismatch;
    if (host->verdict.finished) {
        if (!mesh_touch_begin(host)) {
            return CADRE_ABORTED;
        }
        status = kind->finish(host);
        mesh_touch_end(host);
    }
    if (!small && !host->verdict.mismatch) {
        host->chunk_end = 0;
        return kind->prepare(host);
    }
    return status;
}

static cadre_status take_part(struct host_mesh *host, uint32_t local, struct cadre_error *error)
{
    struct replica_slot *slot = &host->slots[local];
    uint64_t own_us = slot->call->timeout_us;
    uint64_t timeout_us = own_us > 0 ? own_us : host->timeout_us;
    uint64_t deadline_us = timeout_us > 0 ? clock_monotonic_us() + timeout_us : CADRE_TIME_NEVER;
    atomic_fetch_add(&slot->entered, 1);
    CADRE_TRY(mesh_rendezvous_meet(host, local, deadline_us, lead));
    if (host->verdict.mismatch) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT, "%s", host->verdict.text);
    }
    return host->verdict.finished ? CADRE_OK : kind_of(&slot->call->shape)->rest(host, local);
}

static cadre_status enter(
    struct mesh *mesh, uint32_t local, struct call *call, struct cadre_error *error)
{
    struct host_mesh *host = host_of(mesh);
    if (local >= host->local_count) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s called for local replica %" PRIu32 " of a task that has %" PRIu32,
            mesh_kind_name(call->shape.kind), local, host->local_count);
    }
    if (mesh_fault_raised(host)) {
        return mesh_fault_error(host, false, error);
    }
    if (!atomic_load(&host->formed)) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s called on the mesh of generation %" PRIu64
            " before form_test returned OK; poll it first",
            mesh_kind_name(call->shape.kind), host->generation);
    }
    host->slots[local].call = call;
    cadre_status status = take_part(host, local, error);
    if (status == CADRE_OK || status == CADRE_INVALID_ARGUMENT) {
        return status;
    }
    CADRE_ASSERT(mesh_fault_raised(host));
    mesh_touch_settle(host);
    return mesh_fault_error(host, true, error);
}

/* What the mesh cannot see of a call is part of what must be equal. */
static void take_note(struct call *call, const struct mesh_note *note)
{
    if (note != NULL) {
        call->shape.layout ^= prng_mix(note->key);
        call->note = note->text;
        call->timeout_us = note->timeout_us;
    }
}

/* Results are made where they are to be. */
static void copy_in(const struct call *call, const struct mesh_buffer *buffers, size_t count)
{
    for (size_t i = 0; call->problem == NULL && i < count; i++) {
        if (buffers[i].from != NULL && buffers[i].bytes > 0) {
            memcpy(buffers[i].data, buffers[i].from, buffers[i].bytes);
        }
    }
}

cadre_status host_all_reduce(struct mesh *mesh, uint32_t local_replica, enum mesh_op op,
    const struct mesh_buffer *buffers, size_t count, const struct mesh_note *note,
    struct cadre_error *error)
{
    struct call call = {.shape = {.kind = MESH_ALL_REDUCE, .op = (uint8_t)op}};
    describe(&call, buffers, count);
    take_note(&call, note);
    if (!mesh_op_valid((unsigned)op)) {
        blame(&call, "operation %u, which does not exist", (unsigned)op);
    }
    copy_in(&call, buffers, count);
    return enter(mesh, local_replica, &call, error);
}

cadre_status host_reduce_scatter(struct mesh *mesh, uint32_t local_replica, enum mesh_op op,
    const struct mesh_buffer *part, const struct mesh_note *note, struct cadre_error *error)
{
    const struct host_mesh *host = host_of(mesh);
    size_t bytes = part->bytes * host->replica_count;
    struct mesh_buffer whole = {.data = malloc(bytes + 1), .bytes = bytes, .dtype = part->dtype};
    if (whole.data == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for a vector of %zu bytes", bytes);
    }
    memcpy(whole.data, part->from, bytes);
    cadre_status status = host_all_reduce(mesh, local_replica, op, &whole, 1, note, error);
    if (status == CADRE_OK) {
        size_t at = part->bytes * (host->first_replica + local_replica);
        memcpy(part->data, (const uint8_t *)whole.data + at, part->bytes);
    }
    free(whole.data);
    return status;
}

cadre_status host_broadcast(struct mesh *mesh, uint32_t local_replica, uint32_t root,
    const struct mesh_buffer *buffers, size_t count, const struct mesh_note *note,
    struct cadre_error *error)
{
    const struct host_mesh *host = host_of(mesh);
    struct call call = {.shape = {.kind = MESH_BROADCAST, .root = root}};
    describe(&call, buffers, count);
    take_note(&call, note);
    if (root >= host->replica_count) {
        blame(
            &call, "root %" PRIu32 " in a mesh of %" PRIu32 " replicas", root, host->replica_count);
    }
    if (root == host->first_replica + local_replica) {
        copy_in(&call, buffers, count);
    }
    return enter(mesh, local_replica, &call, error);
}

cadre_status mesh_gather_any(struct mesh *mesh, uint32_t local_replica, uint32_t replica_count,
    const void *data, size_t bytes, void **ret_data, size_t *ret_sizes, struct cadre_error *error)
{
    (void)replica_count;
    *ret_data = NULL;
    struct call call = {
        .shape = {.kind = MESH_ALL_GATHER},
        .gather = {.data = (void *)(uintptr_t)data, .bytes = bytes, .dtype = MESH_U8},
        .ret_data = ret_data,
        .ret_bytes = ret_sizes,
    };
    if (data == NULL && bytes > 0) {
        blame(&call, "%zu bytes at NULL", bytes);
    } else if (bytes > MESH_GATHER_BYTES_MAX) {
        blame(&call, "%zu bytes; the limit is %zu", bytes, MESH_GATHER_BYTES_MAX);
    }
    return enter(mesh, local_replica, &call, error);
}

cadre_status host_all_gather(struct mesh *mesh, uint32_t local_replica, const void *data,
    size_t bytes, const size_t *sizes, void *into, const struct mesh_note *note,
    struct cadre_error *error)
{
    (void)note;
    uint32_t count = host_of(mesh)->replica_count;
    size_t *came = calloc(count, sizeof *came);
    if (came == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for %u sizes", count);
    }
    void *gathered = NULL;
    cadre_status status =
        mesh_gather_any(mesh, local_replica, count, data, bytes, &gathered, came, error);
    size_t total = 0;
    for (uint32_t i = 0; status == CADRE_OK && i < count; i++) {
        size_t due = sizes == NULL ? bytes : sizes[i];
        if (came[i] != due) {
            status = cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "replica %u gave %zu bytes to an all_gather where %zu were due", i, came[i], due);
        }
        total += came[i];
    }
    if (status == CADRE_OK) {
        memcpy(into, gathered, total);
    }
    free(gathered);
    free(came);
    return status;
}

cadre_status host_barrier(struct mesh *mesh, uint32_t local_replica, const struct mesh_note *note,
    struct cadre_error *error)
{
    struct call call = {.shape = {.kind = MESH_BARRIER}};
    take_note(&call, note);
    return enter(mesh, local_replica, &call, error);
}

static bool barrier_small(const struct host_mesh *host)
{
    (void)host;
    return true;
}

static size_t barrier_pack(struct host_mesh *host, uint8_t *into)
{
    (void)host;
    (void)into;
    return 0;
}

static size_t barrier_expected(const struct host_mesh *host, uint32_t rank)
{
    (void)host;
    (void)rank;
    return 0;
}

static cadre_status barrier_finish(struct host_mesh *host)
{
    (void)host;
    return CADRE_OK;
}

const struct collective_kind host_barrier_kind = {
    .small = barrier_small,
    .pack = barrier_pack,
    .expected = barrier_expected,
    .finish = barrier_finish,
};

size_t host_chunk_end(const struct host_mesh *host, size_t low)
{
    size_t bytes = host->layout.bytes;
    return bytes - low <= HOST_CHUNK_BYTES ? bytes
                                           : mesh_layout_cut(&host->layout, low + HOST_CHUNK_BYTES);
}

cadre_status host_claim_staging(struct host_mesh *host)
{
    if (host->staging != NULL) {
        return CADRE_OK;
    }
    /* A cut can move a border by less than an element, at both ends. */
    size_t chunk = HOST_CHUNK_BYTES + 64;
    host->slice_max = HOST_CHUNK_BYTES / host->task_count + 64;
    host->staging = malloc(chunk * host->local_tree.root_count);
    host->result = malloc(chunk);
    host->arriving = malloc(host->slice_max * host->global_tree.leaf_count);
    if (host->staging == NULL || host->result == NULL || host->arriving == NULL) {
        return mesh_fault_raise(host, CADRE_RESOURCE_EXHAUSTED,
            "no memory for the %zu KiB that large collectives between tasks need",
            chunk * (host->local_tree.root_count + 2) / 1024);
    }
    return CADRE_OK;
}
