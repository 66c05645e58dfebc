/* SPDX-License-Identifier: Apache-2.0
 * A replica as its files see it: resign.c calls replica.c, which calls act.c, which calls
 * snapshots.c. Private to coordinator/replication. */
#ifndef CADRE_COORDINATOR_REPLICATION_REPLICA_STATE_H
#define CADRE_COORDINATOR_REPLICATION_REPLICA_STATE_H

#include <uv.h>

#include "coordinator/leadership/snapshot_rules.h"
#include "coordinator/replication/etcd_log.h"
#include "coordinator/replication/replica.h"

#define WATCHES           2
#define FAILED_AT_ONCE    2 /* a read and a transaction */
#define VERSION_BYTES_MAX 128

/* What was called or happened within a step, and is the next event. */
struct pending {
    uint64_t unanswered[FAILED_AT_ONCE]; /* requests that could not be sent; 0: none */
    bool applied, no_room, hello, stand, leave, installed, held; /* `held`: of snapshots */
    struct leadership_position applied_to, installed_at, no_room_at;
    uint64_t hello_term, hello_index;
};

struct replica {
    struct replica_options options;
    char name[REPLICA_NAME_BYTES], addresses[REPLICA_ADDRESSES_BYTES], version[VERSION_BYTES_MAX];
    struct leadership *core; /* NULL: not open */
    struct tickets tickets;
    uint64_t offered;  /* tickets before it are the core's */
    uint32_t raise_to; /* a format, with the next entry that is not a lagging one; 0: none */
    struct etcd_log *log;
    struct etcd_watch *watches[WATCHES];
    uv_timer_t timer;
    struct pending pending;
    struct leadership_position applied; /* to the copy of the ledger */
    struct snapshot_rules rules;
    struct replica_snapshot held;       /* the one that this leader made last */
    const struct entry_value *contents; /* of the read that is being stepped */
    struct log_leader reported;
    bool in_step, ended, closed;
    bool copy_lacks; /* entries that this leader appended, for want of room: it leaves */
    char failure[CADRE_ERROR_TEXT_BYTES];
    uint64_t failures; /* so many were noted */
};

/* An event of the loop, or NULL, and all that follows from it. */
void replica_run(struct replica *replica, struct leadership_event *event);
/* Carries out an action of the core: a request to etcd, or a call of the owner's table. */
void replica_act(struct replica *replica, const struct leadership_action *action);
/* snapshots.c: what the rules of snapshots ask for. */
void snapshots_begin(struct replica *replica);
/* These entries were applied, and the copy is at `replica->applied`. */
void snapshots_applied(struct replica *replica, const struct replica_entry *entries, size_t count);
/* The copy is empty. */
void snapshots_discarded(struct replica *replica);
/* A leader's, after each event: looks, or has one made, when it is due. */
void snapshots_check(struct replica *replica);
/* FETCH_SNAPSHOT. */
void snapshots_fetch(struct replica *replica);
/* The answer of etcd_log_read_snapshot(). */
void snapshots_found(struct replica *replica, cadre_status status, const char *text,
    const struct replica_snapshot *snapshot);
/* What the owner answers. */
void snapshots_installed(struct replica *replica, const struct leadership_position *position);
void snapshots_held(struct replica *replica, const struct replica_snapshot *snapshot);
/* What is held becomes this event. */
void snapshots_take_held(const struct replica *replica, struct leadership_event *ret_event);
/* SNAPSHOT_STORED. */
void snapshots_stored(struct replica *replica, uint64_t index);
/* failure.c: keeps the sentence of a request that failed. */
void replica_note_failure(struct replica *replica, const char *text);

#endif
