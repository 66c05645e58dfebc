/* SPDX-License-Identifier: Apache-2.0
 * The loop over a distributed dataset: in each step the same function runs on each replica, with
 * the replica's rows. An epoch is seven steps here, and the last one has fewer rows. */
#include <cadre/cadre.h>
#include <stdio.h>

#include "show.h"

/* labels - 0.3 * features, row by row. */
static cadre_status train_step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)replica;
    (void)user;
    CADRE_TRY(cadre_tensor_copy(inputs[1], &outputs[0]));
    const float *features = cadre_tensor_const_data(inputs[0]);
    float *loss = cadre_tensor_data(outputs[0]);
    for (int64_t i = 0; i < cadre_tensor_count(inputs[0]); i++) {
        loss[i] -= 0.3f * features[i];
    }
    return CADRE_OK;
}

int main(int argc, char **argv)
{
    cadre_strategy *strategy;
    cadre_distributed_dataset *distributed;
    cadre_per_replica *batch, *loss;
    cadre_tensor *one;
    CADRE_CHECK(cadre_init(&argc, &argv));
    CADRE_CHECK(cadre_strategy_default(&strategy));
    CADRE_CHECK(cadre_tensor_from_data(CADRE_F32, 1, (int64_t[]){1}, (float[]){1}, &one));
    cadre_dataset *data = cadre_dataset_tensors((cadre_tensor *[]){one, one}, 2);
    cadre_tensor_release(one);
    data = cadre_dataset_batch(cadre_dataset_repeat(data, 100), 16, false);
    CADRE_CHECK(cadre_distribute_dataset(strategy, data, NULL, &distributed));
    while (cadre_next_epoch(distributed, 1, NULL)) {
        while (cadre_next(distributed, &batch) == CADRE_OK) {
            CADRE_CHECK(cadre_run(strategy, train_step, NULL, batch, 1, &loss));
            printf("Loss is ");
            show_replicas(loss, 0);
        }
    }
    return cadre_finish(strategy);
}
