/* SPDX-License-Identifier: Apache-2.0
 * Whether memory runs out, for those that keep elements: they stop before the machine does.
 * (machine_memory.h tells how much there is at all.) */
#ifndef CADRE_WORKER_INPUT_NODE_AVAILABLE_MEMORY_H
#define CADRE_WORKER_INPUT_NODE_AVAILABLE_MEMORY_H

#include <stdbool.h>

/* Whether less than 1/16 is left of this machine's memory, or of what its control group may have.
 * Reads files of /proc and /sys: some ten microseconds. Any thread. False where nothing tells. */
bool available_memory_is_low(void);

#endif
