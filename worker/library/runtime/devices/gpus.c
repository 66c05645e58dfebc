/* SPDX-License-Identifier: Apache-2.0
 * GPUs of strategies: whether they are the default, and the devices that replicas are on. The
 * program calls it, and strategy_lifecycle/. */
#include "cadre/gpu.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/gpus/pci_gpus.h"
#include "common/pure/assert.h"
#include "worker/library/device/argument.h"
#include "worker/library/device/device.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/api/show.h"
#include "worker/library/runtime/devices/devices.h"
#include "worker/library/runtime/program/program.h"
#include "worker/library/runtime/replica/step_admission.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/strategy/strategy_registry.h"

/* Of NVIDIA's driver; without it this process cannot use a card that the kernel lists. */
#define DRIVER_NODE "/dev/nvidiactl"

static atomic_bool enabled;
static atomic_bool hinted;

bool gpus_enabled(void)
{
    return atomic_load(&enabled);
}

cadre_status cadre_enable_gpus(void)
{
    struct cadre_error error = {0};
    cadre_status status = CADRE_OK;
    if (program_environment() == NULL) {
        status = cadre_error_set(&error, CADRE_FAILED_PRECONDITION,
            "cadre_enable_gpus was called before cadre_init; call it right after");
    } else if (strategy_registry_created() > 0 && !gpus_enabled()) {
        status = cadre_error_set(&error, CADRE_FAILED_PRECONDITION,
            "cadre_enable_gpus was called after the first strategy had been made, which took the "
            "CPU; call it before");
    } else {
        atomic_store(&enabled, true);
    }
    return api_return(status, &error);
}

void gpus_hint_idle(const struct environment *environment)
{
    char card[64];
    if (!environment->by_hand || gpus_enabled() || !show_redraws() ||
        access(DRIVER_NODE, F_OK) != 0 || !pci_gpus_first(PCI_FOLDER, card, sizeof card) ||
        atomic_exchange(&hinted, true)) {
        return;
    }
    show_warning("the replicas are on the CPU though there is an NVIDIA GPU (%s): a program whose "
                 "step runs on GPUs calls cadre_enable_gpus",
        card);
}

/* The index of the GPU of a canonical name; -1: it is no GPU. */
static int32_t gpu_of(const char *name)
{
    cadre_device_spec spec;
    struct cadre_error ignored;
    if (device_name_parse(name, &spec, &ignored) != CADRE_OK || strcmp(spec.type, "GPU") != 0) {
        return -1;
    }
    return spec.index;
}

/* The name of the processor of the task that a device belongs to. */
static void name_host(const char *device, char ret_name[CADRE_DEVICE_NAME_BYTES])
{
    cadre_device_spec spec;
    struct cadre_error ignored;
    if (device_name_parse(device, &spec, &ignored) == CADRE_OK) {
        snprintf(spec.type, sizeof spec.type, "CPU");
        spec.index = 0;
        device_name_text(&spec, ret_name);
    }
}

cadre_status gpus_open(cadre_strategy *strategy, struct cadre_error *error)
{
    CADRE_ASSERT(strategy->devices.count == strategy->local_replicas);
    if (strategy->parameter.count > 0) {
        local_device_set_processors(local_device_processor_of(strategy->parameter.names[0]) + 1U);
    }
    for (uint32_t i = 0; i < strategy->local_replicas; i++) {
        int32_t gpu = gpu_of(strategy->devices.names[i]);
        CADRE_ASSERT(strategy->replicas[i].device == NULL);
        name_host(strategy->devices.names[i], strategy->devices_part->host_name);
        strategy->replicas[i].processor = local_device_processor_of(strategy->devices.names[i]);
        local_device_set_processors(strategy->replicas[i].processor + 1U);
        if (gpu >= 0) {
            CADRE_TRY(device_open((uint32_t)gpu, &strategy->replicas[i].device, error));
        }
    }
    return CADRE_OK;
}

/* --- public: tensors in a replica's memory --- */

cadre_status gpus_tensor_zeros(struct device *device, cadre_dtype dtype, uint32_t rank,
    const int64_t *dims, cadre_tensor **ret_tensor, struct cadre_error *error)
{
    if (device == NULL) {
        return tensor_create(dtype, rank, dims, ret_tensor, error);
    }
    CADRE_TRY(tensor_create_on(device, NULL, dtype, rank, dims, ret_tensor, error));
    size_t bytes = cadre_tensor_bytes(*ret_tensor);
    cadre_status status = CADRE_OK;
    if (bytes > 0) {
        status =
            device->ops->fill(cadre_tensor_data(*ret_tensor), 0, bytes, device->compute, error);
    }
    if (status != CADRE_OK) {
        cadre_tensor_release(*ret_tensor);
        *ret_tensor = NULL;
    }
    return status;
}

cadre_status cadre_tensor_create_on(cadre_replica *replica, cadre_dtype dtype, uint32_t rank,
    const int64_t *dims, cadre_tensor **ret_tensor)
{
    struct cadre_error error = {0};
    cadre_status status = argument_require(ret_tensor, __func__, "ret_tensor", &error);
    if (status == CADRE_OK) {
        *ret_tensor = NULL;
        status = step_require(replica, __func__, &error);
    }
    if (status == CADRE_OK) {
        status = gpus_tensor_zeros(replica->device, dtype, rank, dims, ret_tensor, &error);
    }
    return api_return(status, &error);
}

cadre_status gpus_tensor_copy(struct device *device, const cadre_tensor *tensor,
    cadre_tensor **ret_tensor, struct cadre_error *error)
{
    return device == NULL ? tensor_copy_to(NULL, tensor, ret_tensor, error)
                          : tensor_copy_begin(device, tensor, ret_tensor, error);
}

cadre_status cadre_tensor_copy_to(
    cadre_replica *replica, const cadre_tensor *tensor, cadre_tensor **ret_tensor)
{
    struct cadre_error error = {0};
    cadre_status status = argument_require(ret_tensor, __func__, "ret_tensor", &error);
    if (status == CADRE_OK) {
        *ret_tensor = NULL;
        status = argument_require(tensor, __func__, "tensor", &error);
    }
    if (status == CADRE_OK) {
        status = step_require(replica, __func__, &error);
    }
    if (status == CADRE_OK) {
        status = gpus_tensor_copy(replica->device, tensor, ret_tensor, &error);
    }
    return api_return(status, &error);
}
