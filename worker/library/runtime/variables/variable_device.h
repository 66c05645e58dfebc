/* SPDX-License-Identifier: Apache-2.0
 * Components that lie in a device's memory: the one pair of ways that values take between them and
 * the host, and the host's copy that cross-replica context reads. All that is done on a device is
 * in the order of its compute stream. Of components in the host's memory the same functions are
 * plain copies. */
#ifndef CADRE_RUNTIME_VARIABLE_DEVICE_H
#define CADRE_RUNTIME_VARIABLE_DEVICE_H

#include "worker/library/device/device.h"
#include "worker/library/runtime/variables/variable.h"

/* The device that the component of a local replica is to lie on; NULL: the host. */
struct device *variable_home(const cadre_variable *variable, uint32_t local);

/* Bytes [offset, offset + bytes) of a component's value into the host's memory; waits for them. */
cadre_status variable_to_host(const cadre_variable *variable,
    const struct variable_component *component, size_t offset, void *into, size_t bytes,
    struct cadre_error *error);

/* One component's value as a tensor in host memory; the caller releases it. Not of strings. */
cadre_status variable_component_tensor(const cadre_variable *variable, uint32_t component,
    cadre_tensor **ret_tensor, struct cadre_error *error);

/* The other way; `from` may be changed when this returns. */
cadre_status variable_from_host(const cadre_variable *variable,
    struct variable_component *component, size_t offset, const void *from, size_t bytes,
    struct cadre_error *error);

/* From one of the component's places (value, kept) to the other. */
cadre_status component_copy(const cadre_variable *variable,
    const struct variable_component *component, void *to, const void *from,
    struct cadre_error *error);

/* For what can only be done on the host: the component's value in the host's memory, and what was
 * made of it back. `how`: the status of what was done in between, and returned unless the end
 * fails; then, too, nothing goes back. */
cadre_status component_edit_begin(const cadre_variable *variable,
    const struct variable_component *component, void **ret_value, struct cadre_error *error);
cadre_status component_edit_end(const cadre_variable *variable,
    struct variable_component *component, void *value, cadre_status how, struct cadre_error *error);

/* Makes what cross-replica context reads a variable by; only of those with a component on a device
 * something. RESOURCE_EXHAUSTED. */
cadre_status variable_host_open(cadre_variable *variable, struct cadre_error *error);
void variable_host_close(cadre_variable *variable);

/* A component was, or is about to be, written: what the host has is old. Any thread. */
void variable_mark_written(const cadre_variable *variable);

/* The first component's value in the host's memory: itself, or a copy that is made and waited for
 * when it is old, and lies still until the next call after a write. NULL: the error. Any thread. */
const void *variable_host_value(const cadre_variable *variable, struct cadre_error *error);

#endif
