/* SPDX-License-Identifier: Apache-2.0
 * The hook tables of every strategy (strategy_hooks.h). */
#ifndef CADRE_RUNTIME_LIFECYCLE_HOOK_LIST_H
#define CADRE_RUNTIME_LIFECYCLE_HOOK_LIST_H

#include "worker/library/runtime/strategy/strategy_hooks.h"

extern const struct strategy_hooks *const strategy_hook_tables[];
extern const uint32_t strategy_hook_table_count;

#endif
