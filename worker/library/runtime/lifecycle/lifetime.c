/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/lifecycle/constructors.h"

#include "cadre/strategy.h"
#include "common/pure/assert.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/strategy_lifecycle/strategy_lifecycle.h"
#include "worker/library/runtime/plain/plain.h"
#include "worker/library/runtime/program/program.h"
#include "worker/library/runtime/strategy/scope.h"

cadre_status strategy_check_program(const char *function, struct cadre_error *error)
{
    struct plain_ranks ignored;
    if (scope_worker() != NULL) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s was called in a function that a worker runs, which has a strategy already; use "
            "that one, cadre_strategy_current()",
            function);
    }
    if (program_environment() == NULL) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "no strategy can be made before cadre_init; call it first in main");
    }
    if (plain_get_ranks(&ignored)) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s was called in a program that called cadre_plain_init; it has one of the two, so "
            "leave that out, or use the calls of cadre/plain.h instead of a strategy",
            function);
    }
    return CADRE_OK;
}

cadre_status lifetime_require_constructed(
    const cadre_strategy *strategy, const char *function, struct cadre_error *error)
{
    CADRE_ASSERT(strategy->origin != STRATEGY_CONSTRUCTED);
    if (strategy->origin == STRATEGY_OF_WORKER) {
        return strategy_allowed_on_worker(strategy, function, error);
    }
    return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
        "%s was called with the default strategy, which ends with the process; give it the one "
        "that a constructor made",
        function);
}

void cadre_strategy_release(cadre_strategy *strategy)
{
    STRATEGY_CALL call = {0};
    struct cadre_error error = {0};
    if (!strategy_is_registered(strategy)) {
        return;
    }
    if (strategy->origin != STRATEGY_CONSTRUCTED) {
        api_return(lifetime_require_constructed(strategy, __func__, &error), &error);
        return;
    }
    cadre_status status = strategy_require(strategy, __func__, &call, &error);
    if (status == CADRE_OK ||
        call.registry_slot > 0) { /* or in another one's scope, which it ends from */
        strategy_close(strategy);
    } else {
        api_return(status, &error);
    }
}
