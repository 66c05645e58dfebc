/* SPDX-License-Identifier: Apache-2.0
 * Requests of a task to the parameter servers. A call has one or several requests: all are sent,
 * then all answers are received, so that servers work in parallel. When a server is lost the call
 * waits for its next incarnation and sends again; the server's store knows which pushes it has
 * applied. Any thread may call, several at a time: each call uses connections of its own, which are
 * kept for the next call. */
#ifndef CADRE_PS_CLIENT_CLIENT_H
#define CADRE_PS_CLIENT_CLIENT_H

#include "worker/library/ps/directory.h"
#include "worker/library/ps/link/link.h"
#include "worker/library/ps/request.h"

struct client;

struct client_options {
    struct directory *directory; /* borrowed */
    uint8_t program[LINK_PROGRAM_BYTES];
    uint64_t wait_timeout_us; /* how long a call waits for a lost server; then UNAVAILABLE names
                               * it */
    /* True when the result of the calling thread is not needed any more: the call then waits for no
     * step, but returns CANCELLED. NULL: never. */
    bool (*unwanted)(void);
};

/* Connects to no server yet. RESOURCE_EXHAUSTED. The directory must outlive the client. */
cadre_status client_open(
    const struct client_options *options, struct client **ret_client, struct cadre_error *error);
/* Calls of other threads return CANCELLED first. NULL is allowed. */
void client_close(struct client *client);

/* Runs all requests; those to one server in their order. Returns the first failure by order; each
 * request has its own code. `done_watermark`: all closures with smaller numbers are done and send
 * no more pushes. When a server has lost its memory and no backup had it, each call from then on
 * returns DATA_LOSS, which names the server. */
cadre_status client_call(struct client *client, struct request *requests, size_t count,
    uint64_t done_watermark, struct cadre_error *error);

/* Pushes of the shards of one variable that LAMB updates: REQUEST_PUSH or _PUSH_PULL, all of one
 * key, at least one. First finds the ratio of the norms over all shards, then pushes with it, or
 * with the ratio that the first shard has kept from an earlier attempt of this push; the values are
 * sent twice. Synchronous pushes go to all shards, with trust NaN: the client that finds a step
 * with all contributions sends the ratio to all shards. Otherwise as client_call; where one fails,
 * the others may not have been made. */
cadre_status client_push_shards(struct client *client, struct request *pushes, size_t count,
    uint64_t done_watermark, struct cadre_error *error);

#endif
