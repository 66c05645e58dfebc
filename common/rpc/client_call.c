/* SPDX-License-Identifier: Apache-2.0
 * The client's end of a call: its metadata, its messages, its status with the reason of a failed
 * connection. Driven by channel.c. */
#include "common/rpc/channel_state.h"

#include "common/base/clock.h"
#include "common/pure/assert.h"

#include <stdio.h>
#include <string.h>

#include <grpc/slice.h>
#include <grpc/support/alloc.h>

struct rpc_client_call {
    struct rpc_call base;
    struct rpc_channel *channel;
    struct rpc_connection *connection;
    struct rpc_client_call *next, *previous;
    const struct rpc_client_ops *ops;
    bool wait_for_ready, server_streams;
    uint64_t deadline_us;    /* CADRE_TIME_NEVER for none */
    bool connecting;         /* it waits for the connection, which is bounded */
    grpc_metadata *metadata; /* to send; its slices are copies */
    size_t metadata_count;

    struct rpc_tag status_tag;
    grpc_metadata_array initial, trailing;
    grpc_status_code code;
    grpc_slice details;
    bool diagnosing; /* the status waits for a diagnosis */
    bool ended;      /* the status is there; it is reported behind the last message */
};

static struct rpc_client_call *client_call(struct rpc_call *call)
{
    CADRE_ASSERT(!call->is_server);
    return (struct rpc_client_call *)call;
}

struct rpc_client_call *rpc_client_call_next(struct rpc_client_call *call)
{
    return call->next;
}

struct rpc_call *rpc_client_call_base(struct rpc_client_call *call)
{
    return &call->base;
}

/* Reports the status once it is there and nothing that belongs before it is still to come. */
static void report_status(struct rpc_client_call *call)
{
    struct rpc_call *base = &call->base;
    /* What this end aborted is not reported as OK, though the server's OK may have crossed it. */
    cadre_status status = base->aborted ? base->abort_status : rpc_status_from_grpc(call->code);
    bool cut = !base->aborted && status == CADRE_CANCELLED;
    if (cut) {
        status = CADRE_UNAVAILABLE; /* a server that ends cancels what is still open */
    }
    bool unread = !base->read_ended && !base->aborted && (!base->paused || status == CADRE_OK);
    if (!call->ended || base->closed || unread) {
        return;
    }
    char text[RPC_STATUS_TEXT_BYTES_MAX + 1];
    const void *details = GRPC_SLICE_START_PTR(call->details);
    size_t length = GRPC_SLICE_LENGTH(call->details);
    if (base->aborted || cut) {
        details = cut ? "the server ended before the call did" : base->abort_text;
        length = strlen(details);
    }
    length = length < sizeof text ? length : sizeof text - 1;
    memcpy(text, details, length);
    text[length] = '\0';
    if (status == CADRE_OK && !call->server_streams && !base->read_any) {
        status = CADRE_INTERNAL;
        snprintf(text, sizeof text, "the server answered OK without a message");
    }
    rpc_call_close(base);
    if (call->ops->on_status != NULL) {
        call->ops->on_status(base, status, text, base->user);
    }
    rpc_call_unref(base); /* the open call */
}

/* ---- operations for call.c: struct rpc_end_ops ---- */

static void client_call_message(struct rpc_call *base, const void *data, size_t length)
{
    struct rpc_client_call *call = client_call(base);
    if (call->ops->on_message != NULL) {
        call->ops->on_message(base, data, length, base->user);
    }
}

static void read_end(struct rpc_call *base, bool failed)
{
    (void)failed;
    report_status(client_call(base));
}

static void too_long(struct rpc_call *base, size_t length)
{
    char text[128];
    snprintf(text, sizeof text, "an answer of %zu bytes: this client takes at most %zu", length,
        base->message_bytes_max);
    rpc_call_abort(base, CADRE_RESOURCE_EXHAUSTED, text);
}

static void client_call_drained(struct rpc_call *base)
{
    struct rpc_client_call *call = client_call(base);
    if (call->ops->on_drained != NULL) {
        call->ops->on_drained(base, base->user);
    }
}

static size_t client_call_opening(struct rpc_call *base, grpc_op *ops)
{
    struct rpc_client_call *call = client_call(base);
    ops[0].op = GRPC_OP_SEND_INITIAL_METADATA;
    ops[0].flags = GRPC_INITIAL_METADATA_WAIT_FOR_READY_EXPLICITLY_SET;
    if (call->wait_for_ready) {
        ops[0].flags |= GRPC_INITIAL_METADATA_WAIT_FOR_READY;
    }
    ops[0].data.send_initial_metadata.count = call->metadata_count;
    ops[0].data.send_initial_metadata.metadata = call->metadata;
    return 1;
}

