/* SPDX-License-Identifier: Apache-2.0
 * The replicas' tensors joined into one, along an axis: two rows of each replica first, then a
 * tensor of three dimensions along each of them. All tasks get the result. */
#include <cadre/cadre.h>
#include <stdio.h>

#include "show.h"

/* The same tensor for each replica: it is the function's `user`. */
static cadre_status give(const cadre_value_context *context, cadre_element *ret_value, void *user)
{
    (void)context;
    ret_value->count = 1;
    ret_value->tensors[0] = cadre_tensor_retain(user);
    return CADRE_OK;
}

static void gather_along(cadre_strategy *strategy, cadre_tensor *tensor, int32_t axis)
{
    cadre_per_replica *values;
    cadre_tensor *joined;
    CADRE_CHECK(cadre_values_from_function(strategy, give, tensor, &values));
    CADRE_CHECK(cadre_gather(strategy, values, axis, &joined));
    show(joined);
    printf("\n");
    cadre_tensor_release(joined);
    cadre_per_replica_release(values);
}

int main(int argc, char **argv)
{
    static const int32_t numbers[] = {0, 1, 2, 3, 4, 5};
    cadre_strategy *strategy;
    cadre_tensor *rows, *cube;
    CADRE_CHECK(cadre_init(&argc, &argv));
    CADRE_CHECK(cadre_strategy_default(&strategy));
    CADRE_CHECK(cadre_tensor_from_data(CADRE_I32, 2, (int64_t[]){2, 1}, numbers + 1, &rows));
    CADRE_CHECK(cadre_tensor_from_data(CADRE_I32, 3, (int64_t[]){1, 2, 3}, numbers, &cube));
    gather_along(strategy, rows, 0);
    for (int32_t axis = 0; axis < 3; axis++) {
        gather_along(strategy, cube, axis);
    }
    cadre_tensor_release(rows);
    cadre_tensor_release(cube);
    return cadre_finish(strategy);
}
