/* SPDX-License-Identifier: Apache-2.0
 * One of several coordinators: a leadership core (coordinator/leadership) with its clock, its timer
 * and its log in etcd, on the loop. It decides nothing; README.md has the picture.
 *
 * All functions are called on the loop's thread, and so is the table `replica_ops`, from the loop
 * or from within replica_append(), replica_leave() and replica_hello_ahead(). From within the table
 * the owner may call all functions but replica_close(). */
#ifndef CADRE_COORDINATOR_REPLICATION_REPLICA_H
#define CADRE_COORDINATOR_REPLICATION_REPLICA_H

#include "common/rpc/loop.h"
#include "coordinator/leadership/leadership.h"
#include "coordinator/replication/values.h"

struct replica;

/* An entry of the log, as every coordinator gets it. */
struct replica_entry {
    struct leadership_position at;
    uint32_t format;
    uint64_t appended_us; /* wall clock of its leader */
    bool is_term;         /* first of a term: `bytes` is a LogTerm, value_unpack_term() */
    const void *bytes;
    size_t size;
};

/* What the copy of the ledger is to remember of the cluster. */
struct replica_known {
    struct log_nonce cluster_id;
    uint64_t etcd_id;
    uint64_t term;                        /* highest that was seen */
    struct log_hash hash;                 /* hash(0): that of a copy without entries */
    uint8_t secret[REPLICA_SECRET_BYTES]; /* of the key `cluster`: of generation keys */
};

/* The owner. What is pointed to is valid until the function returns. */
struct replica_ops {
    /* Applies the entries, which follow each other, to the copy of the ledger, each with its
     * position in one transaction of it; *ret_applied of them. All entries of the log come this
     * way: those that were read and those that this coordinator appended. RESOURCE_EXHAUSTED: there
     * is no room for the others, which come again, or, if it leads, the replica ends in order.
     * Another status than OK: it ends with step_down(). */
    cadre_status (*apply)(void *user, const struct replica_entry *entries, size_t count,
        size_t *ret_applied, struct cadre_error *error);
    /* Stores it in the copy; nothing waits for it. */
    void (*store_known)(void *user, const struct replica_known *known);
    /* Begins an empty copy, because this one is not that of the log, which accept_restored allows.
     * Another status than OK: as with apply(). */
    cadre_status (*discard)(void *user, struct cadre_error *error);
    /* Entries that the copy lacks are trimmed: installs this snapshot in place of the copy, once
     * the file has that size and SHA-256, then calls replica_snapshot_installed(). */
    void (*fetch_snapshot)(void *user, const struct replica_snapshot *snapshot);
    /* Of a leader, because the log has grown or time has passed: makes a snapshot of the copy,
     * which is at this position now and may have more entries in the snapshot, then calls
     * replica_snapshot_held(). */
    void (*make_snapshot)(void *user, const struct leadership_position *at);
    /* Etcd names this snapshot and no older one; until now it named `before`, 0: none. Files of
     * those older than that can be deleted: a backup of etcd that is being taken may name `before`.
     */
    void (*snapshot_stored)(void *user, uint64_t index, uint64_t before);
    /* This coordinator leads: restores the core from the copy, in which the TERM entry is applied,
     * and begins. Tickets are numbered from 1 from here on. */
    void (*lead)(void *user, uint64_t term);
    /* All tickets up to this one are in the log and applied, or confirmed. */
    void (*logged)(void *user, uint64_t ticket);
    /* apply() had no room; `leads`: so this coordinator leaves, and appends nothing more. */
    void (*no_room)(void *user, bool leads, const struct cadre_error *why);
    void (*suspend)(void *user); /* nothing may be sent, and the core's clock stands still */
    void (*resume)(void *user);
    /* The end: close all streams, start again by exec. Tickets that were not logged may be in the
     * log or not. */
    void (*step_down)(void *user, const char *text);
    /* The end: takes no part until people have looked. */
    void (*refuse)(void *user, const char *text);
    /* Another coordinator leads, or this one, or the leader has left. */
    void (*leader_changed)(void *user, const struct leader_value *leader);
};

