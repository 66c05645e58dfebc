/* SPDX-License-Identifier: Apache-2.0
 * The collectives of a plain program: one call of the mesh each, on memory of the program. The
 * program calls them. */
#include <stdio.h>
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/device/argument.h"
#include "worker/library/runtime/collectives/all_reduce.h"
#include "worker/library/runtime/arithmetic/axis_sum.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/collectives/collective.h"
#include "worker/library/runtime/plain/plain.h"

enum kind {
    KIND_BARRIER = 1,
    KIND_BROADCAST,
    KIND_ALL_REDUCE,
    KIND_ALL_GATHER,
    KIND_REDUCE_SCATTER,
    KIND_REFUSED
};

/* What must be equal on all tasks. */
struct call {
    enum kind kind;
    const char *function;
    size_t count;
    cadre_dtype dtype; /* CADRE_DTYPE_NONE: there are no elements */
    cadre_reduce_op op;
    uint32_t root;
    const void *from;
    void *into;
    const char *into_name; /* as the function calls it; unset: "into" */
    size_t bytes;          /* of `count` elements; computed by check */
};

static bool plain_call_reduces(const struct call *call)
{
    return call->kind == KIND_ALL_REDUCE || call->kind == KIND_REDUCE_SCATTER;
}

/* --- arguments --- */

static cadre_status check_type(const struct call *call, struct cadre_error *error)
{
    enum mesh_dtype ignored;
    enum mesh_op op;
    if (call->dtype < CADRE_F64 || call->dtype > CADRE_BOOL) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s was called for elements of type %s (%d), which cannot be sent; use a number type",
            call->function, cadre_dtype_name(call->dtype), (int)call->dtype);
    }
    if (!plain_call_reduces(call)) {
        return CADRE_OK;
    }
    CADRE_TRY(all_reduce_op(call->op, &op, error));
    CADRE_TRY(collective_dtype(call->dtype, &ignored, error));
    if (call->op == CADRE_MEAN && call->dtype > CADRE_BF16) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s was called with CADRE_MEAN for elements of type %s; a mean needs a floating type",
            call->function, cadre_dtype_name(call->dtype));
    }
    return CADRE_OK;
}

/* Whether what is read overlaps what is written, in part. */
static bool plain_call_overlaps(const struct call *call, size_t read, size_t written)
{
    CADRE_ASSERT(call->from != NULL);
    CADRE_ASSERT(call->into != NULL);
    uintptr_t from = (uintptr_t)call->from;
    uintptr_t into = (uintptr_t)call->into;
    return from < into ? into - from < read : from - into < written;
}

static cadre_status check_pointers(
    struct plain *plain, const struct call *call, struct cadre_error *error)
{
    CADRE_ASSERT(call->kind != KIND_BARRIER);
    CADRE_ASSERT(plain->roster.member_count > 0);
    bool in_place = call->kind == KIND_ALL_REDUCE;
    bool apart = call->kind == KIND_ALL_GATHER || call->kind == KIND_REDUCE_SCATTER;
    size_t whole = call->bytes * plain->roster.member_count;
    const char *name = call->into_name != NULL ? call->into_name : "into";
    size_t read = call->kind == KIND_REDUCE_SCATTER ? whole : call->bytes;
    size_t written = call->kind == KIND_ALL_GATHER ? whole : call->bytes;
    if (call->bytes == 0) {
        return CADRE_OK;
    }
    CADRE_TRY(argument_require(call->into, call->function, name, error));
    if (apart) {
        CADRE_TRY(argument_require(call->from, call->function, "from", error));
    }
    bool reads = call->from != NULL && (apart || call->from != call->into);
    if (reads && plain_call_overlaps(call, read, written)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s was called with memory that overlaps: it reads %zu bytes and writes %zu; keep them "
            "apart%s",
            call->function, read, written,
            in_place ? ", or give NULL to read from the memory that is written" : "");
    }
    return CADRE_OK;
}

static cadre_status plain_call_check(
    struct plain *plain, struct call *call, struct cadre_error *error)
{
    if (call->kind == KIND_BARRIER) {
        return CADRE_OK;
    }
    CADRE_TRY(check_type(call, error));
    size_t most = SIZE_MAX / 2 / plain->roster.member_count / cadre_dtype_bytes(call->dtype);
    if (call->count > most) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s was called with %zu elements of type %s, which no memory holds", call->function,
            call->count, cadre_dtype_name(call->dtype));
    }
    call->bytes = call->count * cadre_dtype_bytes(call->dtype);
    if (call->kind == KIND_BROADCAST && call->root >= plain->roster.member_count) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s was called with root %u, and the job has the tasks 0 to %u", call->function,
            call->root, plain->roster.member_count - 1);
    }
    return check_pointers(plain, call, error);
}

/* --- the call --- */

static uint64_t key_of(const struct call *call)
{
    uint64_t key = collective_key(0x706c61696e, (uint64_t)call->kind); /* of plain programs */
    key = collective_key(key, call->count);
    key = collective_key(key, (uint64_t)call->dtype);
    return collective_key(key, (uint64_t)call->op << 32 | call->root);
}

static void plain_call_describe(
    const struct plain *plain, const struct call *call, char text[MESH_NOTE_BYTES])
{
    CADRE_ASSERT(call->kind != KIND_REFUSED);
    static const char *const ops[] = {[CADRE_SUM] = "CADRE_SUM",
        [CADRE_MEAN] = "CADRE_MEAN",
        [CADRE_MIN] = "CADRE_MIN",
        [CADRE_MAX] = "CADRE_MAX",
        [CADRE_PROD] = "CADRE_PROD"};
    char how[32] = "";
    if (plain_call_reduces(call)) {
        snprintf(how, sizeof how, "(%s)", ops[call->op]);
    } else if (call->kind == KIND_BROADCAST) {
        snprintf(how, sizeof how, "(root %u)", call->root);
    }
    if (call->kind == KIND_BARRIER) {
        snprintf(text, MESH_NOTE_BYTES, "task %u calls %s", plain->roster.rank, call->function);
    } else {
        snprintf(text, MESH_NOTE_BYTES, "task %u calls %s%s with %zu elements of type %s",
            plain->roster.rank, call->function, how, call->count, cadre_dtype_name(call->dtype));
    }
}

