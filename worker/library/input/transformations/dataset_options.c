/* SPDX-License-Identifier: Apache-2.0
 * The transformation that attaches options to a dataset. It changes no element. */
#include "worker/library/input/transformations/dataset_options.h"

#include "worker/library/input/node/node.h"

struct options_dataset {
    cadre_dataset base;
    cadre_dataset_options options;
};

static void options_locate(
    const cadre_dataset *self, struct element_position positions[], size_t count)
{
    (void)self;
    (void)positions;
    (void)count;
}

/* The input's iterator, which is set to keep its order. */
static cadre_status options_iterate(cadre_dataset *self, const struct pass *pass,
    cadre_iterator **ret_iterator, struct cadre_error *error)
{
    struct pass own = *pass;
    own.ordered = own.ordered || ((const struct options_dataset *)self)->options.deterministic;
    return dataset_iterate(self->input, &own, ret_iterator, error);
}

static cadre_dataset *options_rebuild(const cadre_dataset *self, cadre_dataset *const inputs[])
{
    return cadre_dataset_with_options(inputs[0], &((const struct options_dataset *)self)->options);
}

static void options_describe(const cadre_dataset *self, struct description *text)
{
    const cadre_dataset_options *options = &((const struct options_dataset *)self)->options;
    description_add(text, "deterministic %d", options->deterministic);
    if (options->has_auto_shard) {
        description_add(text, ", auto shard %d", (int)options->auto_shard);
    }
}

static const struct dataset_ops options_ops = {
    .name = "with_options",
    .rebuild = options_rebuild,
    .describe = options_describe,
    .locate = options_locate,
    .iterate = options_iterate,
    .keeps_elements = true,
};

bool dataset_auto_shard_option(const cadre_dataset *data, cadre_shard_policy *ret_policy)
{
    if (data->ops == &options_ops) {
        const cadre_dataset_options *options = &((const struct options_dataset *)data)->options;
        if (options->has_auto_shard) {
            *ret_policy = options->auto_shard;
            return true;
        }
    }
    for (uint32_t i = 0; i < data->input_count; i++) {
        if (dataset_auto_shard_option(data->inputs[i], ret_policy)) {
            return true;
        }
    }
    return false;
}

cadre_dataset *cadre_dataset_with_options(cadre_dataset *data, const cadre_dataset_options *options)
{
    struct cadre_error error = {0};
    if (!dataset_usable(data)) {
        return data;
    }
    if (options == NULL) {
        cadre_error_set(&error, CADRE_INVALID_ARGUMENT, "with_options: the options are NULL");
        return dataset_failed(data, &error);
    }
    if (options->has_auto_shard &&
        (options->auto_shard < CADRE_SHARD_OFF || options->auto_shard > CADRE_SHARD_HINT)) {
        cadre_error_set(&error, CADRE_INVALID_ARGUMENT,
            "with_options: auto_shard %d; give one of enum cadre_shard_policy",
            (int)options->auto_shard);
        return dataset_failed(data, &error);
    }
    struct options_dataset *with = dataset_new(sizeof *with, &options_ops, data);
    if (with == NULL) {
        return NULL;
    }
    with->options = *options;
    return &with->base;
}
