/* SPDX-License-Identifier: Apache-2.0
 * The layout of a task's state, as text: where two tasks' differ, a message names the difference.
 */
#ifndef CADRE_RUNTIME_LAYOUT_STATE_LAYOUT_H
#define CADRE_RUNTIME_LAYOUT_STATE_LAYOUT_H

#include "worker/library/runtime/strategy/strategy.h"

/* The first difference between this task's layout (state_layout) and that of the task of rank
 * `source`, which all tasks receive: INVALID_ARGUMENT, or another error. CADRE_OK: all that differ
 * lack only what steps have created there, and will make it. `differs`: this task's layout does. A
 * part of a strategy_function: every local replica of every task calls it, with the same source. */
cadre_status state_layout_compare(cadre_strategy *strategy, uint32_t local, uint32_t source,
    bool differs, struct cadre_error *error);

/* Fills `error`: the first text line that differs, but for variables that are missing here. `rank`
 * has `own`, `source` has `theirs`. */
cadre_status state_layout_difference(
    uint32_t rank, const char *own, uint32_t source, const char *theirs, struct cadre_error *error);

#endif
