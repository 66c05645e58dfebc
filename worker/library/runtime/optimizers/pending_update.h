/* SPDX-License-Identifier: Apache-2.0
 * One call of cadre_optimizer_apply by one replica, from the reduced gradients until the step
 * counts:
 *
 *   apply   pending_update_acquire ─▶ parts: gradient, rows ─▶ reduced ─▶ clipped ─▶
 * pending_update_schedule │ the step counts end of the step update_component of each part ◀─┘
 *
 * What a step that did not count left behind is found by the number of the attempt, and dropped
 * when the next one takes a turn. */
#ifndef CADRE_RUNTIME_PENDING_UPDATE_H
#define CADRE_RUNTIME_PENDING_UPDATE_H

#include "worker/library/runtime/optimizers/optimizer.h"
#include "worker/library/runtime/replica/step_admission.h"

/* What one variable is updated by. */
struct pending_update_part {
    const struct optimized *of;
    cadre_tensor *gradient; /* a reference; where the variable's component is. NULL: none yet */
    cadre_tensor *rows;     /* of these alone, i64 [n], growing; a reference. NULL: of all */
    size_t given;           /* its place in the program's list */
};

struct pending_update {
    struct apply_call call;
    cadre_optimizer *optimizer;
    uint64_t attempt; /* at a step, that it belongs to; 0: none, it may be taken */
    struct pending_update_part *variables;
    cadre_tensor **tensors; /* room for a list of gradients, for collectives */
    size_t count;
    size_t capacity;
    struct pending_update *next; /* of this replica */
};

/* Room for `count` parts, in one that is empty or zeroed; and no room any more. RESOURCE_EXHAUSTED.
 */
cadre_status pending_update_open(
    struct pending_update *turn, size_t count, struct cadre_error *error);
void pending_update_close(struct pending_update *turn);

/* An empty one with room for `count` parts. RESOURCE_EXHAUSTED. */
cadre_status pending_update_acquire(cadre_replica *replica, cadre_optimizer *optimizer,
    size_t count, struct pending_update **ret_turn, struct cadre_error *error);

/* Drops what it holds; it may be taken again. */
void pending_update_release(struct pending_update *turn);

/* Has it applied when the step counts. */
void pending_update_schedule(cadre_replica *replica, struct pending_update *turn);

void pending_updates_free(cadre_optimizer *optimizer);

#endif
