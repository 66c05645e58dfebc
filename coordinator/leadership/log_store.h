/* SPDX-License-Identifier: Apache-2.0
 * The log of the ledger as it is kept in etcd: its keys, and the transactions
 * that write them. All keys are beneath one prefix. Hashes are SHA-256; the
 * shell computes them, the core compares.
 *
 *   hash(0) = H(cluster id)        hash(i) = H(hash(i-1), term, index, entry)
 *
 * An entry is stored with hash(i) beside it, which is not among the bytes that
 * are hashed. */
#ifndef CADRE_COORDINATOR_LEADERSHIP_LOG_STORE_H
#define CADRE_COORDINATOR_LEADERSHIP_LOG_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/model/limits.h"

/* Limits of one transaction (etcd: 128 operations, 1.5 MiB). */
#define LOG_APPEND_ENTRIES_MAX 120
#define LOG_APPEND_BYTES_MAX   (1024 * 1024)
/* An entry of more bytes than a piece is written in pieces, before the append
 * that names their count and their hash. */
#define LOG_PIECE_BYTES      (512 * 1024)
#define LOG_PIECES_PER_WRITE 2
#define LOG_PIECES_MAX       64
#define LOG_ENTRY_BYTES_MAX  (LOG_PIECES_MAX * LOG_PIECE_BYTES)
#define LOG_ENTRY_EXTRA_BYTES                                                                      \
    256 /* of key, term, index, hash: counted for each entry of an append */
/* Entries in one read. The shell may return fewer, but at least the first one
 * that is there. */
#define LOG_READ_ENTRIES_MAX 64

struct log_hash {
    uint8_t bytes[LIMIT_SHA256_BYTES];
};

/* 128 random bits. Both 0: none. */
struct log_nonce {
    uint64_t high, low;
};

/* Key `cluster`. */
struct log_cluster {
    struct log_nonce id;
    uint64_t etcd_id; /* etcd's own cluster id, when the key was made */
    uint32_t format;  /* in force: no leader writes a newer one (HA24) */
    /* The log was written again (--reseed), into etcd's cluster `etcd_id`, in
     * this term; 0: never. */
    uint64_t reseeded_term;
};

/* Key `leader`. Its names, addresses and wall clock are the shell's. */
struct log_leader {
    uint64_t term;
    struct log_nonce nonce;
    bool left;             /* it has ended in order: who takes over does not wait (HA2) */
    uint64_t mod_revision; /* of etcd; not part of the value */
};

/* Key `head`. Each guarded transaction raises `beat`, so two values of one term
 * differ. */
struct log_head {
    uint64_t term;
    struct log_nonce nonce;
    uint64_t index; /* of the newest entry; 0: there was none yet */
    struct log_hash hash;
    uint64_t first;        /* index of the oldest entry that is there; index + 1: none is */
    uint64_t beat;         /* guarded transactions of this term so far; T2 writes 0 */
    uint64_t mod_revision; /* of etcd; not part of the value */
};

/* What the core uses of the key `log/INDEX`. */
struct log_entry {
    uint64_t index;
    uint64_t term;
    uint32_t format;
    struct log_hash hash;     /* as stored beside it */
    struct log_hash computed; /* from hash(index - 1) and its bytes, those of its
                                 pieces included; of an entry whose pieces are not
                                 all there: all zero */
};

enum log_transaction_kind {
    LOG_CREATE = 1, /* T1 */
    LOG_TAKE_OVER,  /* T2 */
    LOG_APPEND,     /* T3 */
    LOG_BEAT,       /* T4 */
    LOG_TRIM,       /* T5 */
    LOG_LEAVE,      /* T6 */
    LOG_PIECES,     /* a beat that also writes pieces of the next entry */
    LOG_SNAPSHOT    /* a beat that also writes the key snap/INDEX */
};

/* A transaction: it compares, and writes all of it or nothing.
 *
 *               compares                       writes
 *   CREATE      version(cluster) = 0           cluster, leader, head
 *   TAKE_OVER   value and mod of leader,       leader, head
 *               mod of head
 *   APPEND      value of leader, mod of head   log/INDEX of each entry, head;
 *                                              cluster if `format` is not 0
 *   BEAT        the same                       head
 *   TRIM        the same                       head; deletes log/[trim_from,
 *                                              trim_to] and their pieces
 *   PIECES      the same                       head, part/INDEX/N
 *   SNAPSHOT    the same                       head, snap/INDEX; deletes snap/
 *                                              before it
 *   LEAVE       the same                       leader
 *
 * Else-branch: gets cluster, leader and head. Values are compared as bytes, so
 * the shell encodes equal structs to equal bytes; names and addresses in the
 * value of `leader` are those of the process that wrote it, which the shell
 * keeps from when it wrote or read them. */
struct log_transaction {
    enum log_transaction_kind kind;
    /* The guard (HA1): `leader` as it must be, and the mod revision of `head`. */
    struct log_leader guard_leader;
    uint64_t guard_head_revision;
    /* What is written. In an append, head.hash is the hash of the entry before
     * its first one, and the shell writes the hash of its last one instead. */
    struct log_leader leader;   /* CREATE, TAKE_OVER, LEAVE */
    struct log_head head;       /* all but LEAVE */
    struct log_cluster cluster; /* CREATE; of an append only its format, unless that is 0 */
    /* APPEND: entries first_index to head.index, one for each ticket from
     * first_ticket to last_ticket that has one (LEADERSHIP_CONFIRM has none), in
     * that order; or only the TERM entry (name, version and nonce of the new
     * leader; the nonce, because a restored etcd may give the same term and index
     * once more), which has no ticket. BEAT: the same tickets, none of which has
     * an entry; last_ticket < first_ticket: none. */
    bool term_entry;
    uint64_t first_index;
    uint64_t first_ticket, last_ticket;
    /* PIECES: pieces [piece, piece_end) of `piece_count` of the entry of
     * first_ticket, which will be first_index. Each has LOG_PIECE_BYTES, the last
     * one what is left. */
    uint32_t piece, piece_end, piece_count;
    /* SNAPSHOT, TRIM */
    uint64_t snapshot_index;
    struct log_hash snapshot_hash;
    uint64_t trim_from, trim_to;
};

static inline bool log_nonce_equal(struct log_nonce a, struct log_nonce b)
{
    return a.high == b.high && a.low == b.low;
}

/* Whether both are equal in all bytes. */
bool log_hash_equal(const struct log_hash *a, const struct log_hash *b);
/* Whether both values are equal; their mod revisions may differ. */
bool log_leader_equal(const struct log_leader *a, const struct log_leader *b);
/* Likewise. */
bool log_head_equal(const struct log_head *a, const struct log_head *b);

#endif
