/* SPDX-License-Identifier: Apache-2.0
 * Records that no message waits for, kept until an entry of the shared log takes them: that of
 * their job alone, or all of them. Of those that each step makes only the newest one is kept,
 * because it has all that the one before it had. Pure. */
#ifndef CADRE_COORDINATOR_ENGINE_LAGGING_H
#define CADRE_COORDINATOR_ENGINE_LAGGING_H

#include "coordinator/core/core.h"

/* So many records a second go into entries that nothing else makes, on the average: 64 KiB of
 * watermarks (38 bytes each), so that etcd's size has a bound at any number of jobs. */
#define LAGGING_RECORDS_PER_S 1600

/* Those of one job. {0}: it has none. Kept by the job. */
struct lagging_of_job {
    size_t oldest; /* their numbers, from 1 */
    size_t newest;
    size_t count;
    uint64_t round; /* of which they are: lagging_clear ends a round */
};

struct lagging_record {
    struct core_record record;
    size_t next; /* the number of the same job's record behind it; 0: there is none */
    bool taken;
};

/* {0} is an empty one. */
struct lagging {
    struct lagging_record *items; /* in the order in which they were decided */
    size_t filled;                /* of them, those that are taken among them */
    size_t count;                 /* without those */
    size_t capacity;
    uint64_t round;
};

/* Adds a copy, or replaces the record that it outdates: a watermark that of the same generation, a
 * consumption that of the same run of an epoch. `its` are those of the record's job. false: no
 * memory, and nothing changed. */
bool lagging_add(
    struct lagging *lagging, const struct core_record *record, struct lagging_of_job *its);
/* How many records the job has. */
size_t lagging_count_of(const struct lagging *lagging, const struct lagging_of_job *its);
/* Writes the job's records, oldest first, lagging_count_of() of them. They are the lagging's, until
 * the next call that adds. */
void lagging_list_of(const struct lagging *lagging, const struct lagging_of_job *its,
    const struct core_record **ret_records);
/* The job's records are in an entry now. */
void lagging_take_of(struct lagging *lagging, struct lagging_of_job *its);
/* Writes all records, oldest first, `count` of them. */
void lagging_list(const struct lagging *lagging, const struct core_record **ret_records);
/* All of them are in an entry now. */
void lagging_clear(struct lagging *lagging);
/* When they must be in an entry, of which the oldest was added at `since_us`: `sync_us` after that,
 * and not before LAGGING_RECORDS_PER_S allow it. */
uint64_t lagging_due_us(const struct lagging *lagging, uint64_t since_us, uint64_t sync_us);
void lagging_free(struct lagging *lagging);

#endif
