/* SPDX-License-Identifier: Apache-2.0
 * Preprocessing that knows the data: the vocabulary is found first, by the whole job; then words
 * become vectors, and images are scaled and flipped by chance, other ones in each epoch. */
#include <cadre/cadre.h>

#include "show.h"

enum { ROWS = 8 };

/* Words, each with an image of one row and two pixels. */
static cadre_dataset *make_data(void)
{
    static const char *const tokens[ROWS] = {"a", "b", "c", "b", "c", "c", "a", "b"};
    static const float images[ROWS * 2] = {
        0, 255, 0, 255, 0, 255, 0, 255, 0, 255, 0, 255, 0, 255, 0, 255};
    cadre_string texts[ROWS];
    cadre_tensor *tensors[2];
    for (int i = 0; i < ROWS; i++) {
        texts[i] = (cadre_string){tokens[i], 1};
    }
    CADRE_CHECK(cadre_tensor_from_data(CADRE_STRING, 1, (int64_t[]){ROWS}, texts, &tensors[0]));
    CADRE_CHECK(
        cadre_tensor_from_data(CADRE_F32, 4, (int64_t[]){ROWS, 1, 2, 1}, images, &tensors[1]));
    cadre_dataset *data = cadre_dataset_tensor_slices(tensors, 2);
    cadre_tensor_release(tensors[0]);
    cadre_tensor_release(tensors[1]);
    return data;
}

int main(int argc, char **argv)
{
    cadre_strategy *strategy;
    cadre_lookup *lookup;
    cadre_distributed_dataset *distributed;
    cadre_per_replica *batch;
    uint64_t epoch;
    CADRE_CHECK(cadre_init(&argc, &argv));
    CADRE_CHECK(cadre_strategy_default(&strategy));
    /* The two most frequent words; all others are word 0. */
    const cadre_lookup_options most = {.max_tokens = 3};
    CADRE_CHECK(cadre_lookup_adapt(strategy, make_data(), &most, &lookup));
    cadre_category_encoding_options one_hot = {
        .num_tokens = cadre_lookup_size(lookup), .mode = CADRE_ENCODE_ONE_HOT};
    cadre_random_flip_options flip = {.component = 1, .mode = CADRE_FLIP_HORIZONTAL, .seed = 1};
    cadre_rescaling_options scale = {.component = 1, .scale = 1.0 / 255};
    cadre_dataset *data = cadre_dataset_map(make_data(), cadre_lookup_map, lookup, NULL);
    data = cadre_dataset_map(data, cadre_category_encoding_map, &one_hot, NULL);
    data = cadre_dataset_map(data, cadre_random_flip_map, &flip, NULL);
    data = cadre_dataset_map(data, cadre_rescaling_map, &scale, NULL);
    data = cadre_dataset_batch(data, 4, false);
    CADRE_CHECK(cadre_distribute_dataset(strategy, data, NULL, &distributed));
    while (cadre_next_epoch(distributed, 2, &epoch)) {
        while (cadre_next(distributed, &batch) == CADRE_OK) {
            show_replicas(batch, 0);
            show_replicas(batch, 1);
        }
    }
    int status = cadre_finish(strategy);
    cadre_lookup_release(lookup); /* after the strategy, whose pipelines use it */
    return status;
}
