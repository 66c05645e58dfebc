/* SPDX-License-Identifier: Apache-2.0
 * A model of etcd for one prefix: linearizable, one revision for each
 * transaction that writes. It checks what is written as it is written:
 * ONE_LINE, TERM_UP. */
#ifndef CADRE_SIM_LEADERSHIP_STORE_H
#define CADRE_SIM_LEADERSHIP_STORE_H

#include "coordinator/leadership/leadership.h"

/* What an entry says: made by the shell that sends it. */
enum content_kind {
    CONTENT_TERM = 1,
    CONTENT_JOB, /* `request` of a client */
    CONTENT_LAGGING,
    CONTENT_FORMAT /* raises the format */
};

struct content {
    enum content_kind kind;
    uint64_t request; /* JOB: of the client; else what makes it differ from all
                         others */
    uint32_t format;  /* of the entry */
    uint32_t bytes;
};

struct stored_entry {
    uint64_t index; /* 0: there is none */
    uint64_t term;
    struct content content;
    struct log_hash hash;
    uint32_t pieces; /* named by the entry; 0: it is whole */
};

struct etcd {
    bool has_cluster;
    struct log_cluster cluster;
    struct log_leader leader;
    struct log_head head;
    uint64_t etcd_id;
    uint64_t revision;
    uint64_t snapshot_index; /* key snap/INDEX; 0: none */
    uint64_t piece_index;    /* pieces [0, piece_count) of this entry are there,
                                written by: */
    uint32_t piece_count;
    uint64_t piece_term;
    struct stored_entry *entries; /* entry i at i - 1; trimmed ones stay here, for comparing */
    uint32_t entries_max;
    bool full;          /* entries_max were written: the run ends */
    const char *broken; /* an invariant, or NULL */
    const char *why;
};

/* What a transaction writes besides its own fields: contents of its entries, by
 * the shell. */
struct payload {
    uint32_t count;
    struct content contents[LOG_APPEND_ENTRIES_MAX];
};

#define STORE_CHECKS_LEADER 1u /* which of the compares are evaluated */
#define STORE_CHECKS_HEAD   2u
#define STORE_CHECKS_ALL    3u

/* H(previous, term, index, content), in 64 bits; never zero. */
struct log_hash store_hash(
    const struct log_hash *previous, uint64_t term, uint64_t index, const struct content *content);
/* hash(0). */
struct log_hash store_cluster_hash(struct log_nonce id);

/* Whether the guard of the transaction holds now. */
bool store_guard_holds(
    const struct etcd *store, const struct log_transaction *transaction, uint32_t checks);
/* Writes it. */
void store_write(
    struct etcd *store, const struct log_transaction *transaction, const struct payload *payload);
/* Guard, then writing, or the else-branch. `request` and `hash` of the answer
 * are the shell's. */
void store_transact(struct etcd *store, const struct log_transaction *transaction,
    const struct payload *payload, uint32_t checks, struct leadership_answer *ret_answer);
/* A linearizable read; entries go to `entries` of room for entries_max. */
void store_read(const struct etcd *store, const struct leadership_position *after,
    uint32_t entries_max, struct log_entry *entries, struct leadership_read *ret_read);
/* The hash of an entry that was written; index 0: hash(0). */
struct log_hash store_hash_at(const struct etcd *store, uint64_t index);
/* The hash that the head will have with this transaction. */
struct log_hash store_hash_after(
    const struct log_transaction *transaction, const struct payload *payload);

#endif
