/* SPDX-License-Identifier: Apache-2.0
 * The task's side of a preemption: a notice is sent up, the coordinator answers with a halt (STOP)
 * at one step; there the chief saves, and all wait for bye (protocol, rule 17). */
#ifndef CADRE_RUNTIME_PREEMPTION_H
#define CADRE_RUNTIME_PREEMPTION_H

#include <stdbool.h>

#include "common/base/error.h"

struct cadre_strategy;
struct strategy_hooks;

/* Of the strategy: SIGTERM is handled where that is the default. */
cadre_status preemption_open(struct cadre_strategy *strategy, struct cadre_error *error);

/* In the program's thread, where it begins a step and its dataset is determined, so that a program
 * that goes on from the checkpoint reaches the same point. When the job stops at this task's
 * position, saves, waits for bye and returns CANCELLED, finally. CADRE_OK: it goes on. Other errors
 * are final. */
cadre_status preemption_check(struct cadre_strategy *strategy, struct cadre_error *error);

extern const struct strategy_hooks preemption_hooks;

/* Whether this task has left its job so; *ret_exit_code is for cadre_finish. */
bool preemption_left(const struct cadre_strategy *strategy, int *ret_exit_code);

#endif
