/* SPDX-License-Identifier: Apache-2.0
 * All devices of the process, as a program lists them: its processors, then its GPUs. */
#include <pthread.h>
#include <stdlib.h>

#include "cadre/device.h"
#include "common/pure/assert.h"
#include "worker/library/device/argument.h"
#include "worker/library/device/local_device.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/devices/devices.h"
#include "worker/library/runtime/program/program.h"

/* One for each number of processors that was listed, because programs keep the pointers. */
static struct {
    pthread_mutex_t lock;
    const char **lists[LOCAL_DEVICE_MAX + 1];
} process = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint32_t gpus_of_process(void)
{
    uint32_t gpus = devices_inventory().gpus;
    return gpus < LOCAL_DEVICE_MAX ? gpus : LOCAL_DEVICE_MAX;
}

/* As many as strategies have had, and at least as many as one without a list would take. */
static uint32_t processors_of_process(void)
{
    uint32_t had = local_device_processors();
    uint32_t asked = devices_inventory_default().gpus > 0 ? 0 : program_environment()->replicas;
    return asked > had ? asked : had;
}

/* Under the lock. NULL: no memory. */
static const char **list_of(uint32_t processors, uint32_t gpus)
{
    CADRE_ASSERT(processors > 0);
    CADRE_ASSERT(processors <= LOCAL_DEVICE_MAX);
    const char **list = process.lists[processors];
    if (list == NULL && (list = calloc((size_t)processors + gpus, sizeof *list)) != NULL) {
        for (uint32_t i = 0; i < processors + gpus; i++) {
            list[i] = i < processors ? local_device_name(LOCAL_DEVICE_PROCESSOR, i)
                                     : local_device_name(LOCAL_DEVICE_GPU, i - processors);
        }
        process.lists[processors] = list;
    }
    return list;
}

static cadre_status list_devices(cadre_device_set set, const char *const **ret_devices,
    uint32_t *ret_count, struct cadre_error *error)
{
    if (program_environment() == NULL) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "cadre_devices was called before cadre_init, which finds out which task this process "
            "is; call it after");
    }
    if (set != CADRE_PHYSICAL_DEVICES && set != CADRE_LOGICAL_DEVICES) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "cadre_devices was called for set %d, which is unknown; use CADRE_PHYSICAL_DEVICES or "
            "CADRE_LOGICAL_DEVICES",
            (int)set);
    }
    uint32_t processors = set == CADRE_PHYSICAL_DEVICES ? 1 : processors_of_process();
    uint32_t gpus = gpus_of_process();
    pthread_mutex_lock(&process.lock);
    *ret_devices = list_of(processors, gpus);
    pthread_mutex_unlock(&process.lock);
    if (*ret_devices == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory for the names of %u devices", processors + gpus);
    }
    *ret_count = processors + gpus;
    return CADRE_OK;
}

cadre_status cadre_devices(
    cadre_device_set set, const char *const **ret_devices, uint32_t *ret_count)
{
    struct cadre_error error = {0};
    cadre_status status = argument_require(ret_devices, __func__, "ret_devices", &error);
    if (status == CADRE_OK) {
        status = argument_require(ret_count, __func__, "ret_count", &error);
    }
    if (status == CADRE_OK) {
        status = list_devices(set, ret_devices, ret_count, &error);
    }
    return api_return(status, &error);
}
