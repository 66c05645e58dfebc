/* SPDX-License-Identifier: Apache-2.0
 * What the devices of this process are called, and which processor its tensors are of. A processor
 * is one in name: CPU:1 and the like are the host's, and tensors of all of them lie in its memory.
 */
#ifndef CADRE_WORKER_DEVICE_LOCAL_DEVICE_H
#define CADRE_WORKER_DEVICE_LOCAL_DEVICE_H

#include <stdint.h>

#define LOCAL_DEVICE_MAX 256 /* of a type */

/* The task that the process is. */
struct device_host {
    char job[64];
    int32_t task;
};

/* From now on; before, it is task 0 of job localhost. */
void local_device_set_task(const struct device_host *host);

enum local_device_type { LOCAL_DEVICE_PROCESSOR, LOCAL_DEVICE_GPU, LOCAL_DEVICE_TYPES };

/* The canonical name of the `index`-th of its type: valid for ever. Any thread. */
const char *local_device_name(enum local_device_type type, uint32_t index);

/* The process has that many processors, from CPU:0 on, or more; and how many it has. Any thread. */
void local_device_set_processors(uint32_t processors);
uint32_t local_device_processors(void);

/* The number of the processor that a canonical name is of; 0 of a name of something else, which the
 * host's first one serves. */
uint8_t local_device_processor_of(const char *name);

/* The processor that tensors which the calling thread makes are of from now on. Returns the one
 * before. */
uint8_t local_device_prefer(uint8_t processor);
uint8_t local_device_preferred(void);

#endif
