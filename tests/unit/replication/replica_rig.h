/* SPDX-License-Identifier: Apache-2.0
 * Replicas on one loop and one fake etcd, each with an owner whose copy of the ledger is a list. */
#ifndef CADRE_TESTS_REPLICATION_REPLICA_RIG_H
#define CADRE_TESTS_REPLICATION_REPLICA_RIG_H

#include "common/base/clock.h"
#include "coordinator/replication/replica.h"
#include "fake_etcd.h"

/* So long that no replica takes over because this program was held up; a replica that is alone,
 * whose calls fail, repeats them sooner with a shorter one. */
#define LEASE_US       (60 * CADRE_US_PER_S)
#define SHORT_LEASE_US (600 * CADRE_US_PER_MS)

#define ENTRIES_MAX 256
#define REPLICAS    3

/* A replica and the copy of the ledger that its owner has: the first bytes of each entry. */
struct owner {
    struct replica *replica;
    struct rig *rig;
    char name[8];
    struct replica_entry entries[ENTRIES_MAX];
    char texts[ENTRIES_MAX][32];
    size_t entry_count, room; /* for so many entries */
    unsigned no_room;
    bool left_for_room;
    struct replica_known known;
    bool knows, leads, suspended, stepped_down, refused, apply_fails;
    uint64_t lease_us;
    unsigned appends_left; /* that it makes while it leads */
    unsigned appended;
    uint64_t logged;
    uint64_t snapshot_bytes, keep_us; /* 0: never; 0: all is trimmed */
    unsigned made, fails_to_make;     /* snapshots */
    uint64_t stored, stored_before;
    unsigned leaders_seen;
    struct leader_value leader;
    char text[600];
};

/* The snapshot file that all can read. */
struct file {
    struct replica_snapshot snapshot;
    struct replica_entry entries[ENTRIES_MAX];
    char texts[ENTRIES_MAX][32];
};

struct rig {
    struct rpc_loop *loop;
    struct etcd *etcd;
    struct file file;
    struct owner owners[REPLICAS];
};

/* cmocka's setup and teardown. */
int rig_open(void **state);
int rig_close(void **state);

/* Opens replica `i` with the copy that its owner has. */
void owner_start(struct rig *rig, size_t i);
void owner_stop(struct owner *owner);
struct replica_options options_of(struct owner *owner);
/* Appends as long as some are left and the replica takes them; more follow when those are logged.
 */
void append_more(struct owner *owner);

/* Conditions of an owner. */
bool leads(void *user);
bool has_ended(void *user);
bool is_done(void *user);
/* Of a rig. */
bool all_have_the_same(void *user);

void run_until(struct owner *owner, bool (*check)(void *user));
/* All copies have the entries of the first one. */
void check_same(const struct rig *rig);

#endif
