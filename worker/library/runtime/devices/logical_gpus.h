/* SPDX-License-Identifier: Apache-2.0
 * Logical devices that are GPUs. */
#ifndef CADRE_RUNTIME_LOGICAL_GPUS_H
#define CADRE_RUNTIME_LOGICAL_GPUS_H

#include "cadre/logical_device.h"
#include "worker/library/runtime/strategy/strategy.h"

struct device;

/* Opens the GPUs that an assignment gives to replicas on GPUs: ret_devices[local replica][logical
 * device], NULL for those of replicas on the host. FAILED_PRECONDITION: a GPU does not exist.
 * INVALID_ARGUMENT: a replica's logical device 0 is not the GPU that the replica is on. */
cadre_status logical_gpus_open(const cadre_strategy *strategy,
    const cadre_device_assignment *assignment, struct device *ret_devices[],
    struct cadre_error *error);

#endif
