/* SPDX-License-Identifier: Apache-2.0
 * The collectives of a plain program: one call of the mesh each, on memory of the program.
 * plain_collectives.c calls it. */
#include <stdio.h>
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/device/argument.h"
#include "worker/library/runtime/collectives/all_reduce.h"
#include "worker/library/runtime/arithmetic/axis_sum.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/collectives/collective.h"
#include "worker/library/runtime/plain/plain_call.h"
#include "worker/library/runtime/task/task_trace.h"

static bool plain_call_reduces(const struct plain_call *call)
{
    return call->kind == PLAIN_ALL_REDUCE || call->kind == PLAIN_REDUCE_SCATTER;
}

/* --- arguments --- */

cadre_status plain_check_elements(const char *function, size_t count, cadre_dtype dtype,
    uint32_t times, size_t *ret_bytes, struct cadre_error *error)
{
    CADRE_ASSERT(times > 0);
    if (dtype < CADRE_F64 || dtype > CADRE_BOOL) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s was called for elements of type %s (%d), which cannot be sent; use a number type",
            function, cadre_dtype_name(dtype), (int)dtype);
    }
    if (count > SIZE_MAX / 2 / times / cadre_dtype_bytes(dtype)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s was called with %zu elements of type %s, which no memory holds", function, count,
            cadre_dtype_name(dtype));
    }
    *ret_bytes = count * cadre_dtype_bytes(dtype);
    return CADRE_OK;
}

static cadre_status check_reduction(const struct plain_call *call, struct cadre_error *error)
{
    enum mesh_dtype ignored;
    enum mesh_op op;
    CADRE_TRY(all_reduce_op(call->op, &op, error));
    CADRE_TRY(collective_dtype(call->dtype, &ignored, error));
    if (call->op == CADRE_MEAN && call->dtype > CADRE_BF16) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s was called with CADRE_MEAN for elements of type %s; a mean needs a floating type",
            call->function, cadre_dtype_name(call->dtype));
    }
    return CADRE_OK;
}

bool plain_overlap(const void *a, size_t bytes, const void *b, size_t other)
{
    CADRE_ASSERT(a != NULL);
    CADRE_ASSERT(b != NULL);
    uintptr_t first = (uintptr_t)a;
    uintptr_t second = (uintptr_t)b;
    return first < second ? second - first < bytes : first - second < other;
}

static cadre_status check_pointers(
    const struct cadre_plain_group *group, const struct plain_call *call, struct cadre_error *error)
{
    CADRE_ASSERT(call->kind != PLAIN_BARRIER);
    CADRE_ASSERT(group->size > 0);
    bool in_place = call->kind == PLAIN_ALL_REDUCE;
    bool apart = call->kind == PLAIN_ALL_GATHER || call->kind == PLAIN_REDUCE_SCATTER;
    size_t whole = call->bytes * group->size;
    const char *name = call->into_name != NULL ? call->into_name : "into";
    size_t read = call->kind == PLAIN_REDUCE_SCATTER ? whole : call->bytes;
    size_t written = call->kind == PLAIN_ALL_GATHER ? whole : call->bytes;
    if (call->bytes == 0) {
        return CADRE_OK;
    }
    CADRE_TRY(argument_require(call->into, call->function, name, error));
    if (apart) {
        CADRE_TRY(argument_require(call->from, call->function, "from", error));
    }
    bool reads = call->from != NULL && (apart || call->from != call->into);
    if (reads && plain_overlap(call->from, read, call->into, written)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s was called with memory that overlaps: it reads %zu bytes and writes %zu; keep them "
            "apart%s",
            call->function, read, written,
            in_place ? ", or give NULL to read from the memory that is written" : "");
    }
    return CADRE_OK;
}

static cadre_status plain_call_check(
    const struct cadre_plain_group *group, struct plain_call *call, struct cadre_error *error)
{
    if (call->kind == PLAIN_BARRIER) {
        return CADRE_OK;
    }
    CADRE_TRY(plain_check_elements(
        call->function, call->count, call->dtype, group->size, &call->bytes, error));
    if (plain_call_reduces(call)) {
        CADRE_TRY(check_reduction(call, error));
    }
    if (call->kind == PLAIN_BROADCAST && call->root >= group->size) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s was called with root %u, and the %s 0 to %u", call->function, call->root,
            plain_group_ranks(group), group->size - 1);
    }
    return check_pointers(group, call, error);
}

/* --- the call --- */

