/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/variables/variable_memory.h"

#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/device/device.h"
#include "worker/library/runtime/strategy/strategy.h"

/* There is always an address, also of a value without elements. */
static size_t room_of(const cadre_variable *variable)
{
    return variable->bytes == 0 ? 1 : variable->bytes;
}

static cadre_status value_new_on(const cadre_variable *variable, struct device *device,
    void **ret_value, struct cadre_error *error)
{
    size_t bytes = room_of(variable);
    CADRE_ASSERT(device != NULL);
    CADRE_TRY(device->ops->memory_get(device->index, bytes, device->compute, ret_value, error));
    cadre_status status = device->ops->fill(*ret_value, 0, bytes, device->compute, error);
    if (status != CADRE_OK) {
        value_free(variable, device, *ret_value);
        *ret_value = NULL;
    }
    return status;
}

cadre_status value_new(const cadre_variable *variable, struct device *device, void **ret_value,
    struct cadre_error *error)
{
    CADRE_ASSERT(variable->dtype != CADRE_STRING);
    *ret_value = NULL;
    if (device != NULL) {
        return value_new_on(variable, device, ret_value, error);
    }
    *ret_value = tensor_memory_get(variable->memory, room_of(variable));
    if (*ret_value == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "the host has no %zu bytes", room_of(variable));
    }
    memset(*ret_value, 0, room_of(variable));
    return CADRE_OK;
}

void value_free(const cadre_variable *variable, struct device *device, void *value)
{
    if (value == NULL) {
        return;
    }
    if (device != NULL) {
        device->ops->memory_give(device->index, value, device->compute);
    } else {
        tensor_memory_give(variable->memory, value, room_of(variable));
    }
}
