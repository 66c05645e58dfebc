/* SPDX-License-Identifier: Apache-2.0
 * Inside of a client: servers with the connections that are free, and calls under way.
 *
 *     client_call ── leases ──▶ an exchange for each server: requests go out, answers come in,
 *                               both without waiting for the other direction
 *                    lost? ──▶ client_reach.c: who and where, again; what has no answer is resent
 */
#ifndef CADRE_PS_CLIENT_CLIENT_INTERNAL_H
#define CADRE_PS_CLIENT_CLIENT_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "common/base/clock.h"
#include "worker/library/ps/client/client.h"
#include "worker/library/ps/link/link_internal.h"
#include "worker/library/ps/request.h"

/* What waits looks up so often whether it still has something to wait for. */
#define CLIENT_POLL_US (200 * CADRE_US_PER_MS)

struct client_server {
    struct exchange *free;
    bool known; /* its memory's nonce is */
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
    struct cadre_error lost; /* code not OK: a server's memory is gone */
    atomic_bool look;        /* closing or lost: calls look */
};

/* A connection with one server, of one call at a time. */
struct exchange {
    struct exchange *next_all;
    struct exchange *next; /* free, or of the same call */
    struct client *client;
    uint32_t server;
    struct link *link; /* NULL: to be reached */
    /* of the call */
    struct call *call;
    bool over;         /* all is answered, or failed */
    size_t out;        /* the request that is being sent; count: none is left */
    uint64_t out_done; /* bytes of it that went */
    size_t in;         /* the request that is being answered */
    bool in_body;
    struct frame answer;
    uint8_t *into; /* NULL: dropped */
    uint64_t into_bytes;
    uint64_t in_got; /* of the body */
    char sentence[CADRE_ERROR_TEXT_BYTES];
};

struct call {
    struct client *client;
    struct request *requests;
    size_t count;
    uint64_t done_watermark;
    bool steps; /* it waits for steps perhaps */
    struct exchange *exchanges;
    size_t failed; /* the first request that failed; count: none */
    struct cadre_error *error;
};

enum exchange_step { EXCHANGE_DONE, EXCHANGE_WAITS, EXCHANGE_LOST };

/* Begins with what has no answer yet. */
void client_exchange_begin(struct exchange *exchange);
/* Sends what goes now. DONE: all of it is on its way. */
enum exchange_step exchange_send(struct exchange *exchange);
/* Receives what is there, and with `wait` waits for more for CLIENT_POLL_US. DONE: all is
 * answered. */
enum exchange_step exchange_receive(struct exchange *exchange, bool wait);
/* All that has no answer ends with this error. */
void exchange_fail(struct exchange *exchange, const struct cadre_error *error);
/* A request of a call has failed. */
void call_failed(struct call *call, size_t i, const struct cadre_error *error);

/* The link of the exchange is there, its server is the one that was known. Waits as long as the
 * client has patience. UNAVAILABLE, DATA_LOSS, CANCELLED, what ended the directory. */
cadre_status client_reach(struct exchange *exchange, struct cadre_error *error);
/* OK: there is something to wait for. */
cadre_status client_check(struct client *client, struct cadre_error *error);
/* Its server is where it was. */
bool client_is_reachable(const struct exchange *exchange);
void client_drop_link(struct exchange *exchange);

#endif
