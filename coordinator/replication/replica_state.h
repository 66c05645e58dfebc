/* SPDX-License-Identifier: Apache-2.0
 * A replica as its files see it: replica.c calls act.c. Private to coordinator/replication. */
#ifndef CADRE_COORDINATOR_REPLICATION_REPLICA_STATE_H
#define CADRE_COORDINATOR_REPLICATION_REPLICA_STATE_H

#include <uv.h>

#include "coordinator/replication/etcd_log.h"
#include "coordinator/replication/replica.h"

#define WATCHES           2
#define FAILED_AT_ONCE    2 /* a read and a transaction */
#define VERSION_BYTES_MAX 128

/* What was called or happened within a step, and is the next event. */
struct pending {
    uint64_t unanswered[FAILED_AT_ONCE]; /* requests that could not be sent; 0: none */
    bool applied, hello, leave, installed, held;
    struct leadership_position applied_to, installed_at;
    uint64_t hello_term, hello_index;
    struct leadership_snapshot snapshot;
};

struct replica {
    struct replica_options options;
    char name[REPLICA_NAME_BYTES], addresses[REPLICA_ADDRESSES_BYTES], version[VERSION_BYTES_MAX];
    struct leadership *core; /* NULL: not open */
    struct tickets tickets;
    uint64_t offered; /* tickets before it are the core's */
    struct etcd_log *log;
    struct etcd_watch *watches[WATCHES];
    uv_timer_t timer;
    struct pending pending;
    const struct entry_value *contents; /* of the read that is being stepped */
    struct log_leader reported;
    bool in_step, ended, closed;
    char failure[CADRE_ERROR_TEXT_BYTES];
    uint64_t failures; /* so many were noted */
};

/* Carries out an action of the core: a request to etcd, or a call of the owner's table. */
void replica_act(struct replica *replica, const struct leadership_action *action);
/* Keeps the sentence of a request that failed. */
void replica_note_failure(struct replica *replica, const char *text);

#endif
