/* SPDX-License-Identifier: Apache-2.0
 * Tensors whose elements are in a device's memory; the header is in the host's. device.h
 * declares them. */
#include <string.h>

#include "worker/library/device/argument.h"
#include "worker/library/device/device.h"
#include "worker/library/device/device_open.h"
#include "worker/library/device/tensor_struct.h"

struct device *tensor_device(const cadre_tensor *tensor)
{
    if (tensor == NULL) {
        return NULL;
    }
    return tensor->elements == TENSOR_ELEMENTS_VIEWED ? tensor->holds->device : tensor->device;
}

void tensor_give_on_device(cadre_tensor *tensor)
{
    struct device *device = tensor->device;
    device->ops->memory_give(device->index, tensor->data, device->compute);
}

cadre_status tensor_create_on(struct device *device, void *stream, cadre_dtype dtype, uint32_t rank,
    const int64_t *dims, cadre_tensor **ret_tensor, struct cadre_error *error)
{
    int64_t count = 0;
    size_t bytes = 0;
    char shape[TENSOR_SHAPE_TEXT_BYTES];
    *ret_tensor = NULL;
    CADRE_TRY(tensor_shape_check(dtype, rank, dims, &count, &bytes, error));
    if (dtype == CADRE_STRING) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "strings cannot be in the memory of %s:%u; keep them on the host", device->ops->type,
            device->index);
    }
    cadre_tensor *tensor = tensor_new_header(TENSOR_MEMORY_HOST, sizeof *tensor, dtype, rank, dims);
    if (tensor == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a tensor's header");
    }
    void *memory = NULL;
    /* An address is needed also where there is no element. */
    cadre_status status = device->ops->memory_get(device->index, bytes > 0 ? bytes : 1,
        stream != NULL ? stream : device->compute, &memory, error);
    if (status != CADRE_OK) {
        cadre_tensor_release(tensor);
        return cadre_error_wrap(error, status, "a tensor of %s (%zu bytes) on %s:%u",
            tensor_shape_text(dtype, rank, dims, shape), bytes, device->ops->type, device->index);
    }
    tensor->count = count;
    tensor->bytes = bytes;
    tensor->data = memory;
    tensor->device = device;
    *ret_tensor = tensor;
    return CADRE_OK;
}

/* A tensor of the same shape in the memory of `device`, or the host's. */
static cadre_status create_like(struct device *device, const cadre_tensor *tensor,
    cadre_tensor **ret_tensor, struct cadre_error *error)
{
    CADRE_TRY(device != NULL ? tensor_create_on(device, NULL, tensor->dtype, tensor->rank,
                                   tensor->dims, ret_tensor, error)
                             : tensor_create_unset(
                                   tensor->dtype, tensor->rank, tensor->dims, ret_tensor, error));
    (*ret_tensor)->composite = tensor->composite;
    return CADRE_OK;
}

cadre_status tensor_copy_to(struct device *device, const cadre_tensor *tensor,
    cadre_tensor **ret_tensor, struct cadre_error *error)
{
    struct device *from = tensor_device(tensor);
    *ret_tensor = NULL;
    if (device == NULL && from == NULL) {
        return tensor_copy(tensor, ret_tensor, error);
    }
    CADRE_TRY(create_like(device, tensor, ret_tensor, error));
    cadre_status status =
        device_copy((*ret_tensor)->data, device, tensor->data, from, tensor->bytes, error);
    if (status != CADRE_OK) {
        cadre_tensor_release(*ret_tensor);
        *ret_tensor = NULL;
    }
    return status;
}

/* The same for a tensor of another device: on the copy stream of `to`, so that the source waits for
 * the copy, not for other work of `to`. Both compute streams wait for it: the source may be written
 * to, or freed, in the order of its own. */
static cadre_status copy_across(struct device *to, struct device *from, const cadre_tensor *tensor,
    cadre_tensor **ret_tensor, struct cadre_error *error)
{
    CADRE_TRY(tensor_create_on(
        to, to->copy, tensor->dtype, tensor->rank, tensor->dims, ret_tensor, error));
    (*ret_tensor)->composite = tensor->composite;
    cadre_status status = device_order(from, from->compute, to->copy, error);
    if (status == CADRE_OK && tensor->bytes > 0) {
        status = to->ops->copy((*ret_tensor)->data, tensor->data, tensor->bytes, to->copy, error);
    }
    if (status == CADRE_OK) {
        status = device_order(to, to->copy, to->compute, error);
    }
    if (status == CADRE_OK) {
        status = device_order(to, to->copy, from->compute, error);
    }
    if (status != CADRE_OK) {
        (void)device_wait_stream(to, to->copy, 0, NULL, NULL, NULL);
    }
    return status;
}

/* On the compute stream: from the host, or from the same device. Memory of the host that the device
 * still reads stays. */
static cadre_status copy_in_order(struct device *device, const cadre_tensor *tensor,
    cadre_tensor **ret_tensor, struct cadre_error *error)
{
    CADRE_TRY(create_like(device, tensor, ret_tensor, error));
    if (tensor->bytes == 0) {
        return CADRE_OK;
    }
    CADRE_TRY(device->ops->copy(
        (*ret_tensor)->data, tensor->data, tensor->bytes, device->compute, error));
    if (tensor_device(tensor) == device) {
        return CADRE_OK;
    }
    cadre_status status = device_lend(device, device->compute, tensor, error);
    if (status != CADRE_OK) {
        (void)device_wait_stream(device, device->compute, 0, NULL, NULL, NULL);
    }
    return status;
}

cadre_status tensor_copy_begin(struct device *device, const cadre_tensor *tensor,
    cadre_tensor **ret_tensor, struct cadre_error *error)
{
    struct device *from = tensor_device(tensor);
    *ret_tensor = NULL;
    cadre_status status = from != NULL && from != device
                              ? copy_across(device, from, tensor, ret_tensor, error)
                              : copy_in_order(device, tensor, ret_tensor, error);
    if (status != CADRE_OK) {
        cadre_tensor_release(*ret_tensor);
        *ret_tensor = NULL;
    }
    return status;
}

cadre_status tensor_on_host(
    const cadre_tensor *tensor, cadre_tensor **ret_tensor, struct cadre_error *error)
{
    if (tensor_device(tensor) != NULL) {
        return tensor_copy_to(NULL, tensor, ret_tensor, error);
    }
    *ret_tensor = cadre_tensor_retain((cadre_tensor *)(uintptr_t)tensor);
    return CADRE_OK;
}

cadre_status tensor_require_host(
    const cadre_tensor *tensor, const char *function, struct cadre_error *error)
{
    struct device *device = tensor_device(tensor);
    if (device == NULL) {
        return CADRE_OK;
    }
    char shape[TENSOR_SHAPE_TEXT_BYTES];
    return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
        "%s reads its tensors on the host, and one of %s is in the memory of %s:%u; copy it by "
        "cadre_tensor_copy_to_host",
        function, tensor_shape_text(tensor->dtype, tensor->rank, tensor->dims, shape),
        device->ops->type, device->index);
}

cadre_status tensor_require(
    const cadre_tensor *tensor, const char *function, const char *name, struct cadre_error *error)
{
    CADRE_TRY(argument_require(tensor, function, name, error));
    return tensor_require_host(tensor, function, error);
}
