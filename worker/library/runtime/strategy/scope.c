/* SPDX-License-Identifier: Apache-2.0
 * Which strategy is current for a thread: scopes, workers, the process's own. The program enters
 * and leaves scopes; enter.c checks them in each call. */
#include "worker/library/runtime/strategy/scope.h"

#include <stdatomic.h>

#include "cadre/strategy.h"
#include "common/pure/assert.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/strategy/strategy_registry.h"

static _Thread_local struct scope thread_scope;
static _Thread_local cadre_strategy *worker_strategy;
static _Atomic(cadre_strategy *) process_strategy;

/* The scopes of a strategy end with it, and so do those outside of them. */
static struct scope *scope_of_thread(void)
{
    struct scope *scope = &thread_scope;
    if (scope->strategy != NULL &&
        (!strategy_is_registered(scope->strategy) || scope->strategy->number != scope->number)) {
        scope->strategy = NULL;
        scope->depth = 0;
    }
    CADRE_ASSERT((scope->strategy == NULL) == (scope->depth == 0));
    return scope;
}

struct scope scope_suspend(void)
{
    struct scope aside = *scope_of_thread();
    thread_scope = (struct scope){0};
    return aside;
}

cadre_status scope_resume(
    const struct scope *scope, const char *function, struct cadre_error *error)
{
    CADRE_ASSERT(scope->depth == 0 || scope->strategy != NULL);
    const struct scope *left = scope_of_thread();
    bool open = left->depth > 0 || left->default_depth > 0;
    thread_scope = *scope;
    if (open) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "the function given to %s returned inside a scope that it had entered; call "
            "cadre_scope_leave before it returns",
            function);
    }
    return CADRE_OK;
}

cadre_strategy *scope_current(void)
{
    cadre_strategy *strategy = context_strategy();
    if (strategy == NULL) {
        strategy = scope_of_thread()->strategy;
    }
    if (strategy == NULL) {
        strategy = worker_strategy;
    }
    return strategy != NULL ? strategy : atomic_load(&process_strategy);
}

void scope_set_worker(cadre_strategy *strategy)
{
    CADRE_ASSERT(strategy == NULL || worker_strategy == NULL);
    worker_strategy = strategy;
}

cadre_strategy *scope_worker(void)
{
    return worker_strategy;
}

cadre_strategy *strategy_current(void)
{
    cadre_strategy *strategy = scope_current();
    return strategy != NULL ? strategy : strategy_registry_single();
}

cadre_status scope_require(
    const cadre_strategy *strategy, const char *function, struct cadre_error *error)
{
    const cadre_strategy *current = scope_current();
    if (current != NULL && current != strategy) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s was called for one strategy inside the scope of another, and mixing them is not "
            "possible; leave that scope first",
            function);
    }
    return CADRE_OK;
}

void scope_forget(cadre_strategy *strategy)
{
    CADRE_ASSERT(strategy != NULL);
    cadre_strategy *itself = strategy;
    atomic_compare_exchange_strong(&process_strategy, &itself, NULL);
}

/* FAILED_PRECONDITION, or INVALID_ARGUMENT: it cannot be made current. NULL is the default one. */
static cadre_status strategy_scope_check(
    const cadre_strategy *strategy, const char *function, struct cadre_error *error)
{
    cadre_status status = context_require_cross(function, error);
    if (status == CADRE_OK && strategy != NULL && !strategy_is_registered(strategy)) {
        status = cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s was called with a strategy that has ended; make one first", function);
    }
    return status;
}

/* --- public --- */

/* NULL means the default strategy. */
static cadre_strategy *strategy_scope_named(cadre_strategy *strategy)
{
    return strategy_is_default(strategy) ? NULL : strategy;
}

cadre_status cadre_scope_enter(cadre_strategy *strategy)
{
    struct cadre_error error = {0};
    strategy = strategy_scope_named(strategy);
    cadre_status status = strategy_scope_check(strategy, __func__, &error);
    if (status == CADRE_OK) {
        status = scope_require(strategy, __func__, &error);
    }
    if (status != CADRE_OK) {
        return api_return(status, &error);
    }
    struct scope *scope = scope_of_thread();
    CADRE_ASSERT(strategy == NULL || scope->strategy == NULL || scope->strategy == strategy);
    if (strategy == NULL) {
        scope->default_depth++;
    } else {
        scope->strategy = strategy;
        scope->number = strategy->number;
        scope->depth++;
    }
    return CADRE_OK;
}

cadre_status cadre_scope_leave(cadre_strategy *strategy)
{
    struct cadre_error error = {0};
    strategy = strategy_scope_named(strategy);
    cadre_status status = context_require_cross(__func__, &error);
    struct scope *scope = scope_of_thread();
    uint32_t *depth = strategy == NULL ? &scope->default_depth : &scope->depth;
    if (status == CADRE_OK && (strategy != scope->strategy || *depth == 0)) {
        status = cadre_error_set(&error, CADRE_FAILED_PRECONDITION,
            "cadre_scope_leave: this thread's innermost scope is %s; leave each scope once, in the "
            "thread that entered it, the last one entered first",
            scope->strategy != NULL    ? "another strategy's"
            : scope->default_depth > 0 ? "the default strategy's"
                                       : "none (that of a strategy ends with it)");
    }
    if (status == CADRE_OK && --*depth == 0) {
        scope->strategy = NULL;
    }
    return api_return(status, &error);
}

cadre_status cadre_strategy_set(cadre_strategy *strategy)
{
    struct cadre_error error = {0};
    strategy = strategy_scope_named(strategy);
    cadre_status status = strategy_scope_check(strategy, __func__, &error);
    const struct scope *scope = scope_of_thread();
    if (status == CADRE_OK &&
        (scope->depth > 0 || scope->default_depth > 0 || context_strategy() != NULL)) {
        status = cadre_error_set(&error, CADRE_FAILED_PRECONDITION,
            "cadre_strategy_set was called inside a scope; call it outside of all scopes");
    }
    if (status == CADRE_OK && worker_strategy != NULL) {
        status = cadre_error_set(&error, CADRE_FAILED_PRECONDITION,
            "cadre_strategy_set was called in a function that a worker runs, whose strategy is "
            "current in it (cadre_strategy_current); call it in the chief's program");
    }
    if (status == CADRE_OK) {
        atomic_store(&process_strategy, strategy);
    }
    return api_return(status, &error);
}

bool cadre_has_strategy(void)
{
    const cadre_strategy *current = scope_current();
    return current != NULL && !strategy_is_default(current);
}

bool cadre_in_cross_replica_context(void)
{
    return context_replica() == NULL && scope_current() != NULL;
}
