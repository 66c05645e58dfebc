/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/engine/hold.h"

/* While a turn is held no job makes progress, and few actions are added. If there are so many
 * nevertheless, ending the coordinator, whose next start continues, is better than taking all of
 * the memory. */
#define HELD_ACTIONS_MAX ((size_t)64 * 1024)

bool hold_takes(struct hold *hold, uint64_t now_us, uint64_t retry_us, size_t actions,
    const struct cadre_error *error)
{
    if (retry_us == 0 || error->code != CADRE_RESOURCE_EXHAUSTED || actions > HELD_ACTIONS_MAX) {
        return false;
    }
    if (!hold->held) {
        hold->held = true;
        hold->since_us = now_us;
    }
    hold->retry_at_us = now_us + retry_us;
    hold->error = *error;
    return true;
}

void hold_suspends(struct hold *hold, uint64_t now_us, const struct cadre_error *why)
{
    hold->since_us = hold->held ? hold->since_us : now_us;
    hold->held = true;
    hold->retry_at_us = UINT64_MAX;
    hold->error = *why;
}

void hold_ends(struct hold *hold, uint64_t now_us)
{
    if (hold->held) {
        hold->held = false;
        hold->lag_us += now_us - hold->since_us;
    }
}

bool hold_waits(const struct hold *hold, uint64_t now_us)
{
    return hold->held && now_us < hold->retry_at_us;
}

uint64_t hold_core_time(const struct hold *hold, uint64_t now_us)
{
    return (hold->held ? hold->since_us : now_us) - hold->lag_us;
}

uint64_t hold_real_time(const struct hold *hold, uint64_t core_us)
{
    return core_us < UINT64_MAX - hold->lag_us ? core_us + hold->lag_us : UINT64_MAX;
}
