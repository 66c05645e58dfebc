/* SPDX-License-Identifier: Apache-2.0
 * A function runs once on each replica. A tensor that it is given is the same for all of them. */
#include <cadre/cadre.h>

#include "show.h"

static cadre_status times_two(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)replica;
    (void)user;
    return cadre_tensor_from_f32(
        *(const float *)cadre_tensor_const_data(inputs[0]) * 2, &outputs[0]);
}

int main(int argc, char **argv)
{
    cadre_strategy *strategy;
    cadre_tensor *three;
    cadre_per_replica *result;
    CADRE_CHECK(cadre_init(&argc, &argv));
    CADRE_CHECK(cadre_strategy_default(&strategy));
    CADRE_CHECK(cadre_tensor_from_f32(3, &three));
    const cadre_argument argument = {.tensor = three};
    CADRE_CHECK(cadre_run_arguments(strategy, times_two, NULL, &argument, 1, 1, &result));
    show_replicas(result, 0);
    cadre_tensor_release(three);
    return cadre_finish(strategy);
}
