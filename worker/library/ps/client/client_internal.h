/* SPDX-License-Identifier: Apache-2.0
 * Inside of a client: servers with their free connections, and calls in progress.
 *
 *     client_call ── connections ──▶ an exchange for each server: requests out, answers in,
 *                                    neither direction waits for the other
 *                    lost? ──▶ client_reach.c: connects again; what has no answer is resent
 */
#ifndef CADRE_PS_CLIENT_CLIENT_INTERNAL_H
#define CADRE_PS_CLIENT_CLIENT_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "common/base/clock.h"
#include "worker/library/ps/client/client.h"
#include "worker/library/ps/link/link_internal.h"
#include "worker/library/ps/request.h"

/* So often a waiting call checks whether it still has to wait. */
#define CLIENT_POLL_US (200 * CADRE_US_PER_MS)

struct client_server {
    struct exchange *free;
    bool known; /* whether `nonce` is set: the nonce of its memory */
    uint64_t nonce;
};

struct client {
    struct client_options options;
    uint32_t server_count;
    pthread_mutex_t lock; /* over all that follows, and the links of exchanges */
    pthread_cond_t idle;
    struct client_server *servers;
    struct exchange *all;
    size_t active; /* calls */
    bool closing;
    struct cadre_error lost; /* code not OK: a server's memory was lost */
    atomic_bool look;        /* closing or lost: calls check */
};

/* A connection with one server, of one call at a time. */
struct exchange {
    struct exchange *next_all;
    struct exchange *next; /* free, or of the same call */
    struct client *client;
    uint32_t server;
    struct link *link; /* NULL: not connected */
    /* of the call in progress */
    struct call *call;
    bool over;         /* all is answered, or failed */
    size_t out;        /* index of the request that is being sent; count: none is left */
    uint64_t out_done; /* bytes of it that were sent */
    size_t in;         /* index of the request that is being answered */
    bool in_body;
    struct frame answer;
    uint8_t *into; /* NULL: dropped */
    uint64_t into_bytes;
    uint64_t in_got; /* bytes of the body that were received */
    char sentence[CADRE_ERROR_TEXT_BYTES];
};

struct call {
    struct client *client;
    struct request *requests;
    size_t count;
    uint64_t done_watermark;
    bool steps; /* it has requests that may wait for steps */
    struct exchange *exchanges;
    size_t failed; /* the first request that failed; count: none */
    struct cadre_error *error;
};

enum exchange_step { EXCHANGE_DONE, EXCHANGE_WAITS, EXCHANGE_LOST };

/* Begins with the first request without an answer. */
void client_exchange_begin(struct exchange *exchange);
/* Sends what the socket takes now. DONE: all was sent. */
enum exchange_step exchange_send(struct exchange *exchange);
/* Receives what is there; with `wait` it waits up to CLIENT_POLL_US for more. DONE: all is
 * answered. */
enum exchange_step exchange_receive(struct exchange *exchange, bool wait);
/* All requests without an answer end with this error. */
void exchange_fail(struct exchange *exchange, const struct cadre_error *error);
/* Records that request `i` of the call has failed. */
void call_failed(struct call *call, size_t i, const struct cadre_error *error);

/* Connects the exchange's link to its server, whose memory must be the one that was seen first.
 * Waits up to wait_timeout_us. UNAVAILABLE, DATA_LOSS, CANCELLED, or the error that ended the
 * directory. */
cadre_status client_reach(struct exchange *exchange, struct cadre_error *error);
/* OK: the call may wait on. Else the error with which it ends. */
cadre_status client_check(struct client *client, struct cadre_error *error);
/* True when the directory still has the server's incarnation at its address. */
bool client_is_reachable(const struct exchange *exchange);
/* True when the directory has a newer incarnation of the server: what the older one answers may be
 * outdated. */
bool client_is_replaced(const struct exchange *exchange);
/* Closes the exchange's link; the next client_reach makes a new one. */
void client_drop_link(struct exchange *exchange);

#endif
