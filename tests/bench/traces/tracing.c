/* SPDX-License-Identifier: Apache-2.0
 * Steps of a given time, each with a batch and a collective, and how long they take in blocks: some
 * of them are traced meanwhile, and the others are what they are compared with.
 *
 *     bench_tracing STEPS BUSY_US BLOCK     prints "block I NANOSECONDS CPU_NANOSECONDS" for each
 *                                           block of steps; the CPU time is without the work */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "cadre/cadre.h"

static double read_s(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static double now_s(void)
{
    return read_s(CLOCK_MONOTONIC);
}

static double busy_s;
static double worked_s; /* CPU time of the work */

static cadre_status compute(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    (void)user;
    cadre_tensor *one;
    double began_s = read_s(CLOCK_THREAD_CPUTIME_ID);
    double end_s = now_s() + busy_s;
    while (now_s() < end_s) {
    }
    worked_s += read_s(CLOCK_THREAD_CPUTIME_ID) - began_s;
    CADRE_TRY(cadre_tensor_from_f32(1, &one));
    cadre_status status = cadre_all_reduce(replica, CADRE_SUM, &one, 1, NULL);
    cadre_tensor_release(one);
    return status;
}

int main(int argc, char **argv)
{
    CADRE_CHECK(cadre_init(&argc, &argv));
    if (argc != 4) {
        fprintf(stderr, "usage: bench_tracing STEPS BUSY_US BLOCK\n");
        return 2;
    }
    int64_t steps = strtoll(argv[1], NULL, 10);
    int64_t block = strtoll(argv[3], NULL, 10);
    busy_s = strtod(argv[2], NULL) * 1e-6;
    cadre_strategy *strategy;
    cadre_distributed_dataset *data;
    cadre_per_replica *batch;
    CADRE_CHECK(cadre_strategy_default(&strategy));
    CADRE_CHECK(cadre_distribute_dataset(
        strategy, cadre_dataset_batch(cadre_dataset_range(0, 2 * steps, 1), 2, true), NULL, &data));
    double began_s = now_s();
    double used_s = read_s(CLOCK_PROCESS_CPUTIME_ID);
    while (cadre_next_epoch(data, 1, NULL)) {
        while (cadre_next(data, &batch) == CADRE_OK) {
            CADRE_CHECK(cadre_run(strategy, compute, NULL, batch, 0, NULL));
            uint64_t done = cadre_strategy_position(strategy);
            if (done % (uint64_t)block == 0) {
                double now = now_s();
                double used = read_s(CLOCK_PROCESS_CPUTIME_ID);
                printf("block %" PRIu64 " %.0f %.0f\n", done / (uint64_t)block - 1,
                    (now - began_s) * 1e9, (used - used_s - worked_s) * 1e9);
                began_s = now;
                used_s = used;
                worked_s = 0;
            }
        }
        CADRE_CHECK(cadre_distributed_status(data));
    }
    return cadre_finish(strategy);
}
