/* SPDX-License-Identifier: Apache-2.0
 * GPUs and devices of tensors: the public functions that need no replica. */
#include "cadre/gpu.h"

#include "worker/library/device/argument.h"
#include "worker/library/device/device.h"
#include "worker/library/device/local_device.h"
#include "worker/library/device/tensor_struct.h"

uint32_t cadre_gpu_count(const char **ret_reason)
{
    if (ret_reason != NULL) {
        *ret_reason = device_absence_reason();
    }
    return device_count();
}

const char *cadre_tensor_device(const cadre_tensor *tensor)
{
    if (tensor == NULL) {
        return "";
    }
    const struct device *device = tensor_device(tensor);
    return device != NULL ? local_device_name(LOCAL_DEVICE_GPU, device->index)
                          : local_device_name(LOCAL_DEVICE_PROCESSOR, tensor->processor);
}

cadre_status cadre_tensor_copy_to_host(const cadre_tensor *tensor, cadre_tensor **ret_tensor)
{
    struct cadre_error error = {0};
    cadre_status status = argument_require(ret_tensor, __func__, "ret_tensor", &error);
    if (status == CADRE_OK) {
        *ret_tensor = NULL;
        status = argument_require(tensor, __func__, "tensor", &error);
    }
    if (status == CADRE_OK) {
        status = tensor_copy_to(NULL, tensor, ret_tensor, &error);
    }
    return status == CADRE_OK ? CADRE_OK : cadre_error_publish(&error);
}
