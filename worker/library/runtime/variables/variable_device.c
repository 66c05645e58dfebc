/* SPDX-License-Identifier: Apache-2.0
 * See variable_device.h. Called by variables/, state/ and optimizers/. */
#include "worker/library/runtime/variables/variable_device.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/runtime/replica/step_admission.h"
#include "worker/library/runtime/strategy/strategy.h"

/* The host's copy of the first component. */
struct variable_host {
    pthread_mutex_t lock;
    void *copy; /* NULL: not read yet */
    enum tensor_memory_kind kind;
    uint64_t holds;              /* the number of the write that it is of */
    atomic_uint_fast64_t writes; /* the number of writes; from 1 on */
};

struct device *variable_home(const cadre_variable *variable, uint32_t local)
{
    bool on_host = variable->kind != CADRE_VARIABLE_MIRRORED || variable->keep_on_host ||
                   variable->dtype == CADRE_STRING;
    CADRE_ASSERT(on_host || local < variable->strategy->local_replicas);
    return on_host ? NULL : variable->strategy->replicas[local].device;
}

/* --- copies between host and device --- */

cadre_status variable_to_host(const cadre_variable *variable,
    const struct variable_component *component, size_t offset, void *into, size_t bytes,
    struct cadre_error *error)
{
    CADRE_ASSERT(offset + bytes <= variable->bytes);
    cadre_status status = device_copy(
        into, NULL, (const char *)component->value + offset, component->device, bytes, error);
    return status == CADRE_OK ? status
                              : cadre_error_wrap(error, status, "variable '%s'", variable->name);
}

cadre_status variable_component_tensor(const cadre_variable *variable, uint32_t component,
    cadre_tensor **ret_tensor, struct cadre_error *error)
{
    CADRE_ASSERT(component < variable->component_count);
    cadre_tensor *tensor = NULL;
    CADRE_TRY(tensor_create(variable->dtype, variable->rank, variable->dims, &tensor, error));
    cadre_status status = variable_to_host(variable, &variable->components[component], 0,
        cadre_tensor_data(tensor), variable->bytes, error);
    if (status != CADRE_OK) {
        cadre_tensor_release(tensor);
        return status;
    }
    *ret_tensor = tensor;
    return CADRE_OK;
}

cadre_status variable_from_host(const cadre_variable *variable,
    struct variable_component *component, size_t offset, const void *from, size_t bytes,
    struct cadre_error *error)
{
    CADRE_ASSERT(offset + bytes <= variable->bytes);
    char *to = (char *)component->value + offset;
    component->writes++;
    if (component->device == NULL) {
        memcpy(to, from, bytes);
        return CADRE_OK;
    }
    variable_mark_written(variable);
    cadre_status status =
        device_copy_enqueue(component->device, component->device->compute, to, from, bytes, error);
    return status == CADRE_OK ? status
                              : cadre_error_wrap(error, status, "variable '%s'", variable->name);
}

cadre_status component_copy(const cadre_variable *variable,
    const struct variable_component *component, void *to, const void *from,
    struct cadre_error *error)
{
    CADRE_ASSERT(to != from);
    struct device *device = component->device;
    if (device == NULL) {
        memcpy(to, from, variable->bytes);
        return CADRE_OK;
    }
    variable_mark_written(variable);
    if (variable->bytes == 0) {
        return CADRE_OK;
    }
    cadre_status status = device->ops->copy(to, from, variable->bytes, device->compute, error);
    return status == CADRE_OK ? status
                              : cadre_error_wrap(error, status, "variable '%s'", variable->name);
}

static void *room_new(size_t bytes, enum tensor_memory_kind *ret_kind)
{
    *ret_kind = TENSOR_MEMORY_PINNED;
    void *room = tensor_memory_get(TENSOR_MEMORY_PINNED, bytes > 0 ? bytes : 1);
    if (room == NULL) {
        *ret_kind = TENSOR_MEMORY_HOST;
        room = tensor_memory_get(TENSOR_MEMORY_HOST, bytes > 0 ? bytes : 1);
    }
    return room;
}

