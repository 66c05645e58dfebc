/* SPDX-License-Identifier: Apache-2.0
 * How global batches are cut: evenly, as far as that goes. The last batch may be smaller, and where
 * there are fewer rows than replicas the last ones get none. */
#include <cadre/cadre.h>
#include <inttypes.h>
#include <stdio.h>

#include "show.h"

static void show_cuts(cadre_strategy *strategy, int64_t elements)
{
    cadre_distributed_dataset *data;
    cadre_per_replica *batch;
    printf("%" PRId64 " elements in batches of 4:\n", elements);
    cadre_dataset *batches = cadre_dataset_batch(cadre_dataset_range(0, elements, 1), 4, false);
    CADRE_CHECK(cadre_distribute_dataset(strategy, batches, NULL, &data));
    while (cadre_next_epoch(data, 1, NULL)) {
        while (cadre_next(data, &batch) == CADRE_OK) {
            show_replicas(batch, 0);
        }
    }
}

int main(int argc, char **argv)
{
    cadre_strategy *strategy;
    CADRE_CHECK(cadre_init(&argc, &argv));
    CADRE_CHECK(cadre_strategy_default(&strategy));
    show_cuts(strategy, 6);
    show_cuts(strategy, 4);
    show_cuts(strategy, 8);
    return cadre_finish(strategy);
}
