/* SPDX-License-Identifier: Apache-2.0
 * The id of a sample that is element number `ordinal` of an inner dataset, which was made of the
 * input element `outer_id` (mostly a file): for flat_map and interleave, and for what names the
 * file of a sample. */
#ifndef CADRE_WORKER_INPUT_NODE_SAMPLE_ID_H
#define CADRE_WORKER_INPUT_NODE_SAMPLE_ID_H

#include <stdbool.h>
#include <stdint.h>

/* Outer ids and ordinals below these are found again in the id of a sample. */
#define SAMPLE_ID_ORDINAL_BITS 40
#define SAMPLE_ID_OUTER_BITS   18

/* The id of a sample: (outer_id << 40) | ordinal where both are in their bits. Else the highest bit
 * and a hash of the two: still the same for everybody, and alike for two samples of a set of 10^9
 * in one of 18 sets. */
uint64_t sample_id_of(uint64_t outer_id, uint64_t ordinal);

/* The inverse; false for a hash. */
bool sample_id_split(uint64_t id, uint64_t *ret_outer_id, uint64_t *ret_ordinal);

#endif
