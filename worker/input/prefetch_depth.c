/* SPDX-License-Identifier: Apache-2.0
 * The transformation that asks for reading ahead. It only carries the depth: distributed input is
 * what has a thread to do it. */
#include "worker/input/prefetch_depth.h"

#include <inttypes.h>

#include "worker/input/node.h"

struct prefetch_dataset {
    cadre_dataset base;
    int64_t depth;
};

static void prefetch_locate(const cadre_dataset *self, struct place places[], size_t count)
{
    (void)self;
    (void)places;
    (void)count;
}

static cadre_dataset *prefetch_rebuild(const cadre_dataset *self, cadre_dataset *const inputs[])
{
    return cadre_dataset_prefetch(inputs[0], ((const struct prefetch_dataset *)self)->depth);
}

static void prefetch_describe(const cadre_dataset *self, struct description *text)
{
    description_add(text, "%" PRId64, ((const struct prefetch_dataset *)self)->depth);
}

static const struct dataset_ops prefetch_ops = {
    .name = "prefetch",
    .rebuild = prefetch_rebuild,
    .describe = prefetch_describe,
    .locate = prefetch_locate,
    .keeps_elements = true,
};

uint32_t dataset_prefetch_depth(const cadre_dataset *data)
{
    int64_t depth = 0;
    for (; data != NULL && data->ops == &prefetch_ops; data = data->input) {
        int64_t own = ((const struct prefetch_dataset *)data)->depth;
        depth = own > depth ? own : depth;
    }
    return depth > PREFETCH_DEPTH_MAX ? PREFETCH_DEPTH_MAX : (uint32_t)depth;
}

cadre_dataset *cadre_dataset_prefetch(cadre_dataset *data, int64_t depth)
{
    if (!dataset_usable(data)) {
        return data;
    }
    if (depth < 1) {
        struct cadre_error error = {0};
        cadre_error_set(&error, CADRE_INVALID_ARGUMENT,
            "prefetch: depth %" PRId64 "; give at least 1 element", depth);
        return dataset_failed(data, &error);
    }
    struct prefetch_dataset *prefetch = dataset_new(sizeof *prefetch, &prefetch_ops, data);
    if (prefetch == NULL) {
        return NULL;
    }
    prefetch->depth = depth;
    return &prefetch->base;
}
