/* SPDX-License-Identifier: Apache-2.0
 * A training that does nothing but read: the records of TFRecord objects, a shuffle of all of them
 * in each epoch, shared out to the tasks of the job.
 *     shared_read EPOCHS PATHS... */
#include <stdio.h>
#include <stdlib.h>

#include "cadre/cadre.h"

#define BATCH 64

static cadre_status take(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)replica;
    (void)user;
    return cadre_tensor_from_i64(cadre_tensor_rows(inputs[0]), &outputs[0]);
}

int main(int argc, char **argv)
{
    cadre_strategy *strategy;
    cadre_distributed_dataset *input;
    cadre_per_replica *batch;
    cadre_per_replica *rows;
    CADRE_CHECK(cadre_init(&argc, &argv));
    uint64_t epochs = argc > 2 ? strtoul(argv[1], NULL, 10) : 0;
    if (epochs == 0) {
        fprintf(stderr, "usage: shared_read EPOCHS PATHS...\n");
        return 2;
    }
    CADRE_CHECK(cadre_strategy_default(&strategy));
    cadre_dataset *data =
        cadre_dataset_tfrecord((const char *const *)argv + 2, (size_t)argc - 2, NULL);
    data =
        cadre_dataset_batch(cadre_dataset_shuffle(data, CADRE_SHUFFLE_ALL, 7, NULL), BATCH, false);
    CADRE_CHECK(cadre_distribute_dataset(
        strategy, data, &(cadre_input_options){.auto_shard = CADRE_SHARD_DATA}, &input));
    while (cadre_next_epoch(input, epochs, NULL)) {
        while (cadre_next(input, &batch) == CADRE_OK) {
            CADRE_CHECK(cadre_run(strategy, take, NULL, batch, 1, &rows));
        }
        CADRE_CHECK(cadre_distributed_status(input));
    }
    return cadre_finish(strategy);
}
