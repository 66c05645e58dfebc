/* SPDX-License-Identifier: Apache-2.0
 * What the first task alone can do, such as reading or writing a file: all tasks receive the
 * outcome, the same code. */
#ifndef CADRE_RUNTIME_CHECKPOINT_FIRST_TASK_H
#define CADRE_RUNTIME_CHECKPOINT_FIRST_TASK_H

#include <stdint.h>

#include "common/base/error.h"

struct cadre_strategy;

/* In the thread of its local replica 0; once more when a task was lost meanwhile, perhaps by
 * another one. */
typedef cadre_status first_task_function(
    struct cadre_strategy *strategy, void *user, struct cadre_error *error);

struct first_task {
    first_task_function *function;
    void *user;
    uint64_t key;              /* of all that must be equal on all tasks */
    struct cadre_error own;    /* why it could not; code OK: it could, or is another task */
    struct cadre_error theirs; /* the same, as received; of local replica 0 */
    int64_t code;              /* of it; of local replica 0 */
};

/* A part of a strategy_between_steps. *ret_code: the first task's status. */
cadre_status first_task_run(struct cadre_strategy *strategy, uint32_t local,
    struct first_task *first, cadre_status *ret_code, struct cadre_error *error);

/* After it: the code that all tasks have. */
cadre_status first_task_result(const struct first_task *first, struct cadre_error *error);

#endif
