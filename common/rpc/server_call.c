/* SPDX-License-Identifier: Apache-2.0
 * The server's end of a call, from its arrival in a slot to the last reference: request
 * messages, the status, references. Driven by server.c. */
#include "common/rpc/server_state.h"

#include "common/pure/assert.h"
#include "common/rpc/http2_filter.h"
#include "common/rpc/tls_state.h"

#include <stdio.h>
#include <string.h>

#include <grpc/slice.h>
#include <grpc/support/alloc.h>

#define METHOD_NAME_SHOWN_MAX 200

struct rpc_server_call {
    struct rpc_call base;
    struct rpc_server *server;
    struct rpc_server_call *next, *previous;
    const struct rpc_method *method; /* NULL for a call that is being refused */
    grpc_metadata_array metadata;
    struct tls_identity identity;
    struct rpc_tag close_tag;
    bool got_request; /* one message at least */
    int cancelled;
    grpc_status_code status;
    grpc_slice status_text;
    grpc_metadata trailers[RPC_TRAILERS_MAX]; /* sent with the status */
    size_t trailer_count;
};

static struct rpc_server_call *server_call(struct rpc_call *call)
{
    CADRE_ASSERT(call->is_server);
    return (struct rpc_server_call *)call;
}

struct rpc_server_call *rpc_server_call_next(struct rpc_server_call *call)
{
    return call->next;
}

struct rpc_call *rpc_server_call_base(struct rpc_server_call *call)
{
    return &call->base;
}

/* ---- operations for call.c: struct rpc_end_ops ---- */

static void too_long(struct rpc_call *base, size_t length)
{
    char text[128];
    snprintf(text, sizeof text, "a request message of %zu bytes: this method takes at most %zu",
        length, base->message_bytes_max);
    rpc_call_finish(base, CADRE_RESOURCE_EXHAUSTED, text);
}

static void too_many(struct rpc_call *base, size_t length)
{
    char text[192];
    snprintf(text, sizeof text,
        "a request message of %zu bytes: with those that you are sending at the same time that is "
        "more than %zu; send it when they are through",
        length, RPC_CALLER_BYTES_MAX);
    rpc_call_finish(base, CADRE_RESOURCE_EXHAUSTED, text);
}

static void server_call_message(struct rpc_call *base, const void *data, size_t length)
{
    struct rpc_server_call *call = server_call(base);
    const struct rpc_method *method = call->method;
    uint64_t refused_bytes = 0;
    enum rpc_refusal refusal = rpc_refusal_read(data, length, &refused_bytes);
    if (refusal == RPC_REFUSAL_TOO_LONG) {
        too_long(base, (size_t)refused_bytes);
    } else if (refusal == RPC_REFUSAL_TOO_MANY) {
        too_many(base, (size_t)refused_bytes);
    } else if (call->got_request && !method->client_streams) {
        rpc_call_finish(base, CADRE_INVALID_ARGUMENT,
            "a second request message: this method takes one, and answers with many");
    } else if (method->ops->on_message != NULL) {
        method->ops->on_message(base, data, length, method->user);
    }
    call->got_request = true;
}

static void read_end(struct rpc_call *base, bool failed)
{
    const struct rpc_method *method = server_call(base)->method;
    if (failed || base->ending) {
        return; /* the close follows and reports it */
    }
    if (!base->read_any && !method->client_streams) {
        rpc_call_finish(base, CADRE_INVALID_ARGUMENT, "the call ended without its request message");
    } else if (method->client_streams && method->ops->on_half_close != NULL) {
        method->ops->on_half_close(base, method->user);
    }
}

static void server_call_drained(struct rpc_call *base)
{
    const struct rpc_method *method = server_call(base)->method;
    if (method != NULL && method->ops->on_drained != NULL) {
        method->ops->on_drained(base, method->user);
    }
}

static size_t server_call_opening(struct rpc_call *base, grpc_op *ops)
{
    (void)base;
    ops[0].op = GRPC_OP_SEND_INITIAL_METADATA;
    return 1;
}

static size_t server_call_ending(struct rpc_call *base, grpc_op *ops)
{
    struct rpc_server_call *call = server_call(base);
    ops[0].op = GRPC_OP_SEND_STATUS_FROM_SERVER;
    ops[0].data.send_status_from_server.status = call->status;
    ops[0].data.send_status_from_server.trailing_metadata = call->trailers;
    ops[0].data.send_status_from_server.trailing_metadata_count = call->trailer_count;
    ops[0].data.send_status_from_server.status_details = &call->status_text;
    return 1;
}

