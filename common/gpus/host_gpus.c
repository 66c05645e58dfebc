/* SPDX-License-Identifier: Apache-2.0 */
#include "common/gpus/host_gpus.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "common/gpus/pci_gpus.h"

struct gpus host_gpus_view(const struct host_gpus *gpus, struct gpu devices[])
{
    for (uint32_t i = 0; i < gpus->count; i++) {
        const struct host_gpu *from = &gpus->devices[i];
        devices[i] = (struct gpu){.name = from->name,
            .uuid = from->uuid,
            .bus = from->bus,
            .memory_bytes = from->memory_bytes,
            .compute_major = from->compute_major,
            .compute_minor = from->compute_minor,
            .unused = from->unused};
    }
    return (struct gpus){.devices = devices,
        .count = gpus->count,
        .usable = gpus->usable,
        .driver = gpus->driver,
        .runtime = gpus->runtime,
        .nccl = gpus->nccl,
        .reason = gpus->reason};
}

/* ---- the bus ---- */

static bool is_listed(const struct host_gpus *gpus, const char *bus)
{
    for (uint32_t i = 0; i < gpus->count; i++) {
        if (strcasecmp(gpus->devices[i].bus, bus) == 0) {
            return true;
        }
    }
    return false;
}

static void host_gpus_explain(
    const struct host_gpus *gpus, const struct pci_gpu *card, bool visible, struct host_gpu *gpu)
{
    if (card->driver[0] == '\0') {
        snprintf(gpu->unused, sizeof gpu->unused,
            "no driver is bound to it: install NVIDIA's, or see the kernel's messages about it");
    } else if (strcmp(card->driver, "nvidia") != 0) {
        snprintf(gpu->unused, sizeof gpu->unused, "it is bound to the driver %s, not to nvidia",
            card->driver);
    } else if (gpus->usable == 0) {
        snprintf(gpu->unused, sizeof gpu->unused, "%s", gpus->reason);
    } else if (visible) {
        snprintf(gpu->unused, sizeof gpu->unused, "CUDA_VISIBLE_DEVICES leaves it out");
    } else {
        snprintf(gpu->unused, sizeof gpu->unused,
            "CUDA does not offer it here: it is too old, or broken, or was not given to this "
            "container; see nvidia-smi");
    }
}

void host_gpus_add_bus(struct host_gpus *gpus, const char *pci_folder, bool visible)
{
    struct pci_gpu cards[LIMIT_GPUS_PER_WORKER];
    size_t count = pci_gpus(pci_folder, cards, LIMIT_GPUS_PER_WORKER);
    for (size_t i = 0; i < count && gpus->count < LIMIT_GPUS_PER_WORKER; i++) {
        if (!is_listed(gpus, cards[i].bus)) {
            struct host_gpu *gpu = &gpus->devices[gpus->count];
            *gpu = (struct host_gpu){.memory_bytes = 0};
            snprintf(gpu->name, sizeof gpu->name, "NVIDIA GPU 10de:%04x", cards[i].device);
            snprintf(gpu->bus, sizeof gpu->bus, "%s", cards[i].bus);
            host_gpus_explain(gpus, &cards[i], visible, gpu);
            gpus->count++;
        }
    }
}
