/* SPDX-License-Identifier: Apache-2.0
 * Snapshots of the copies of the ledger, in the folder that all coordinators read. When one is
 * made, what is trimmed behind it and which one is installed is decided by production
 * (coordinator/leadership/snapshot_rules.h). */
#ifndef CADRE_SIM_SNAPSHOTS_H
#define CADRE_SIM_SNAPSHOTS_H

#include "coordinator/leadership/snapshot_rules.h"

struct happening;
struct sim;

/* A file of the folder. */
struct snapshot_file {
    uint64_t index; /* 0: it is removed */
    uint64_t made;  /* number of its making: another one of the same index has another content */
};

/* Of a coordinator's process. */
struct its_snapshots {
    struct snapshot_rules rules;
    struct leadership_position making; /* what the copy was when it began */
    struct snapshot_file held;         /* the newest that it made */
    struct snapshot_file found;        /* by its newest reading of the store */
};

struct folder {
    struct snapshot_file *files;
    uint32_t count;
    uint32_t capacity;
    uint64_t made;              /* so many were */
    struct snapshot_file named; /* by the store */
};

/* Its process starts. */
void snapshots_open(struct sim *sim, uint32_t r);
/* So many entries were applied to its copy. */
void snapshots_applied(struct sim *sim, uint32_t r, uint32_t entries);
/* After each event of its leadership: whether one is due. */
void snapshots_check(struct sim *sim, uint32_t r);
/* LEADERSHIP_ACTION_FETCH_SNAPSHOT, LEADERSHIP_ACTION_SNAPSHOT_STORED. */
void snapshots_fetch(struct sim *sim, uint32_t r);
void snapshots_stored(struct sim *sim, uint32_t r, uint64_t index);
/* ON_LOG_SNAPSHOT, ON_REPLICA_SNAPSHOT. */
void snapshots_happen(struct sim *sim, const struct happening *happening);
/* A new file of the folder, of the ledger up to this entry. */
struct snapshot_file folder_add(struct sim *sim, uint64_t index);
/* TRIM: a coordinator that begins with nothing can reach the head of the log. */
void check_reachable(struct sim *sim);

#endif