/* A loop makes the same calls again, so the text of the last one is kept. */
static struct mesh_note note_of(struct plain *plain, const struct call *call)
{
    uint64_t key = key_of(call);
    if (plain->note_key != key || plain->note_function != call->function) {
        plain_call_describe(plain, call, plain->note_text);
        plain->note_key = key;
        plain->note_function = call->function;
    }
    return (struct mesh_note){.key = key, .text = plain->note_text};
}

static cadre_status plain_call_reduce(struct plain *plain, const struct call *call,
    const struct mesh_note *note, struct cadre_error *error)
{
    CADRE_ASSERT(plain_call_reduces(call));
    const struct mesh_ops *ops = plain->mesh->ops;
    enum mesh_op op = MESH_SUM;
    struct mesh_buffer buffer = {.data = call->into,
        .bytes = call->bytes,
        .from = call->from == call->into ? NULL : call->from};
    CADRE_TRY(all_reduce_op(call->op, &op, error));
    CADRE_TRY(collective_dtype(call->dtype, &buffer.dtype, error));
    if (call->kind == KIND_REDUCE_SCATTER) {
        CADRE_TRY(ops->reduce_scatter(plain->mesh, 0, op, &buffer, note, error));
    } else {
        CADRE_TRY(ops->all_reduce(plain->mesh, 0, op, &buffer, 1, note, error));
    }
    if (call->op == CADRE_MEAN) {
        axis_divide(call->into, call->count, call->dtype, plain->roster.member_count);
    }
    return CADRE_OK;
}

static cadre_status carry_out(
    struct plain *plain, const struct call *call, struct cadre_error *error)
{
    CADRE_ASSERT(call->kind != KIND_REFUSED);
    const struct mesh_note note = note_of(plain, call);
    const struct mesh_ops *ops = plain->mesh->ops;
    const struct mesh_buffer buffer = {.data = call->into, .bytes = call->bytes, .dtype = MESH_U8};
    switch (call->kind) {
    case KIND_BROADCAST:
        return ops->broadcast(plain->mesh, 0, call->root, &buffer, 1, &note, error);
    case KIND_ALL_REDUCE:
    case KIND_REDUCE_SCATTER:
        return plain_call_reduce(plain, call, &note, error);
    case KIND_ALL_GATHER:
        return ops->all_gather(
            plain->mesh, 0, call->from, call->bytes, NULL, call->into, &note, error);
    case KIND_BARRIER:
    case KIND_REFUSED:
        break;
    }
    return ops->barrier(plain->mesh, 0, &note, error);
}

/* The others are, or will be, in the call that this task cannot make: it meets them with a key that
 * equals no other, so that they do not wait, and get an error that names the call. */
static void plain_call_refuse(struct plain *plain, const struct call *call)
{
    struct cadre_error ignored;
    char text[MESH_NOTE_BYTES];
    snprintf(text, sizeof text, "task %u calls %s with an argument that is refused",
        plain->roster.rank, call->function);
    plain_barrier(plain, collective_key(0, KIND_REFUSED), text, &ignored);
}

static cadre_status plain_call_make(struct call *call)
{
    struct cadre_error error = {0};
    struct plain *plain = NULL;
    cadre_status status = plain_enter(call->function, &plain, &error);
    if (status != CADRE_OK) {
        return api_return(status, &error);
    }
    status = plain_call_check(plain, call, &error);
    if (status != CADRE_OK) {
        plain_call_refuse(plain, call);
    } else {
        status = plain_end_collective(plain, carry_out(plain, call, &error), &error);
    }
    plain_leave(plain);
    return api_return(status, &error);
}

/* --- public --- */

cadre_status cadre_plain_barrier(void)
{
    return plain_call_make(&(struct call){.kind = KIND_BARRIER, .function = __func__});
}

cadre_status cadre_plain_broadcast(void *data, size_t count, cadre_dtype dtype, uint32_t root)
{
    return plain_call_make(&(struct call){.kind = KIND_BROADCAST,
        .function = __func__,
        .count = count,
        .dtype = dtype,
        .root = root,
        .into = data,
        .into_name = "data"});
}

cadre_status cadre_plain_all_reduce(
    const void *from, void *into, size_t count, cadre_dtype dtype, cadre_reduce_op op)
{
    return plain_call_make(&(struct call){.kind = KIND_ALL_REDUCE,
        .function = __func__,
        .count = count,
        .dtype = dtype,
        .op = op,
        .from = from,
        .into = into});
}

cadre_status cadre_plain_all_gather(const void *from, void *into, size_t count, cadre_dtype dtype)
{
    return plain_call_make(&(struct call){.kind = KIND_ALL_GATHER,
        .function = __func__,
        .count = count,
        .dtype = dtype,
        .from = from,
        .into = into});
}

cadre_status cadre_plain_reduce_scatter(
    const void *from, void *into, size_t count, cadre_dtype dtype, cadre_reduce_op op)
{
    return plain_call_make(&(struct call){.kind = KIND_REDUCE_SCATTER,
        .function = __func__,
        .count = count,
        .dtype = dtype,
        .op = op,
        .from = from,
        .into = into});
}
