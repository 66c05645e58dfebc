/* SPDX-License-Identifier: Apache-2.0
 * How far ahead a dataset asks to be read. */
#ifndef CADRE_WORKER_INPUT_READ_AHEAD_PREFETCH_H
#define CADRE_WORKER_INPUT_READ_AHEAD_PREFETCH_H

#include <stdint.h>

#include "cadre/dataset.h"

#define PREFETCH_DEPTH_MAX 64 /* steps; more is asked for in vain */

/* The largest depth of the prefetch nodes at the end of the chain; 0 without one. */
uint32_t dataset_prefetch_depth(const cadre_dataset *data);

#endif
