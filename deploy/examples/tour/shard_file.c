/* SPDX-License-Identifier: Apache-2.0
 * Files shared out as a whole: with two tasks each reads one of the two files. What is left of a
 * file at its end makes smaller batches. */
#include <cadre/cadre.h>
#include <stdio.h>

#include "show.h"

static void write_lines(const char *name, int first, int count)
{
    FILE *file = fopen(name, "w");
    CADRE_CHECK(file != NULL ? CADRE_OK : cadre_fail(CADRE_UNKNOWN, "cannot write %s", name));
    for (int i = 0; i < count; i++) {
        fprintf(file, "%d\n", first + i);
    }
    CADRE_CHECK(fclose(file) == 0 ? CADRE_OK : cadre_fail(CADRE_UNKNOWN, "cannot write %s", name));
}

int main(int argc, char **argv)
{
    cadre_strategy *strategy;
    cadre_distributed_dataset *distributed;
    cadre_per_replica *batch;
    CADRE_CHECK(cadre_init(&argc, &argv));
    CADRE_CHECK(cadre_strategy_default(&strategy));
    if (cadre_strategy_is_chief(strategy)) {
        write_lines("numbers-1.txt", 0, 6);
        write_lines("numbers-2.txt", 6, 6);
    }
    CADRE_CHECK(cadre_barrier()); /* they are there before one looks for them */
    const char *pattern = "numbers-?.txt";
    cadre_dataset *data = cadre_dataset_list_files(&pattern, 1, NULL);
    data = cadre_dataset_flat_map(data, cadre_open_text_lines, NULL);
    const cadre_input_options options = {.auto_shard = CADRE_SHARD_FILE};
    data = cadre_dataset_batch(data, 4, false);
    CADRE_CHECK(cadre_distribute_dataset(strategy, data, &options, &distributed));
    while (cadre_next_epoch(distributed, 1, NULL)) {
        while (cadre_next(distributed, &batch) == CADRE_OK) {
            show_replicas(batch, 0);
        }
    }
    return cadre_finish(strategy);
}
