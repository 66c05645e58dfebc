/* SPDX-License-Identifier: Apache-2.0
 * Components in a device's memory: the only copies between them and the host, and the host's copy
 * that cross-replica context reads. All operations on a device are in the order of its compute
 * stream. For components in the host's memory the same functions are plain copies. */
#ifndef CADRE_RUNTIME_VARIABLE_DEVICE_H
#define CADRE_RUNTIME_VARIABLE_DEVICE_H

#include "worker/library/device/device.h"
#include "worker/library/runtime/variables/variable.h"

/* The device for the component of a local replica; NULL: the host. */
struct device *variable_home(const cadre_variable *variable, uint32_t local);

/* Bytes [offset, offset + bytes) of a component's value into the host's memory; waits for them. */
cadre_status variable_to_host(const cadre_variable *variable,
    const struct variable_component *component, size_t offset, void *into, size_t bytes,
    struct cadre_error *error);

/* One component's value as a tensor in host memory; the caller releases it. Not of strings. */
cadre_status variable_component_tensor(const cadre_variable *variable, uint32_t component,
    cadre_tensor **ret_tensor, struct cadre_error *error);

/* From the host's memory to the component; the caller may change `from` afterwards. */
cadre_status variable_from_host(const cadre_variable *variable,
    struct variable_component *component, size_t offset, const void *from, size_t bytes,
    struct cadre_error *error);

/* From one memory of the component (value, kept) to the other. */
cadre_status component_copy(const cadre_variable *variable,
    const struct variable_component *component, void *to, const void *from,
    struct cadre_error *error);

/* For operations that only the host can do: the component's value in the host's memory. */
cadre_status component_edit_begin(const cadre_variable *variable,
    const struct variable_component *component, void **ret_value, struct cadre_error *error);
/* Writes the value back. `how`: the status of what was done in between, which is returned unless
 * the end fails; with an error nothing is written. */
cadre_status component_edit_end(const cadre_variable *variable,
    struct variable_component *component, void *value, cadre_status how, struct cadre_error *error);

/* Makes the host's copy that cross-replica context reads; only for a variable with a component on a
 * device. RESOURCE_EXHAUSTED. */
cadre_status variable_host_open(cadre_variable *variable, struct cadre_error *error);
/* Frees the host's copy, if any. */
void variable_host_close(cadre_variable *variable);

/* A component was, or will be, written: the host's copy is old. Any thread. */
void variable_mark_written(const cadre_variable *variable);

/* The first component's value in the host's memory: itself, or a copy that is renewed when it is
 * old, and does not move until the next call after a write. NULL: the error. Any thread. */
const void *variable_host_value(const cadre_variable *variable, struct cadre_error *error);

#endif
