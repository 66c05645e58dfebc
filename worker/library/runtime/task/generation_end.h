/* SPDX-License-Identifier: Apache-2.0
 * For a task that goes on in no other generation: the wait for the end of its own. */
#ifndef CADRE_RUNTIME_GENERATION_END_H
#define CADRE_RUNTIME_GENERATION_END_H

#include "worker/library/runtime/task/task.h"

/* Waits until this task's generation is over other than in order, and says why; or until `stop`
 * says that nobody waits any more, CADRE_OK. Any thread. */
cadre_status task_await_generation_end(
    struct task *task, const bool *stop, struct cadre_error *error);

/* Sets *stop and wakes who waits by it. */
void task_cancel_await(struct task *task, bool *stop);

#endif
