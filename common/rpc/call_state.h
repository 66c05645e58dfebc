/* SPDX-License-Identifier: Apache-2.0
 * Inside common/rpc only: what both ends of a call share. One object per call, one tag per
 * operation that can be outstanding, a count of references (each outstanding operation, each
 * deferral, and the open call itself); the last of them frees the memory. */
#ifndef CADRE_RPC_CALL_STATE_H
#define CADRE_RPC_CALL_STATE_H

#include "common/rpc/call.h"
#include "common/rpc/loop_state.h"

#define RPC_STATUS_TEXT_BYTES_MAX 1024

/* What the two ends do differently. All but `destroy` may find the call closed. */
struct rpc_end_ops {
    /* A message, contiguous, within the limit; valid during the call. */
    void (*message)(struct rpc_call *call, const void *data, size_t length);
    /* Reading ended: no message comes any more. `failed` when the call ended before the other side
     * was through. */
    void (*read_end)(struct rpc_call *call, bool failed);
    void (*too_long)(struct rpc_call *call, size_t length);
    void (*drained)(struct rpc_call *call);
    /* Adds the operations that open or end the sending to a batch; returns how many. */
    size_t (*opening)(struct rpc_call *call, grpc_op *ops);
    size_t (*ending)(struct rpc_call *call, grpc_op *ops);
    /* The last reference was dropped, the gRPC call was freed. Frees the object. */
    void (*destroy)(struct rpc_call *call);
};

/* A message that waits for its turn. */
struct rpc_message {
    struct rpc_message *next;
    grpc_byte_buffer *bytes;
    size_t length;
};

/* The common part, first member of struct rpc_server_call and struct rpc_client_call. */
struct rpc_call {
    struct rpc_loop *loop;
    const struct rpc_end_ops *end;
    grpc_call *grpc;
    unsigned refs;
    void *user;
    char *peer;
    struct rpc_deferred progress;
    bool is_server;
    bool closed;  /* the last handler was called, or is about to be */
    bool aborted; /* by this end */
    cadre_status abort_status;
    char *abort_text;

    struct rpc_tag send_tag;
    struct rpc_message *queue_head, *queue_tail, *in_flight;
    size_t queued_bytes, queue_bytes_max;
    bool sends_one;   /* this end does not stream */
    bool sent_any;    /* a message was accepted */
    bool opened;      /* initial metadata are on their way */
    bool ending;      /* nothing is accepted any more; the end is sent behind what is queued */
    bool end_started; /* the batch with the end was started */

    struct rpc_tag read_tag;
    grpc_byte_buffer *read_bytes, *held;
    size_t message_bytes_max;
    bool reads_one; /* the other end does not stream */
    bool reads;     /* reading was allowed to start */
    bool reading, paused, read_ended, read_any;
};

/* Fills the common part of a zeroed object around `grpc`, with one reference: the open call. */
void rpc_call_init(
    struct rpc_call *call, struct rpc_loop *loop, const struct rpc_end_ops *end, grpc_call *grpc);

/* Adds a reference. */
void rpc_call_ref(struct rpc_call *call);
/* Drops a reference; the last one destroys the call. */
void rpc_call_unref(struct rpc_call *call);

/* Schedules sending and reading to continue after the present handler. */
void rpc_call_schedule(struct rpc_call *call);

/* Drops the messages that the transport has not taken. */
void rpc_call_drop_queue(struct rpc_call *call);

/* The call is over: drops what is queued and held. The caller then calls the last handler and
 * drops the open reference. */
void rpc_call_close(struct rpc_call *call);

/* The status as gRPC writes it. */
grpc_status_code rpc_status_to_grpc(cadre_status status);
/* The status of gRPC's code; UNKNOWN for a foreign one. */
cadre_status rpc_status_from_grpc(grpc_status_code code);

/* The value of `key` among what the other end sent; NULL when there is none. */
const char *rpc_metadata_find(
    const grpc_metadata_array *metadata, const char *key, size_t *ret_length);

/* A message of the buffer's bytes, sharing them. */
grpc_byte_buffer *rpc_buffer_message(const struct rpc_buffer *buffer);

#endif