static void server_call_destroy(struct rpc_call *base)
{
    struct rpc_server_call *call = server_call(base);
    struct rpc_server *server = call->server;
    if (call->next != NULL) {
        call->next->previous = call->previous;
    }
    if (call->previous != NULL) {
        call->previous->next = call->next;
    } else {
        server->calls = call->next;
    }
    server->call_count--;
    grpc_metadata_array_destroy(&call->metadata);
    grpc_slice_unref(call->status_text);
    for (size_t i = 0; i < call->trailer_count; i++) {
        grpc_slice_unref(call->trailers[i].key);
        grpc_slice_unref(call->trailers[i].value);
    }
    gpr_free(call);
    rpc_server_call_freed(server);
}

static const struct rpc_end_ops server_end = {
    .message = server_call_message,
    .read_end = read_end,
    .too_long = too_long,
    .drained = server_call_drained,
    .opening = server_call_opening,
    .ending = server_call_ending,
    .destroy = server_call_destroy,
};

/* ---- beginning and end ---- */

/* The one event that every call of a server has, however it ends. */
static void close_done(void *owner, bool ok)
{
    struct rpc_server_call *call = owner;
    (void)ok;
    rpc_call_close(&call->base);
    if (call->method != NULL && call->method->ops->on_closed != NULL) {
        call->method->ops->on_closed(&call->base, call->cancelled != 0, call->method->user);
    }
    if (call->server->on_call_end != NULL) {
        call->server->on_call_end(call->server->on_call_end_user,
            call->method != NULL ? call->method->path : NULL,
            call->cancelled != 0 ? CADRE_CANCELLED : rpc_status_from_grpc(call->status));
    }
    rpc_call_unref(&call->base); /* the open call */
    rpc_call_unref(&call->base); /* this operation */
}

static const struct rpc_method *find_method(const struct rpc_server *server, grpc_slice path)
{
    for (size_t i = 0; i < server->method_count; i++) {
        if (grpc_slice_str_cmp(path, server->methods[i].path) == 0) {
            return &server->methods[i];
        }
    }
    return NULL;
}

static void refuse_unknown(struct rpc_call *call, grpc_slice path)
{
    char text[METHOD_NAME_SHOWN_MAX + 64];
    size_t length = GRPC_SLICE_LENGTH(path);
    length = length < METHOD_NAME_SHOWN_MAX ? length : METHOD_NAME_SHOWN_MAX;
    snprintf(text, sizeof text, "this server has no method \"%.*s\"", (int)length,
        (const char *)GRPC_SLICE_START_PTR(path));
    rpc_call_finish(call, CADRE_UNIMPLEMENTED, text);
}

/* Refuses the call unless its peer may use the method. */
static bool may_use(struct rpc_server_call *call, const char *path)
{
    const struct rpc_server *server = call->server;
    struct cadre_error error = {0};
    rpc_tls_identify(call->base.grpc, server->tls, &call->identity);
    if (call->identity.role == TLS_ROLE_NONE) {
        rpc_call_finish(&call->base, CADRE_UNAUTHENTICATED,
            "your certificate names no role: expected exactly one URI, spiffe://cadre/ROLE/NAME, "
            "among its alternative names; `cadre pki issue` makes such certificates");
        return false;
    }
    if (server->authorize != NULL &&
        server->authorize(&call->base, path, server->authorize_user, &error) != CADRE_OK) {
        rpc_call_fail(&call->base, &error);
        return false;
    }
    return true;
}

static void link_call(struct rpc_server *server, struct rpc_server_call *call)
{
    call->next = server->calls;
    if (call->next != NULL) {
        call->next->previous = call;
    }
    server->calls = call;
    server->call_count++;
}

