/* SPDX-License-Identifier: Apache-2.0
 * Tensors in the memory of a replica's logical devices, and their streams. */
#include "cadre/logical_device.h"
#include "worker/library/device/argument.h"
#include "worker/library/device/device.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/devices/devices.h"
#include "worker/library/runtime/devices/logical_device.h"
#include "worker/library/runtime/replica/step_admission.h"

void *cadre_logical_stream(const cadre_replica *replica, uint32_t logical_device)
{
    const struct device *device =
        replica == NULL ? NULL : logical_device_of(replica, logical_device);
    return device == NULL ? NULL : device->compute;
}

static cadre_status logical_tensors_enter(const char *function, const cadre_replica *replica,
    uint32_t logical_device, cadre_tensor **ret_tensor, struct cadre_error *error)
{
    CADRE_TRY(argument_require(ret_tensor, function, "ret_tensor", error));
    *ret_tensor = NULL;
    CADRE_TRY(step_require(replica, function, error));
    return logical_device_check(replica, logical_device, error);
}

cadre_status cadre_tensor_create_on_logical(cadre_replica *replica, uint32_t logical_device,
    cadre_dtype dtype, uint32_t rank, const int64_t *dims, cadre_tensor **ret_tensor)
{
    struct cadre_error error = {0};
    cadre_status status =
        logical_tensors_enter(__func__, replica, logical_device, ret_tensor, &error);
    if (status == CADRE_OK) {
        struct device *device = logical_device_of(replica, logical_device);
        status = gpus_tensor_zeros(device, dtype, rank, dims, ret_tensor, &error);
    }
    return api_return(status, &error);
}

cadre_status cadre_tensor_copy_to_logical(cadre_replica *replica, uint32_t logical_device,
    const cadre_tensor *tensor, cadre_tensor **ret_tensor)
{
    struct cadre_error error = {0};
    cadre_status status =
        logical_tensors_enter(__func__, replica, logical_device, ret_tensor, &error);
    if (status == CADRE_OK) {
        status = argument_require(tensor, __func__, "tensor", &error);
    }
    if (status == CADRE_OK) {
        struct device *device = logical_device_of(replica, logical_device);
        status = gpus_tensor_copy(device, tensor, ret_tensor, &error);
    }
    return api_return(status, &error);
}
