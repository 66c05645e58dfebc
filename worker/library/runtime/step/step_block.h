/* SPDX-License-Identifier: Apache-2.0
 * A step that a task was frozen in while others applied it: the task takes the step's outputs over
 * with the state (protocol, rule 28). */
#ifndef CADRE_RUNTIME_STEP_BLOCK_H
#define CADRE_RUNTIME_STEP_BLOCK_H

#include "cadre/replica.h"
#include "common/base/error.h"
#include "common/model/task_message.h"

/* The last step that was applied, for a task that was frozen in it. */
struct applied_step {
    bool known; /* applied in this process, or taken over; its outputs are lent */
    uint64_t position;
    uint32_t collectives; /* that each replica made in it */
    uint32_t stream;
    struct consumption consumption; /* of its epoch, with it */
};

/* The last step as one block of bytes. */
struct step_block {
    uint8_t *bytes; /* owned */
    size_t size;
};

/* The source's side: the step and the outputs that are still lent. */
cadre_status step_block_make(const struct applied_step *applied, cadre_per_replica *const outputs[],
    uint32_t output_count, uint32_t local_replicas, struct step_block *ret_block,
    struct cadre_error *error);

/* A block that was received. */
struct adopted_step {
    bool any; /* a block was taken, and is whole */
    struct applied_step applied;
    uint32_t output_count;
    cadre_per_replica *outputs[CADRE_OUTPUTS_MAX];
};
/* Reads it. INVALID_ARGUMENT when it is not whole. The values are the caller's to release. */
cadre_status step_block_read(const struct step_block *block, uint32_t local_replicas,
    struct adopted_step *ret_step, struct cadre_error *error);

/* Releases its values, and zeroes it. */
void adopted_step_clear(struct adopted_step *step);

#endif
