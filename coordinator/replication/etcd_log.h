/* SPDX-License-Identifier: Apache-2.0
 * Reads and transactions of the leadership core (leadership/log_store.h) as requests to etcd. It
 * decides nothing: each call sends once, an answer comes back once, and what is sent again is the
 * same bytes.
 *
 * All functions and handlers are called on the loop's thread. Handlers come from the loop, never
 * from within a call. */
#ifndef CADRE_COORDINATOR_REPLICATION_ETCD_LOG_H
#define CADRE_COORDINATOR_REPLICATION_ETCD_LOG_H

#include "coordinator/leadership/leadership.h"
#include "coordinator/replication/tickets.h"
#include "coordinator/replication/values.h"

struct etcd_log;

/* All that they get is valid until they return. They may not close the log. */
struct etcd_log_handlers {
    /* `contents` are those of read->entries. */
    void (*read)(
        void *user, const struct leadership_read *read, const struct entry_value *contents);
    void (*answered)(void *user, const struct leadership_answer *answer);
    /* `text` is one sentence. */
    void (*unanswered)(void *user, uint64_t request, bool no_space, const char *text);
    /* The answer of etcd_log_read_snapshot(). NOT_FOUND: no key names one. */
    void (*snapshot)(
        void *user, cadre_status status, const char *text, const struct replica_snapshot *snapshot);
};

/* Texts and tables are the caller's, and outlive it. */
struct etcd_log_options {
    struct etcd *etcd;
    const char *name;      /* of this coordinator, less than REPLICA_NAME_BYTES */
    const char *addresses; /* less than REPLICA_ADDRESSES_BYTES */
    const char *version;
    const uint8_t *secret; /* REPLICA_SECRET_BYTES, of a cluster that this coordinator creates */
    uint64_t attempt_us;   /* an attempt without an answer ends after so long */
    const struct tickets *tickets;
    const struct replica_snapshot *snapshot; /* that the next LOG_SNAPSHOT names */
    const struct etcd_log_handlers *handlers;
    void *user;
};

/* RESOURCE_EXHAUSTED: no memory. */
cadre_status etcd_log_open(
    const struct etcd_log_options *options, struct etcd_log **ret_log, struct cadre_error *error);
/* No handler is called any more. What was sent may still be applied. NULL is fine. */
void etcd_log_close(struct etcd_log *log);

/* LEADERSHIP_ACTION_READ. A status other than OK: nothing was sent, no handler follows. */
cadre_status etcd_log_read(struct etcd_log *log, uint64_t request,
    const struct leadership_position *after, uint32_t entries_max, struct cadre_error *error);
/* LEADERSHIP_ACTION_TRANSACT; likewise. The tickets that it names are kept until it is answered. */
cadre_status etcd_log_transact(struct etcd_log *log, uint64_t request,
    const struct log_transaction *transaction, struct cadre_error *error);

/* Reads which snapshot is the newest; likewise. */
cadre_status etcd_log_read_snapshot(struct etcd_log *log, struct cadre_error *error);

/* The key `leader` as it was read or written last; term 0: there is none. */
const struct leader_value *etcd_log_leader(const struct etcd_log *log);
/* Of entries, in force, as it was read or written last; 0: it was not read yet. */
uint32_t etcd_log_format(const struct etcd_log *log);
/* REPLICA_SECRET_BYTES of the key `cluster` as it was read last, or zeros. */
const uint8_t *etcd_log_secret(const struct etcd_log *log);
/* Entry `index` of the newest append; its bytes are valid until its ticket is dropped, those of a
 * TERM entry until the next transaction. */
const struct entry_value *etcd_log_entry(const struct etcd_log *log, uint64_t index);

#endif