static size_t client_call_ending(struct rpc_call *base, grpc_op *ops)
{
    (void)base;
    ops[0].op = GRPC_OP_SEND_CLOSE_FROM_CLIENT;
    return 1;
}

static void free_metadata(grpc_metadata *metadata, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        grpc_slice_unref(metadata[i].key);
        grpc_slice_unref(metadata[i].value);
    }
    gpr_free(metadata);
}

static void client_call_destroy(struct rpc_call *base)
{
    struct rpc_client_call *call = client_call(base);
    struct rpc_channel *channel = call->channel;
    if (call->next != NULL) {
        call->next->previous = call->previous;
    }
    if (call->previous != NULL) {
        call->previous->next = call->next;
    } else {
        channel->calls = call->next;
    }
    free_metadata(call->metadata, call->metadata_count);
    grpc_metadata_array_destroy(&call->initial);
    grpc_metadata_array_destroy(&call->trailing);
    grpc_slice_unref(call->details);
    rpc_connection_unref(call->connection);
    gpr_free(call);
    rpc_channel_call_freed(channel);
}

static const struct rpc_end_ops client_end = {
    .message = client_call_message,
    .read_end = read_end,
    .too_long = too_long,
    .drained = client_call_drained,
    .opening = client_call_opening,
    .ending = client_call_ending,
    .destroy = client_call_destroy,
};

static void client_call_end(struct rpc_client_call *call)
{
    call->ended = true;
    report_status(call);
    rpc_call_schedule(&call->base);
    rpc_call_unref(&call->base);
}

static void use_diagnosis(struct rpc_client_call *call)
{
    const struct cadre_error *found = &call->channel->diagnosis;
    grpc_slice_unref(call->details);
    call->code = rpc_status_to_grpc(found->code);
    call->details = grpc_slice_from_copied_string(found->text);
}

bool rpc_client_call_awaits_diagnosis(const struct rpc_client_call *call)
{
    return call->diagnosing;
}

void rpc_client_call_diagnosed(struct rpc_client_call *call)
{
    if (!call->diagnosing) {
        return;
    }
    call->diagnosing = false;
    if (call->channel->diagnosis_found) {
        use_diagnosis(call);
    }
    client_call_end(call);
}

void rpc_client_call_connected(
    struct rpc_client_call *call, const struct rpc_connection *connection)
{
    call->connecting = call->connecting && call->connection != connection;
}

void rpc_client_call_give_up(struct rpc_client_call *call, const struct rpc_connection *connection)
{
    char text[RPC_ADDRESS_TEXT_BYTES + 80];
    if (!call->connecting || call->connection != connection || call->base.closed) {
        return;
    }
    snprintf(text, sizeof text, "%s took no connection within %llu ms",
        call->channel->address.host_port,
        (unsigned long long)(call->channel->connect_wait_us / CADRE_US_PER_MS));
    rpc_call_abort(&call->base, CADRE_UNAVAILABLE, text);
}

/* gRPC's text when the name has no address: a diagnosis would only look it up again. */
static bool is_name_unknown(const struct rpc_client_call *call)
{
    static const char dns_failure[] = "DNS resolution failed";
    return call->code == GRPC_STATUS_UNAVAILABLE &&
           GRPC_SLICE_LENGTH(call->details) >= sizeof dns_failure - 1 &&
           memcmp(GRPC_SLICE_START_PTR(call->details), dns_failure, sizeof dns_failure - 1) == 0;
}

static void explain_name(struct rpc_client_call *call)
{
    char text[RPC_HOST_BYTES + 120];
    snprintf(text, sizeof text,
        "the host name \"%s\" is not known here: look for a typing error, or give an address",
        call->channel->address.host);
    grpc_slice_unref(call->details);
    call->details = grpc_slice_from_copied_string(text);
}

/* The one event that every call of a client has, however it ends. */
static void status_done(void *owner, bool ok)
{
    struct rpc_client_call *call = owner;
    (void)ok;
    if (is_name_unknown(call)) {
        explain_name(call);
    } else if (call->code == GRPC_STATUS_UNAVAILABLE && !call->base.aborted) {
        enum rpc_diagnosis diagnosis =
            rpc_channel_diagnose(call->channel, call->connection, call->deadline_us);
        if (diagnosis == RPC_DIAGNOSIS_PENDING) {
            call->diagnosing = true;
            return;
        }
        if (diagnosis == RPC_DIAGNOSIS_FOUND) {
            use_diagnosis(call);
        }
    }
    client_call_end(call);
}

/* ---- opening ---- */

