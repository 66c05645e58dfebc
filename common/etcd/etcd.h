/* SPDX-License-Identifier: Apache-2.0
 * The client of an etcd cluster: guarded transactions, reads, a watch, on the loop of common/rpc.
 *
 * All functions are called on the loop's thread, none waits, and none calls a handler: handlers
 * come afterwards, from the loop, each exactly once. Keys are
 * texts beneath the prefix of the address: "head" is "PREFIX/head" in etcd, and no other key can be
 * reached. Reads are linearizable.
 *
 * Nothing is sent twice by the client itself. A call goes to the present endpoint; if that does not
 * serve it (refused, silent until the deadline, without a leader, stopping), the next endpoint is
 * the present one for the calls that follow, and the caller repeats. The one exception: an answer
 * that the token is not valid, which etcd gives before it looks at a request, is followed by one
 * login and the request again.
 *
 * Before an endpoint is used, and again after it failed, one Status checks that it is etcd 3.4 or
 * newer and of the same cluster as the others. */
#ifndef CADRE_ETCD_ETCD_H
#define CADRE_ETCD_ETCD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/etcd/address.h"
#include "common/rpc/loop.h"

#define ETCD_KEY_BYTES      96  /* beneath the prefix, with the terminator */
#define ETCD_OPERATIONS_MAX 125 /* of each list of a transaction; etcd's default is 128 */
/* As sent: 1 MiB of values, and their keys. etcd's default is 1.5 MiB. */
#define ETCD_TRANSACTION_BYTES_MAX ((size_t)(1024 + 64) * 1024)
#define ETCD_ANSWER_BYTES_MAX      ((size_t)48 * 1024 * 1024)
#define ETCD_USER_BYTES_MAX        256 /* of a user's name and of a password */
#define ETCD_VERSION_BYTES         32
#define ETCD_ENDPOINT_PRESENT      SIZE_MAX

struct etcd;
struct etcd_watch;
struct rpc_tls;

/* What a client is opened with. All of it is copied, but for `tls`. */
struct etcd_options {
    const struct etcd_address *address;
    struct rpc_tls *tls;  /* by rpc_tls_open_foreign(); outlives the client; NULL: loopback only */
    const char *user;     /* NULL: without a login */
    const char *password; /* "" is one, too */
    uint64_t cluster_id;  /* that etcd must have; 0: that of the first endpoint that answers */
    uint64_t watch_pause_us; /* before a broken watch is opened again; 0: 500 ms */
};

/* INVALID_ARGUMENT: user or password too long, an endpoint that needs TLS. RESOURCE_EXHAUSTED: no
 * memory. Connects with the first call. */
cadre_status etcd_open(struct rpc_loop *loop, const struct etcd_options *options,
    struct etcd **ret_etcd, struct cadre_error *error);

/* Ends it, and its watches, whose handlers are not called any more. The handlers of calls that are
 * under way still come, from the loop (rpc_loop_close() included), with CANCELLED; what was sent
 * may still be applied. Do not touch the client afterwards. Before rpc_loop_close(). NULL is fine.
 */
void etcd_close(struct etcd *etcd);

/* The index of the endpoint that the next call goes to. */
size_t etcd_endpoint(const struct etcd *etcd);

struct etcd_bytes {
    const void *data;
    size_t size;
};

/* ---- what comes back ---- */

struct etcd_pair {
    const char *key; /* beneath the prefix */
    struct etcd_bytes value;
    int64_t create_revision, mod_revision, version;
};

/* Of one operation. */
struct etcd_result {
    const struct etcd_pair *pairs; /* of a get or a range, by rising keys */
    size_t pair_count;
    bool more;       /* of a range: there are keys behind the last one */
    int64_t deleted; /* keys, of a deletion */
};

/* What a member says of itself: etcd_status(). */
struct etcd_member {
    char version[ETCD_VERSION_BYTES]; /* "3.4.23" */
    bool has_leader;
    bool no_space;         /* alarm NOSPACE: etcd accepts no put */
    bool corrupt;          /* alarm CORRUPT: its members hold different data */
    uint64_t file_bytes;   /* of its database */
    uint64_t in_use_bytes; /* without free pages */
};

