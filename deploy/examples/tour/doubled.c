/* SPDX-License-Identifier: Apache-2.0
 * Results of steps are kept: a value that the library lends is retained, and released later. */
#include <cadre/cadre.h>
#include <stdio.h>

#include "show.h"

static cadre_status doubled(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)replica;
    (void)user;
    CADRE_TRY(cadre_tensor_copy(inputs[0], &outputs[0]));
    int64_t *values = cadre_tensor_data(outputs[0]);
    for (int64_t i = 0; i < cadre_tensor_count(outputs[0]); i++) {
        values[i] *= 2;
    }
    return CADRE_OK;
}

int main(int argc, char **argv)
{
    cadre_strategy *strategy;
    cadre_distributed_dataset *data;
    cadre_per_replica *batch, *result, *kept[2];
    int steps = 0;
    CADRE_CHECK(cadre_init(&argc, &argv));
    CADRE_CHECK(cadre_strategy_default(&strategy));
    cadre_dataset *batches = cadre_dataset_batch(cadre_dataset_range(0, 4, 1), 2, false);
    CADRE_CHECK(cadre_distribute_dataset(strategy, batches, NULL, &data));
    while (cadre_next_epoch(data, 1, NULL)) {
        while (cadre_next(data, &batch) == CADRE_OK) {
            CADRE_CHECK(cadre_run(strategy, doubled, NULL, batch, 1, &result));
            kept[steps++] = cadre_per_replica_retain(result);
        }
    }
    for (int i = 0; i < steps; i++) {
        show_replicas(kept[i], 0);
        cadre_per_replica_release(kept[i]);
    }
    return cadre_finish(strategy);
}
