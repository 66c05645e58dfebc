/* SPDX-License-Identifier: Apache-2.0
 * One call of cadre_optimizer_apply by one replica, from the reduced gradients until the step
 * counts:
 *
 *   apply   turn_take ─▶ parts: gradient, rows ─▶ reduced ─▶ clipped ─▶ turn_promise
 *                                                                            │ the step counts
 *   end of the step                          update_component of each part ◀─┘
 *
 * What a step that did not count left behind is found by the number of the attempt, and dropped
 * when the next one takes a turn. */
#ifndef CADRE_RUNTIME_OPTIMIZER_TURN_H
#define CADRE_RUNTIME_OPTIMIZER_TURN_H

#include "worker/library/runtime/optimizers/optimizer.h"
#include "worker/library/runtime/replica/step_admission.h"

/* What one variable is updated by. */
struct optimizer_part {
    const struct optimized *of;
    cadre_tensor *gradient; /* a reference; where the variable's component is. NULL: none yet */
    cadre_tensor *rows;     /* of these alone, i64 [n], growing; a reference. NULL: of all */
    size_t given;           /* its place in the program's list */
};

struct optimizer_turn {
    struct apply_call call;
    cadre_optimizer *optimizer;
    uint64_t attempt; /* at a step, that it belongs to; 0: none, it may be taken */
    struct optimizer_part *parts;
    cadre_tensor **tensors; /* room for a list of gradients, for collectives */
    size_t count;
    size_t capacity;
    struct optimizer_turn *next; /* of this replica */
};

/* Room for `count` parts, in one that is empty or zeroed; and no room any more. RESOURCE_EXHAUSTED.
 */
cadre_status turn_open(struct optimizer_turn *turn, size_t count, struct cadre_error *error);
void turn_close(struct optimizer_turn *turn);

/* An empty one with room for `count` parts. RESOURCE_EXHAUSTED. */
cadre_status turn_take(cadre_replica *replica, cadre_optimizer *optimizer, size_t count,
    struct optimizer_turn **ret_turn, struct cadre_error *error);

/* Drops what it holds; it may be taken again. */
void turn_give(struct optimizer_turn *turn);

/* Has it applied when the step counts. */
void turn_promise(cadre_replica *replica, struct optimizer_turn *turn);

void turns_free(cadre_optimizer *optimizer);

#endif
