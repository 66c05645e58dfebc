/* SPDX-License-Identifier: Apache-2.0
 * The inside of a client: one loop, the coordinator's addresses, and the operations in progress. */
#ifndef CADRE_CLIENT_STATE_H
#define CADRE_CLIENT_STATE_H

#include <stdatomic.h>

#include "cadre/client.h"
#include "common/model/ledger_position.h"
#include "common/rpc/endpoints.h"
#include "common/rpc/tls.h"
#include "common/wire/wire.h"

struct operation;

struct cadre_client {
    struct rpc_loop *loop;
    struct rpc_endpoints *endpoints;
    struct rpc_tls *tls; /* NULL: none */
    char *address;       /* or several, as they were given */
    uint64_t timeout_us;
    uint64_t wait_timeout_us;
    void (*on_outage)(bool in_outage, void *user);
    void *user;
    struct wire_arena *arena;  /* of the message that is handled now */
    struct wire_buffer packed; /* of the message that is being made */
    struct operation *operations;
    bool idle;       /* no operation with a `then` is in progress */
    bool driving;    /* inside the loop: a callback must not block */
    bool connecting; /* cadre_client_connect() asks, which any coordinator's answer will do for */
    bool leaderless; /* it was answered by coordinators none of which leads */
    bool closing;
    int poll_fd;                 /* of cadre_client_fd(); -1: the program does not poll */
    int timer_fd;                /* for the next call that is tried again */
    uint64_t *stale_age_us;      /* NULL: only the one that leads may answer */
    struct ledger_position seen; /* the newest that it was answered from */
    char *version;               /* of the coordinator, by its last answer; or NULL */
    bool request_ids;            /* it makes one job of a submission that is repeated */
    bool objects;                /* it knows what of a job is in an object store */
    bool in_outage;              /* on_outage(true) was the last call */
    atomic_bool woken; /* by cadre_client_wake(); the loop is stopped for other reasons too */
};

/* What an operation does with its calls, one at a time. */
struct operation_kind {
    /* A message of the call; may be NULL. An error ends the call with it. */
    cadre_status (*message)(
        struct operation *operation, const void *data, size_t length, struct cadre_error *error);
    /* The call can take more; NULL for calls that send one message. As above. */
    cadre_status (*drained)(struct operation *operation, struct cadre_error *error);
    /* The call ended with `status`, with the reason in error->text. Starts the next call of the
     * operation and returns CADRE_PENDING, or returns how the operation ends, with the error
     * filled. NULL: it ends as its call did. */
    cadre_status (*call_ended)(
        struct operation *operation, cadre_status status, struct cadre_error *error);
    /* Starts the operation again, at another coordinator or when a lost one is to be tried again;
     * NULL: it gives up, after its last call, if nothing of the answer came, was made at each
     * address. */
    cadre_status (*restart)(struct operation *operation, struct cadre_error *error);
    /* Releases the operation with its memory. */
    void (*release)(struct operation *operation);
};

struct operation_call {
    const char *path;
    bool client_streams;
    bool server_streams;
    bool has_timeout; /* of the client's options */
};

/* The common first member of all operations. */
struct operation {
    struct operation *next;
    struct cadre_client *client;
    const struct operation_kind *kind;
    struct rpc_call *call; /* NULL between calls */
    /* Of the newest call. */
    struct rpc_channel *channel;
    bool answered; /* a message came */
    bool repeats;  /* `request` is all that it sends */
    struct operation_call how;
    struct wire_buffer request;
    struct rpc_attempt attempt; /* which coordinators failed since the last answer */
    struct cadre_error error;
    /* Of the newest coordinator that took no call, in its words; "": none answered. */
    char refusal[CADRE_ERROR_TEXT_BYTES];
    bool failed;  /* the operation ended its call itself, with the reason in `error` */
    bool stopped; /* the caller ended it: later messages are dropped */
    bool ended;
    bool has_then;
    cadre_then then;
    uint64_t restart_us;      /* when to try again; 0: it does not wait for that */
    uint64_t outage_since_us; /* since when the coordinator is away; 0: it is not */
};

/* Starts a call of an operation; it has none. CANCELLED while the client is being closed. */
cadre_status operation_call(
    struct operation *operation, const struct operation_call *call, struct cadre_error *error);

/* Starts a call that sends one message: client->packed. It is kept, for another coordinator. */
cadre_status operation_send(
    struct operation *operation, const struct operation_call *call, struct cadre_error *error);

/* Ends the running call, and with it the operation with OK: the caller's function returned
 * false. */
void operation_stop(struct operation *operation);

/* The last step of every public function: takes the operation over. `status` is how the start of
 * its first call ended; if not, releases it and publishes `error`. Without a `then` runs it to its
 * end. Returns what the public function returns. */
cadre_status operation_launch(struct operation *operation, cadre_status status,
    const struct cadre_error *error, const cadre_then *then);

/* Allocates a zeroed operation of `bytes`; NULL with the error published when memory is out, or the
 * call would block inside a callback. */
void *operation_new(struct cadre_client *client, const struct operation_kind *kind, size_t bytes,
    const cadre_then *then);

/* The status to return after operation_new() returned NULL. */
cadre_status operation_new_status(const struct cadre_client *client, const cadre_then *then);

/* The usual `release`. */
void operation_free(struct operation *operation);

/* Runs the loop until *done, the deadline (DEADLINE_EXCEEDED), or a wake (CANCELLED), and restarts
 * what waits for a lost coordinator meanwhile. */
cadre_status client_drive(struct cadre_client *client, const bool *done, uint64_t deadline_us);

/* When the program polls: sets the timer for what waits for a lost coordinator. */
void client_arm_timer(struct cadre_client *client);

#endif
