/* SPDX-License-Identifier: Apache-2.0
 * A function runs on values that differ from replica to replica: each is given its own. */
#include <cadre/cadre.h>

#include "show.h"

static cadre_status number_of_replicas(
    const cadre_value_context *context, cadre_element *ret_value, void *user)
{
    (void)user;
    ret_value->count = 1;
    return cadre_tensor_from_i64(context->num_replicas_in_sync, &ret_value->tensors[0]);
}

static cadre_status times_two(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)replica;
    (void)user;
    return cadre_tensor_from_i64(
        *(const int64_t *)cadre_tensor_const_data(inputs[0]) * 2, &outputs[0]);
}

int main(int argc, char **argv)
{
    cadre_strategy *strategy;
    cadre_per_replica *values, *result;
    CADRE_CHECK(cadre_init(&argc, &argv));
    CADRE_CHECK(cadre_strategy_default(&strategy));
    CADRE_CHECK(cadre_values_from_function(strategy, number_of_replicas, NULL, &values));
    CADRE_CHECK(cadre_run(strategy, times_two, NULL, values, 1, &result));
    show_replicas(result, 0);
    cadre_per_replica_release(values);
    return cadre_finish(strategy);
}
