/* SPDX-License-Identifier: Apache-2.0
 * Values that differ from replica to replica, made by a function: a constant, an entry of an array,
 * the number of replicas. */
#include <cadre/cadre.h>

#include "show.h"

static cadre_status constant(
    const cadre_value_context *context, cadre_element *ret_value, void *user)
{
    (void)context;
    (void)user;
    ret_value->count = 1;
    return cadre_tensor_from_f32(1, &ret_value->tensors[0]);
}

static cadre_status entry_of_array(
    const cadre_value_context *context, cadre_element *ret_value, void *user)
{
    static const float array[] = {3, 2, 1};
    (void)user;
    ret_value->count = 1;
    return cadre_tensor_from_f32(
        array[context->replica_id_in_sync_group % 3], &ret_value->tensors[0]);
}

static cadre_status number_of_replicas(
    const cadre_value_context *context, cadre_element *ret_value, void *user)
{
    (void)user;
    ret_value->count = 1;
    return cadre_tensor_from_i64(context->num_replicas_in_sync, &ret_value->tensors[0]);
}

int main(int argc, char **argv)
{
    const cadre_value_function functions[] = {constant, entry_of_array, number_of_replicas};
    cadre_strategy *strategy;
    CADRE_CHECK(cadre_init(&argc, &argv));
    CADRE_CHECK(cadre_strategy_default(&strategy));
    for (int i = 0; i < 3; i++) {
        cadre_per_replica *values;
        CADRE_CHECK(cadre_values_from_function(strategy, functions[i], NULL, &values));
        show_replicas(values, 0);
        cadre_per_replica_release(values);
    }
    return cadre_finish(strategy);
}
