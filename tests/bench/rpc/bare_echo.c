/* SPDX-License-Identifier: Apache-2.0
 * The batches are those of common/rpc: close, read and write of a call are outstanding at once. */
#include "bare_echo.h"

#include "echo_client.h"

#include "common/pure/assert.h"
#include "common/rpc/arguments.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <grpc/byte_buffer.h>
#include <grpc/grpc_security.h>
#include <grpc/slice.h>
#include <grpc/support/time.h>
#include <uv.h>

#define REQUEST_SLOTS 16

struct bare_call {
    grpc_call *grpc;
    struct bare_tag close, read, write;
    grpc_byte_buffer *reading; /* gRPC writes it, any time before the read completes */
    grpc_byte_buffer *message; /* the one that was read */
    grpc_byte_buffer *echo;    /* the one that is being written */
    grpc_slice no_text;
    int outstanding, cancelled;
    bool streams, opened;
};

struct bare_request {
    struct bare_tag tag;
    grpc_server *server;
    grpc_completion_queue *queue;
    grpc_call *call;
    grpc_call_details details;
    grpc_metadata_array metadata;
};

static void start(struct bare_call *call, const grpc_op *ops, size_t count, struct bare_tag *tag)
{
    call->outstanding++;
    grpc_call_error refused = grpc_call_start_batch(call->grpc, ops, count, tag, NULL);
    CADRE_ASSERT(refused == GRPC_CALL_OK);
}

static void ended(struct bare_call *call)
{
    if (--call->outstanding == 0) {
        grpc_byte_buffer_destroy(call->message);
        grpc_call_unref(call->grpc);
        free(call);
    }
}

static void start_read(struct bare_call *call)
{
    const grpc_op op = {
        .op = GRPC_OP_RECV_MESSAGE,
        .data.recv_message.recv_message = &call->reading,
    };
    start(call, &op, 1, &call->read);
}

/* Sends what was read, once the message before it is out. */
static void echo(struct bare_call *call)
{
    grpc_op ops[3];
    size_t count = 0;
    if (call->message == NULL || call->echo != NULL) {
        return;
    }
    call->echo = call->message;
    call->message = NULL;
    memset(ops, 0, sizeof ops);
    if (!call->opened) {
        call->opened = true;
        ops[count++].op = GRPC_OP_SEND_INITIAL_METADATA;
    }
    ops[count].op = GRPC_OP_SEND_MESSAGE;
    ops[count++].data.send_message.send_message = call->echo;
    if (!call->streams) {
        ops[count].op = GRPC_OP_SEND_STATUS_FROM_SERVER;
        ops[count++].data.send_status_from_server.status_details = &call->no_text;
    }
    start(call, ops, count, &call->write);
    if (call->streams) {
        start_read(call);
    }
}

static void read_done(void *owner, bool ok)
{
    struct bare_call *call = owner;
    (void)ok;
    call->message = call->reading;
    call->reading = NULL;
    echo(call);
    ended(call);
}

static void write_done(void *owner, bool ok)
{
    struct bare_call *call = owner;
    (void)ok;
    grpc_byte_buffer_destroy(call->echo);
    call->echo = NULL;
    echo(call);
    ended(call);
}

static void close_done(void *owner, bool ok)
{
    (void)ok;
    ended(owner);
}

static void post_request(struct bare_request *request)
{
    grpc_call_details_init(&request->details);
    grpc_metadata_array_init(&request->metadata);
    grpc_call_error refused = grpc_server_request_call(request->server, &request->call,
        &request->details, &request->metadata, request->queue, request->queue, &request->tag);
    CADRE_ASSERT(refused == GRPC_CALL_OK);
}

