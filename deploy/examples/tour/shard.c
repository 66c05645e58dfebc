/* SPDX-License-Identifier: Apache-2.0
 * Which task reads which samples: `shard data` shares them out, with `shard off` every task reads
 * all of them. Only several tasks show the difference (cadre run -n 2). */
#include <cadre/cadre.h>
#include <stdio.h>
#include <string.h>

#include "show.h"

int main(int argc, char **argv)
{
    cadre_strategy *strategy;
    cadre_distributed_dataset *data;
    cadre_per_replica *batch;
    CADRE_CHECK(cadre_init(&argc, &argv));
    CADRE_CHECK(cadre_strategy_default(&strategy));
    const cadre_dataset_options options = {.has_auto_shard = true,
        .auto_shard = argc > 1 && strcmp(argv[1], "off") == 0 ? CADRE_SHARD_OFF : CADRE_SHARD_DATA};
    cadre_dataset *numbers = cadre_dataset_batch(cadre_dataset_range(0, 12, 1), 4, false);
    numbers = cadre_dataset_with_options(numbers, &options);
    CADRE_CHECK(cadre_distribute_dataset(strategy, numbers, NULL, &data));
    while (cadre_next_epoch(data, 1, NULL)) {
        while (cadre_next(data, &batch) == CADRE_OK) {
            show_replicas(batch, 0);
        }
    }
    return cadre_finish(strategy);
}
