/* SPDX-License-Identifier: Apache-2.0
 * The shuffle of the whole set: element i of an epoch is element permutation(i) of the input. */
#include "worker/library/input/shuffle/shuffle.h"

#include <inttypes.h>

#include "common/pure/permutation.h"
#include "worker/library/input/node/node.h"

#define POSITIONS_AT_ONCE 256

struct shuffle_dataset {
    cadre_dataset base;
    uint64_t seed;
    bool once; /* one order for all epochs */
};

/* The permutation that a thread used last: reading one by one asks for the same again and again. */
static const struct permutation *permutation_for(
    const struct shuffle_dataset *shuffle, uint64_t elements, uint64_t epoch)
{
    static _Thread_local struct {
        bool made;
        uint64_t elements;
        uint64_t seed;
        uint64_t epoch;
        struct permutation permutation;
    } last;
    epoch = shuffle->once ? 0 : epoch;
    if (!last.made || last.elements != elements || last.seed != shuffle->seed ||
        last.epoch != epoch) {
        permutation_init(&last.permutation, elements, shuffle->seed, epoch);
        last.made = true;
        last.elements = elements;
        last.seed = shuffle->seed;
        last.epoch = epoch;
    }
    return &last.permutation;
}

static void shuffle_locate(
    const cadre_dataset *self, struct element_position positions[], size_t count)
{
    uint64_t elements = (uint64_t)dataset_cardinality(self);
    for (size_t done = 0; done < count;) {
        uint64_t indices[POSITIONS_AT_ONCE];
        uint64_t epoch = positions[done].epoch;
        size_t same = 0; /* how many from here on are of one epoch */
        while (same < POSITIONS_AT_ONCE && done + same < count &&
               positions[done + same].epoch == epoch) {
            indices[same] = positions[done + same].index;
            same++;
        }
        permutation_at_each(
            permutation_for((const struct shuffle_dataset *)self, elements, epoch), indices, same);
        for (size_t i = 0; i < same; i++) {
            positions[done + i].index = indices[i];
        }
        done += same;
    }
}

static cadre_dataset *shuffle_rebuild(const cadre_dataset *self, cadre_dataset *const inputs[])
{
    const struct shuffle_dataset *shuffle = (const struct shuffle_dataset *)self;
    const cadre_shuffle_options options = {.once = shuffle->once};
    return cadre_dataset_shuffle(inputs[0], CADRE_SHUFFLE_ALL, shuffle->seed, &options);
}

static void shuffle_describe(const cadre_dataset *self, struct description *text)
{
    const struct shuffle_dataset *shuffle = (const struct shuffle_dataset *)self;
    description_add(
        text, "all, seed %" PRIu64 "%s", shuffle->seed, shuffle->once ? ", one order" : "");
}

static const struct dataset_ops shuffle_ops = {
    .name = "shuffle",
    .rebuild = shuffle_rebuild,
    .describe = shuffle_describe,
    .locate = shuffle_locate,
    .keeps_elements = true,
};

/* The node for whose sake `data` is not indexable. */
static const cadre_dataset *not_indexable(const cadre_dataset *data)
{
    for (uint32_t i = 0; i < data->input_count; i++) {
        if (!data->inputs[i]->indexable) {
            return not_indexable(data->inputs[i]);
        }
    }
    return data;
}

static cadre_dataset *shuffle_all(cadre_dataset *data, uint64_t seed, bool once)
{
    struct cadre_error error = {0};
    if (!data->indexable) {
        cadre_error_set(&error, CADRE_INVALID_ARGUMENT,
            "shuffle: the whole set can be shuffled only if it is indexable, and %s is not; give a "
            "buffer size, or shuffle nearer to the source",
            not_indexable(data)->ops->name);
        return dataset_failed(data, &error);
    }
    if (dataset_cardinality(data) == CADRE_CARDINALITY_INFINITE) {
        cadre_error_set(&error, CADRE_INVALID_ARGUMENT,
            "shuffle: the whole set can be shuffled only if it is finite; give a buffer size, or "
            "shuffle nearer to the source");
        return dataset_failed(data, &error);
    }
    struct shuffle_dataset *shuffle = dataset_new(sizeof *shuffle, &shuffle_ops, data);
    if (shuffle == NULL) {
        return NULL;
    }
    shuffle->seed = seed;
    shuffle->once = once;
    shuffle->base.by_index_only = true;
    return &shuffle->base;
}

cadre_dataset *cadre_dataset_shuffle(
    cadre_dataset *data, int64_t buffer_size, uint64_t seed, const cadre_shuffle_options *options)
{
    bool once = options != NULL && options->once;
    if (!dataset_usable(data)) {
        return data;
    }
    if (buffer_size == CADRE_SHUFFLE_ALL) {
        return shuffle_all(data, seed, once);
    }
    if (buffer_size < 1) {
        struct cadre_error error = {0};
        cadre_error_set(&error, CADRE_INVALID_ARGUMENT,
            "shuffle: buffer size %" PRId64 "; give at least 1, or CADRE_SHUFFLE_ALL", buffer_size);
        return dataset_failed(data, &error);
    }
    return shuffle_buffered(data, buffer_size, seed, once);
}
