/* SPDX-License-Identifier: Apache-2.0
 * Writes a value to a component, each in its own memory. */
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/device/device.h"
#include "worker/library/device/tensor.h"
#include "worker/library/runtime/arithmetic/numbers.h"
#include "worker/library/runtime/variables/assign.h"
#include "worker/library/runtime/variables/variable_device.h"

static void write_on_host(
    const cadre_variable *variable, void *value, const void *from, cadre_assignment how)
{
    if (how == CADRE_ASSIGN) {
        memcpy(value, from, variable->bytes);
    } else {
        numbers_add(value, from, variable->count, variable->dtype, how == CADRE_ASSIGN_SUB);
    }
}

/* `from` is on the component's device. */
static cadre_status write_on_device(const cadre_variable *variable,
    const struct variable_component *component, const cadre_tensor *from, cadre_assignment how,
    struct cadre_error *error)
{
    const struct device *device = component->device;
    const void *data = cadre_tensor_const_data(from);
    CADRE_ASSERT(tensor_device(from) == device);
    variable_mark_written(variable);
    if (variable->bytes == 0) {
        return CADRE_OK;
    }
    if (how == CADRE_ASSIGN) {
        return device->ops->copy(component->value, data, variable->bytes, device->compute, error);
    }
    return device->ops->arithmetic(how == CADRE_ASSIGN_SUB ? DEVICE_SUB : DEVICE_ADD,
        variable->dtype, component->value, data, (size_t)variable->count, device->compute, error);
}

/* A copy on `device`; the caller may change the host's memory of `from` afterwards. */
static cadre_status assign_write_bring(struct device *device, const cadre_tensor *from,
    cadre_tensor **ret_here, struct cadre_error *error)
{
    if (tensor_device(from) != NULL) {
        return tensor_copy_begin(device, from, ret_here, error);
    }
    CADRE_TRY(tensor_create_on(device, NULL, cadre_tensor_dtype(from), cadre_tensor_rank(from),
        cadre_tensor_dims(from), ret_here, error));
    cadre_status status = device_copy_enqueue(device, device->compute, cadre_tensor_data(*ret_here),
        cadre_tensor_const_data(from), cadre_tensor_bytes(from), error);
    if (status != CADRE_OK) {
        cadre_tensor_release(*ret_here);
        *ret_here = NULL;
    }
    return status;
}

cadre_status assign_write(const cadre_variable *variable, struct variable_component *component,
    const cadre_tensor *from, cadre_assignment how, struct cadre_error *error)
{
    struct device *device = component->device;
    struct device *source = tensor_device(from);
    cadre_tensor *here = NULL;
    CADRE_ASSERT(cadre_tensor_bytes(from) == variable->bytes);
    CADRE_ASSERT(variable->dtype != CADRE_STRING);
    if (device == NULL && source == NULL) {
        write_on_host(variable, component->value, cadre_tensor_const_data(from), how);
        return CADRE_OK;
    }
    if (device == NULL) {
        CADRE_TRY(tensor_copy_to(NULL, from, &here, error));
        write_on_host(variable, component->value, cadre_tensor_const_data(here), how);
        cadre_tensor_release(here);
        return CADRE_OK;
    }
    if (source == NULL && how == CADRE_ASSIGN) {
        return variable_from_host(
            variable, component, 0, cadre_tensor_const_data(from), variable->bytes, error);
    }
    if (source != device) {
        CADRE_TRY(assign_write_bring(device, from, &here, error));
    }
    cadre_status status =
        write_on_device(variable, component, here != NULL ? here : from, how, error);
    cadre_tensor_release(here);
    return status;
}
