/* SPDX-License-Identifier: Apache-2.0
 * A step with a batch of each of two datasets. Zipped and then distributed they are one, as long as
 * the shorter of them; a batch comes apart into '0' and '1'. */
#include <cadre/cadre.h>

#include "show.h"

static cadre_status rows_of_both(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    const int64_t rows[] = {cadre_tensor_rows(inputs[0]), cadre_tensor_rows(inputs[1])};
    (void)replica;
    (void)user;
    return cadre_tensor_from_data(CADRE_I64, 1, (int64_t[]){2}, rows, &outputs[0]);
}

int main(int argc, char **argv)
{
    cadre_strategy *strategy;
    cadre_distributed_dataset *distributed;
    cadre_per_replica *batch, *rows;
    CADRE_CHECK(cadre_init(&argc, &argv));
    CADRE_CHECK(cadre_strategy_default(&strategy));
    cadre_dataset *const two[] = {
        cadre_dataset_batch(cadre_dataset_range(0, 20, 1), 8, false), /* labelled: three steps */
        cadre_dataset_batch(cadre_dataset_range(0, 400, 1), 32, false)};
    CADRE_CHECK(cadre_distribute_dataset(strategy, cadre_dataset_zip(two, 2), NULL, &distributed));
    while (cadre_next_epoch(distributed, 1, NULL)) {
        while (cadre_next(distributed, &batch) == CADRE_OK) {
            cadre_argument arguments[2] = {{0}};
            CADRE_CHECK(cadre_values_named(&batch, 1, "0", &arguments[0].values));
            CADRE_CHECK(cadre_values_named(&batch, 1, "1", &arguments[1].values));
            CADRE_CHECK(cadre_run_arguments(strategy, rows_of_both, NULL, arguments, 2, 1, &rows));
            show_replicas(rows, 0);
            cadre_per_replica_release(arguments[0].values);
            cadre_per_replica_release(arguments[1].values);
        }
    }
    return cadre_finish(strategy);
}
