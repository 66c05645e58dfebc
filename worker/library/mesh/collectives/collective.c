/* SPDX-License-Identifier: Apache-2.0
 * The steps that all collectives share: taking a call, posting it, waiting for the other slots, and
 * the fault or the mismatch that ends it. Each kind's file calls mesh_call_begin, mesh_call_take
 * and mesh_call_run. */
#include "worker/library/mesh/collectives/collective.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "common/pure/prng.h"
#include "worker/library/mesh/wire/fault.h"
#include "worker/library/mesh/collectives/hosts.h"
#include "worker/library/trace/trace.h"

cadre_status mesh_call_begin(struct mesh *mesh, uint32_t local, enum mesh_kind kind,
    struct call *ret_call, struct replica **ret_replica, struct cadre_error *error)
{
    struct host_mesh *host = host_of(mesh);
    if (local >= host->local_count) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s called for local replica %" PRIu32 " of a task that has %" PRIu32,
            mesh_kind_name(kind), local, host->local_count);
    }
    if (mesh_fault_raised(host)) {
        return mesh_fault_error(host, false, error);
    }
    if (!atomic_load_explicit(&host->formed, memory_order_acquire)) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s called on the mesh of generation %" PRIu64
            " before form_test returned OK; poll it first",
            mesh_kind_name(kind), host->generation);
    }
    *ret_replica = &host->replicas[local];
    *ret_call = (struct call){.shape.kind = (uint8_t)kind,
        .shape.dtype = CALL_DTYPE_MIXED,
        .timeout_us = host->timeout_us};
    return CADRE_OK;
}

void mesh_call_blame(struct replica *replica, struct call *call, const char *format, ...)
{
    char reason[GROUP_TEXT_BYTES / 2];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    snprintf(replica->text, sizeof replica->text, "replica %" PRIu32 " called %s with %s",
        replica->global, mesh_kind_name(call->shape.kind), reason);
    call->wrong = true;
}

/* Whether one buffer may be in a list. */
static bool mesh_check(
    struct replica *replica, struct call *call, const struct mesh_buffer *buffer, size_t index)
{
    unsigned dtype = (unsigned)buffer->dtype;
    if (!mesh_dtype_valid(dtype)) {
        mesh_call_blame(
            replica, call, "element type %u of buffer %zu, which does not exist", dtype, index);
    } else if (buffer->bytes > 0 && buffer->data == NULL) {
        mesh_call_blame(replica, call, "buffer %zu of %zu bytes at NULL", index, buffer->bytes);
    } else if (buffer->bytes % mesh_dtype_bytes(buffer->dtype) != 0) {
        mesh_call_blame(replica, call, "buffer %zu of %zu bytes, which is not a whole number of %s",
            index, buffer->bytes, mesh_dtype_name(dtype));
    } else if (call->shape.bytes + buffer->bytes > PTRDIFF_MAX) {
        mesh_call_blame(replica, call, "more bytes than fit into memory");
    }
    return !call->wrong;
}

void mesh_call_take(struct replica *replica, struct call *call, const struct mesh_buffer *buffers,
    size_t count, const struct mesh_note *note)
{
    struct call_shape *shape = &call->shape;
    uint64_t layout = prng_mix(count);
    shape->count = count;
    call->buffers = buffers;
    if (note != NULL) {
        shape->key = note->key;
        call->text = note->text;
        call->timeout_us = note->timeout_us > 0 ? note->timeout_us : call->timeout_us;
    }
    if (count > 0 && buffers == NULL) {
        mesh_call_blame(replica, call, "a NULL list of %zu buffers", count);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        const struct mesh_buffer *buffer = &buffers[i];
        if (!mesh_check(replica, call, buffer, i)) {
            return;
        }
        uint8_t dtype = (uint8_t)buffer->dtype;
        shape->bytes += buffer->bytes;
        layout = prng_mix(layout ^ (buffer->bytes * MESH_DTYPE_COUNT + dtype));
        shape->dtype = i == 0 || shape->dtype == dtype ? dtype : CALL_DTYPE_MIXED;
    }
    shape->layout = layout;
}

static void mesh_missed(struct replica *replica, const struct call *call, uint32_t slot)
{
    uint32_t rank = mesh_host_rank_of(replica->host, replica->host->globals[slot]);
    mesh_fault_raise(replica->host, CADRE_ABORTED,
        "the task of rank %" PRIu32 " closed its mesh before collective %" PRIu64 " (%s)",
        host_number(replica->host, rank), replica->sequence, mesh_kind_name(call->shape.kind));
}