static void request_done(void *owner, bool ok)
{
    struct bare_request *request = owner;
    CADRE_ASSERT(ok); /* the server is never shut down */
    struct bare_call *call = calloc(1, sizeof *call);
    CADRE_ASSERT(call != NULL);
    call->grpc = request->call;
    call->streams = grpc_slice_str_cmp(request->details.method, ECHO_CHAT) == 0;
    call->no_text = grpc_empty_slice();
    call->close.rpc = (struct rpc_tag){.complete = close_done, .owner = call};
    call->read.rpc = (struct rpc_tag){.complete = read_done, .owner = call};
    call->write.rpc = (struct rpc_tag){.complete = write_done, .owner = call};
    grpc_call_details_destroy(&request->details);
    grpc_metadata_array_destroy(&request->metadata);
    post_request(request);
    const grpc_op op = {
        .op = GRPC_OP_RECV_CLOSE_ON_SERVER,
        .data.recv_close_on_server.cancelled = &call->cancelled,
    };
    start(call, &op, 1, &call->close);
    start_read(call);
}

int bare_echo_open(grpc_completion_queue *queue)
{
    static struct bare_request requests[REQUEST_SLOTS];
    static const struct rpc_keepalive keepalive;
    struct rpc_arguments arguments;
    rpc_arguments_server(&arguments, &keepalive, 4096, 16384, 1024);
    grpc_server *server = grpc_server_create(&arguments.args, NULL);
    grpc_server_register_completion_queue(server, queue, NULL);
    grpc_server_credentials *insecure = grpc_insecure_server_credentials_create();
    int port = grpc_server_add_http2_port(server, "127.0.0.1:0", insecure);
    CADRE_ASSERT(port != 0);
    grpc_server_credentials_release(insecure);
    grpc_server_start(server);
    for (int i = 0; i < REQUEST_SLOTS; i++) {
        requests[i].server = server;
        requests[i].queue = queue;
        requests[i].tag.rpc = (struct rpc_tag){.complete = request_done, .owner = &requests[i]};
        post_request(&requests[i]);
    }
    return port;
}

/* ---- the joins ---- */

void bare_echo_run_next(grpc_completion_queue *queue)
{
    for (;;) {
        grpc_event event =
            grpc_completion_queue_next(queue, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
        struct bare_tag *tag = event.tag;
        tag->rpc.complete(tag->rpc.owner, event.success != 0);
    }
}

struct handoff {
    grpc_completion_queue *queue;
    uv_async_t ready;
    _Atomic(struct bare_tag *) top;
};

static void *take_completions(void *user)
{
    struct handoff *handoff = user;
    for (;;) {
        grpc_event event =
            grpc_completion_queue_next(handoff->queue, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
        struct bare_tag *tag = event.tag;
        tag->ok = event.success != 0;
        struct bare_tag *top = atomic_load(&handoff->top);
        do {
            tag->next = top;
        } while (!atomic_compare_exchange_weak(&handoff->top, &top, tag));
        if (top == NULL) {
            uv_async_send(&handoff->ready);
        }
    }
    return NULL;
}

static void handle_completions(uv_async_t *async)
{
    struct handoff *handoff = async->data;
    struct bare_tag *tag = atomic_exchange(&handoff->top, NULL);
    struct bare_tag *oldest = NULL;
    while (tag != NULL) {
        struct bare_tag *next = tag->next;
        tag->next = oldest;
        oldest = tag;
        tag = next;
    }
    while (oldest != NULL) {
        struct bare_tag *next = oldest->next;
        oldest->rpc.complete(oldest->rpc.owner, oldest->ok);
        oldest = next;
    }
}

void bare_echo_run_handoff(grpc_completion_queue *queue, uv_loop_t *uv)
{
    static struct handoff handoff;
    pthread_t taker;
    handoff.queue = queue;
    handoff.ready.data = &handoff;
    int failed = uv_async_init(uv, &handoff.ready, handle_completions);
    CADRE_ASSERT(failed == 0);
    failed = pthread_create(&taker, NULL, take_completions, &handoff);
    CADRE_ASSERT(failed == 0);
    uv_run(uv, UV_RUN_DEFAULT);
}
