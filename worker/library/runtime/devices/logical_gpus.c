/* SPDX-License-Identifier: Apache-2.0
 * Logical devices that are GPUs: which ones, by the assignment. */
#include "worker/library/runtime/devices/logical_device.h"

#include <stdio.h>

#include "common/pure/assert.h"
#include "worker/library/device/device.h"
#include "worker/library/runtime/replica/step_admission.h"

/* The GPUs that the replicas would be on: "GPU:0, GPU:2", cut off where there is no more room. */
static void name_firsts(const cadre_strategy *strategy, const cadre_device_assignment *assignment,
    char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t r = 0; r < strategy->local_replicas && used + 24 < size; r++) {
        const char *type = strategy->replicas[r].device != NULL ? "GPU" : "CPU";
        int wrote = snprintf(text + used, size - used, "%s%s:%u", r > 0 ? ", " : "", type,
            assignment->devices[r * assignment->logical_devices]);
        used += wrote > 0 ? (size_t)wrote : 0;
    }
}

static cadre_status open_one(
    uint32_t replica, uint32_t gpu, struct device **ret_device, struct cadre_error *error)
{
    uint32_t count = device_count();
    if (gpu >= count) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "the assignment gives GPU:%u to local replica %u, and this process can use %u GPU%s, "
            "from GPU:0 on; build it over a mesh of as many devices",
            gpu, replica, count, count == 1 ? "" : "s");
    }
    return device_open(gpu, ret_device, error);
}

cadre_status logical_gpus_open(const cadre_strategy *strategy,
    const cadre_device_assignment *assignment, struct device *ret_devices[],
    struct cadre_error *error)
{
    uint32_t each = assignment->logical_devices;
    CADRE_ASSERT(assignment->replicas == strategy->local_replicas);
    CADRE_ASSERT(each > 0);
    for (uint32_t i = 0; i < strategy->local_replicas * each; i++) {
        if (strategy->replicas[i / each].device != NULL) {
            CADRE_TRY(open_one(i / each, assignment->devices[i], &ret_devices[i], error));
        }
    }
    for (uint32_t r = 0; r < strategy->local_replicas; r++) {
        const struct device *device = strategy->replicas[r].device;
        if (device != NULL && ret_devices[r * each] != device) {
            char names[256];
            name_firsts(strategy, assignment, names, sizeof names);
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "logical device 0 of local replica %u is GPU:%u by the assignment, and the replica "
                "is on GPU:%u; make the strategy on %s, or build another assignment",
                r, ret_devices[r * each]->index, device->index, names);
        }
    }
    return CADRE_OK;
}