cadre_status component_edit_begin(const cadre_variable *variable,
    const struct variable_component *component, void **ret_value, struct cadre_error *error)
{
    *ret_value = component->value;
    CADRE_ASSERT(component->value != NULL);
    if (component->device == NULL) {
        return CADRE_OK;
    }
    *ret_value = malloc(variable->bytes + 1);
    if (*ret_value == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory on the host to change variable '%s' (%zu bytes), which is on %s:%u",
            variable->name, variable->bytes, component->device->ops->type,
            component->device->index);
    }
    cadre_status status =
        variable_to_host(variable, component, 0, *ret_value, variable->bytes, error);
    if (status != CADRE_OK) {
        free(*ret_value);
        *ret_value = NULL;
    }
    return status;
}

cadre_status component_edit_end(const cadre_variable *variable,
    struct variable_component *component, void *value, cadre_status how, struct cadre_error *error)
{
    CADRE_ASSERT((component->device == NULL) == (value == component->value));
    if (component->device == NULL) {
        return how;
    }
    if (how == CADRE_OK) {
        how = variable_from_host(variable, component, 0, value, variable->bytes, error);
    }
    free(value);
    return how;
}

/* --- reads in cross-replica context --- */

cadre_status variable_host_open(cadre_variable *variable, struct cadre_error *error)
{
    CADRE_ASSERT(variable->host == NULL);
    if (variable->component_count == 0 || variable->components[0].device == NULL) {
        return CADRE_OK;
    }
    variable->host = calloc(1, sizeof *variable->host);
    if (variable->host == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for the variable '%s'", variable->name);
    }
    pthread_mutex_init(&variable->host->lock, NULL);
    atomic_init(&variable->host->writes, 1);
    return CADRE_OK;
}

void variable_host_close(cadre_variable *variable)
{
    struct variable_host *host = variable->host;
    if (host == NULL) {
        return;
    }
    if (host->copy != NULL) {
        tensor_memory_give(host->kind, host->copy, variable->bytes > 0 ? variable->bytes : 1);
    }
    pthread_mutex_destroy(&host->lock);
    free(host);
    variable->host = NULL;
}

void variable_mark_written(const cadre_variable *variable)
{
    if (variable->host != NULL) {
        atomic_fetch_add(&variable->host->writes, 1);
    }
}

/* The caller holds the lock. */
static cadre_status variable_device_refresh(
    const cadre_variable *variable, struct cadre_error *error)
{
    struct variable_host *host = variable->host;
    const struct variable_component *first = &variable->components[0];
    struct device *device = first->device;
    CADRE_ASSERT(device != NULL);
    uint64_t writes = atomic_load(&host->writes);
    /* While a step runs a replica may write by a pointer that it has. */
    if (host->copy != NULL && host->holds == writes &&
        !atomic_load(&variable->strategy->step.running)) {
        return CADRE_OK;
    }
    if (host->copy == NULL && (host->copy = room_new(variable->bytes, &host->kind)) == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory on the host for a copy of variable '%s' (%zu bytes)", variable->name,
            variable->bytes);
    }
    host->holds = 0;
    if (host->kind != TENSOR_MEMORY_PINNED) {
        CADRE_TRY(variable_to_host(variable, first, 0, host->copy, variable->bytes, error));
    } else if (variable->bytes > 0) {
        CADRE_TRY(
            device->ops->copy(host->copy, first->value, variable->bytes, device->compute, error));
        CADRE_TRY(device_wait_stream(device, device->compute, 0, NULL, NULL, error));
    }
    host->holds = writes;
    return CADRE_OK;
}

const void *variable_host_value(const cadre_variable *variable, struct cadre_error *error)
{
    struct variable_host *host = variable->host;
    if (host == NULL) {
        return variable->components[0].value;
    }
    pthread_mutex_lock(&host->lock);
    cadre_status status = variable_device_refresh(variable, error);
    pthread_mutex_unlock(&host->lock);
    return status == CADRE_OK ? host->copy : NULL;
}
