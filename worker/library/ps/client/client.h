/* SPDX-License-Identifier: Apache-2.0
 * What a task asks of the parameter servers. Calls of one or several requests: all are sent, then
 * all are answered, so that servers work side by side. A server that is lost is waited for and
 * asked again; its store knows which pushes it has applied. Any thread may call, and several at a
 * time: each has connections of its own while it calls, kept for the next one. */
#ifndef CADRE_PS_CLIENT_CLIENT_H
#define CADRE_PS_CLIENT_CLIENT_H

#include "worker/library/ps/directory.h"
#include "worker/library/ps/link/link.h"
#include "worker/library/ps/store/store.h"

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

enum request_kind {
    REQUEST_CREATE = 1, /* spec -> shard */
    REQUEST_PULL,       /* rows [first, first + rows) -> into, and version */
    REQUEST_GATHER,     /* ids -> rows of `into`, in their order */
    REQUEST_PUSH,       /* push, values -> version */
    REQUEST_PUSH_PULL,  /* a push of a dense range, and that range as it is afterwards */
    REQUEST_SLOT,       /* an optimizer's memory, as PULL; `slot`. No rows: only the count */
    REQUEST_SET_SLOT,   /* and its count of updates: for checkpoints; likewise */
    REQUEST_NOTE,       /* name, values */
    REQUEST_FIND_NOTE,  /* name -> text (malloc'ed) and its size; NOT_FOUND */
    REQUEST_NOTE_NAMES, /* -> text: names, each with its terminator */
    REQUEST_BEGIN_STEP, /* min_steps: which step is next; see store_begin_step */
    REQUEST_TRAIN,      /* rule: the shard's from now on; see store_train */
    REQUEST_RULE,       /* -> into: RULE_BYTES, of that rule */
    REQUEST_NORMS,      /* as PUSH -> into: NORMS_BYTES; see store_push_norms */
    REQUEST_STEP_NORMS, /* min_steps: which step -> ret_steps: its state, and likewise */
    REQUEST_SETTLE      /* min_steps, trust -> ret_trust; see store_step_settle */
};

struct request {
    enum request_kind kind;
    uint32_t server;
    const struct store_spec *spec;     /* CREATE */
    const struct optimizer_rule *rule; /* TRAIN */
    uint32_t shard;
    uint64_t first;
    uint64_t rows;
    uint32_t slot;
    uint64_t updates;   /* SET_SLOT; of SLOT the answer */
    uint64_t row_bytes; /* of PULL, GATHER, PUSH, ...: as created */
    const int64_t *ids; /* GATHER: `rows` of them */
    struct push push;   /* its ids too; shard is taken from above */
    double trust;       /* SETTLE */
    const char *name;
    const void *values; /* given; NOTE: `rows` bytes of them */
    void *into;         /* the caller's, rows * row_bytes */
    uint64_t min_steps; /* PULL, GATHER: waits until so many were applied; 0: as it is */
    /* answers */
    uint32_t ret_shard;
    uint64_t ret_version; /* of the shard, before the first row was read */
    uint64_t ret_steps;   /* PULL: how many it has had, likewise */
    double ret_trust;     /* PUSH, PUSH_PULL, SETTLE: LAMB's ratio that it has; 0: none */
    char *ret_text;
    size_t ret_text_bytes;
    cadre_status code; /* of this one; the others may have succeeded */
};

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
