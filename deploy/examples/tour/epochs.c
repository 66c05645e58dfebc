/* SPDX-License-Identifier: Apache-2.0
 * An explicit iterator, read for five steps of a dataset that has seven; a new one begins the data
 * again. That it is five is said beforehand, and each iterator has a number, so a task that comes
 * later finds the one that the others are in the middle of. */
#include <cadre/cadre.h>
#include <inttypes.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    cadre_strategy *strategy;
    cadre_distributed_dataset *data, *iterator;
    cadre_per_replica *batch;
    CADRE_CHECK(cadre_init(&argc, &argv));
    CADRE_CHECK(cadre_strategy_default(&strategy));
    cadre_dataset *batches = cadre_dataset_batch(cadre_dataset_range(0, 100, 1), 16, false);
    CADRE_CHECK(cadre_distribute_dataset(strategy, batches, NULL, &data));
    for (uint64_t epoch = 0; epoch < 10; epoch++) {
        int steps = 0;
        CADRE_CHECK(cadre_distributed_iterate(data, epoch, 5, &iterator));
        while (cadre_next(iterator, &batch) == CADRE_OK) {
            steps++;
        }
        printf("epoch %" PRIu64 ": %d steps\n", epoch, steps);
        cadre_distributed_release(iterator);
    }
    return cadre_finish(strategy);
}
