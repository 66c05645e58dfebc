/* SPDX-License-Identifier: Apache-2.0
 * The part of a call that both ends share: the send queue, reading, references. */
#include "common/rpc/call_state.h"

#include "common/pure/assert.h"

#include <string.h>

#include <grpc/byte_buffer.h>
#include <grpc/byte_buffer_reader.h>
#include <grpc/slice.h>
#include <grpc/support/alloc.h>
#include <grpc/support/string_util.h>

static void send_done(void *owner, bool ok);
static void read_done(void *owner, bool ok);
static void call_progress(void *owner);

void rpc_call_init(
    struct rpc_call *call, struct rpc_loop *loop, const struct rpc_end_ops *end, grpc_call *grpc)
{
    call->loop = loop;
    call->end = end;
    call->grpc = grpc;
    call->refs = 1;
    call->progress = (struct rpc_deferred){.run = call_progress, .owner = call};
    call->send_tag = (struct rpc_tag){.complete = send_done, .owner = call};
    call->read_tag = (struct rpc_tag){.complete = read_done, .owner = call};
}

void rpc_call_ref(struct rpc_call *call)
{
    CADRE_ASSERT(call->refs > 0);
    call->refs++;
}

static void free_message(struct rpc_message *message)
{
    grpc_byte_buffer_destroy(message->bytes);
    gpr_free(message);
}

void rpc_call_unref(struct rpc_call *call)
{
    CADRE_ASSERT(call->refs > 0);
    if (--call->refs > 0) {
        return;
    }
    CADRE_ASSERT(call->closed && call->queue_head == NULL && call->in_flight == NULL);
    grpc_call_unref(call->grpc);
    gpr_free(call->peer);
    gpr_free(call->abort_text);
    call->end->destroy(call);
}

void rpc_call_drop_queue(struct rpc_call *call)
{
    while (call->queue_head != NULL) {
        struct rpc_message *message = call->queue_head;
        call->queue_head = message->next;
        call->queued_bytes -= message->length;
        free_message(message);
    }
    call->queue_tail = NULL;
}

static void drop_held(struct rpc_call *call)
{
    if (call->held != NULL) {
        grpc_byte_buffer_destroy(call->held);
        call->held = NULL;
    }
}

void rpc_call_close(struct rpc_call *call)
{
    call->closed = true;
    call->ending = true;
    rpc_call_drop_queue(call);
    drop_held(call);
}

void rpc_call_schedule(struct rpc_call *call)
{
    if (!call->progress.queued) {
        rpc_call_ref(call);
        rpc_loop_defer(call->loop, &call->progress);
    }
}

/* ---- sending ---- */

static cadre_status check_send(
    const struct rpc_call *call, size_t length, struct cadre_error *error)
{
    if (call->closed) {
        return cadre_error_set(error, CADRE_CANCELLED, "the call has ended");
    }
    if (call->ending) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "this end of the call was finished before; nothing can be sent on it");
    }
    if (call->sends_one && call->sent_any) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "a second message on a call that takes one in this direction");
    }
    if (call->queued_bytes > 0 &&
        (length > call->queue_bytes_max || call->queued_bytes > call->queue_bytes_max - length)) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "the other end reads too slowly: %zu bytes wait and %zu more exceed the limit of %zu",
            call->queued_bytes, length, call->queue_bytes_max);
    }
    return CADRE_OK;
}

cadre_status rpc_call_send_buffer(
    struct rpc_call *call, const struct rpc_buffer *buffer, struct cadre_error *error)
{
    CADRE_TRY(check_send(call, buffer->length, error));
    struct rpc_message *message = gpr_malloc(sizeof *message);
    *message = (struct rpc_message){
        .bytes = rpc_buffer_message(buffer),
        .length = buffer->length,
    };
    if (call->queue_tail != NULL) {
        call->queue_tail->next = message;
    } else {
        call->queue_head = message;
    }
    call->queue_tail = message;
    call->queued_bytes += buffer->length;
    call->sent_any = true;
    rpc_call_schedule(call);
    return CADRE_OK;
}

cadre_status rpc_call_send(
    struct rpc_call *call, const void *data, size_t length, struct cadre_error *error)
{
    CADRE_TRY(check_send(call, length, error));
    struct rpc_buffer buffer;
    rpc_buffer_alloc(&buffer, length);
    if (length > 0) {
        memcpy(buffer.data, data, length);
    }
    cadre_status status = rpc_call_send_buffer(call, &buffer, error);
    rpc_buffer_free(&buffer);
    return status;
}

