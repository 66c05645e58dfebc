/* SPDX-License-Identifier: Apache-2.0
 * The least program that trains: one step with one all-reduce of one number. Prints on the
 * monotonic clock when the sum was there. */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "cadre/cadre.h"

static cadre_status first_step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    uint64_t *ret_ns = user;
    cadre_tensor *one;
    CADRE_TRY(cadre_tensor_from_f32(1, &one));
    cadre_status status = cadre_all_reduce(replica, CADRE_SUM, &one, 1, NULL);
    cadre_tensor_release(one);
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    *ret_ns = (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
    return status;
}

int main(int argc, char **argv)
{
    cadre_strategy *strategy;
    uint64_t reduced_ns = 0;
    CADRE_CHECK(cadre_init(&argc, &argv));
    CADRE_CHECK(cadre_strategy_default(&strategy));
    CADRE_CHECK(cadre_run(strategy, first_step, &reduced_ns, NULL, 0, NULL));
    printf("first_all_reduce_ns=%" PRIu64 "\n", reduced_ns);
    return cadre_finish(strategy);
}
