/* SPDX-License-Identifier: Apache-2.0
 * An all-reduce inside of a step: each replica gives its number and gets the sum, before the
 * function goes on. */
#include <cadre/cadre.h>

#include "show.h"

static cadre_status sum_of_ids(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)user;
    CADRE_TRY(cadre_tensor_from_i64(cadre_replica_id(replica), &outputs[0]));
    return cadre_all_reduce(replica, CADRE_SUM, &outputs[0], 1, NULL);
}

int main(int argc, char **argv)
{
    cadre_strategy *strategy;
    cadre_per_replica *sums;
    CADRE_CHECK(cadre_init(&argc, &argv));
    CADRE_CHECK(cadre_strategy_default(&strategy));
    CADRE_CHECK(cadre_run(strategy, sum_of_ids, NULL, NULL, 1, &sums));
    show_replicas(sums, 0);
    return cadre_finish(strategy);
}
