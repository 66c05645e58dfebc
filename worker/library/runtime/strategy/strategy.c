/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/strategy/strategy.h"

#include "common/pure/assert.h"
#include "worker/library/runtime/border/border.h"

uint32_t strategy_rank_of(const cadre_strategy *strategy)
{
    return strategy->state == STATE_WARM ? strategy->warm_tasks : strategy->roster.rank;
}

uint32_t strategy_tasks(const cadre_strategy *strategy)
{
    return strategy->state == STATE_WARM ? strategy->warm_tasks + 1 : strategy->roster.member_count;
}

cadre_status strategy_check(const cadre_strategy *strategy, struct cadre_error *error)
{
    if (strategy->failed.code != CADRE_OK) {
        return cadre_error_set(error, strategy->failed.code, "%s", strategy->failed.text);
    }
    return CADRE_OK;
}

bool strategy_is_peers(cadre_status code)
{
    return code == CADRE_ABORTED || code == CADRE_UNAVAILABLE || code == CADRE_DEADLINE_EXCEEDED ||
           code == CADRE_CANCELLED;
}

cadre_status strategy_end(cadre_strategy *strategy, struct cadre_error *error)
{
    CADRE_ASSERT(error->code != CADRE_OK);
    task_failed(strategy->task, error);
    strategy->failed = *error;
    return error->code;
}

bool strategy_warm(const cadre_strategy *strategy)
{
    return strategy->state != STATE_PRESENT;
}

bool strategy_arrives(const cadre_strategy *strategy)
{
    return strategy->arrives;
}

uint64_t strategy_position(const cadre_strategy *strategy)
{
    return task_position(strategy->task);
}

/* --- calls on each replica --- */

struct each {
    cadre_strategy *strategy;
    strategy_function function;
    void *user;
};

static void call_one(uint32_t local, void *user)
{
    struct each *each = user;
    CADRE_ASSERT(local < each->strategy->local_replicas);
    cadre_replica *replica = &each->strategy->replicas[local];
    replica->error = (struct cadre_error){0};
    replica->status = each->function(each->strategy, local, each->user, &replica->error);
    if (replica->status != CADRE_OK && replica->status != CADRE_INVALID_ARGUMENT) {
        each->strategy->mesh->ops->abort(each->strategy->mesh, replica->error.text);
    }
}

cadre_status strategy_each_replica(
    cadre_strategy *strategy, strategy_function function, void *user, struct cadre_error *error)
{
    CADRE_ASSERT(strategy->pool != NULL);
    CADRE_ASSERT(context_replica() == NULL);
    struct each each = {.strategy = strategy, .function = function, .user = user};
    replica_pool_run(strategy->pool, call_one, &each);
    const cadre_replica *worst = NULL;
    for (uint32_t i = 0; i < strategy->local_replicas; i++) {
        const cadre_replica *replica = &strategy->replicas[i];
        bool worse =
            worst == NULL || (worst->status == CADRE_ABORTED && replica->status != CADRE_ABORTED);
        if (replica->status != CADRE_OK && worse) {
            worst = replica;
        }
    }
    return worst == NULL ? CADRE_OK
                         : cadre_error_set(error, worst->status, "%s", worst->error.text);
}
