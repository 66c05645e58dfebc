/* SPDX-License-Identifier: Apache-2.0
 * Reducing along an axis, or not. Each replica returns its rows of a batch of 8 and of a last one
 * of 6. Without an axis they are added element by element, which fits where all have as many; along
 * axis 0 each row counts once, whichever replica has it. */
#include <cadre/cadre.h>
#include <inttypes.h>
#include <stdio.h>

#include "show.h"

static cadre_status identity(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)replica;
    (void)user;
    outputs[0] = cadre_tensor_retain(inputs[0]);
    return CADRE_OK;
}

static void reduce(
    cadre_strategy *strategy, const char *op, const cadre_per_replica *rows, int32_t axis)
{
    cadre_reduce_op parsed;
    cadre_tensor *result;
    CADRE_CHECK(cadre_reduce_op_parse(op, &parsed));
    printf("%s %s axis 0: ", op, axis == 0 ? "along" : "without");
    cadre_status status = cadre_reduce(strategy, parsed, rows, axis, &result);
    if (status != CADRE_OK) {
        printf("%s\n", cadre_status_name(status)); /* cadre_error_message says more */
        return;
    }
    show(result);
    printf("\n");
    cadre_tensor_release(result);
}

int main(int argc, char **argv)
{
    cadre_strategy *strategy;
    cadre_distributed_dataset *data;
    cadre_per_replica *batch, *rows;
    CADRE_CHECK(cadre_init(&argc, &argv));
    CADRE_CHECK(cadre_strategy_default(&strategy));
    cadre_dataset *batches = cadre_dataset_batch(cadre_dataset_range(0, 14, 1), 8, false);
    CADRE_CHECK(cadre_distribute_dataset(strategy, batches, NULL, &data));
    while (cadre_next_epoch(data, 1, NULL)) {
        while (cadre_next(data, &batch) == CADRE_OK) {
            CADRE_CHECK(cadre_run(strategy, identity, NULL, batch, 1, &rows));
            reduce(strategy, "SUM", rows, CADRE_AXIS_NONE);
            reduce(strategy, "SUM", rows, 0);
            reduce(strategy, "MEAN", rows, 0);
        }
    }
    return cadre_finish(strategy);
}
