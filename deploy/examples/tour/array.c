/* SPDX-License-Identifier: Apache-2.0
 * A dataset of an array in memory: element i is row i of it. */
#include <cadre/cadre.h>

#include "show.h"

int main(int argc, char **argv)
{
    static const float ones[10] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    cadre_strategy *strategy;
    cadre_distributed_dataset *data;
    cadre_per_replica *batch;
    cadre_tensor *array;
    CADRE_CHECK(cadre_init(&argc, &argv));
    CADRE_CHECK(cadre_strategy_default(&strategy));
    CADRE_CHECK(cadre_tensor_from_data(CADRE_F32, 1, (int64_t[]){10}, ones, &array));
    cadre_dataset *rows = cadre_dataset_tensor_slices(&array, 1);
    cadre_tensor_release(array); /* the dataset has a reference of its own */
    CADRE_CHECK(
        cadre_distribute_dataset(strategy, cadre_dataset_batch(rows, 2, false), NULL, &data));
    while (cadre_next_epoch(data, 1, NULL)) {
        while (cadre_next(data, &batch) == CADRE_OK) {
            show_replicas(batch, 0);
        }
    }
    return cadre_finish(strategy);
}
