/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/collectives/collective_device.h"

#include "common/pure/assert.h"
#include "worker/library/runtime/collectives/collective_queue.h"
#include "worker/library/runtime/devices/replica_device.h"

static void through_host_drop(cadre_tensor *tensors[], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        cadre_tensor_release(tensors[i]);
        tensors[i] = NULL;
    }
}

cadre_status collective_to_host(cadre_replica *replica, struct device *device,
    cadre_tensor *const tensors[], size_t count, cadre_tensor *ret_tensors[],
    struct cadre_error *error)
{
    cadre_status status = CADRE_OK;
    CADRE_ASSERT(device == NULL || device == replica->device);
    for (size_t i = 0; i < count; i++) {
        ret_tensors[i] = device == NULL ? cadre_tensor_retain(tensors[i]) : NULL;
    }
    if (device != NULL && count > 0) {
        collective_queue_wait(replica);
        status =
            replica_device_synchronize(replica, error); /* since a copy waits for lost peers too */
    }
    for (size_t i = 0; device != NULL && status == CADRE_OK && i < count; i++) {
        status = tensor_copy_to(NULL, tensors[i], &ret_tensors[i], error);
    }
    if (status != CADRE_OK) {
        through_host_drop(ret_tensors, count);
    }
    return status;
}

cadre_status collective_from_host(
    struct device *device, cadre_tensor *tensors[], size_t count, struct cadre_error *error)
{
    cadre_status status = CADRE_OK;
    for (size_t i = 0; device != NULL && status == CADRE_OK && i < count; i++) {
        cadre_tensor *copy = NULL;
        status = tensor_copy_to(device, tensors[i], &copy, error);
        if (status == CADRE_OK) {
            cadre_tensor_release(tensors[i]);
            tensors[i] = copy;
        }
    }
    if (status != CADRE_OK) {
        through_host_drop(tensors, count);
    }
    return status;
}
