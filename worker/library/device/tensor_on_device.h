/* SPDX-License-Identifier: Apache-2.0
 * Tensors on devices beyond device.h: copies that are not waited for. */
#ifndef CADRE_WORKER_DEVICE_TENSOR_ON_DEVICE_H
#define CADRE_WORKER_DEVICE_TENSOR_ON_DEVICE_H

#include "worker/library/device/device.h"

/* A copy of `tensor`, from any memory, in the memory of `device`; in the order of its compute
 * stream. A tensor of the host must not be written to before the copy is done; a reference of it is
 * kept as long as it is read. One of another device is read in the order of that one's compute
 * stream too, independently of other work of `device`. */
cadre_status tensor_copy_begin(struct device *device, const cadre_tensor *tensor,
    cadre_tensor **ret_tensor, struct cadre_error *error);

/* The tensor itself, with one reference more, or a copy in the host's memory, which is waited for.
 */
cadre_status tensor_on_host(
    const cadre_tensor *tensor, cadre_tensor **ret_tensor, struct cadre_error *error);

#endif
