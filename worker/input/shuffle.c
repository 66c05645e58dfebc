/* SPDX-License-Identifier: Apache-2.0
 * The shuffle of the whole set: element i of an epoch is element permutation(i) of the input. */
#include "worker/input/shuffle.h"

#include <inttypes.h>

#include "common/pure/permutation.h"
#include "worker/input/node.h"

struct shuffle_dataset {
    cadre_dataset base;
    uint64_t seed;
};

static void shuffle_locate(const cadre_dataset *self, struct place places[], size_t count)
{
    uint64_t seed = ((const struct shuffle_dataset *)self)->seed;
    uint64_t elements = (uint64_t)dataset_cardinality(self);
    struct permutation permutation;
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || places[i].epoch != places[i - 1].epoch) {
            permutation_init(&permutation, elements, seed, places[i].epoch);
        }
        places[i].index = permutation_at(&permutation, places[i].index);
    }
}

static cadre_dataset *shuffle_rebuild(const cadre_dataset *self, cadre_dataset *const inputs[])
{
    return cadre_dataset_shuffle(
        inputs[0], CADRE_SHUFFLE_ALL, ((const struct shuffle_dataset *)self)->seed);
}

static void shuffle_describe(const cadre_dataset *self, struct description *text)
{
    description_add(text, "all, seed %" PRIu64, ((const struct shuffle_dataset *)self)->seed);
}

static const struct dataset_ops shuffle_ops = {
    .name = "shuffle",
    .rebuild = shuffle_rebuild,
    .describe = shuffle_describe,
    .locate = shuffle_locate,
    .keeps_elements = true,
};

static cadre_dataset *shuffle_all(cadre_dataset *data, uint64_t seed)
{
    if (!data->indexable || dataset_cardinality(data) == CADRE_CARDINALITY_INFINITE) {
        struct cadre_error error = {0};
        cadre_error_set(&error, CADRE_INVALID_ARGUMENT,
            "shuffle: the whole set can be shuffled only if it is %s; give a buffer size, or "
            "shuffle nearer to the source",
            data->indexable ? "finite" : "indexable");
        return dataset_failed(data, &error);
    }
    struct shuffle_dataset *shuffle = dataset_new(sizeof *shuffle, &shuffle_ops, data);
    if (shuffle == NULL) {
        return NULL;
    }
    shuffle->seed = seed;
    shuffle->base.by_place_only = true;
    return &shuffle->base;
}

cadre_dataset *cadre_dataset_shuffle(cadre_dataset *data, int64_t buffer_size, uint64_t seed)
{
    if (!dataset_usable(data)) {
        return data;
    }
    if (buffer_size == CADRE_SHUFFLE_ALL) {
        return shuffle_all(data, seed);
    }
    if (buffer_size < 1) {
        struct cadre_error error = {0};
        cadre_error_set(&error, CADRE_INVALID_ARGUMENT,
            "shuffle: buffer size %" PRId64 "; give at least 1, or CADRE_SHUFFLE_ALL", buffer_size);
        return dataset_failed(data, &error);
    }
    return shuffle_buffered(data, buffer_size, seed);
}
