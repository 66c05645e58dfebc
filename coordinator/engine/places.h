/* SPDX-License-Identifier: Apache-2.0
 * Where the tasks of a record were placed, or who is in its roster, as it was when the core said
 * so: a later step of the same turn may change it. Pure: the simulator fills its records with it.
 */
#ifndef CADRE_COORDINATOR_ENGINE_PLACES_H
#define CADRE_COORDINATOR_ENGINE_PLACES_H

#include "coordinator/store/store.h"

struct places {
    struct store_place *items;
    char (*workers)[LIMIT_NAME_BYTES]; /* what the items point to; "" in a roster */
    size_t count;
};

/* Whether there is something to keep beside the record. */
bool places_wanted(const struct core_record *record);
/* The tasks that a STARTED placed, or the roster of a PLAN: none when the job ended in the same
 * step. false: no memory. */
bool places_keep(
    const struct core *core, const struct core_record *record, struct places *ret_places);
void places_drop(struct places *places);

/* They go into the record for the store. */
void places_fill(const struct places *places, struct store_record *record);

#endif