static void mesh_overdue(struct replica *replica, const struct call *call, uint32_t slot)
{
    struct host_mesh *host = replica->host;
    uint32_t global = host->globals[slot];
    uint32_t rank = mesh_host_rank_of(host, global);
    mesh_fault_raise(host, CADRE_DEADLINE_EXCEEDED,
        "replica %" PRIu32 " (local replica %" PRIu32 " of the task of rank %" PRIu32
        ") did not come to collective %" PRIu64 " (%s) within %" PRIu64 " ms",
        global, global - host->firsts[rank], host_number(host, rank), replica->sequence,
        mesh_kind_name(call->shape.kind), call->timeout_us / CADRE_US_PER_MS);
}

cadre_status mesh_broken(struct replica *replica)
{
    struct host_mesh *host = replica->host;
    if (mesh_fault_raised(host)) {
        return CADRE_ABORTED;
    }
    /* Another task of the host ended the mesh; what the page says of it may be anything. */
    uint32_t rank;
    cadre_status code;
    char text[GROUP_TEXT_BYTES];
    if (!group_reason(&host->group, &rank, &code, text) || rank >= host->task_count) {
        mesh_fault_raise(host, CADRE_ABORTED, "another task of this host ended the mesh");
    } else if (strstr(text, "rank ") != NULL) {
        mesh_fault_raise(host, code, "%s", text); /* it names the cause already */
    } else {
        mesh_fault_raise(host, code, "the task of rank %" PRIu32 " ended the mesh: %s",
            host_number(host, rank), text);
    }
    return CADRE_ABORTED;
}

static void on_stall(void *user, uint32_t slot, uint64_t waited_us)
{
    const struct replica *replica = user;
    struct host_mesh *host = replica->host;
    uint32_t rank = mesh_host_rank_of(host, host->globals[slot]);
    if (rank != host->rank) {
        host->stalled(host->stalled_user, rank, waited_us);
    }
}

static cadre_status wait_for(struct replica *replica, const struct call *call, uint32_t slot,
    const _Atomic uint32_t *word, uint32_t value, struct group_wait_limits *wait_limits)
{
    cadre_status status = group_wait(&replica->host->group, slot, word, value, wait_limits);
    if (status == CADRE_DEADLINE_EXCEEDED) {
        mesh_overdue(replica, call, slot);
    } else if (status == CADRE_UNAVAILABLE) {
        mesh_missed(replica, call, wait_limits->leaver);
    }
    return status == CADRE_ABORTED ? mesh_broken(replica) : status;
}

static struct group_wait_limits wait_limits_of(struct replica *replica, const struct call *call)
{
    bool reports = replica->local == 0 && replica->host->stalled != NULL;
    return (struct group_wait_limits){
        .timeout_us = call->timeout_us, .stalled = reports ? on_stall : NULL, .user = replica};
}

static cadre_status collectives_collective_step(
    struct replica *replica, const struct call *call, struct group_wait_limits *wait_limits)
{
    struct group *group = &replica->host->group;
    replica->done += GROUP_STEP;
    group_raise(group, replica->slot, &group->slots[replica->slot].done, replica->done);
    for (uint32_t slot = 0; slot < group->slot_count; slot++) {
        const _Atomic uint32_t *word = &group->slots[slot].done;
        if (!group_reached(word, replica->done)) {
            CADRE_TRY(wait_for(replica, call, slot, word, replica->done, wait_limits));
        }
    }
    return CADRE_OK;
}

cadre_status mesh_step(struct replica *replica, const struct call *call)
{
    struct group_wait_limits wait_limits = wait_limits_of(replica, call);
    return collectives_collective_step(replica, call, &wait_limits);
}

cadre_status mesh_step_carried(struct replica *replica, const struct call *call)
{
    uint32_t depth = 3; /* the leader waits for relays over as many levels as there are */
    for (uint32_t hosts = 1; hosts < replica->host->topology.host_count; hosts *= 2) {
        depth++;
    }
    struct group_wait_limits wait_limits = {
        .timeout_us = mesh_wire_timeout_us(call->timeout_us, depth), .user = replica};
    return collectives_collective_step(replica, call, &wait_limits);
}

static bool mesh_equal(const struct group_post *post, const struct call_shape *shape)
{
    return (post->flags & GROUP_PROBLEM) == 0 && post->kind == shape->kind &&
           post->op == shape->op && post->dtype == shape->dtype && post->root == shape->root &&
           post->count == shape->count && post->bytes == shape->bytes &&
           post->layout == shape->layout && post->key == shape->key;
}