/* Valid until the handler returns. */
struct etcd_answer {
    cadre_status status;
    const char *text;     /* of a failure: one sentence with endpoint, operation and next step */
    bool outcome_unknown; /* of a transaction that failed: it may have been applied, or may still be
                             within etcd's own time limit: repeat the same one */
    bool no_space;        /* it failed because etcd's database is full (alarm NOSPACE) */
    const char *endpoint; /* "10.0.0.1:2379" */
    /* From etcd, 0 when it did not answer. */
    uint64_t cluster_id;
    uint64_t member_id; /* of the member that answered */
    uint64_t raft_term;
    int64_t revision; /* of the store */
    /* Of a success. */
    bool succeeded; /* of a transaction: the comparisons held */
    const struct etcd_result
        *results; /* one for each operation that was applied; one for a range */
    size_t result_count;
    const struct etcd_member *member; /* of etcd_status() */
};

/* Where the answer goes. */
struct etcd_then {
    uint64_t deadline_us; /* in clock_monotonic_us(): then the call ends with DEADLINE_EXCEEDED */
    void (*handler)(const struct etcd_answer *answer, void *user);
    void *user;
};

/* ---- calls: a status other than OK means that nothing was sent and no handler follows ---- */

enum etcd_compared { ETCD_VERSION, ETCD_CREATE_REVISION, ETCD_MOD_REVISION, ETCD_VALUE };

/* Holds when the key has this number or value. A key that does not exist has version and
 * revisions 0, and no value that equals one. */
struct etcd_comparison {
    const char *key;
    enum etcd_compared what;
    int64_t number;          /* of the first three */
    struct etcd_bytes value; /* of ETCD_VALUE */
};

enum etcd_operation_kind { ETCD_GET, ETCD_PUT, ETCD_DELETE };

struct etcd_operation {
    enum etcd_operation_kind kind;
    const char *key;
    const char *end; /* of a get or a deletion: the first key behind the range; NULL: `key` alone */
    uint32_t limit;  /* of a get: keys at most; 0: all */
    struct etcd_bytes value; /* of a put */
};

/* All comparisons hold: the operations of `then` are applied, else those of `otherwise`; at one
 * revision either way. No list may put or delete one key twice. */
struct etcd_transaction {
    const struct etcd_comparison *comparisons;
    const struct etcd_operation *then, *otherwise;
    size_t comparison_count, then_count, otherwise_count;
};

/* Sends it, once. INVALID_ARGUMENT: more than ETCD_OPERATIONS_MAX in a list, more than
 * ETCD_TRANSACTION_BYTES_MAX in all, a key that is empty or too long. */
cadre_status etcd_transact(struct etcd *etcd, const struct etcd_transaction *transaction,
    const struct etcd_then *then, struct cadre_error *error);

/* Reads up to `limit` keys from `key` on, before `end`; NULL: `key` alone. `limit` times the
 * longest value is to be less than ETCD_ANSWER_BYTES_MAX, else the answer is RESOURCE_EXHAUSTED. */
cadre_status etcd_range(struct etcd *etcd, const char *key, const char *end, uint32_t limit,
    const struct etcd_then *then, struct cadre_error *error);

/* Asks one endpoint, by its index or ETCD_ENDPOINT_PRESENT, for its state; needs no quorum. */
cadre_status etcd_status(
    struct etcd *etcd, size_t endpoint, const struct etcd_then *then, struct cadre_error *error);

/* ---- watches ---- */

/* OK: the key may have changed, read it. Any other status: the watch broke, `text` says why; it is
 * opened again by itself after the pause, at the present endpoint, and then OK comes, because what
 * happened meanwhile was not seen. */
typedef void etcd_watch_fn(cadre_status status, const char *text, void *user);

/* Watches one key. The first OK comes when it is watched. As above: OK, or nothing was begun. */
cadre_status etcd_watch_open(struct etcd *etcd, const char *key, etcd_watch_fn *handler, void *user,
    struct etcd_watch **ret_watch, struct cadre_error *error);

/* Ends it; its handler is not called any more. Before etcd_close(), which ends what is left. NULL
 * is fine. */
void etcd_watch_close(struct etcd_watch *watch);

#endif
