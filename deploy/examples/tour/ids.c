/* SPDX-License-Identifier: Apache-2.0
 * Input that comes from no dataset: each replica is given its own number, in each of four steps. */
#include <cadre/cadre.h>

#include "show.h"

static cadre_status id_of_replica(
    const cadre_value_context *context, cadre_element *ret_value, void *user)
{
    (void)user;
    ret_value->count = 1;
    return cadre_tensor_from_i64(context->replica_id_in_sync_group, &ret_value->tensors[0]);
}

static cadre_status identity(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)replica;
    (void)user;
    outputs[0] = cadre_tensor_retain(inputs[0]);
    return CADRE_OK;
}

int main(int argc, char **argv)
{
    cadre_strategy *strategy;
    cadre_per_replica *ids, *result;
    CADRE_CHECK(cadre_init(&argc, &argv));
    CADRE_CHECK(cadre_strategy_default(&strategy));
    CADRE_CHECK(cadre_values_from_function(strategy, id_of_replica, NULL, &ids));
    for (int i = 0; i < 4; i++) {
        CADRE_CHECK(cadre_run(strategy, identity, NULL, ids, 1, &result));
        show_replicas(result, 0);
    }
    cadre_per_replica_release(ids);
    return cadre_finish(strategy);
}
