/* SPDX-License-Identifier: Apache-2.0
 * A turn for which the store has no room, or for which it is not known whether this coordinator
 * leads still: it is held, and meanwhile nothing is sent. The core's clock stops, so that no
 * deadline passes for a request that was not sent yet. Pure: the simulator holds its turns with it.
 */
#ifndef CADRE_COORDINATOR_ENGINE_HOLD_H
#define CADRE_COORDINATOR_ENGINE_HOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"

struct hold {
    bool held;
    uint64_t since_us;
    uint64_t retry_at_us;
    uint64_t lag_us; /* the sum of all holds so far: the core's clock stopped for so long */
    struct cadre_error error;
};

/* Keeps the turn of so many actions, if the failure of its commit is one that a hold can end.
 * false: nothing more may be sent. `retry_us` 0: no turn is held. */
bool hold_takes(struct hold *hold, uint64_t now_us, uint64_t retry_us, size_t actions,
    const struct cadre_error *error);
/* Turns are held until hold_ends: there is no next try. Also of one that is held. */
void hold_suspends(struct hold *hold, uint64_t now_us, const struct cadre_error *why);
/* The turn is stored. */
void hold_ends(struct hold *hold, uint64_t now_us);
/* Whether it is held, and the next try is not due. */
bool hold_waits(const struct hold *hold, uint64_t now_us);

/* Now, by the core's clock. */
uint64_t hold_core_time(const struct hold *hold, uint64_t now_us);
/* The inverse of hold_core_time. */
uint64_t hold_real_time(const struct hold *hold, uint64_t core_us);

#endif
