/* SPDX-License-Identifier: Apache-2.0
 * What a task asks of the parameter servers. Calls of one or several requests: all are sent, then
 * all are answered, so that servers work side by side. A server that is lost is waited for and
 * asked again; its store knows which pushes it has applied. Any thread may call, and several at a
 * time: each has connections of its own while it calls, kept for the next one. */
#ifndef CADRE_PS_CLIENT_CLIENT_H
#define CADRE_PS_CLIENT_CLIENT_H

#include "worker/library/ps/directory.h"
#include "worker/library/ps/link/link.h"
#include "worker/library/ps/request.h"

struct client;

struct client_options {
    struct directory *directory; /* borrowed */
    uint8_t program[LINK_PROGRAM_BYTES];
    uint64_t wait_timeout_us; /* how long a lost server is waited for; UNAVAILABLE names it then */
    /* Whether what the calling thread does is not wanted any more: it then waits for no step, but
     * returns CANCELLED. NULL: never. */
    bool (*unwanted)(void);
};

cadre_status client_open(
    const struct client_options *options, struct client **ret_client, struct cadre_error *error);
/* Calls of other threads return CANCELLED first; NULL is allowed. */
void client_close(struct client *client);

/* A server lost its memory, and no backup had it: its variables are gone, in this process for good.
 * Given by each call from then on: DATA_LOSS, which names the server. */

/* Does all of them; several to one server in their order. The first failure by order is returned,
 * each one's code is its own. `done_watermark`: closures below it are done for good. */
cadre_status client_call(struct client *client, struct request *requests, size_t count,
    uint64_t done_watermark, struct cadre_error *error);

/* Pushes of the parts of one variable, which LAMB updates: REQUEST_PUSH or _PUSH_PULL, all of one
 * key, at least one. Finds the ratio of the norms of all of them before, and pushes with it, or
 * with the one that they have been given by whoever made this push first; the values go to the
 * servers twice. Synchronous ones are to all parts, with trust NaN: who finds that a step has all
 * contributions tells all parts the ratio. Otherwise as client_call; where one fails, the others
 * may not have been made. */
cadre_status client_push_shards(struct client *client, struct request *pushes, size_t count,
    uint64_t done_watermark, struct cadre_error *error);

#endif
