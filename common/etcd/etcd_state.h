/* SPDX-License-Identifier: Apache-2.0
 * The client and its calls as the files of common/etcd see them. Private to common/etcd. */
#ifndef CADRE_ETCD_ETCD_STATE_H
#define CADRE_ETCD_ETCD_STATE_H

#include "common/etcd/errors.h"
#include "common/etcd/messages.h"
#include "common/rpc/channel.h"

struct etcd_call;

struct etcd {
    struct rpc_loop *loop;
    struct etcd_address address;
    struct rpc_channel *channels[ETCD_ENDPOINTS_MAX];
    bool checked[ETCD_ENDPOINTS_MAX]; /* it answered a Status, and has not failed since */
    size_t present;                   /* the endpoint for calls from here on */
    char user[ETCD_USER_BYTES_MAX + 1], password[ETCD_USER_BYTES_MAX + 1];
    bool has_user;
    bool login_is_off; /* etcd said so */
    char *token;       /* NULL: none is valid */
    uint64_t logins;   /* counts tokens */
    uint64_t cluster_id;
    const char *cluster_of;     /* the endpoint that has it, or whose it is to be */
    struct wire_arena *scratch; /* of a request while it is packed */
    struct wire_arena *arena;   /* of an answer until its handler returns */
    struct etcd_watch *watches;
    void (*on_leave)(struct etcd *etcd, size_t endpoint); /* begins its watches elsewhere; NULL */
    uint64_t watch_pause_us;
    unsigned users; /* the open client, its calls, its watches */
    bool closed;
};

/* Adds a user. */
void etcd_ref(struct etcd *etcd);
/* Drops one; the last frees the client. */
void etcd_unref(struct etcd *etcd);

/* `endpoint` failed: it is checked again before its next use, and if it is the present one, the
 * next one is from here on. */
void etcd_leave(struct etcd *etcd, size_t endpoint);

/* Compares with the cluster of the others; the first one that is seen is theirs.
 * FAILED_PRECONDITION: another one. */
cadre_status etcd_check_cluster(
    struct etcd *etcd, size_t endpoint, uint64_t cluster_id, struct cadre_error *error);

enum etcd_method {
    ETCD_CALL_RANGE,
    ETCD_CALL_TRANSACTION,
    ETCD_CALL_STATUS,
    ETCD_CALL_PREPARE /* checks the endpoint and logs in, for a watch; asks nothing else */
};

enum etcd_step {
    ETCD_STEP_CHECK, /* Status: of the right version and cluster? */
    ETCD_STEP_LOGIN,
    ETCD_STEP_ASK /* the request itself */
};

/* One call of the program: one, two or three calls of gRPC, one after the other. */
struct etcd_call {
    struct etcd *etcd;
    enum etcd_method method;
    enum etcd_step step;
    size_t endpoint;
    struct rpc_buffer request;
    struct etcd_shape shape; /* of a transaction's answers */
    struct etcd_then then;
    uint64_t began_us;
    uint64_t login; /* the count of the token that was sent */
    bool prepared;  /* a CALL_PREPARE has done its check */
    bool logged_in_again;
    void *data; /* the answer's bytes */
    size_t size;
    bool has_message, no_memory;
};

/* NULL: no memory, and the error says so. */
struct etcd_call *etcd_call_new(struct etcd *etcd, enum etcd_method method, size_t endpoint,
    const struct etcd_then *then, struct cadre_error *error);

/* Starts it; it belongs to the loop from here on. A status other than OK: it was freed. */
cadre_status etcd_call_start(struct etcd_call *call, struct cadre_error *error);

/* Frees a call that was not started. */
void etcd_call_free(struct etcd_call *call);

#endif
