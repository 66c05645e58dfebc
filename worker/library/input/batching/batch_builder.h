/* SPDX-License-Identifier: Apache-2.0
 * What was read of a batch so far, where it does not come in one piece. */
#ifndef CADRE_WORKER_INPUT_BATCHING_BATCH_BUILDER_H
#define CADRE_WORKER_INPUT_BATCHING_BATCH_BUILDER_H

#include "worker/library/input/node/element_stack.h"

/* Zeroed: nothing. */
struct batch_builder {
    struct element_stack read; /* rows that are stacked already, or single elements */
    cadre_tensor **tensors;    /* of one component, while they are joined */
    size_t capacity;
    int64_t rows;
    uint64_t bytes_since_check; /* since memory was looked at */
};

/* Takes `part` over, which counts as `rows` rows; also on error. RESOURCE_EXHAUSTED: memory runs
 * out. */
cadre_status batch_builder_add(
    struct batch_builder *builder, cadre_element *part, size_t rows, struct cadre_error *error);

/* All parts, at least one, joined along their first dimension; INVALID_ARGUMENT if they differ. */
cadre_status batch_builder_finish(
    struct batch_builder *builder, cadre_element *ret_element, struct cadre_error *error);

/* For the next batch: what was allocated stays. */
void batch_builder_reset(struct batch_builder *builder);

void batch_builder_clear(struct batch_builder *builder);

#endif