/* Waits for the posts of all slots. */
static cadre_status mesh_arrive(struct replica *replica, const struct call *call, bool *ret_equal)
{
    struct group *group = &replica->host->group;
    struct group_wait_limits wait_limits = wait_limits_of(replica, call);
    uint32_t stamp = (uint32_t)replica->sequence * GROUP_STEP;
    unsigned flags = 0;
    bool same = !call->wrong;
    for (uint32_t slot = 0; slot < group->slot_count; slot++) {
        const struct group_post *post = mesh_posted(replica, slot);
        if (!group_reached(&post->stamp, stamp)) {
            CADRE_TRY(wait_for(replica, call, slot, &post->stamp, stamp, &wait_limits));
        }
        same = same && mesh_equal(post, &call->shape);
        flags |= post->flags;
    }
    replica->staged = (flags & GROUP_PRIVATE) != 0;
    replica->attached = (flags & (GROUP_PRIVATE | GROUP_APART)) == GROUP_PRIVATE;
    *ret_equal = same;
    return CADRE_OK;
}

static void mesh_post(
    struct replica *replica, const struct call *call, const struct collective_kind *kind)
{
    struct group *group = &replica->host->group;
    struct group_post *own = &group->slots[replica->slot].posts[++replica->sequence & 1];
    const struct call_shape *shape = &call->shape;
    own->kind = shape->kind;
    own->op = shape->op;
    own->dtype = shape->dtype;
    own->root = shape->root;
    own->count = shape->count;
    own->bytes = shape->bytes;
    own->layout = shape->layout;
    own->key = shape->key;
    own->flags = call->wrong ? GROUP_PROBLEM : 0;
    if (call->wrong) {
        /* Nothing more of a wrong call is posted. */
    } else if (call->small) {
        kind->pack(replica, call, own->payload.data);
    } else {
        own->flags = mesh_reach_post(replica, call, own, 0);
    }
    group_raise(group, replica->slot, &own->stamp, (uint32_t)replica->sequence * GROUP_STEP);
}

static cadre_status take_part(
    struct replica *replica, const struct call *call, const struct collective_kind *kind)
{
    struct cadre_error error;
    bool same = false;
    mesh_post(replica, call, kind);
    /* Done while the other slots come. Small calls of one host need no layout. */
    bool laid_out = !call->wrong && (!call->small || replica->host->topology.host_count > 1);
    if (laid_out && mesh_layout_set(&replica->layout, call->buffers, (size_t)call->shape.count,
                        &error) != CADRE_OK) {
        return mesh_fault_raise(replica->host, error.code, "%s", error.text);
    }
    CADRE_TRY(mesh_arrive(replica, call, &same));
    if (replica->host->topology.host_count > 1) {
        replica->arrived_ns = 0; /* the other hosts are waited for, too */
        return mesh_hosts_run(replica, call, kind->hosts, same);
    }
    replica->arrived_ns = trace_now(replica->mark);
    if (!same) {
        return mesh_agree_explain(replica, call);
    }
    return call->small ? kind->small(replica, call) : kind->large(replica, call);
}

/* All that take part have the same nonce and the same sequence. */
static void mesh_trace(const struct replica *replica, const struct call *call)
{
    static const enum trace_kind kinds[] = {[MESH_ALL_REDUCE] = TRACE_ALL_REDUCE,
        [MESH_BROADCAST] = TRACE_BROADCAST,
        [MESH_ALL_GATHER] = TRACE_ALL_GATHER,
        [MESH_BARRIER] = TRACE_BARRIER,
        [MESH_REDUCE_SCATTER] = TRACE_REDUCE_SCATTER};
    trace_put_collective(replica->mark, kinds[call->shape.kind], replica->local,
        replica->arrived_ns, call->shape.bytes, prng_mix(replica->host->nonce) + replica->sequence);
}

cadre_status mesh_call_run(struct replica *replica, struct call *call,
    const struct collective_kind *kind, struct cadre_error *error)
{
    struct host_mesh *host = replica->host;
    replica->mark = trace_begin();
    cadre_status status = take_part(replica, call, kind);
    if (replica->mark.begin_ns != 0) {
        mesh_trace(replica, call);
    }
    if (status == CADRE_OK) {
        return status;
    }
    if (status == CADRE_INVALID_ARGUMENT) {
        return cadre_error_set(error, status, "%s", replica->text);
    }
    CADRE_ASSERT(mesh_fault_raised(host));
    mesh_attach_revoke(&host->sentinel);
    group_touch_settle(&host->group, replica->slot);
    return mesh_fault_error(host, true, error);
}
