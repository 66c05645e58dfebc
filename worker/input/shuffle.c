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

static struct place shuffle_locate(const cadre_dataset *self, struct place place)
{
    struct permutation permutation;
    permutation_init(&permutation, (uint64_t)self->cardinality,
        ((const struct shuffle_dataset *)self)->seed, place.epoch);
    return (struct place){.index = permutation_at(&permutation, place.index), .epoch = place.epoch};
}

static const struct dataset_ops shuffle_ops = {
    .name = "shuffle",
    .locate = shuffle_locate,
    .keeps_elements = true,
};

static cadre_dataset *shuffle_all(cadre_dataset *data, uint64_t seed)
{
    if (!data->indexable || data->cardinality < 0) {
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
