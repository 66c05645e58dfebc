/* SPDX-License-Identifier: Apache-2.0
 * The logical devices of a strategy's replicas, and their threads. */
#ifndef CADRE_RUNTIME_LOGICAL_DEVICE_H
#define CADRE_RUNTIME_LOGICAL_DEVICE_H

#include "cadre/logical_device.h"
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

/* --- device_assignment.c --- */

struct cadre_device_assignment {
    cadre_topology topology;
    uint32_t replicas;
    uint32_t logical_devices;
    uint32_t devices[]; /* [replica][logical device]: row-major number in the mesh */
};

/* A copy, the caller's to free. NULL: no memory. */
cadre_device_assignment *device_assignment_copy(const cadre_device_assignment *assignment);

/* --- logical_gpus.c --- */

/* Opens the GPUs that an assignment gives to replicas on GPUs: ret_devices[local replica][logical
 * device], NULL for those of replicas on the host. FAILED_PRECONDITION: a GPU does not exist.
 * INVALID_ARGUMENT: a replica's logical device 0 is not the GPU that the replica is on. */
cadre_status logical_gpus_open(const cadre_strategy *strategy,
    const cadre_device_assignment *assignment, struct device *ret_devices[],
    struct cadre_error *error);

#endif
