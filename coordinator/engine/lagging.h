/* SPDX-License-Identifier: Apache-2.0
 * Records that no message waits for, kept until the next entry of the shared log. Of those that
 * each step makes only the newest one is kept, because it has all that the one before it had.
 * Pure. */
#ifndef CADRE_COORDINATOR_ENGINE_LAGGING_H
#define CADRE_COORDINATOR_ENGINE_LAGGING_H

#include "coordinator/core/core.h"

/* A job's newest record; {0}: it has none. Kept by the job. */
struct lagging_newest {
    size_t number;  /* from 1 */
    uint64_t round; /* of which it is: lagging_clear ends a round */
};

struct lagging_record {
    struct core_record record;
    size_t before; /* the number of the same job's record before it; 0: there is none */
};

/* {0} is an empty one. */
struct lagging {
    struct lagging_record *items; /* in the order in which they were decided */
    size_t count;
    size_t capacity;
    uint64_t round;
};

/* Adds a copy, or replaces the record that it outdates: a watermark that of the same generation, a
 * consumption that of the same run of an epoch. `newest` is that of the record's job. false: no
 * memory, and nothing changed. */
bool lagging_add(
    struct lagging *lagging, const struct core_record *record, struct lagging_newest *newest);
/* All of them are in an entry now. */
void lagging_clear(struct lagging *lagging);
void lagging_free(struct lagging *lagging);

#endif
