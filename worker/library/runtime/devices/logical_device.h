/* SPDX-License-Identifier: Apache-2.0
 * The logical devices of a strategy's replicas, and their threads. */
#ifndef CADRE_RUNTIME_LOGICAL_DEVICE_H
#define CADRE_RUNTIME_LOGICAL_DEVICE_H

#include "worker/library/runtime/strategy/strategy.h"

struct device;

/* The device of that index; NULL: it is the host, or the replica has no such logical device. 0 is
 * the replica's own, with or without an assignment. */
struct device *logical_device_of(const cadre_replica *replica, uint32_t logical_device);

/* The devices of all local replicas: [local replica][logical device], NULL for those of the host.
 * NULL: no assignment was set. */
struct device *const *logical_devices_all(const cadre_strategy *strategy);

/* INVALID_ARGUMENT: the replica has no logical device of this index; the message has the count. */
cadre_status logical_device_check(
    const cadre_replica *replica, uint32_t logical_device, struct cadre_error *error);

/* Ends the threads of all replicas. Nothing without an assignment. */
void logical_devices_close(cadre_strategy *strategy);

#endif
