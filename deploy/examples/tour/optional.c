/* SPDX-License-Identifier: Apache-2.0
 * An iteration that also gives the steps which only some replicas have a part of, whatever shapes
 * the elements have; its end is a status like any other. The function returns what it is given. */
#include <cadre/cadre.h>

#include "show.h"

static cadre_status identity(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)replica;
    (void)user;
    outputs[0] = cadre_tensor_retain(inputs[0]);
    return CADRE_OK;
}

int main(int argc, char **argv)
{
    cadre_strategy *strategy;
    cadre_distributed_dataset *data;
    CADRE_CHECK(cadre_init(&argc, &argv));
    CADRE_CHECK(cadre_strategy_default(&strategy));
    cadre_dataset *batches = cadre_dataset_batch(cadre_dataset_range(0, 9, 1), 4, false);
    const cadre_input_options options = {.partial_steps = true};
    CADRE_CHECK(cadre_distribute_dataset(strategy, batches, &options, &data));
    while (cadre_next_epoch(data, 1, NULL)) {
        for (int step = 0; step < 5; step++) {
            cadre_per_replica *batch, *result;
            if (cadre_next(data, &batch) == CADRE_OUT_OF_RANGE) {
                break;
            }
            CADRE_CHECK(cadre_run(strategy, identity, NULL, batch, 1, &result));
            show_replicas(result, 0);
        }
    }
    return cadre_finish(strategy);
}
