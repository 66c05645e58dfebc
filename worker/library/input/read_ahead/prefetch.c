/* SPDX-License-Identifier: Apache-2.0
 * The transformation that reads ahead: in order on a thread of its own (read_ahead.h). By index it
 * only carries the depth, and distributed input has the thread (input_prefetcher.h). */
#include "worker/library/input/read_ahead/prefetch.h"

#include <inttypes.h>
#include <string.h>

#include "worker/library/input/read_ahead/read_ahead.h"

struct prefetch_dataset {
    cadre_dataset base;
    int64_t depth;
};

static void prefetch_locate(
    const cadre_dataset *self, struct element_position positions[], size_t count)
{
    (void)self;
    (void)positions;
    (void)count;
}

static cadre_status prefetch_iterate(cadre_dataset *self, const struct pass *pass,
    cadre_iterator **ret_iterator, struct cadre_error *error)
{
    const struct read_ahead_options rule = {
        .threads = 1,
        .limit = (uint64_t)((const struct prefetch_dataset *)self)->depth,
        .takes_rows = true,
    };
    return read_ahead_iterate(self, pass, &rule, ret_iterator, error);
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
    .iterate = prefetch_iterate,
    .keeps_elements = true,
};

uint32_t dataset_prefetch_depth(const cadre_dataset *data)
{
    int64_t depth = 0;
    for (; data != NULL && data->input_count == 1; data = data->input) {
        bool prefetches = data->ops == &prefetch_ops;
        bool passes =
            strcmp(data->ops->name, "with_options") == 0 || strcmp(data->ops->name, "named") == 0;
        if (!prefetches && !passes) {
            break;
        }
        int64_t own = prefetches ? ((const struct prefetch_dataset *)data)->depth : 0;
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
    prefetch->base.works_ahead = true;
    return &prefetch->base;
}
