/* SPDX-License-Identifier: Apache-2.0
 * What makes up a task's state, as text: so that tasks whose states do not fit are told by what. */
#ifndef CADRE_RUNTIME_LAYOUT_STATE_LAYOUT_H
#define CADRE_RUNTIME_LAYOUT_STATE_LAYOUT_H

#include "worker/library/runtime/strategy/strategy.h"

/* The first difference between this task's layout (state_layout) and that of the task of rank
 * `source`, which all tasks hear: INVALID_ARGUMENT, or another error. CADRE_OK: all that differ
 * lack only what steps have created there, and will make it. `differs`: this task's layout does. A
 * part of a strategy_function: every local replica of every task calls it, with the same source. */
cadre_status state_layout_compare(cadre_strategy *strategy, uint32_t local, uint32_t source,
    bool differs, struct cadre_error *error);

/* Fills `error`: the first line that differs, but for variables that are missing here. `rank` has
 * `own`, `source` has `theirs`. */
cadre_status state_layout_difference(
    uint32_t rank, const char *own, uint32_t source, const char *theirs, struct cadre_error *error);

#endif
