/* SPDX-License-Identifier: Apache-2.0
 * The strategies that are open in this process. By hand there may be several, each with a
 * coordinator of its own; under a daemon or in a job of several tasks the process is one task of
 * one job, and there is one. The table is read by any thread without a lock, because every call
 * checks whether the pointer of the program is an open strategy. */
#ifndef CADRE_RUNTIME_STRATEGY_REGISTRY_H
#define CADRE_RUNTIME_STRATEGY_REGISTRY_H

#include <stdint.h>

#include "worker/library/runtime/strategy/strategy.h"

#define STRATEGY_REGISTRY_MAX 64
#define STRATEGY_REGISTRY_WORKERS_MAX                                                              \
    64 /* of workers, which by hand are threads of this process                                    \
        */

/* Gives the strategy its number (0 for the default one, which has a slot of its own, as those of
 * workers have) and makes it an open one. Until `call` is left it is in `function`, which makes it.
 * RESOURCE_EXHAUSTED: STRATEGY_REGISTRY_MAX are open. */
cadre_status strategy_registry_add(cadre_strategy *strategy, const char *function,
    struct strategy_call *call, struct cadre_error *error);

/* From now on, and until `call` is left, the strategy is in `function` (a string that stays).
 * False: it is in another call; *ret_under_way names that one, or is NULL: the strategy is not
 * open. It never reads the memory of the strategy, which may be NULL, or freed. Any thread. */
bool strategy_registry_acquire(const cadre_strategy *strategy, const char *function,
    struct strategy_call *call, const char **ret_under_way);

/* How many strategies were ever made, without the default one. */
uint64_t strategy_registry_created(void);

/* Before it is freed, in a call that is left afterwards. Its rank stays that of this process, until
 * there is another one. */
void strategy_registry_remove(cadre_strategy *strategy);

/* The open strategies one after the other, in no order, without the default one and those of
 * workers: *at is 0 at first. NULL: no more. */
cadre_strategy *strategy_registry_next(uint32_t *at);

/* The default one; NULL: it was not used yet. Any thread. */
cadre_strategy *strategy_registry_default(void);

/* The only open one, but for the default one; NULL: none, or several. */
cadre_strategy *strategy_registry_single(void);

#endif
