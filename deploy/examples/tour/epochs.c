/* SPDX-License-Identifier: Apache-2.0
 * Epochs of five steps of a dataset that has seven: each epoch begins the data anew. That it is
 * five is said beforehand, so a task that comes later finds its place in the epoch. */
#include <cadre/cadre.h>
#include <inttypes.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    cadre_strategy *strategy;
    cadre_distributed_dataset *data;
    cadre_per_replica *batch;
    uint64_t epoch;
    CADRE_CHECK(cadre_init(&argc, &argv));
    CADRE_CHECK(cadre_strategy_default(&strategy));
    cadre_dataset *batches = cadre_dataset_batch(cadre_dataset_range(0, 100, 1), 16, false);
    const cadre_input_options options = {.steps_per_epoch = 5};
    CADRE_CHECK(cadre_distribute_dataset(strategy, batches, &options, &data));
    while (cadre_next_epoch(data, 10, &epoch)) {
        int steps = 0;
        while (cadre_next(data, &batch) == CADRE_OK) {
            steps++;
        }
        printf("epoch %" PRIu64 ": %d steps\n", epoch, steps);
    }
    return cadre_finish(strategy);
}
