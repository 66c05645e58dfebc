/* SPDX-License-Identifier: Apache-2.0
 * The last part of a step, which nothing can undo:
 *
 *   replica function ── OK on all local replicas ── task_apply ──▶ apply functions ──▶ task_applied
 *     may fail; what it writes is kept twice                        cannot fail; write in place */
#ifndef CADRE_RUNTIME_APPLY_H
#define CADRE_RUNTIME_APPLY_H

#include <stdbool.h>
#include <stdint.h>

#include "cadre/variable.h"

#define APPLY_MAX 8 /* functions of a replica in a step */

/* Of one replica, only touched by the thread that runs it, or while none does. */
struct apply_list {
    struct {
        cadre_apply_function function;
        void *user;
    } calls[APPLY_MAX];
    uint32_t count;
    bool running; /* one of them is being called */
};

/* The step has been applied here: calls what the local replicas asked for, each in its thread. */
void apply_run(cadre_strategy *strategy);

#endif
