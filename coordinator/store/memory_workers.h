/* SPDX-License-Identifier: Apache-2.0
 * What the memory peer holds of workers. No tail of it is lost: its commits are synced, and the
 * entries of a shared log may be applied again. */
#ifndef CADRE_COORDINATOR_STORE_MEMORY_WORKERS_H
#define CADRE_COORDINATOR_STORE_MEMORY_WORKERS_H

#include "coordinator/store/store.h"

struct memory_workers {
    struct core_drained *drains; /* of workers that clients have drained */
    size_t drain_count;
    size_t drain_capacity;
    struct core_culprit *culprits; /* on which a task had another state than most */
    size_t culprit_count;
    size_t culprit_capacity;
};

/* Whether the record is of a worker. */
bool memory_workers_has(const struct store_record *record);
/* Room for as many as all records of a commit could be. RESOURCE_EXHAUSTED: no memory. */
cadre_status memory_workers_prepare(
    struct memory_workers *workers, size_t records, struct cadre_error *error);
/* After that; the record is of a worker. */
void memory_workers_apply(struct memory_workers *workers, const struct core_record *record);
/* What it holds; the struct is the caller's. */
void memory_workers_free(struct memory_workers *workers);

#endif
