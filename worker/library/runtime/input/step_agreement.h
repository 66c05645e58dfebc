/* SPDX-License-Identifier: Apache-2.0
 * Steps of pipelines that each task has for itself: whether a step exists, and how many rows it
 * has, only all of them together determine. They do it in a collective outside of steps, which is
 * made again when a task is lost. */
#ifndef CADRE_RUNTIME_STEP_AGREEMENT_H
#define CADRE_RUNTIME_STEP_AGREEMENT_H

#include "worker/library/runtime/input/input.h"
#include "worker/library/runtime/values/values.h"

/* What all tasks have together. */
struct step_agreement {
    uint64_t generation; /* in which it was made: not the present one where others completed it */
    uint64_t present;    /* replicas of all tasks that have an element; 0: there is no such step */
    uint64_t rows;
    struct consumed_samples all; /* FILE: of all tasks */
};

/* Frees what it owns, and zeroes it. */
void step_agreement_clear(struct step_agreement *step_agreement);

/* Reads step `step` of epoch `epoch` and agrees on it. `held` (may be NULL) is the batch of that
 * step that the program holds: while the input is cut as it was for it, it is not read
 * again; with `keeps` in no case. *ret_batch is empty then, else the caller's to clear. The error
 * of a task that could not read is given on all, ABORTED on the others. */
cadre_status step_agreement_make(cadre_distributed_dataset *distributed, uint64_t epoch,
    uint64_t step, const cadre_per_replica *held, bool keeps, struct distributed_batch *ret_batch,
    struct step_agreement *ret_agreement, struct cadre_error *error);

#endif
