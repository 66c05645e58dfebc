/* SPDX-License-Identifier: Apache-2.0
 * What was read of a batch so far, where it does not come in one piece. */
#ifndef CADRE_WORKER_INPUT_BATCH_PARTS_H
#define CADRE_WORKER_INPUT_BATCH_PARTS_H

#include "worker/library/input/element_rows.h"

/* Zeroed: nothing. */
struct batch_parts {
    struct element_rows read; /* rows that are stacked already, or single elements */
    cadre_tensor **tensors;   /* of one component, while they are joined */
    size_t capacity;
    int64_t rows;
    uint64_t bytes_unlooked; /* since memory was looked at */
};

/* About what an element takes while it is held, with the text of its strings. */
uint64_t element_held_bytes(const cadre_element *element);

/* Takes `part` over, which counts as `rows` rows; also on error. RESOURCE_EXHAUSTED: memory runs
 * out. */
cadre_status batch_parts_add(
    struct batch_parts *parts, cadre_element *part, size_t rows, struct cadre_error *error);

/* All parts, at least one, joined along their first dimension; INVALID_ARGUMENT if they differ. */
cadre_status batch_parts_join(
    struct batch_parts *parts, cadre_element *ret_element, struct cadre_error *error);

/* For the next batch: what was allocated stays. */
void batch_parts_reset(struct batch_parts *parts);

void batch_parts_clear(struct batch_parts *parts);

#endif
