/* SPDX-License-Identifier: Apache-2.0
 * The GPUs of a worker's host: of AgentHello and of WorkerInfo. */
#include "common/wire/codec.h"

static void fill_gpu(struct packer *packer, Cadre__V1__Gpu *wire, const struct gpu *gpu)
{
    cadre__v1__gpu__init(wire);
    wire->name = (char *)gpu->name;
    wire->uuid = (char *)gpu->uuid;
    wire->bus = (char *)gpu->bus;
    wire->memory_bytes = gpu->memory_bytes;
    wire->compute_major = gpu->compute_major;
    wire->compute_minor = gpu->compute_minor;
    wire->unused = packer_text(packer, gpu->unused);
}

/* A host of which there is nothing to tell sends nothing. */
static bool says_something(const struct gpus *gpus)
{
    const char *texts[] = {gpus->driver, gpus->runtime, gpus->reason};
    bool text = false;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        text = text || (texts[i] != NULL && texts[i][0] != '\0');
    }
    return gpus->count > 0 || gpus->omitted > 0 || gpus->usable > 0 || gpus->nccl > 0 || text;
}

Cadre__V1__Gpus *fill_gpus(struct packer *packer, Cadre__V1__Gpus *wire, const struct gpus *gpus)
{
    if (!says_something(gpus)) {
        return NULL;
    }
    cadre__v1__gpus__init(wire);
    wire->omitted = gpus->omitted;
    wire->usable = gpus->usable;
    wire->driver = packer_text(packer, gpus->driver);
    wire->runtime = packer_text(packer, gpus->runtime);
    wire->nccl = gpus->nccl;
    wire->reason = packer_text(packer, gpus->reason);
    Cadre__V1__Gpu **list = packer_array(packer, gpus->count, sizeof *list);
    Cadre__V1__Gpu *devices = packer_array(packer, gpus->count, sizeof *devices);
    if (list == NULL || devices == NULL) {
        return wire;
    }
    for (size_t i = 0; i < gpus->count; i++) {
        fill_gpu(packer, &devices[i], &gpus->devices[i]);
        list[i] = &devices[i];
    }
    wire->devices = list;
    wire->n_devices = gpus->count;
    return wire;
}

static struct gpu take_gpu(struct taker *taker, const Cadre__V1__Gpu *wire)
{
    return (struct gpu){
        .name = take_name(taker, "Gpu.name", wire->name),
        .uuid = take_name_or_empty(taker, "Gpu.uuid", wire->uuid),
        .bus = take_name_or_empty(taker, "Gpu.bus", wire->bus),
        .memory_bytes = wire->memory_bytes,
        .compute_major = wire->compute_major,
        .compute_minor = wire->compute_minor,
        .unused = take_text(taker, "Gpu.unused", wire->unused),
    };
}

/* Who adds them up must come to the same number. */
static void check_usable(struct taker *taker, const struct gpus *gpus)
{
    uint32_t usable = 0;
    for (size_t i = 0; i < gpus->count; i++) {
        usable += gpus->devices[i].unused[0] == '\0' ? 1U : 0U;
    }
    take_u32(taker, "Gpus.usable", gpus->usable, usable, usable + gpus->omitted);
}

struct gpus take_gpus(struct taker *taker, const Cadre__V1__Gpus *wire, bool whole)
{
    struct gpus gpus = {.driver = "", .runtime = "", .reason = ""};
    if (wire == NULL ||
        !take_count(taker, "Gpus.devices", wire->n_devices, LIMIT_GPUS_PER_WORKER)) {
        return gpus;
    }
    uint32_t room = whole ? 0 : LIMIT_GPUS_PER_WORKER - (uint32_t)wire->n_devices;
    gpus.omitted = take_u32(taker, "Gpus.omitted", wire->omitted, 0, room);
    gpus.usable = wire->usable;
    gpus.driver = take_name_or_empty(taker, "Gpus.driver", wire->driver);
    gpus.runtime = take_name_or_empty(taker, "Gpus.runtime", wire->runtime);
    gpus.nccl = wire->nccl;
    gpus.reason = take_text(taker, "Gpus.reason", wire->reason);
    const char *list = taker->list;
    size_t entry = taker->entry;
    struct gpu *devices = take_array(taker, wire->n_devices, sizeof *devices);
    taker->list = "Gpus.devices";
    for (size_t i = 0; i < wire->n_devices && devices != NULL; i++) {
        taker->entry = i;
        devices[i] = take_gpu(taker, wire->devices[i]);
    }
    taker->list = list;
    taker->entry = entry;
    gpus.devices = devices;
    gpus.count = devices != NULL ? wire->n_devices : 0;
    if (taker->status == CADRE_OK) {
        check_usable(taker, &gpus);
    }
    return gpus;
}
