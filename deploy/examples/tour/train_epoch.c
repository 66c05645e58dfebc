/* SPDX-License-Identifier: Apache-2.0
 * The simplest training loop: each replica makes a number of its rows, and the numbers of all
 * replicas and steps are summed up. */
#include <cadre/cadre.h>
#include <inttypes.h>
#include <stdio.h>

/* What a replica does in a step: here it adds its rows up. */
static cadre_status sum_rows(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)replica;
    (void)user;
    const int64_t *rows = cadre_tensor_const_data(inputs[0]);
    int64_t sum = 0;
    for (int64_t i = 0; i < cadre_tensor_rows(inputs[0]); i++) {
        sum += rows[i];
    }
    return cadre_tensor_from_i64(sum, &outputs[0]);
}

int main(int argc, char **argv)
{
    cadre_strategy *strategy;
    cadre_distributed_dataset *data;
    CADRE_CHECK(cadre_init(&argc, &argv));
    CADRE_CHECK(cadre_strategy_default(&strategy));
    cadre_dataset *batches = cadre_dataset_batch(cadre_dataset_range(0, 4, 1), 2, false);
    CADRE_CHECK(cadre_distribute_dataset(strategy, batches, NULL, &data));
    while (cadre_next_epoch(data, 2, NULL)) {
        int64_t total = 0;
        cadre_per_replica *batch, *sums;
        while (cadre_next(data, &batch) == CADRE_OK) {
            cadre_tensor *sum;
            CADRE_CHECK(cadre_run(strategy, sum_rows, NULL, batch, 1, &sums));
            CADRE_CHECK(cadre_reduce(strategy, CADRE_SUM, sums, CADRE_AXIS_NONE, &sum));
            total += *(const int64_t *)cadre_tensor_const_data(sum);
            cadre_tensor_release(sum);
        }
        printf("total of the epoch: %" PRId64 "\n", total);
    }
    return cadre_finish(strategy);
}
