/* SPDX-License-Identifier: Apache-2.0
 * A transaction of the leadership core as one of etcd: what it compares, writes and, if a
 * comparison does not hold, reads. Built once; each attempt sends the same bytes. */
#ifndef CADRE_COORDINATOR_REPLICATION_BUILD_H
#define CADRE_COORDINATOR_REPLICATION_BUILD_H

#include "coordinator/replication/keys.h"
#include "coordinator/replication/tickets.h"
#include "coordinator/replication/values.h"

/* Of a value of a key other than log/ and part/: longer ones are damaged. */
#define SMALL_VALUE_BYTES_MAX 4096

/* A value as it is in etcd, and what it says. */
struct known_leader {
    struct leader_value value;
    size_t size; /* 0: none is known */
    uint8_t bytes[SMALL_VALUE_BYTES_MAX];
};

/* What a transaction is built from, besides itself. */
struct build_inputs {
    const char *name, *addresses, *version; /* of this coordinator */
    const uint8_t *secret;                  /* REPLICA_SECRET_BYTES, which CREATE writes */
    const struct tickets *tickets;
    const struct replica_snapshot *snapshot; /* that SNAPSHOT names */
    struct etcd_bytes cluster;               /* as it is in etcd */
    uint32_t format;                         /* in force */
    /* The value of `leader` that is to be in etcd, by etcd_log; NULL: only the struct is known. */
    const struct known_leader *guard;
    uint64_t wall_us;
};

#define BUILD_COMPARISONS_MAX 3
#define BUILD_GETS            3 /* otherwise: cluster, leader, head */

struct built {
    struct wire_arena *arena; /* the caller's; all values are in it, or in the tickets */
    struct etcd_transaction etcd;
    struct etcd_comparison comparisons[BUILD_COMPARISONS_MAX];
    struct etcd_operation then[ETCD_OPERATIONS_MAX];
    struct log_key keys[ETCD_OPERATIONS_MAX + 4];
    size_t key_count;
    /* Of CREATE, TAKE_OVER and LEAVE: the leader that it writes; else size 0. */
    struct known_leader leader;
    /* Of an append: its entries; those in pieces have ENTRY_RECORDS and all bytes here. */
    struct entry_value entries[LOG_APPEND_ENTRIES_MAX];
    uint32_t entry_count;
    struct log_hash hash; /* of the head that it writes */
};

/* RESOURCE_EXHAUSTED: no memory. */
cadre_status build_transaction(const struct log_transaction *transaction,
    const struct build_inputs *inputs, struct built *built, struct cadre_error *error);

#endif
