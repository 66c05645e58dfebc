/* SPDX-License-Identifier: Apache-2.0
 * Steps of a given time that each report so many numbers, and what a report costs its caller.
 *
 *     bench_reporting STEPS BUSY_US REPORTS     prints steps_per_s= and report_ns= */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "cadre/cadre.h"

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static double busy_s;

static cadre_status compute(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    (void)user;
    cadre_tensor *one;
    double end_s = now_s() + busy_s;
    CADRE_TRY(cadre_tensor_from_f32(1, &one));
    while (now_s() < end_s) {
    }
    cadre_status status = cadre_all_reduce(replica, CADRE_SUM, &one, 1, NULL);
    cadre_tensor_release(one);
    return status;
}

static double report(cadre_strategy *strategy, int reports, uint64_t step)
{
    double began_s = now_s();
    for (int i = 0; i < reports; i++) {
        char name[16];
        snprintf(name, sizeof name, "loss-%d", i);
        CADRE_CHECK(cadre_report(strategy, name, (double)step));
    }
    return now_s() - began_s;
}

int main(int argc, char **argv)
{
    CADRE_CHECK(cadre_init(&argc, &argv));
    if (argc != 4) {
        fprintf(stderr, "usage: bench_reporting STEPS BUSY_US REPORTS\n");
        return 2;
    }
    uint64_t steps = strtoull(argv[1], NULL, 10);
    busy_s = strtod(argv[2], NULL) * 1e-6;
    int reports = (int)strtol(argv[3], NULL, 10);
    double reporting_s = 0;
    cadre_strategy *strategy;
    CADRE_CHECK(cadre_strategy_default(&strategy));
    double began_s = now_s();
    while (cadre_strategy_position(strategy) < steps) {
        CADRE_CHECK(cadre_run(strategy, compute, NULL, NULL, 0, NULL));
        reporting_s += report(strategy, reports, cadre_strategy_position(strategy));
    }
    printf("steps_per_s=%.1f\n", (double)steps / (now_s() - began_s));
    if (reports > 0) {
        printf("report_ns=%.0f\n", reporting_s * 1e9 / (double)steps / reports);
    }
    return cadre_finish(strategy);
}
