/* SPDX-License-Identifier: Apache-2.0
 * Where the tasks of a record were placed, or who is in its roster, as of the core's decision,
 * because a following step of the same turn may change it. Pure: the simulator fills its records
 * with it. */
#ifndef CADRE_COORDINATOR_ENGINE_PLACEMENTS_H
#define CADRE_COORDINATOR_ENGINE_PLACEMENTS_H

#include "coordinator/store/store.h"

struct placements {
    struct store_placement *items;
    char (*workers)[LIMIT_NAME_BYTES]; /* what the items point to; "" in a roster */
    size_t count;
};

/* Whether there is something to keep beside the record. */
bool placements_wanted(const struct core_record *record);
/* The tasks that a STARTED placed, or the roster of a PLAN: none when the job ended in the same
 * step. false: no memory. */
bool placements_keep(
    const struct core *core, const struct core_record *record, struct placements *ret_placements);
/* Accepts a zeroed one. */
void placements_drop(struct placements *placements);

/* Puts them into the record for the store. */
void placements_fill(const struct placements *placements, struct store_record *record);

#endif
