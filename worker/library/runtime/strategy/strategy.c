/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/strategy/strategy.h"

#include "common/pure/assert.h"
#include "worker/library/runtime/api/api.h"

uint32_t strategy_rank_of(const cadre_strategy *strategy)
{
    return strategy->state == STATE_WARM ? strategy->warm_tasks : strategy->roster.rank;
}

uint32_t strategy_tasks(const cadre_strategy *strategy)
{
    return strategy->state == STATE_WARM ? strategy->warm_tasks + 1 : strategy->roster.member_count;
}

const struct device_list *strategy_parameter_devices(const cadre_strategy *strategy)
{
    CADRE_ASSERT((strategy->parameter.count > 0) == (strategy->kind == STRATEGY_CENTRAL_STORAGE));
    return strategy->parameter.count > 0 ? &strategy->parameter : &strategy->devices;
}

cadre_status strategy_check(const cadre_strategy *strategy, struct cadre_error *error)
{
    if (strategy->failed.code != CADRE_OK) {
        return cadre_error_set(error, strategy->failed.code, "%s", strategy->failed.text);
    }
    return CADRE_OK;
}

bool strategy_is_peer_failure(cadre_status code)
{
    return code == CADRE_ABORTED || code == CADRE_UNAVAILABLE || code == CADRE_DEADLINE_EXCEEDED ||
           code == CADRE_CANCELLED;
}

cadre_status strategy_set_failed(cadre_strategy *strategy, struct cadre_error *error)
{
    CADRE_ASSERT(error->code != CADRE_OK);
    task_failed(strategy->task, error);
    strategy->failed = *error;
    return error->code;
}

bool strategy_is_warm(const cadre_strategy *strategy)
{
    return strategy->state != STATE_PRESENT;
}

bool strategy_is_catching_up(const cadre_strategy *strategy)
{
    return strategy->catching_up;
}

uint64_t strategy_position(const cadre_strategy *strategy)
{
    CADRE_ASSERT(strategy->task != NULL);
    return task_position(strategy->task);
}

uint64_t strategy_random_key(const cadre_strategy *strategy, uint64_t position)
{
    return strategy->random_key != 0 ? strategy->random_key : position;
}
