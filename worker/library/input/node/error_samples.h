/* SPDX-License-Identifier: Apache-2.0
 * Of which samples an element was made that a function of the program failed on: the error's
 * message names them. */
#ifndef CADRE_WORKER_INPUT_NODE_ERROR_SAMPLES_H
#define CADRE_WORKER_INPUT_NODE_ERROR_SAMPLES_H

#include "worker/library/input/node/node.h"

/* Returns `status`. On a failure it puts the samples in front of the message: ids [first, count) of
 * `ids`, as "sample 37 (from 0): ", "samples 16 to 31 (from 0): ", or the first few of them. Adds
 * nothing where there are no ids, or ids that say nothing. */
cadre_status error_samples(
    cadre_status status, const struct id_list *ids, size_t first, struct cadre_error *error);

/* The same of the element at `place` of an indexable dataset. */
cadre_status error_samples_at(cadre_status status, cadre_dataset *data,
    struct element_position position, struct cadre_error *error);

#endif