static cadre_status copy_metadata(
    const struct rpc_call_options *options, grpc_metadata **ret_metadata, struct cadre_error *error)
{
    size_t count = options->metadata_count;
    grpc_metadata *metadata = gpr_zalloc(count * sizeof *metadata + 1);
    for (size_t i = 0; i < count; i++) {
        metadata[i].key = grpc_slice_from_copied_string(options->metadata[i].key);
        metadata[i].value = grpc_slice_from_copied_string(options->metadata[i].value);
        if (grpc_header_key_is_legal(metadata[i].key) == 0 ||
            grpc_is_binary_header(metadata[i].key) != 0 ||
            grpc_header_nonbin_value_is_legal(metadata[i].value) == 0) {
            free_metadata(metadata, i + 1);
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "metadata %zu: a key of lower case letters and a value of printable characters",
                i + 1);
        }
    }
    *ret_metadata = metadata;
    return CADRE_OK;
}

/* Starts what waits for the end of the call; the batch completes last, with the status. */
static void start_status(struct rpc_client_call *call)
{
    grpc_op ops[2];
    memset(ops, 0, sizeof ops);
    ops[0].op = GRPC_OP_RECV_INITIAL_METADATA;
    ops[0].data.recv_initial_metadata.recv_initial_metadata = &call->initial;
    ops[1].op = GRPC_OP_RECV_STATUS_ON_CLIENT;
    ops[1].data.recv_status_on_client.trailing_metadata = &call->trailing;
    ops[1].data.recv_status_on_client.status = &call->code;
    ops[1].data.recv_status_on_client.status_details = &call->details;
    rpc_call_ref(&call->base);
    rpc_loop_start(call->base.loop, call->base.grpc, ops, CADRE_COUNT_OF(ops), &call->status_tag);
}

cadre_status rpc_channel_call(struct rpc_channel *channel, const struct rpc_call_options *options,
    struct rpc_call **ret_call, struct cadre_error *error)
{
    CADRE_ASSERT(!channel->closing);
    *ret_call = NULL;
    grpc_metadata *metadata = NULL;
    grpc_slice path = grpc_slice_from_copied_string(options->path);
    if (options->path[0] != '/' || grpc_header_nonbin_value_is_legal(path) == 0) {
        grpc_slice_unref(path);
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "method \"%.80s\": expected \"/package.Service/Method\"", options->path);
    }
    cadre_status status = copy_metadata(options, &metadata, error);
    if (status != CADRE_OK) {
        grpc_slice_unref(path);
        return status;
    }
    bool timeless = options->deadline_us == 0 || options->deadline_us > (uint64_t)INT64_MAX;
    gpr_timespec deadline =
        timeless ? gpr_inf_future(GPR_CLOCK_MONOTONIC)
                 : gpr_time_from_micros((int64_t)options->deadline_us, GPR_CLOCK_MONOTONIC);

    struct rpc_client_call *call = gpr_zalloc(sizeof *call);
    struct rpc_call *base = &call->base;
    call->connection = rpc_channel_connection(channel);
    grpc_call *grpc = grpc_channel_create_call(call->connection->grpc, NULL,
        GRPC_PROPAGATE_DEFAULTS, rpc_loop_queue(channel->loop), path, NULL, deadline, NULL);
    grpc_slice_unref(path);
    rpc_call_init(base, channel->loop, &client_end, grpc);
    base->user = options->user;
    base->queue_bytes_max = channel->send_queue_bytes_max;
    base->message_bytes_max = channel->message_bytes_max;
    base->sends_one = !options->client_streams;
    base->reads_one = !options->server_streams;
    base->reads = true;
    call->channel = channel;
    call->ops = options->ops;
    call->wait_for_ready = options->wait_for_ready;
    call->deadline_us = timeless ? CADRE_TIME_NEVER : options->deadline_us;
    call->server_streams = options->server_streams;
    call->metadata = metadata;
    call->metadata_count = options->metadata_count;
    call->details = grpc_empty_slice();
    call->status_tag = (struct rpc_tag){.complete = status_done, .owner = call};
    grpc_metadata_array_init(&call->initial);
    grpc_metadata_array_init(&call->trailing);
    call->next = channel->calls;
    if (call->next != NULL) {
        call->next->previous = call;
    }
    channel->calls = call;
    call->connecting = rpc_channel_connect_wait(channel, call->connection);
    start_status(call);
    rpc_call_schedule(base);
    *ret_call = base;
    return CADRE_OK;
}

const char *rpc_call_trailer(const struct rpc_call *base, const char *key, size_t *ret_length)
{
    CADRE_ASSERT(!base->is_server);
    const struct rpc_client_call *call = (const struct rpc_client_call *)base;
    return rpc_metadata_find(&call->trailing, key, ret_length);
}

void rpc_call_half_close(struct rpc_call *call)
{
    CADRE_ASSERT(!call->is_server);
    if (!call->ending) {
        call->ending = true;
        rpc_call_schedule(call);
    }
}
