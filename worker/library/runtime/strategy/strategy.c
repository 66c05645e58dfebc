/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/strategy/strategy.h"

#include "cadre/strategy.h"
#include "worker/library/device/argument.h"
#include "worker/library/runtime/border/border.h"
#include "worker/library/runtime/regroup/generation.h"
#include "worker/library/runtime/strategy/living.h"
#include "worker/library/runtime/strategy/scope.h"

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
    task_failed(strategy->task, error);
    strategy->failed = *error;
    return error->code;
}

cadre_status strategy_fail(cadre_strategy *strategy, struct cadre_error *error)
{
    struct cadre_error other;
    if (!strategy->environment->attached && generation_repair(strategy, &other) == CADRE_OK) {
        return error->code;
    }
    return strategy_end(strategy, error);
}

cadre_status strategy_regroup(
    cadre_strategy *strategy, const struct cadre_error *cause, struct cadre_error *error)
{
    task_peer_error(strategy->task, strategy->roster.generation, cause->text);
    cadre_status status = generation_next(strategy, error);
    return status == CADRE_OK ? CADRE_OK : strategy_end(strategy, error);
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

/* By hand workers are threads of the chief's program, and know its strategy. */
bool strategy_on_worker(const cadre_strategy *strategy)
{
    return strategy->crew != NULL && context_worker();
}

cadre_status strategy_require_inside(
    const cadre_strategy *strategy, const char *function, struct cadre_error *error)
{
    CADRE_TRY(context_require_cross(function, error));
    CADRE_TRY(argument_require(strategy, function, "strategy", error));
    if (!strategy_lives(strategy)) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s was called after the strategy had ended, and with it all that was made in it; call "
            "it before cadre_finish",
            function);
    }
    if (strategy_on_worker(strategy)) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s was called in a function that a worker runs; call it in the chief's program, "
            "outside of closures",
            function);
    }
    CADRE_TRY(scope_require(strategy, function, error));
    if (atomic_load(&strategy->step.running) && context_strategy() == NULL) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s was called by another thread while a step is running; call it between steps",
            function);
    }
    return CADRE_OK;
}

cadre_status strategy_require(
    const cadre_strategy *strategy, const char *function, struct cadre_error *error)
{
    CADRE_TRY(strategy_require_inside(strategy, function, error));
    if (context_strategy() != NULL) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s was called inside %s, while a step is running; call it between steps", function,
            context_merging() ? "the function of cadre_merge_call" : "an update of a variable");
    }
    return CADRE_OK;
}

cadre_status strategy_enter(
    const cadre_strategy *strategy, const char *function, struct cadre_error *error)
{
    cadre_status status = strategy_require(strategy, function, error);
    return status == CADRE_OK ? strategy_check(strategy, error) : status;
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

/* --- public --- */

uint32_t cadre_strategy_num_replicas_in_sync(const cadre_strategy *strategy)
{
    return strategy_lives(strategy) ? strategy_tasks(strategy) * strategy->local_replicas : 0;
}

uint32_t cadre_strategy_local_replicas(const cadre_strategy *strategy)
{
    return strategy_lives(strategy) ? strategy->local_replicas : 0;
}

bool cadre_strategy_is_chief(const cadre_strategy *strategy)
{
    return strategy_lives(strategy) && strategy_rank_of(strategy) == 0;
}

uint64_t cadre_strategy_position(const cadre_strategy *strategy)
{
    return strategy_lives(strategy) ? strategy_position(strategy) : 0;
}
