/* SPDX-License-Identifier: Apache-2.0
 * The names of this process's devices, and which processor its tensors belong to. A processor is
 * one in name: CPU:1 and the like are the host's, and tensors of all of them are in its memory. */
#ifndef CADRE_WORKER_DEVICE_LOCAL_DEVICE_H
#define CADRE_WORKER_DEVICE_LOCAL_DEVICE_H

#include <stdint.h>

#include "cadre/device.h"
#include "common/base/error.h"

#define LOCAL_DEVICE_MAX 256 /* of a type */

/* The task of this process. */
struct device_host {
    char job[64];
    int32_t task;
};

/* From now on; before the call it is task 0 of job localhost. */
void local_device_set_task(const struct device_host *host);

enum local_device_type { LOCAL_DEVICE_PROCESSOR, LOCAL_DEVICE_GPU, LOCAL_DEVICE_TYPES };

/* The canonical name of the `index`-th of its type: valid for ever. Any thread. */
const char *local_device_name(enum local_device_type type, uint32_t index);

/* Sets how many processors the process has, from CPU:0 on; a smaller number than before changes
 * nothing. Any thread. */
void local_device_set_processors(uint32_t processors);
/* How many it has. Any thread. */
uint32_t local_device_processors(void);

/* The number of the processor with a canonical name; 0 of any other name, because the host's first
 * one serves that. */
uint8_t local_device_processor_of(const char *name);

/* Sets the processor of tensors that the calling thread makes from now on. Returns the one
 * before. */
uint8_t local_device_prefer(uint8_t processor);
/* That processor. */
uint8_t local_device_preferred(void);

/* --- cadre/device.h with an error: names of devices, parsed and written. --- */

/* INVALID_ARGUMENT names the field that is wrong. What the name leaves open is "" or -1. */
cadre_status device_name_parse(
    const char *name, cadre_device_spec *ret_spec, struct cadre_error *error);

/* Sets what `spec` leaves open as in `from`. */
void device_name_fill(cadre_device_spec *spec, const cadre_device_spec *from);

/* Writes the canonical name, with the defaults for what is open. */
void device_name_text(const cadre_device_spec *spec, char ret_name[CADRE_DEVICE_NAME_BYTES]);

#endif
