/* SPDX-License-Identifier: Apache-2.0
 * This coordinator's copy of a ledger that several share: ledger.db of its state directory, filled
 * from the log's entries and with nothing else. */
#ifndef CADRE_COORDINATOR_DAEMON_SHARED_LEDGER_COPY_H
#define CADRE_COORDINATOR_DAEMON_SHARED_LEDGER_COPY_H

#include "coordinator/entries/entry_batch.h"
#include "coordinator/replication/replica.h"
#include "coordinator/store/store.h"

struct ledger_copy {
    const char *path;    /* of its file; the caller's */
    struct store *store; /* the owner's; the engine closes it once there is one */
    struct entry_batch batch;
};

/* What the copy says of the log, for replica_open(). FAILED_PRECONDITION: the store has jobs of a
 * coordinator that led alone, and is no copy of a log. */
cadre_status ledger_copy_describe(
    const struct ledger_copy *copy, struct replica_options *ret_options, struct cadre_error *error);

/* What it says of the cluster: all zero if it knows none. */
void ledger_copy_known(const struct ledger_copy *copy, struct replica_known *ret_known);

/* Applies entries and their positions in their order, several in one transaction; what is stored is
 * always a prefix of the log: *ret_applied of them, all if OK. INVALID_ARGUMENT: an entry that this
 * version cannot read; nothing of it is stored. RESOURCE_EXHAUSTED: there is no room for the
 * others.
 */
cadre_status ledger_copy_apply(struct ledger_copy *copy, const struct replica_entry *entries,
    size_t count, size_t *ret_applied, struct cadre_error *error);

/* Stores what is known of the cluster. */
cadre_status ledger_copy_note(
    struct ledger_copy *copy, const struct replica_known *known, struct cadre_error *error);

/* Begins an empty copy of the same cluster; the file that it was is kept beside it, as
 * PATH.discarded. Not while an engine has the store. */
cadre_status ledger_copy_discard(struct ledger_copy *copy, struct cadre_error *error);

/* The store at `path`, which is that of the snapshot, takes the place of the copy. Not while an
 * engine has the store. DATA_LOSS: it is another one. After an error the copy is what it was, or
 * copy->store is NULL. */
cadre_status ledger_copy_install(struct ledger_copy *copy, const char *path,
    const struct replica_snapshot *snapshot, const struct replica_known *known,
    struct cadre_error *error);

/* Frees what applying needed; the store stays. */
void ledger_copy_close(struct ledger_copy *copy);

#endif