struct replica_options {
    struct etcd *etcd; /* the caller's; closed after the replica */
    /* Texts are copied. */
    const char *name;      /* of this coordinator; 1 to 127 bytes */
    const char *addresses; /* where workers and clients reach it; up to 511 bytes */
    const char *version;   /* of the program; up to 127 bytes */
    /* What the copy of the ledger holds; without a cluster: `applied` is zero. */
    bool has_cluster;
    struct log_nonce cluster_id;
    uint64_t etcd_id;
    struct leadership_position applied;
    uint64_t term_seen;
    /* Drawn, of the cluster that this coordinator creates if there is none. */
    uint8_t secret[REPLICA_SECRET_BYTES];
    struct log_nonce contents_id; /* without a cluster: that of the contents; 0: none */
    bool waits;                   /* it is no candidate until replica_stand() */
    uint32_t format_max;          /* newest format of entries that this version knows */
    bool accept_restored;         /* an etcd that holds less than was known is right */
    uint64_t lease_us;            /* as in struct leadership_options, down to tickets_max */
    uint32_t drift_ppm;
    uint64_t margin_us;
    uint64_t lag_us;
    uint32_t tickets_max;
    /* A leader makes a snapshot after so many bytes of entries or so much time, whichever is
     * first, if there are entries behind the newest one; then entries up to it are trimmed, but for
     * those of the last `keep_us`. */
    uint64_t snapshot_bytes, snapshot_us, keep_us;
    const struct replica_ops *ops;
    void *user;
};

/* Begins as a follower, at the loop's next turn. INVALID_ARGUMENT: a text is too long.
 * RESOURCE_EXHAUSTED: no memory. */
cadre_status replica_open(struct rpc_loop *loop, const struct replica_options *options,
    struct replica **ret_replica, struct cadre_error *error);
/* Ends it as it is; nothing of the table is called any more. Before etcd_close() and
 * rpc_loop_close(), and not from within the table. NULL is fine. */
void replica_close(struct replica *replica);

/* Of a leader: copies the bytes as the next entry, 1 to LOG_ENTRY_BYTES_MAX; of LEADERSHIP_CONFIRM
 * none. FAILED_PRECONDITION: it does not lead, or has left. RESOURCE_EXHAUSTED: as many tickets
 * as may be wait for the log, or there is no memory. INVALID_ARGUMENT: the size. */
cadre_status replica_append(struct replica *replica, const void *bytes, size_t size,
    enum leadership_ticket_kind kind, uint64_t *ret_ticket, struct cadre_error *error);
/* Of a leader: the next LEADERSHIP_SYNC entry that is appended brings this format into force, which
 * is above that of the view: entries of it are written from then on, for ever. */
void replica_raise_format(struct replica *replica, uint32_t format);
/* Of one that waits: from now on it may lead. */
void replica_stand(struct replica *replica);
/* Until when messages may leave, by clock_boot_us(): they may while the clock is less. */
uint64_t replica_may_send_until_us(const struct replica *replica);
/* Ends in order: what was appended is logged first; then step_down(). */
void replica_leave(struct replica *replica);
/* A worker's hello names a higher term than this leader's, or its term and a higher index; another
 * leadership of the same term is (own term, UINT64_MAX). */
void replica_hello_ahead(struct replica *replica, uint64_t term, uint64_t index);
/* The answer to fetch_snapshot(); index 0: none could be had, and it is asked for again. */
void replica_snapshot_installed(
    struct replica *replica, const struct leadership_position *position);
/* The answer to make_snapshot(): this one is where every coordinator can read it, synced, and what
 * was read back has this SHA-256 (HA19). Index 0: it could not be made, and is asked for again. */
void replica_snapshot_held(struct replica *replica, const struct replica_snapshot *snapshot);

/* The state, for people. Valid until the next call or turn. */
struct replica_view {
    struct leadership_view core;
    uint64_t applied; /* the newest entry in the copy of the ledger, also while it leads */
    const struct leader_value *leader; /* as read last; term 0: none */
    uint32_t format;                   /* of entries, in force; 0: not known yet */
    const char *failure; /* newest failure of a request to etcd; "": none since the last answer */
    uint64_t failures;   /* requests to etcd, and watches, that failed */
};

void replica_show(const struct replica *replica, struct replica_view *ret_view);

#endif
