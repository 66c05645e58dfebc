/* SPDX-License-Identifier: Apache-2.0
 * The values of the log's keys: between the structs of leadership/log_store.h and bytes
 * (proto/cadre/v1/replication.proto). Equal structs give equal bytes.
 *
 * Packing takes memory of the arena: {NULL, 0} when there is none. Unpacking accepts bytes of any
 * origin; false: they are no such value, or, if wire_arena_is_spent(), there is no memory. What it
 * returns is valid until the arena's reset. */
#ifndef CADRE_COORDINATOR_REPLICATION_VALUES_H
#define CADRE_COORDINATOR_REPLICATION_VALUES_H

#include "common/etcd/etcd.h"
#include "coordinator/leadership/leadership.h"

struct wire_arena;

#define REPLICA_NAME_BYTES      LIMIT_NAME_BYTES /* with the terminator */
#define REPLICA_ADDRESSES_BYTES 512              /* likewise */
#define REPLICA_SECRET_BYTES    32

/* Key `cluster`, with what the leadership core need not know of. */
struct cluster_value {
    struct log_cluster cluster;
    uint8_t secret[REPLICA_SECRET_BYTES];
};

/* Key `leader`, with what is for people. */
struct leader_value {
    struct log_leader leader;
    char name[REPLICA_NAME_BYTES];
    char addresses[REPLICA_ADDRESSES_BYTES]; /* "HOST:PORT,HOST:PORT" */
    uint64_t since_us;                       /* wall clock */
};

enum entry_content {
    ENTRY_LEADER = 1, /* the TERM entry of a leader */
    ENTRY_RECORDS,
    ENTRY_PIECES /* its records are in keys of their own */
};

/* Key `log/INDEX`. */
struct entry_value {
    uint64_t term, index;
    uint32_t format;
    uint64_t appended_us; /* wall clock */
    struct log_hash hash;
    enum entry_content content;
    struct etcd_bytes bytes; /* of ENTRY_RECORDS; of ENTRY_LEADER: a packed LogTerm */
    uint32_t piece_count;    /* of ENTRY_PIECES: 2 to LOG_PIECES_MAX */
    uint64_t piece_bytes;    /* likewise: of all of them */
};

/* The content of a TERM entry. */
struct term_value {
    const char *name, *version;
    struct log_nonce nonce;
};

/* Key `snap/INDEX`: a copy of the ledger as a file. */
struct replica_snapshot {
    struct leadership_position at; /* of the newest entry in it; index 0: none */
    uint8_t sha256[LIMIT_SHA256_BYTES];
    uint64_t size; /* of the file */
};

struct etcd_bytes value_pack_cluster(const struct cluster_value *cluster, struct wire_arena *arena);
/* The same value with another format; fields that this version does not know are kept. */
struct etcd_bytes value_raise_format(
    struct etcd_bytes cluster, uint32_t format, struct wire_arena *arena);
struct etcd_bytes value_pack_leader(const struct leader_value *leader, struct wire_arena *arena);
struct etcd_bytes value_pack_head(const struct log_head *head, struct wire_arena *arena);
struct etcd_bytes value_pack_entry(const struct entry_value *entry, struct wire_arena *arena);
struct etcd_bytes value_pack_term(const struct term_value *term, struct wire_arena *arena);
struct etcd_bytes value_pack_snapshot(
    const struct replica_snapshot *snapshot, struct wire_arena *arena);

bool value_unpack_cluster(
    struct etcd_bytes value, struct wire_arena *arena, struct cluster_value *ret_cluster);
/* mod_revision is 0. */
bool value_unpack_leader(
    struct etcd_bytes value, struct wire_arena *arena, struct leader_value *ret_leader);
/* Likewise. */
bool value_unpack_head(
    struct etcd_bytes value, struct wire_arena *arena, struct log_head *ret_head);
bool value_unpack_entry(
    struct etcd_bytes value, struct wire_arena *arena, struct entry_value *ret_entry);
bool value_unpack_term(
    struct etcd_bytes value, struct wire_arena *arena, struct term_value *ret_term);
bool value_unpack_snapshot(
    struct etcd_bytes value, struct wire_arena *arena, struct replica_snapshot *ret_snapshot);

#endif