static uint64_t key_of(const struct plain_call *call)
{
    uint64_t key = collective_key(0x706c61696e, (uint64_t)call->kind); /* of plain programs */
    key = collective_key(key, call->count);
    key = collective_key(key, (uint64_t)call->dtype);
    return collective_key(key, (uint64_t)call->op << 32 | call->root);
}

static void plain_call_describe(
    uint32_t rank, const struct plain_call *call, char text[MESH_NOTE_BYTES])
{
    static const char *const ops[] = {[CADRE_SUM] = "CADRE_SUM",
        [CADRE_MEAN] = "CADRE_MEAN",
        [CADRE_MIN] = "CADRE_MIN",
        [CADRE_MAX] = "CADRE_MAX",
        [CADRE_PROD] = "CADRE_PROD"};
    char how[32] = "";
    if (plain_call_reduces(call)) {
        snprintf(how, sizeof how, "(%s)", ops[call->op]);
    } else if (call->kind == PLAIN_BROADCAST) {
        snprintf(how, sizeof how, "(root %u)", call->root);
    }
    if (call->kind == PLAIN_BARRIER) {
        snprintf(text, MESH_NOTE_BYTES, "task %u calls %s", rank, call->function);
    } else {
        snprintf(text, MESH_NOTE_BYTES, "task %u calls %s%s with %zu elements of type %s", rank,
            call->function, how, call->count, cadre_dtype_name(call->dtype));
    }
}

static struct mesh_note note_of(struct cadre_plain_group *group, const struct plain_call *call)
{
    struct plain_note *note = &group->note;
    uint64_t key = key_of(call);
    if (note->key != key || note->function != call->function) {
        plain_call_describe(group->plain->roster.rank, call, note->text);
        note->key = key;
        note->function = call->function;
    }
    return (struct mesh_note){.key = key, .text = note->text};
}

static cadre_status plain_call_reduce(struct cadre_plain_group *group,
    const struct plain_call *call, const struct mesh_note *note, struct cadre_error *error)
{
    CADRE_ASSERT(plain_call_reduces(call));
    const struct mesh_ops *ops = group->mesh->ops;
    enum mesh_op op = MESH_SUM;
    struct mesh_buffer buffer = {.data = call->into,
        .bytes = call->bytes,
        .from = call->from == call->into ? NULL : call->from};
    CADRE_TRY(all_reduce_op(call->op, &op, error));
    CADRE_TRY(collective_dtype(call->dtype, &buffer.dtype, error));
    if (call->kind == PLAIN_REDUCE_SCATTER) {
        CADRE_TRY(ops->reduce_scatter(group->mesh, 0, op, &buffer, note, error));
    } else {
        CADRE_TRY(ops->all_reduce(group->mesh, 0, op, &buffer, 1, note, error));
    }
    if (call->op == CADRE_MEAN) {
        axis_divide(call->into, call->count, call->dtype, group->size);
    }
    return CADRE_OK;
}

static cadre_status carry_out(
    struct cadre_plain_group *group, const struct plain_call *call, struct cadre_error *error)
{
    const struct mesh_note note = note_of(group, call);
    const struct mesh_ops *ops = group->mesh->ops;
    const struct mesh_buffer buffer = {.data = call->into, .bytes = call->bytes, .dtype = MESH_U8};
    switch (call->kind) {
    case PLAIN_BROADCAST:
        return ops->broadcast(group->mesh, 0, call->root, &buffer, 1, &note, error);
    case PLAIN_ALL_REDUCE:
    case PLAIN_REDUCE_SCATTER:
        return plain_call_reduce(group, call, &note, error);
    case PLAIN_ALL_GATHER:
        return ops->all_gather(
            group->mesh, 0, call->from, call->bytes, NULL, call->into, &note, error);
    case PLAIN_BARRIER:
        break;
    }
    return ops->barrier(group->mesh, 0, &note, error);
}

cadre_status plain_call_make(cadre_status entered, struct cadre_plain_group *group,
    struct plain_call *call, struct cadre_error *error)
{
    if (entered != CADRE_OK) {
        return api_return(entered, error);
    }
    cadre_status status = plain_call_check(group, call, error);
    if (status != CADRE_OK) {
        plain_group_refuse(group, call->function);
    } else {
        status = plain_name_wait(group->note.text, carry_out(group, call, error), error);
        if (status == CADRE_OK && group == &group->plain->all) {
            task_trace_collective(group->plain->task);
        }
        status = plain_end_collective(group->plain, status, error);
    }
    plain_leave(group->plain);
    return api_return(status, error);
}
