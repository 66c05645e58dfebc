/* SPDX-License-Identifier: Apache-2.0
 * The checks at the beginning of every call with a strategy. */
#include "cadre/strategy.h"
#include "common/pure/assert.h"
#include "worker/library/device/argument.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/strategy/strategy_registry.h"
#include "worker/library/runtime/strategy/scope.h"
#include "worker/library/runtime/strategy/strategy.h"

/* By hand workers are threads of the chief's program, and can read its strategy. */
bool strategy_is_on_worker(const cadre_strategy *strategy)
{
    CADRE_ASSERT(strategy != NULL);
    return context_worker() && strategy->ps_job != NULL;
}

static cadre_status refuse_ended(const char *function, struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
        "%s was called after the strategy had ended, and with it all that was made in it; call "
        "it before cadre_finish",
        function);
}

/* FAILED_PRECONDITION where this thread can use no strategy, or not this one. */
static cadre_status check_pointer(
    const cadre_strategy *strategy, const char *function, struct cadre_error *error)
{
    CADRE_TRY(context_require_cross(function, error));
    CADRE_TRY(argument_require(strategy, function, "strategy", error));
    if (context_worker() && strategy_is_registered(strategy) && strategy_is_on_worker(strategy)) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s was called with the chief's strategy in a function that a worker runs; use the "
            "worker's own, which is cadre_strategy_current() there, or call it in the chief's "
            "program",
            function);
    }
    return CADRE_OK;
}

static cadre_status enter_take(const cadre_strategy *strategy, const char *function,
    struct strategy_call *call, struct cadre_error *error)
{
    const char *under_way;
    if (strategy_registry_acquire(strategy, function, call, &under_way)) {
        return CADRE_OK;
    }
    if (under_way == NULL) {
        return refuse_ended(function, error);
    }
    return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
        "%s was called while %s of the same strategy had not returned; call it afterwards, outside "
        "of functions that were given to Cadre",
        function, under_way);
}

cadre_status strategy_require_inside(const cadre_strategy *strategy, const char *function,
    struct strategy_call *call, struct cadre_error *error)
{
    CADRE_TRY(check_pointer(strategy, function, error));
    if (context_strategy() == NULL) {
        CADRE_TRY(enter_take(strategy, function, call, error));
    } else if (!strategy_is_registered(strategy)) {
        return refuse_ended(function, error);
    }
    if (strategy->worker != NULL) {
        CADRE_TRY(strategy_allowed_on_worker(strategy, function, error));
    }
    return scope_require(strategy, function, error);
}

static cadre_status check_between_steps(const char *function, struct cadre_error *error)
{
    if (context_strategy() != NULL) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s was called inside %s, while a step is running; call it between steps", function,
            context_merging() ? "the function of cadre_merge_call" : "an update of a variable");
    }
    return CADRE_OK;
}

cadre_status strategy_require(const cadre_strategy *strategy, const char *function,
    struct strategy_call *call, struct cadre_error *error)
{
    CADRE_TRY(strategy_require_inside(strategy, function, call, error));
    return check_between_steps(function, error);
}

cadre_status strategy_enter(const cadre_strategy *strategy, const char *function,
    struct strategy_call *call, struct cadre_error *error)
{
    cadre_status status = strategy_require(strategy, function, call, error);
    return status == CADRE_OK ? strategy_check(strategy, error) : status;
}

cadre_status strategy_enter_readonly(
    const cadre_strategy *strategy, const char *function, struct cadre_error *error)
{
    CADRE_TRY(check_pointer(strategy, function, error));
    if (!strategy_is_registered(strategy)) {
        return refuse_ended(function, error);
    }
    if (strategy->worker != NULL) {
        CADRE_TRY(strategy_allowed_on_worker(strategy, function, error));
    }
    CADRE_TRY(scope_require(strategy, function, error));
    CADRE_TRY(check_between_steps(function, error));
    if (atomic_load(&strategy->step.running)) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s was called by another thread while a step is running; call it between steps",
            function);
    }
    return strategy_check(strategy, error);
}

/* --- public --- */

uint32_t cadre_strategy_num_replicas_in_sync(const cadre_strategy *strategy)
{
    if (!strategy_is_registered(strategy)) {
        return 0;
    }
    return strategy->worker_replicas > 0 ? strategy->worker_replicas
                                         : strategy_tasks(strategy) * strategy->local_replicas;
}

uint32_t cadre_strategy_local_replicas(const cadre_strategy *strategy)
{
    return strategy_is_registered(strategy) ? strategy->local_replicas : 0;
}

bool cadre_strategy_is_chief(const cadre_strategy *strategy)
{
    return strategy_is_registered(strategy) && strategy_rank_of(strategy) == 0;
}

uint64_t cadre_strategy_position(const cadre_strategy *strategy)
{
    return strategy_is_registered(strategy) ? strategy_position(strategy) : 0;
}
