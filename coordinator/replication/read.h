/* SPDX-License-Identifier: Apache-2.0
 * The linearizable read: which keys one transaction gets, and what its answer says. Bytes of any
 * origin are accepted: a key that is missing or damaged is one that is not there, an entry that is
 * damaged has the hash 0. */
#ifndef CADRE_COORDINATOR_REPLICATION_READ_H
#define CADRE_COORDINATOR_REPLICATION_READ_H

#include "coordinator/replication/build.h"

/* cluster, leader, head; then entries, or one entry and its pieces. */
#define READ_GETS_MAX 5

struct read_request {
    struct etcd_operation gets[READ_GETS_MAX];
    struct log_key keys[READ_GETS_MAX];
    struct etcd_transaction etcd;
};

/* The three keys as found. */
struct read_keys {
    bool has_cluster, has_leader, has_head;
    struct cluster_value cluster;    /* zero: it is damaged */
    struct etcd_bytes cluster_bytes; /* size 0: likewise */
    struct known_leader leader;      /* mod_revision is set */
    struct log_head head;            /* likewise */
};

/* Entries as found, and their contents: of pieces the joined bytes, with ENTRY_RECORDS. */
struct read_entries {
    uint32_t count;
    struct log_entry entries[LOG_READ_ENTRIES_MAX];
    struct entry_value contents[LOG_READ_ENTRIES_MAX];
    uint32_t piece_count; /* not 0: the entry behind these is in so many pieces, which another
                             request has to get */
};

/* Gets the three keys, and up to `entries_max` entries behind `after`. */
void read_build(struct read_request *request, uint64_t after, uint32_t entries_max);
/* Gets the three keys, the entry behind `after` and its pieces. */
void read_build_pieces(struct read_request *request, uint64_t after, uint32_t piece_count);

/* From the results of the three gets. False: there is no memory. What it returns points into the
 * answer and the arena. */
bool read_take_keys(
    const struct etcd_result *results, struct wire_arena *arena, struct read_keys *ret_keys);
/* From the results behind those of read_build(). RESOURCE_EXHAUSTED: no memory. */
cadre_status read_take_entries(const struct etcd_result *entries,
    const struct leadership_position *after, struct wire_arena *arena,
    struct read_entries *ret_entries, struct cadre_error *error);
/* From the results behind those of read_build_pieces(): one entry, or none. */
cadre_status read_take_pieces(const struct etcd_result *entry, const struct etcd_result *pieces,
    const struct leadership_position *after, struct wire_arena *arena,
    struct read_entries *ret_entries, struct cadre_error *error);

#endif
