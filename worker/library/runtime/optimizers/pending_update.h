/* SPDX-License-Identifier: Apache-2.0
 * One call of cadre_optimizer_apply by one replica, from the reduced gradients until the step
 * counts:
 *
 *     apply       pending_update_acquire ─▶ entries: gradient, rows ─▶ reduced ─▶ clipped ─┐
 *                 pending_update_schedule ◀────────────────────────────────────────────────┘
 *     step end    when the step counts: update_component of each entry
 *
 * An attempt that did not count leaves its entries; the next attempt finds them by the number of
 * the attempt and releases them. */
#ifndef CADRE_RUNTIME_PENDING_UPDATE_H
#define CADRE_RUNTIME_PENDING_UPDATE_H

#include "worker/library/runtime/optimizers/optimizer.h"
#include "worker/library/runtime/replica/step_admission.h"

/* The update of one variable. */
struct pending_update_part {
    const struct optimized *of;
    cadre_tensor *gradient; /* a reference; in the memory of the variable's component. NULL: none
                             * yet */
    cadre_tensor *rows;     /* of these rows only, i64 [n], ascending; a reference. NULL: of all */
    size_t given;           /* its index in the program's list */
};

struct pending_update {
    struct apply_call call;
    cadre_optimizer *optimizer;
    uint64_t attempt; /* the attempt at a step that it belongs to; 0: none, it is free */
    struct pending_update_part *variables;
    cadre_tensor **tensors; /* room for a list of gradients, for collectives */
    size_t count;
    size_t capacity;
    struct pending_update *next; /* of this replica */
};

/* Room for `count` variables, in a turn that is empty or zeroed. RESOURCE_EXHAUSTED. */
cadre_status pending_update_open(
    struct pending_update *turn, size_t count, struct cadre_error *error);
/* Releases all and frees the room. */
void pending_update_close(struct pending_update *turn);

/* A free turn of the replica with room for `count` variables. RESOURCE_EXHAUSTED. */
cadre_status pending_update_acquire(cadre_replica *replica, cadre_optimizer *optimizer,
    size_t count, struct pending_update **ret_turn, struct cadre_error *error);

/* Releases its references; it is free again. */
void pending_update_release(struct pending_update *turn);

/* Applies it when the step counts. */
void pending_update_schedule(cadre_replica *replica, struct pending_update *turn);

/* Frees all turns of an optimizer. */
void pending_updates_free(cadre_optimizer *optimizer);

#endif
