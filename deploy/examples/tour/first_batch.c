/* SPDX-License-Identifier: Apache-2.0
 * A distributed dataset: each global batch of 16 rows is cut into a piece for each replica. */
#include <cadre/cadre.h>

#include "show.h"

int main(int argc, char **argv)
{
    cadre_strategy *strategy;
    cadre_distributed_dataset *distributed;
    cadre_per_replica *batch;
    cadre_tensor *one;
    CADRE_CHECK(cadre_init(&argc, &argv));
    CADRE_CHECK(cadre_strategy_default(&strategy));
    CADRE_CHECK(cadre_tensor_from_data(CADRE_F32, 1, (int64_t[]){1}, (float[]){1}, &one));
    cadre_dataset *data = cadre_dataset_tensors((cadre_tensor *[]){one, one}, 2);
    cadre_tensor_release(one);
    data = cadre_dataset_batch(cadre_dataset_repeat(data, 100), 16, false);
    CADRE_CHECK(cadre_distribute_dataset(strategy, data, NULL, &distributed));
    if (cadre_next_epoch(distributed, 1, NULL)) {
        CADRE_CHECK(cadre_next(distributed, &batch));
        show_replicas(batch, 0); /* the features */
        show_replicas(batch, 1); /* the labels */
    }
    return cadre_finish(strategy);
}
