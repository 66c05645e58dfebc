/* SPDX-License-Identifier: Apache-2.0
 * One number of many: each replica returns its id, and the sum of all is reported. */
#include <cadre/cadre.h>
#include <inttypes.h>
#include <stdio.h>

static cadre_status own_id(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)user;
    return cadre_tensor_from_i64(cadre_replica_id(replica), &outputs[0]);
}

int main(int argc, char **argv)
{
    cadre_strategy *strategy;
    cadre_per_replica *ids;
    cadre_tensor *total;
    CADRE_CHECK(cadre_init(&argc, &argv));
    CADRE_CHECK(cadre_strategy_default(&strategy));
    CADRE_CHECK(cadre_run(strategy, own_id, NULL, NULL, 1, &ids));
    CADRE_CHECK(cadre_reduce(strategy, CADRE_SUM, ids, CADRE_AXIS_NONE, &total));
    printf("sum of the ids: %" PRId64 "\n", *(const int64_t *)cadre_tensor_const_data(total));
    cadre_tensor_release(total);
    return cadre_finish(strategy);
}
