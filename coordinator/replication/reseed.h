/* SPDX-License-Identifier: Apache-2.0
 * Writes a new log that begins from a snapshot: in place of an older log of the same cluster
 * (--reseed, HA20), or where there is none, of a ledger that was kept without one (import). It is
 * one transaction, guarded by what was read; a leader of the older log steps down. The first entry
 * is behind the snapshot, so a coordinator without all of it installs the file. On the loop's
 * thread. */
#ifndef CADRE_COORDINATOR_REPLICATION_RESEED_H
#define CADRE_COORDINATOR_REPLICATION_RESEED_H

#include "coordinator/replication/replica.h"

struct reseed;

/* A term that no coordinator knows of is so much above the highest that is known. */
#define RESEED_TERMS 1000

struct reseed_options {
    struct etcd *etcd; /* the caller's; closed after it */
    /* Where every coordinator can read it, synced, and read back. An imported ledger is at
     * reseed_import_position(). */
    struct replica_snapshot snapshot;
    struct log_nonce cluster_id; /* as it is known, or drawn for an import */
    uint8_t secret[REPLICA_SECRET_BYTES];
    uint32_t format;     /* of the newest entry in the snapshot; at least 1 */
    uint64_t term;       /* highest that is known; the next leader's is above it. Import: not 0 */
    bool imports;        /* there must be no cluster */
    uint64_t attempt_us; /* an attempt without an answer ends after so long */
    uint64_t patience_us;
    /* Once, from the loop; `text` is a sentence. OK: the log is written, and `known` is for the
     * copy. ALREADY_EXISTS: an import, and there is a cluster. FAILED_PRECONDITION: etcd holds
     * another cluster, or a log that is not older. DEADLINE_EXCEEDED: no answer in time; the log
     * may be written, and is found when it is tried again. */
    void (*done)(
        void *user, cadre_status status, const char *text, const struct replica_known *known);
    void *user;
};

/* The position of an imported ledger, which its copy is to have: index 1, so that who lacks it
 * knows. RESOURCE_EXHAUSTED: no memory. */
cadre_status reseed_import_position(struct log_nonce cluster_id, uint64_t term,
    struct leadership_position *ret_position, struct cadre_error *error);

/* RESOURCE_EXHAUSTED: no memory. INTERNAL: no random numbers. */
cadre_status reseed_open(struct rpc_loop *loop, const struct reseed_options *options,
    struct reseed **ret_reseed, struct cadre_error *error);
/* Not from within done(). Before etcd_close() and rpc_loop_close(). What was sent may still be
 * written. NULL is fine. */
void reseed_close(struct reseed *reseed);

#endif
