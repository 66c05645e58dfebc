/* SPDX-License-Identifier: Apache-2.0
 * Which strategy functions without a strategy argument use: that of the innermost context of the
 * calling thread.
 *
 *     replica function, merge call, update    its strategy's (api.h)
 *     cadre_scope_enter                       of this thread, nesting
 *     a ps job's worker                       that of the worker whose functions the thread runs
 *     cadre_strategy_set                      of the process
 *     none of them                            the only strategy that is open, if there is one */
#ifndef CADRE_RUNTIME_SCOPE_H
#define CADRE_RUNTIME_SCOPE_H

#include "worker/library/runtime/strategy/strategy.h"

/* Scopes of one thread: those of the default strategy (NULL), inside of them those of one other. */
struct scope {
    uint32_t default_depth;
    cadre_strategy *strategy;
    uint64_t number; /* of the strategy, because another one may be made at its address */
    uint32_t depth;
};

/* Puts the thread's scopes aside, for a function of the program that begins with none. */
struct scope scope_suspend(void);
/* Restores them. FAILED_PRECONDITION: the function left scopes open, or closed more than it opened.
 */
cadre_status scope_resume(
    const struct scope *scope, const char *function, struct cadre_error *error);

/* The current strategy, for cadre_strategy_current; NULL outside of all contexts, where that
 * returns the default strategy. */
cadre_strategy *scope_current(void);

/* FAILED_PRECONDITION when another strategy than this one is current ("mixing"). */
cadre_status scope_require(
    const cadre_strategy *strategy, const char *function, struct cadre_error *error);

/* The calling thread runs functions of a ps job's worker from now on, whose strategy this is; NULL:
 * no longer. */
void scope_set_worker(cadre_strategy *strategy);

/* The strategy of that worker; NULL: the calling thread runs nothing for a worker. */
cadre_strategy *scope_worker(void);

/* The strategy ends: it is no longer the process's. */
void scope_forget(cadre_strategy *strategy);

#endif
