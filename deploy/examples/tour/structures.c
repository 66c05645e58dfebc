/* SPDX-License-Identifier: Apache-2.0
 * Elements that are dicts, several arguments for one step, and a dict as its result: components are
 * found by name. */
#include <cadre/cadre.h>

#include "show.h"

static cadre_status train_step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    cadre_tensor *image, *label, *rate, *loss, *rows;
    (void)inputs; /* the same four tensors, by number */
    (void)outputs;
    (void)user;
    CADRE_TRY(cadre_replica_input(replica, "image", &image));
    CADRE_TRY(cadre_replica_input(replica, "label", &label));
    CADRE_TRY(cadre_replica_input(replica, "rate", &rate));
    int64_t sum = 0;
    for (int64_t i = 0; i < cadre_tensor_rows(label); i++) {
        sum += ((const int64_t *)cadre_tensor_const_data(label))[i] -
               ((const int64_t *)cadre_tensor_const_data(image))[i];
    }
    sum *= *(const int64_t *)cadre_tensor_const_data(rate);
    CADRE_TRY(cadre_tensor_from_i64(sum, &loss));
    CADRE_TRY(cadre_replica_output(replica, "loss", loss));
    CADRE_TRY(cadre_tensor_from_i64(cadre_tensor_rows(image), &rows));
    return cadre_replica_output(replica, "rows", rows);
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"image", "label"};
    cadre_strategy *strategy;
    cadre_distributed_dataset *distributed;
    cadre_per_replica *batch, *outputs[2], *loss;
    cadre_tensor *rate;
    CADRE_CHECK(cadre_init(&argc, &argv));
    CADRE_CHECK(cadre_strategy_default(&strategy));
    cadre_dataset *const both[] = {cadre_dataset_range(0, 8, 1), cadre_dataset_range(10, 18, 1)};
    cadre_dataset *data = cadre_dataset_named(cadre_dataset_zip(both, 2), names, 2);
    data = cadre_dataset_batch(data, 4, false);
    CADRE_CHECK(cadre_distribute_dataset(strategy, data, NULL, &distributed));
    CADRE_CHECK(cadre_tensor_from_i64(3, &rate));
    while (cadre_next_epoch(distributed, 1, NULL)) {
        while (cadre_next(distributed, &batch) == CADRE_OK) {
            const cadre_argument arguments[] = {
                {.values = batch}, {.tensor = rate, .name = "rate"}};
            CADRE_CHECK(cadre_run_arguments(strategy, train_step, NULL, arguments, 2, 2, outputs));
            CADRE_CHECK(cadre_values_named(outputs, 2, "loss", &loss));
            show_replicas(loss, 0);
            cadre_per_replica_release(loss);
        }
    }
    cadre_tensor_release(rate);
    return cadre_finish(strategy);
}
