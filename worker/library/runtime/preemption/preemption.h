/* SPDX-License-Identifier: Apache-2.0
 * The task's side of a preemption: a notice travels up, the coordinator answers with a halt (STOP)
 * at one step; there the chief saves, and all wait for bye. */
#ifndef CADRE_RUNTIME_PREEMPTION_H
#define CADRE_RUNTIME_PREEMPTION_H

#include <stdbool.h>

#include "common/base/error.h"

struct cadre_strategy;
struct strategy_hooks;

/* With the strategy: SIGTERM is handled where that is the default. */
cadre_status preemption_open(struct cadre_strategy *strategy, struct cadre_error *error);

/* In the program's thread, where it begins a step and the datasets tell which: so whoever goes on
 * from what is saved finds the way there. When the job stops where this task stands, saves,
 * waits for bye and returns CANCELLED, finally. CADRE_OK: it goes on. Other errors are final. */
cadre_status preemption_check(struct cadre_strategy *strategy, struct cadre_error *error);

extern const struct strategy_hooks preemption_hooks;

/* Whether this task has left its job so, and what cadre_finish returns then. */
bool preemption_left(const struct cadre_strategy *strategy, int *ret_exit_code);

#endif
