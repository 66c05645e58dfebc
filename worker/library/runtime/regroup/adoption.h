/* SPDX-License-Identifier: Apache-2.0
 * A step that a task was frozen in while others applied it: the task takes the step's outputs over
 * with the state (protocol rule 28). */
#ifndef CADRE_RUNTIME_ADOPTION_H
#define CADRE_RUNTIME_ADOPTION_H

#include "worker/library/runtime/strategy/strategy.h"

/* The last step as one block of bytes. */
struct step_block {
    uint8_t *bytes; /* owned */
    size_t size;
};

/* The source's side: strategy->applied and the outputs that are still lent. */
cadre_status step_block_make(
    const cadre_strategy *strategy, struct step_block *ret_block, struct cadre_error *error);

/* What came. INVALID_ARGUMENT when it is not whole. The values are the caller's to release. */
struct taken_step {
    struct applied_step applied;
    uint32_t output_count;
    cadre_per_replica *outputs[CADRE_OUTPUTS_MAX];
};
cadre_status step_block_read(const struct step_block *block, uint32_t local_replicas,
    struct taken_step *ret_step, struct cadre_error *error);

/* Makes it the strategy's last step, its outputs the lent ones; or drops it. */
void taken_step_install(cadre_strategy *strategy, struct taken_step *step);
void taken_step_clear(struct taken_step *step);

#endif
