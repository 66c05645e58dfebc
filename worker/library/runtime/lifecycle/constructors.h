/* SPDX-License-Identifier: Apache-2.0
 * What all constructors of strategies use: whether one may be made, or ended, in this program
 * (lifetime.c), and the hook tables of every strategy (hook_list.c). */
#ifndef CADRE_RUNTIME_LIFECYCLE_CONSTRUCTORS_H
#define CADRE_RUNTIME_LIFECYCLE_CONSTRUCTORS_H

#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/strategy/strategy_hooks.h"

/* A strategy that no constructor made cannot be ended: FAILED_PRECONDITION. */
cadre_status lifetime_require_constructed(
    const cadre_strategy *strategy, const char *function, struct cadre_error *error);

/* Every constructor calls it first: FAILED_PRECONDITION in a plain program, also after its end, and
 * before cadre_init, because the process is one task. */
cadre_status strategy_check_program(const char *function, struct cadre_error *error);

extern const struct strategy_hooks *const strategy_hook_tables[];
extern const uint32_t strategy_hook_table_count;

#endif