void rpc_server_call_open(struct rpc_server *server, struct rpc_incoming *incoming)
{
    struct rpc_server_call *call = gpr_zalloc(sizeof *call);
    struct rpc_call *base = &call->base;
    rpc_call_init(base, server->loop, &server_end, incoming->grpc);
    base->is_server = true;
    base->queue_bytes_max = server->send_queue_bytes_max;
    call->server = server;
    call->metadata = incoming->metadata;
    call->status_text = grpc_empty_slice();
    call->close_tag = (struct rpc_tag){.complete = close_done, .owner = call};
    bool full = server->call_count >= server->calls_max;
    link_call(server, call);

    grpc_op op = {
        .op = GRPC_OP_RECV_CLOSE_ON_SERVER,
        .data.recv_close_on_server.cancelled = &call->cancelled,
    };
    rpc_call_ref(base);
    rpc_loop_start(server->loop, base->grpc, &op, 1, &call->close_tag);

    const struct rpc_method *method = find_method(server, incoming->path);
    if (full) {
        rpc_call_finish(base, CADRE_RESOURCE_EXHAUSTED,
            "this server has as many open calls as it takes; try again later");
    } else if (method == NULL) {
        refuse_unknown(base, incoming->path);
    } else if (may_use(call, method->path)) {
        call->method = method;
        base->message_bytes_max = method->request_bytes_max;
        base->sends_one = !method->server_streams;
        /* A call that streams is read on: what its client sends after the request would stay in
         * memory, up to a window of it. */
        base->reads_one = !method->client_streams && !method->server_streams;
        base->reads = true;
        if (method->ops->on_open != NULL) {
            method->ops->on_open(base, method->user);
        }
        rpc_call_schedule(base);
    }
    grpc_slice_unref(incoming->path);
}

void rpc_server_call_notify_shutdown(struct rpc_server_call *call)
{
    const struct rpc_method *method = call->method;
    if (method != NULL && !call->base.closed && !call->base.ending &&
        method->ops->on_shutdown != NULL) {
        method->ops->on_shutdown(&call->base, method->user);
    }
}

/* ---- what the program calls ---- */

void rpc_call_finish(struct rpc_call *base, cadre_status status, const char *text)
{
    struct rpc_server_call *call = server_call(base);
    if (base->ending) {
        return;
    }
    CADRE_ASSERT(status != CADRE_OK || !base->sends_one || base->sent_any);
    if (call->method != NULL && call->server->on_finish != NULL) {
        call->server->on_finish(base, call->method->path, call->server->on_finish_user);
    }
    size_t length = text != NULL ? strlen(text) : 0;
    if (length > RPC_STATUS_TEXT_BYTES_MAX) {
        length = RPC_STATUS_TEXT_BYTES_MAX;
    }
    call->status = rpc_status_to_grpc(status);
    if (length > 0) {
        call->status_text = grpc_slice_from_copied_buffer(text, length);
    }
    base->ending = true;
    rpc_call_schedule(base);
}

void rpc_call_set_trailer(struct rpc_call *base, const char *key, const char *value)
{
    struct rpc_server_call *call = server_call(base);
    if (base->ending) {
        return;
    }
    CADRE_ASSERT(call->trailer_count < RPC_TRAILERS_MAX);
    grpc_metadata *trailer = &call->trailers[call->trailer_count++];
    trailer->key = grpc_slice_from_copied_string(key);
    trailer->value = grpc_slice_from_copied_string(value);
    CADRE_ASSERT(grpc_header_key_is_legal(trailer->key) != 0 &&
                 grpc_header_nonbin_value_is_legal(trailer->value) != 0);
}

void rpc_call_fail(struct rpc_call *call, const struct cadre_error *error)
{
    rpc_call_finish(call, error->code, error->text);
}

void rpc_call_reply(struct rpc_call *call, const struct rpc_buffer *buffer)
{
    struct cadre_error error;
    if (rpc_call_send_buffer(call, buffer, &error) == CADRE_OK) {
        rpc_call_finish(call, CADRE_OK, NULL);
    } else {
        rpc_call_fail(call, &error);
    }
}

const char *rpc_call_metadata(const struct rpc_call *base, const char *key, size_t *ret_length)
{
    CADRE_ASSERT(base->is_server);
    const struct rpc_server_call *call = (const struct rpc_server_call *)base;
    return rpc_metadata_find(&call->metadata, key, ret_length);
}

const struct tls_identity *rpc_call_identity(const struct rpc_call *base)
{
    CADRE_ASSERT(base->is_server);
    return &((const struct rpc_server_call *)base)->identity;
}

uint64_t rpc_call_certificate_ends_s(const struct rpc_call *base)
{
    CADRE_ASSERT(base->is_server);
    return rpc_tls_peer_ends_s(base->grpc);
}
