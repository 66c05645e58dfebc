/* SPDX-License-Identifier: Apache-2.0
 * Closures that do nothing, scheduled by a chief on the workers of its job: prints figures as
 * NAME=NUMBER lines. What a closure takes is from cadre_schedule to its value being ready.
 *
 *     bench_closures WORKERS [PART], where PART is 10 for a tenth of all that is measured */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "cadre/cadre.h"

enum { ALONE = 2000, FLOOD = 50000, RATED = 3000, PER_WORKER = 1000 };

static size_t part = 1;

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void sleep_until(uint64_t ns)
{
    const struct timespec until = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}

/* output: when it ran, by the clock that all processes of a machine share. */
static cadre_status empty(cadre_closure *closure, cadre_tensor *outputs[], void *user)
{
    (void)closure;
    (void)user;
    return cadre_tensor_from_i64((int64_t)now_ns(), &outputs[0]);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print(const char *name, double *us, size_t count)
{
    qsort(us, count, sizeof *us, ascending);
    printf("%s.p50=%.1f\n%s.p99=%.1f\n%s.worst=%.1f\n", name, us[count / 2], name,
        us[count * 99 / 100], name, us[count - 1]);
}

/* When the closure was done. */
static uint64_t fetch(cadre_remote_value *value, bool now)
{
    cadre_tensor *ran;
    uint32_t count;
    CADRE_CHECK(cadre_fetch(value, &ran, 1, &count));
    uint64_t at = now ? now_ns() : (uint64_t) * (const int64_t *)cadre_tensor_const_data(ran);
    cadre_tensor_release(ran);
    cadre_remote_value_release(value);
    return at;
}

static void one_by_one(cadre_strategy *strategy, double *us)
{
    for (size_t i = 0; i < ALONE / part; i++) {
        cadre_remote_value *value;
        uint64_t begun = now_ns();
        CADRE_CHECK(cadre_schedule(strategy, "empty", NULL, 0, &value));
        us[i] = (double)(fetch(value, true) - begun) * 1e-3;
    }
    print("alone", us, ALONE / part);
}

/* As many a second as the level sets; the time from scheduling to running is measured. */
static void at_a_rate(cadre_strategy *strategy, uint32_t workers, double *us)
{
    size_t count = RATED / part * workers;
    cadre_remote_value **values = calloc(count, sizeof *values);
    uint64_t *begun = calloc(count, sizeof *begun);
    uint64_t start = now_ns();
    if (values == NULL || begun == NULL) {
        exit(1);
    }
    for (size_t i = 0; i < count; i++) {
        sleep_until(start + (uint64_t)i * 1000000000 / PER_WORKER / workers);
        begun[i] = now_ns();
        CADRE_CHECK(cadre_schedule(strategy, "empty", NULL, 0, &values[i]));
    }
    for (size_t i = 0; i < count; i++) {
        us[i] = (double)(fetch(values[i], false) - begun[i]) * 1e-3;
    }
    print("rate", us, count);
    free(values);
    free(begun);
}

static void flood(cadre_strategy *strategy)
{
    uint64_t begun = now_ns();
    for (size_t i = 0; i < FLOOD / part; i++) {
        CADRE_CHECK(cadre_schedule(strategy, "empty", NULL, 0, NULL));
    }
    CADRE_CHECK(cadre_join(strategy));
    printf("flood.each=%.0f\n", (double)(FLOOD / part) / ((double)(now_ns() - begun) * 1e-9));
}

int main(int argc, char **argv)
{
    CADRE_CHECK(cadre_init(&argc, &argv));
    CADRE_CHECK(cadre_function_register("empty", empty, NULL));
    if (cadre_task_serves()) {
        return cadre_serve();
    }
    cadre_strategy *strategy;
    uint32_t workers = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 1;
    size_t asked = argc > 2 ? strtoul(argv[2], NULL, 10) : 1;
    part = asked >= 1 && asked <= ALONE ? asked : 1;
    double *us = calloc((size_t)RATED * workers + ALONE, sizeof *us);
    CADRE_CHECK(cadre_strategy_parameter_server(NULL, &strategy));
    flood(strategy);
    one_by_one(strategy, us);
    at_a_rate(strategy, workers, us);
    free(us);
    return cadre_finish(strategy);
}