static struct rpc_message *take_queued(struct rpc_call *call)
{
    struct rpc_message *message = call->queue_head;
    if (message != NULL) {
        call->queue_head = message->next;
        if (call->queue_head == NULL) {
            call->queue_tail = NULL;
        }
    }
    return message;
}

/* One batch at a time: what opens the stream, the next message, and, behind the last one, what ends
 * it. A message that others follow may wait for them in gRPC's buffer, so that they share a write
 * to the socket, and a wake-up of the reader. */
static void start_send(struct rpc_call *call)
{
    grpc_op ops[4];
    size_t count = 0;
    bool anything = call->queue_head != NULL || (call->ending && !call->end_started) ||
                    (!call->opened && !call->is_server);
    if (call->closed || call->in_flight != NULL || call->end_started || !anything) {
        return;
    }
    memset(ops, 0, sizeof ops);
    if (!call->opened) {
        count += call->end->opening(call, &ops[count]);
        call->opened = true;
    }
    static struct rpc_message nothing; /* the message of a batch without one */
    call->in_flight = take_queued(call);
    if (call->in_flight != NULL) {
        ops[count].op = GRPC_OP_SEND_MESSAGE;
        ops[count].data.send_message.send_message = call->in_flight->bytes;
        ops[count].flags = call->queue_head != NULL && count == 0 ? GRPC_WRITE_BUFFER_HINT : 0;
        count++;
    } else {
        call->in_flight = &nothing;
    }
    if (call->ending && call->queue_head == NULL) {
        count += call->end->ending(call, &ops[count]);
        call->end_started = true;
    }
    CADRE_ASSERT(count > 0 && count <= CADRE_COUNT_OF(ops));
    rpc_call_ref(call);
    rpc_loop_start(call->loop, call->grpc, ops, count, &call->send_tag);
}

static void send_done(void *owner, bool ok)
{
    struct rpc_call *call = owner;
    struct rpc_message *message = call->in_flight;
    call->in_flight = NULL;
    bool was_message = message->bytes != NULL;
    if (was_message) {
        call->queued_bytes -= message->length;
        free_message(message);
    }
    if (!ok) {
        rpc_call_drop_queue(call); /* the call is ending; its close has the reason */
    } else if (was_message && call->queue_head == NULL && !call->closed) {
        call->end->drained(call);
    }
    rpc_call_schedule(call);
    rpc_call_unref(call);
}

size_t rpc_call_queued_bytes(const struct rpc_call *call)
{
    return call->queued_bytes;
}

/* ---- reading ---- */

static bool drops_unread(const struct rpc_call *call)
{
    return call->closed || call->aborted || (call->is_server && call->ending);
}

static void start_read(struct rpc_call *call)
{
    if (!call->reads || call->reading || call->paused || call->read_ended || call->held != NULL ||
        drops_unread(call)) {
        return;
    }
    call->reading = true;
    rpc_call_ref(call);
    grpc_op op = {
        .op = GRPC_OP_RECV_MESSAGE,
        .data.recv_message.recv_message = &call->read_bytes,
    };
    rpc_loop_start(call->loop, call->grpc, &op, 1, &call->read_tag);
}

static void call_deliver(struct rpc_call *call, grpc_byte_buffer *bytes)
{
    size_t length = grpc_byte_buffer_length(bytes);
    call->read_any = true;
    if (call->reads_one) {
        call->read_ended = true;
    }
    if (length > call->message_bytes_max) {
        call->end->too_long(call, length);
    } else if (length == 0) {
        call->end->message(call, "", 0);
    } else if (bytes->data.raw.slice_buffer.count == 1) {
        const grpc_slice *only = &bytes->data.raw.slice_buffer.slices[0];
        call->end->message(call, GRPC_SLICE_START_PTR(*only), length);
    } else {
        grpc_byte_buffer_reader reader;
        int readable = grpc_byte_buffer_reader_init(&reader, bytes);
        CADRE_ASSERT(readable != 0);
        grpc_slice whole = grpc_byte_buffer_reader_readall(&reader);
        grpc_byte_buffer_reader_destroy(&reader);
        call->end->message(call, GRPC_SLICE_START_PTR(whole), length);
        grpc_slice_unref(whole);
    }
    grpc_byte_buffer_destroy(bytes);
    if (call->reads_one) {
        call->end->read_end(call, false);
    }
}

