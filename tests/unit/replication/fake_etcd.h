/* SPDX-License-Identifier: Apache-2.0
 * etcd as a table in memory behind the functions of common/etcd that replication calls: it is
 * linked in their place. It compares, writes and answers as etcd does; a test may change each key,
 * and says which calls fail and how. Answers come from the loop, in order. */
#ifndef CADRE_TESTS_REPLICATION_FAKE_ETCD_H
#define CADRE_TESTS_REPLICATION_FAKE_ETCD_H

#include "common/etcd/etcd.h"
#include "common/rpc/loop.h"
#include "tests/lib/test.h"

#define FAKE_PAIRS_MAX   512
#define FAKE_WATCHES_MAX 16
#define FAKE_CLUSTER_ID  UINT64_C(0xe7cd)

enum fake_fault {
    FAKE_WELL,
    FAKE_REFUSED,      /* nothing is sent: the call returns an error */
    FAKE_LOST_REQUEST, /* not applied; whether it was is not known */
    FAKE_LOST_ANSWER,  /* applied; likewise */
    FAKE_LATE,         /* likewise; applied with the next call */
    FAKE_NO_SPACE,     /* not applied: alarm NOSPACE */
    FAKE_FAULTS
};

struct fake_pair {
    char key[ETCD_KEY_BYTES];
    uint8_t *value;
    size_t size;
    int64_t create_revision, mod_revision, version;
};

struct fake_request;

struct etcd {
    struct rpc_loop *loop;
    uint64_t cluster_id;
    int64_t revision;
    struct fake_pair pairs[FAKE_PAIRS_MAX]; /* by rising keys */
    size_t pair_count;
    struct etcd_watch *watches[FAKE_WATCHES_MAX];
    unsigned calls;
    enum fake_fault next; /* of the next call */
    unsigned fail_at;     /* the call with this number fails so: 0: none */
    unsigned fail_to;     /* and those after it, up to this one */
    enum fake_fault fail_at_how;
    struct fake_request *late; /* not applied yet */
    uint64_t sent_digest;      /* of the newest call: all that it compares and writes */
};

struct etcd *fake_open(struct rpc_loop *loop);
void fake_close(struct etcd *etcd);

/* NULL: it is not there. */
const struct fake_pair *fake_find(const struct etcd *etcd, const char *key);
/* As another client; size 0 deletes it. */
void fake_put(struct etcd *etcd, const char *key, const void *value, size_t size);
/* Puts the value that it has. */
void fake_touch(struct etcd *etcd, const char *key);
/* A copy of all keys and values, and their return, as another cluster of etcd. */
struct etcd *fake_backup(const struct etcd *etcd);
void fake_restore(struct etcd *etcd, struct etcd *backup);
/* Over all keys, values and revisions. */
uint64_t fake_digest(const struct etcd *etcd);

/* Runs the loop until check(user), at most 60 s of an idle machine. */
void fake_run_until(struct rpc_loop *loop, bool (*check)(void *user), void *user);

#endif
