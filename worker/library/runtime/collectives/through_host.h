/* SPDX-License-Identifier: Apache-2.0
 * The way through the host, for collectives that tensors in a device's memory have no other way
 * for. Both directions wait for the device. */
#ifndef CADRE_RUNTIME_THROUGH_HOST_H
#define CADRE_RUNTIME_THROUGH_HOST_H

#include <stddef.h>

#include "cadre/replica.h"
#include "common/base/error.h"
#include "worker/library/device/device.h"

/* Copies in the host's memory, the caller's to release, of tensors on the replica's device; where
 * `device` is NULL one more reference of each. On error all of ret_tensors are NULL. */
cadre_status collective_to_host(cadre_replica *replica, struct device *device,
    cadre_tensor *const tensors[], size_t count, cadre_tensor *ret_tensors[],
    struct cadre_error *error);

/* The other way: each is replaced by a copy on `device`; nothing for NULL. On error all are
 * released, and NULL. */
cadre_status collective_from_host(
    struct device *device, cadre_tensor *tensors[], size_t count, struct cadre_error *error);

#endif
