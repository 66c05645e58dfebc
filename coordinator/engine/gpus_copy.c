/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/engine/gpus_copy.h"

#include <stdlib.h>
#include <string.h>

#include "coordinator/engine/engine.h"

static size_t text_size(const char *text)
{
    return text != NULL ? strlen(text) + 1 : 1;
}

static const char *gpus_copy_put(char **end, const char *text)
{
    size_t size = text_size(text);
    char *at = *end;
    memcpy(at, text != NULL ? text : "", size);
    *end += size;
    return at;
}

static size_t gpu_size(const struct gpu *gpu)
{
    return sizeof *gpu + text_size(gpu->name) + text_size(gpu->uuid) + text_size(gpu->bus) +
           text_size(gpu->unused);
}

struct gpus *gpus_copy(const struct gpus *gpus)
{
    size_t size =
        sizeof *gpus + text_size(gpus->driver) + text_size(gpus->runtime) + text_size(gpus->reason);
    for (size_t i = 0; i < gpus->count; i++) {
        size += gpu_size(&gpus->devices[i]);
    }
    struct gpus *copy = malloc(size);
    if (copy == NULL) {
        return NULL;
    }
    struct gpu *devices = (struct gpu *)(copy + 1);
    char *end = (char *)(devices + gpus->count);
    *copy = *gpus;
    copy->devices = devices;
    copy->driver = gpus_copy_put(&end, gpus->driver);
    copy->runtime = gpus_copy_put(&end, gpus->runtime);
    copy->reason = gpus_copy_put(&end, gpus->reason);
    for (size_t i = 0; i < gpus->count; i++) {
        devices[i] = gpus->devices[i];
        devices[i].name = gpus_copy_put(&end, gpus->devices[i].name);
        devices[i].uuid = gpus_copy_put(&end, gpus->devices[i].uuid);
        devices[i].bus = gpus_copy_put(&end, gpus->devices[i].bus);
        devices[i].unused = gpus_copy_put(&end, gpus->devices[i].unused);
    }
    return copy;
}

/* The longest encoding of the GPUs of one worker in a list. */
static size_t packed_size(const struct gpus *gpus)
{
    size_t size = strlen(gpus->driver) + strlen(gpus->runtime) + strlen(gpus->reason);
    for (size_t i = 0; i < gpus->count; i++) {
        size += gpu_size(&gpus->devices[i]); /* the numbers take less than the struct */
    }
    return size;
}

void engine_shorten_workers(struct worker_info *workers, size_t count)
{
    size_t room = LIMIT_FRAME_BYTES / 3; /* the rest is for all other fields */
    for (size_t i = 0; i < count; i++) {
        struct gpus *gpus = &workers[i].gpus;
        size_t size = packed_size(gpus);
        if (size > room) {
            room = 0;
            *gpus = (struct gpus){.omitted = (uint32_t)gpus->count,
                .usable = gpus->usable,
                .driver = "",
                .runtime = "",
                .reason = ""};
        } else {
            room -= size;
        }
    }
}
