/* SPDX-License-Identifier: Apache-2.0
 * The wait of a task that has no next generation for the end of its own. */
#ifndef CADRE_RUNTIME_GENERATION_END_H
#define CADRE_RUNTIME_GENERATION_END_H

#include "worker/library/runtime/task/task.h"

/* Waits until this task's generation ends other than in order, and returns why; or until *stop is
 * set by task_cancel_await, then CADRE_OK. Any thread. */
cadre_status task_await_generation_end(
    struct task *task, const bool *stop, struct cadre_error *error);

/* Sets *stop and wakes the thread that waits with it. */
void task_cancel_await(struct task *task, bool *stop);

#endif