static void read_done(void *owner, bool ok)
{
    struct rpc_call *call = owner;
    grpc_byte_buffer *bytes = call->read_bytes;
    call->read_bytes = NULL;
    call->reading = false;
    if (drops_unread(call)) {
        if (bytes != NULL) {
            grpc_byte_buffer_destroy(bytes);
        }
        call->read_ended = true;
    } else if (!ok || bytes == NULL) {
        /* No message is either the other side's half close or the end of the call. */
        bool failed = !ok || grpc_call_failed_before_recv_message(call->grpc) != 0;
        call->read_ended = true;
        call->end->read_end(call, failed);
    } else if (call->paused) {
        call->held = bytes;
    } else {
        call_deliver(call, bytes);
    }
    rpc_call_schedule(call);
    rpc_call_unref(call);
}

void rpc_call_pause(struct rpc_call *call)
{
    call->paused = true;
}

void rpc_call_resume(struct rpc_call *call)
{
    call->paused = false;
    rpc_call_schedule(call);
}

/* ---- both ---- */

static void call_progress(void *owner)
{
    struct rpc_call *call = owner;
    if (drops_unread(call)) {
        drop_held(call);
    }
    if (call->held != NULL && !call->paused) {
        grpc_byte_buffer *bytes = call->held;
        call->held = NULL;
        call_deliver(call, bytes);
    }
    start_send(call);
    start_read(call);
    if (call->aborted) { /* the end may have been there before, and have waited for what was read */
        call->end->read_end(call, true);
    }
    rpc_call_unref(call);
}

void rpc_call_abort(struct rpc_call *call, cadre_status status, const char *text)
{
    CADRE_ASSERT(status != CADRE_OK);
    if (call->closed) {
        return;
    }
    if (!call->aborted) {
        call->aborted = true;
        call->abort_status = status;
        call->abort_text = gpr_strdup(text != NULL ? text : "");
    }
    call->ending = true;
    call->end_started = true;
    rpc_call_drop_queue(call);
    drop_held(call);
    grpc_call_cancel_with_status(
        call->grpc, rpc_status_to_grpc(status), text != NULL ? text : "", NULL);
    rpc_call_schedule(call);
}

void rpc_call_cancel(struct rpc_call *call)
{
    rpc_call_abort(call, CADRE_CANCELLED, "cancelled by the caller");
}

void rpc_call_set_user(struct rpc_call *call, void *user)
{
    call->user = user;
}

void *rpc_call_user(const struct rpc_call *call)
{
    return call->user;
}

const char *rpc_call_peer(struct rpc_call *call)
{
    if (call->peer == NULL) {
        call->peer = grpc_call_get_peer(call->grpc);
    }
    return call->peer;
}

const char *rpc_metadata_find(
    const grpc_metadata_array *metadata, const char *key, size_t *ret_length)
{
    for (size_t i = 0; i < metadata->count; i++) {
        const grpc_metadata *entry = &metadata->metadata[i];
        if (grpc_slice_str_cmp(entry->key, key) == 0) {
            *ret_length = GRPC_SLICE_LENGTH(entry->value);
            return (const char *)GRPC_SLICE_START_PTR(entry->value);
        }
    }
    *ret_length = 0;
    return NULL;
}

/* The numbers are gRPC's own; a foreign one becomes UNKNOWN. */
_Static_assert((int)CADRE_UNAUTHENTICATED == (int)GRPC_STATUS_UNAUTHENTICATED, "same codes");
_Static_assert((int)CADRE_ABORTED == (int)GRPC_STATUS_ABORTED, "same codes");

grpc_status_code rpc_status_to_grpc(cadre_status status)
{
    CADRE_ASSERT(status >= CADRE_OK && status <= CADRE_UNAUTHENTICATED);
    return (grpc_status_code)status;
}

cadre_status rpc_status_from_grpc(grpc_status_code code)
{
    int number = (int)code;
    return number >= 0 && number <= (int)CADRE_UNAUTHENTICATED ? (cadre_status)number
                                                               : CADRE_UNKNOWN;
}
