/* SPDX-License-Identifier: Apache-2.0
 * A turn for which the store has no room: it is held and tried again, and meanwhile nothing is
 * spoken. The core's clock stands still, so that no deadline passes for what was not asked yet.
 * Pure: the simulator holds its turns with it. */
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
    uint64_t lag_us; /* what all holds before took: the core's clock stood still */
    struct cadre_error error;
};

/* Keeps the turn of so many actions for later, when that is what the failure of its commit asks
 * for. false: nothing more may be spoken. `retry_us` 0: no turn is held. */
bool hold_takes(struct hold *hold, uint64_t now_us, uint64_t retry_us, size_t actions,
    const struct cadre_error *error);
/* The turn is stored. */
void hold_ends(struct hold *hold, uint64_t now_us);
/* Whether it is held, and to be tried again later only. */
bool hold_waits(const struct hold *hold, uint64_t now_us);

/* Now, as the core's clock has it; and back. */
uint64_t hold_core_time(const struct hold *hold, uint64_t now_us);
uint64_t hold_real_time(const struct hold *hold, uint64_t core_us);

#endif
