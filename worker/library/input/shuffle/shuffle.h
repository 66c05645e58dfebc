/* SPDX-License-Identifier: Apache-2.0
 * The two shuffles behind cadre_dataset_shuffle. */
#ifndef CADRE_WORKER_INPUT_SHUFFLE_SHUFFLE_H
#define CADRE_WORKER_INPUT_SHUFFLE_SHUFFLE_H

#include <stdbool.h>
#include <stdint.h>

#include "cadre/dataset.h"

/* Draws from a buffer of `buffer_size` >= 1 elements, in input order: not indexable. `once`: one
 * order for all epochs. Takes over the reference of `data`. NULL when there is no memory. */
cadre_dataset *shuffle_buffered(cadre_dataset *data, int64_t buffer_size, uint64_t seed, bool once);

#endif
