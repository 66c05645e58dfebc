/* SPDX-License-Identifier: Apache-2.0
 * Predictions in order: each element carries its number, so it does not matter which replica
 * predicts it, or when. */
#include <cadre/cadre.h>
#include <inttypes.h>
#include <stdio.h>

#define ELEMENTS 24

/* Components of the input: the element's number, the element. */
static cadre_status predict(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)replica;
    (void)user;
    outputs[0] = cadre_tensor_retain(inputs[0]);
    CADRE_TRY(cadre_tensor_copy(inputs[1], &outputs[1]));
    int64_t *values = cadre_tensor_data(outputs[1]);
    for (int64_t i = 0; i < cadre_tensor_count(outputs[1]); i++) {
        values[i] *= 2;
    }
    return CADRE_OK;
}

int main(int argc, char **argv)
{
    int64_t results[ELEMENTS] = {0};
    cadre_strategy *strategy;
    cadre_distributed_dataset *distributed;
    cadre_per_replica *batch, *outputs[2];
    CADRE_CHECK(cadre_init(&argc, &argv));
    CADRE_CHECK(cadre_strategy_default(&strategy));
    cadre_dataset *data = cadre_dataset_enumerate(cadre_dataset_range(0, ELEMENTS, 1), 0);
    data = cadre_dataset_batch(data, 6, false);
    CADRE_CHECK(cadre_distribute_dataset(strategy, data, NULL, &distributed));
    while (cadre_next_epoch(distributed, 1, NULL)) {
        while (cadre_next(distributed, &batch) == CADRE_OK) {
            cadre_tensor *numbers, *values; /* of all replicas, also of other tasks */
            CADRE_CHECK(cadre_run(strategy, predict, NULL, batch, 2, outputs));
            CADRE_CHECK(cadre_gather(strategy, outputs[0], 0, &numbers));
            CADRE_CHECK(cadre_gather(strategy, outputs[1], 0, &values));
            const int64_t *at = cadre_tensor_const_data(numbers);
            for (int64_t i = 0; i < cadre_tensor_rows(numbers); i++) {
                results[at[i]] = ((const int64_t *)cadre_tensor_const_data(values))[i];
            }
            cadre_tensor_release(numbers);
            cadre_tensor_release(values);
        }
    }
    for (int i = 0; i < ELEMENTS; i++) {
        printf("%d: %" PRId64 "%s", i, results[i], i % 6 == 5 ? "\n" : ", ");
    }
    return cadre_finish(strategy);
}
