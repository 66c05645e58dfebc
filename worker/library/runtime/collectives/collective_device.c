/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/collectives/collective_device.h"

#include <stdio.h>

#include "common/pure/assert.h"
#include "worker/library/device/device.h"
#include "worker/library/runtime/replica/step_admission.h"

static void device_text(const struct device *device, char text[32])
{
    if (device == NULL) {
        snprintf(text, 32, "the memory of the host");
    } else {
        snprintf(text, 32, "the memory of GPU %u", device->index);
    }
}

static cadre_status collective_device_refuse(const cadre_replica *replica,
    const cadre_tensor *first, const cadre_tensor *other, size_t index, struct cadre_error *error)
{
    char here[32];
    char there[32];
    CADRE_ASSERT(tensor_device(other) != (index > 0 ? tensor_device(first) : replica->device));
    device_text(tensor_device(first), here);
    device_text(tensor_device(other), there);
    if (index > 0) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "tensor 0 of a collective is in %s and tensor %zu in %s; give those of the host in a "
            "call of their own, or copy them with cadre_tensor_copy_to",
            here, index, there);
    }
    device_text(replica->device, here);
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
        "tensor 0 of a collective is in %s, and replica %u works in %s; copy it with "
        "cadre_tensor_copy_to",
        there, replica->id, here);
}

cadre_status collective_same_device(const cadre_replica *replica, cadre_tensor *const tensors[],
    size_t count, struct device **ret_device, struct cadre_error *error)
{
    *ret_device = count == 0 ? NULL : tensor_device(tensors[0]);
    if (*ret_device != NULL && *ret_device != replica->device) {
        return collective_device_refuse(replica, tensors[0], tensors[0], 0, error);
    }
    for (size_t i = 1; i < count; i++) {
        if (tensor_device(tensors[i]) != *ret_device) {
            return collective_device_refuse(replica, tensors[0], tensors[i], i, error);
        }
    }
    return CADRE_OK;
}

cadre_status collective_device_begin(struct device *device, struct cadre_error *error)
{
    return device == NULL ? CADRE_OK : device_order(device, device->compute, device->comm, error);
}

cadre_status collective_device_end(struct device *device, struct cadre_error *error)
{
    return device == NULL ? CADRE_OK : device_order(device, device->comm, device->compute, error);
}
