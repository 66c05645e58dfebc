/* SPDX-License-Identifier: Apache-2.0
 * Collectives of tensors in a device's memory: which memory, and in which order the device carries
 * out kernels and collectives.
 *
 *   compute   ── kernels ──┐                          ┌── kernels that use the result
 *                          └─▶ order            order ┴▶
 *   comm                        ── the collective ──┘           no thread waits for the device */
#ifndef CADRE_RUNTIME_COLLECTIVE_DEVICE_H
#define CADRE_RUNTIME_COLLECTIVE_DEVICE_H

#include <stddef.h>

#include "cadre/replica.h"
#include "common/base/error.h"
#include "worker/library/device/device.h"

/* Which memory the tensors of one call are in: all in that of the replica's device, or (NULL) all
 * in the host's. INVALID_ARGUMENT: some here and some there, or on another device. */
cadre_status collective_same_device(const cadre_replica *replica, cadre_tensor *const tensors[],
    size_t count, struct device **ret_device, struct cadre_error *error);

/* Before a collective of buffers on `device`: comm waits for compute. Nothing for NULL. */
cadre_status collective_device_begin(struct device *device, struct cadre_error *error);
/* After it: compute waits for comm. Nothing for NULL. */
cadre_status collective_device_end(struct device *device, struct cadre_error *error);

/* --- through_host.c: the way through the host, for collectives that have no other; both directions
 * wait for the device --- */

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
