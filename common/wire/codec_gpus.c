/* SPDX-License-Identifier: Apache-2.0
 * The GPUs of a worker's host: of AgentHello and of WorkerInfo. */
#include "common/wire/codec.h"

static void encode_gpu(struct encoder *encoder, Cadre__V1__Gpu *wire, const struct gpu *gpu)
{
    cadre__v1__gpu__init(wire);
    wire->name = (char *)gpu->name;
    wire->uuid = (char *)gpu->uuid;
    wire->bus = (char *)gpu->bus;
    wire->memory_bytes = gpu->memory_bytes;
    wire->compute_major = gpu->compute_major;
    wire->compute_minor = gpu->compute_minor;
    wire->unused = encoder_text(encoder, gpu->unused);
}

/* A host of which there is nothing to tell sends nothing. */
static bool gpus_is_set(const struct gpus *gpus)
{
    const char *texts[] = {gpus->driver, gpus->runtime, gpus->reason};
    bool text = false;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        text = text || (texts[i] != NULL && texts[i][0] != '\0');
    }
    return gpus->count > 0 || gpus->omitted > 0 || gpus->usable > 0 || gpus->nccl > 0 || text;
}

Cadre__V1__Gpus *encode_gpus(
    struct encoder *encoder, Cadre__V1__Gpus *wire, const struct gpus *gpus)
{
    if (!gpus_is_set(gpus)) {
        return NULL;
    }
    cadre__v1__gpus__init(wire);
    wire->omitted = gpus->omitted;
    wire->usable = gpus->usable;
    wire->driver = encoder_text(encoder, gpus->driver);
    wire->runtime = encoder_text(encoder, gpus->runtime);
    wire->nccl = gpus->nccl;
    wire->reason = encoder_text(encoder, gpus->reason);
    Cadre__V1__Gpu **list = encoder_array(encoder, gpus->count, sizeof *list);
    Cadre__V1__Gpu *devices = encoder_array(encoder, gpus->count, sizeof *devices);
    if (list == NULL || devices == NULL) {
        return wire;
    }
    for (size_t i = 0; i < gpus->count; i++) {
        encode_gpu(encoder, &devices[i], &gpus->devices[i]);
        list[i] = &devices[i];
    }
    wire->devices = list;
    wire->n_devices = gpus->count;
    return wire;
}

static struct gpu decode_gpu(struct decoder *decoder, const Cadre__V1__Gpu *wire)
{
    return (struct gpu){
        .name = decode_name(decoder, "Gpu.name", wire->name),
        .uuid = decode_name_or_empty(decoder, "Gpu.uuid", wire->uuid),
        .bus = decode_name_or_empty(decoder, "Gpu.bus", wire->bus),
        .memory_bytes = wire->memory_bytes,
        .compute_major = wire->compute_major,
        .compute_minor = wire->compute_minor,
        .unused = decode_text(decoder, "Gpu.unused", wire->unused),
    };
}

/* Who adds them up must come to the same number. */
static void check_usable(struct decoder *decoder, const struct gpus *gpus)
{
    uint32_t usable = 0;
    for (size_t i = 0; i < gpus->count; i++) {
        usable += gpus->devices[i].unused[0] == '\0' ? 1U : 0U;
    }
    decode_u32(decoder, "Gpus.usable", gpus->usable, usable, usable + gpus->omitted);
}

struct gpus decode_gpus(struct decoder *decoder, const Cadre__V1__Gpus *wire, bool whole)
{
    struct gpus gpus = {.driver = "", .runtime = "", .reason = ""};
    if (wire == NULL ||
        !decode_count(decoder, "Gpus.devices", wire->n_devices, LIMIT_GPUS_PER_WORKER)) {
        return gpus;
    }
    uint32_t room = whole ? 0 : LIMIT_GPUS_PER_WORKER - (uint32_t)wire->n_devices;
    gpus.omitted = decode_u32(decoder, "Gpus.omitted", wire->omitted, 0, room);
    gpus.usable = wire->usable;
    gpus.driver = decode_name_or_empty(decoder, "Gpus.driver", wire->driver);
    gpus.runtime = decode_name_or_empty(decoder, "Gpus.runtime", wire->runtime);
    gpus.nccl = wire->nccl;
    gpus.reason = decode_text(decoder, "Gpus.reason", wire->reason);
    const char *list = decoder->list;
    size_t entry = decoder->entry;
    struct gpu *devices = decode_array(decoder, wire->n_devices, sizeof *devices);
    decoder->list = "Gpus.devices";
    for (size_t i = 0; i < wire->n_devices && devices != NULL; i++) {
        decoder->entry = i;
        devices[i] = decode_gpu(decoder, wire->devices[i]);
    }
    decoder->list = list;
    decoder->entry = entry;
    gpus.devices = devices;
    gpus.count = devices != NULL ? wire->n_devices : 0;
    if (decoder->status == CADRE_OK) {
        check_usable(decoder, &gpus);
    }
    return gpus;
}
