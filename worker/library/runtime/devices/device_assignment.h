/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CADRE_RUNTIME_DEVICE_ASSIGNMENT_H
#define CADRE_RUNTIME_DEVICE_ASSIGNMENT_H

#include "cadre/logical_device.h"

struct cadre_device_assignment {
    cadre_topology topology;
    uint32_t replicas;
    uint32_t logical_devices;
    uint32_t devices[]; /* [replica][logical device]: row-major number in the mesh */
};

/* A copy, the caller's to free. NULL: no memory. */
cadre_device_assignment *device_assignment_copy(const cadre_device_assignment *assignment);

#endif
