/* SPDX-License-Identifier: Apache-2.0
 * A server that answers as a script says, in etcd's messages, and the loop that client and servers
 * share. Without a script it answers as a healthy etcd with an empty store would. */
#ifndef CADRE_TESTS_ETCD_STANDIN_H
#define CADRE_TESTS_ETCD_STANDIN_H

#include "common/base/clock.h"
#include "common/etcd/etcd.h"
#include "common/rpc/server.h"
#include "tests/lib/test.h"

#define STANDINS_MAX    3
#define CLUSTER_ID      UINT64_C(0xc1c1)
#define WAIT_TIMEOUT_US (20 * CADRE_US_PER_S)

enum standin_method {
    STANDIN_STATUS,
    STANDIN_LOGIN,
    STANDIN_TXN,
    STANDIN_RANGE,
    STANDIN_WATCH,
    STANDIN_METHODS
};

/* What the next call of a method gets. */
enum standin_act {
    STANDIN_HEALTHY,
    STANDIN_FAIL,   /* `code`, `text` */
    STANDIN_SILENT, /* nothing, ever */
    STANDIN_BYTES   /* `bytes` as the answer, then OK */
};

struct standin_script {
    enum standin_act act;
    cadre_status code;
    const char *text;
    const void *bytes;
    size_t size;
};

struct rig;

struct standin {
    struct rig *rig;
    struct rpc_server *server;
    int port;
    uint64_t cluster_id, member_id;
    const char *version;
    const char *alarm; /* of Status; NULL: none */
    bool wants_token;  /* a call without a valid token is refused */
    unsigned tokens;   /* given out: "token-1" and so on */
    unsigned voided;   /* so many of them are not valid any more */
    bool has_key;      /* "head" exists: Range and gets find it */
    unsigned calls[STANDIN_METHODS];
    unsigned puts; /* of transactions that were answered with success */
    struct standin_script once[STANDIN_METHODS]; /* for the next call, then HEALTHY again */
    struct standin_script always[STANDIN_METHODS];
    struct rpc_call *watch; /* the newest stream of Watch that is open */
};

struct rig {
    struct rpc_loop *loop;
    struct standin standins[STANDINS_MAX];
    struct etcd *etcd;
};

/* cmocka's setup and teardown. The teardown closes the client, if it is not NULL, and the servers.
 */
int rig_open(void **state);
int rig_close(void **state);

/* Opens the client on the first `count` of them; `options` may be NULL, its address is filled in.
 */
void rig_connect(struct rig *rig, size_t count, const struct etcd_options *options);

/* Stops a server: its port refuses from here on. */
void standin_stop(struct standin *standin);

/* Fails the next call of a method. */
void standin_fail(
    struct standin *standin, enum standin_method method, cadre_status code, const char *text);

/* Sends one message on the watch that is open: an event, or its cancellation. */
void standin_event(struct standin *standin);
void standin_cancel_watch(struct standin *standin, const char *reason);

/* What a handler saw, copied. */
struct seen {
    unsigned answers;
    bool done;
    cadre_status status;
    char text[CADRE_ERROR_TEXT_BYTES];
    char endpoint[RPC_ADDRESS_TEXT_BYTES];
    bool outcome_unknown, no_space, succeeded, more;
    uint64_t cluster_id, member_id;
    size_t result_count, pair_count;
    char key[ETCD_KEY_BYTES];
    struct etcd_member member;
};

/* A handler that fills a struct seen, its user. */
void seen_answer(const struct etcd_answer *answer, void *user);

/* For calls: `seen` is cleared; the deadline is that far away, 0 for WAIT_TIMEOUT_US. */
struct etcd_then rig_then(struct seen *seen, uint64_t timeout_us);

/* Runs the loop until *done. */
void rig_until(struct rig *rig, const bool *done);
/* Runs the loop until check(user). */
void rig_until_check(struct rig *rig, bool (*check)(void *user), void *user);

/* One guarded put of "head" from beginning to end. */
void rig_transact(struct rig *rig, uint64_t timeout_us, struct seen *seen);
/* One read of "head". */
void rig_range(struct rig *rig, struct seen *seen);

/* The transaction of rig_transact(): one comparison, one put, one get otherwise. */
extern const struct etcd_transaction rig_transaction;

#endif
