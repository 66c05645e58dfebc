/* SPDX-License-Identifier: Apache-2.0
 * A job of N tasks under N workers that exist only as streams of this process: joins, steps, idles,
 * loses a tenth of them. Prints what it took, and what the coordinator paid meanwhile. With 0
 * rounds it only joins, and joins again whenever the coordinator went away, until it is killed.
 * operate_agents ADDRESS N ROUNDS COORDINATOR_PID [each | CERTIFICATES]: with a fifth word, each
 * worker has a connection of its own, over TLS if it is a folder. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <uv.h>

#include "common/base/clock.h"
#include "common/rpc/loop.h"
#include "tests/bench/release/fake_agent.h"

#define IDLE_US (4 * CADRE_US_PER_S)

struct run {
    struct rpc_loop *loop;
    struct fleet *fleet;
    long pid;
    uint32_t agents;
    uint32_t rounds;
    uint32_t done;
    uint32_t acknowledged;
    uint32_t released;
    uint64_t began_us;
    uint64_t arrived_us;
    uint64_t cpu_us;
    uint64_t *last_us;
    bool vanished;
    uv_timer_t timer;
};

static void fail(const char *why)
{
    fprintf(stderr, "operate_agents: %s\n", why);
    exit(1);
}

/* Of the coordinator: utime and stime of /proc/PID/stat. */
static uint64_t cpu_us(const struct run *run)
{
    char path[64];
    char text[1024] = {0};
    unsigned long user = 0;
    unsigned long system = 0;
    snprintf(path, sizeof path, "/proc/%ld/stat", run->pid);
    FILE *file = fopen(path, "r");
    if (file == NULL || fgets(text, sizeof text, file) == NULL ||
        sscanf(text, "%*d %*s %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
            &system) != 2) {
        fail("the coordinator is gone");
    }
    fclose(file);
    return (uint64_t)(user + system) * CADRE_US_PER_S / (uint64_t)sysconf(_SC_CLK_TCK);
}

static uint64_t resident_kib(const struct run *run)
{
    char path[64];
    unsigned long pages = 0;
    snprintf(path, sizeof path, "/proc/%ld/statm", run->pid);
    FILE *file = fopen(path, "r");
    if (file == NULL || fscanf(file, "%*u %lu", &pages) != 1) {
        fail("the coordinator is gone");
    }
    fclose(file);
    return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE) / 1024;
}

static void all_joined(void *user)
{
    struct run *run = user;
    printf("attempts=%" PRIu32 "\n", fleet_attempts(run->fleet));
    if (run->rounds == 0) {
        printf("join_ms=%" PRIu64 "\n", (clock_monotonic_us() - run->began_us) / 1000);
        printf("ready\n");
        return;
    }
    fleet_stay(run->fleet);
    printf("join_ms=%" PRIu64 "\n", (clock_monotonic_us() - run->began_us) / 1000);
    printf("resident_joined_kib=%" PRIu64 "\n", resident_kib(run));
    printf("ready\n");
    fflush(stdout);
}

static void begin_round(struct run *run)
{
    run->acknowledged = 0;
    run->released = 0;
    for (uint32_t i = 0; i < run->agents - 1; i++) {
        fleet_arrive(run->fleet, i, run->done + 1, true);
    }
}

/* The loop runs on after the measurement, for the heartbeats. */
static void on_idle_over(uv_timer_t *timer)
{
    struct run *run = timer->data;
    printf("cpu_idle_ms_per_s=%.3f\n",
        (double)(cpu_us(run) - run->cpu_us) / 1000 / ((double)IDLE_US / CADRE_US_PER_S));
    run->vanished = true;
    run->cpu_us = cpu_us(run);
    run->began_us = clock_monotonic_us();
    fleet_vanish(run->fleet, run->agents - run->agents / 10);
}

static void idle(struct run *run)
{
    run->cpu_us = cpu_us(run);
    fleet_beat(run->fleet);
    uv_timer_start(&run->timer, on_idle_over, IDLE_US / 1000, 0);
}

static void all_planned(void *user)
{
    struct run *run = user;
    if (run->vanished) {
        printf("regroup_ms=%" PRIu64 "\n", (clock_monotonic_us() - run->began_us) / 1000);
        printf("regroup_cpu_ms=%" PRIu64 "\n", (cpu_us(run) - run->cpu_us) / 1000);
        rpc_loop_stop(run->loop);
        return;
    }
    printf("resident_running_kib=%" PRIu64 "\n", resident_kib(run));
    run->cpu_us = cpu_us(run);
    run->began_us = clock_monotonic_us();
    begin_round(run);
}

static void one_acknowledged(void *user)
{
    struct run *run = user;
    if (++run->acknowledged == run->agents - 1) {
        run->arrived_us = clock_monotonic_us();
        fleet_arrive(run->fleet, run->agents - 1, run->done + 1, false);
    }
}

static int compare(const void *left, const void *right)
{
    const uint64_t *a = left;
    const uint64_t *b = right;
    return (*a > *b) - (*a < *b);
}

static void print_rounds(struct run *run)
{
    uint64_t took_us = clock_monotonic_us() - run->began_us;
    qsort(run->last_us, run->rounds, sizeof *run->last_us, compare);
    printf("release_p50_us=%" PRIu64 "\n", run->last_us[run->rounds / 2]);
    printf("release_p99_us=%" PRIu64 "\n", run->last_us[(run->rounds * 99 - 1) / 100]);
    printf("step_us=%" PRIu64 "\n", took_us / run->rounds);
    printf("cpu_step_us=%" PRIu64 "\n", (cpu_us(run) - run->cpu_us) / run->rounds);
}

static void one_released(void *user)
{
    struct run *run = user;
    if (++run->released < run->agents || run->vanished) {
        return;
    }
    run->last_us[run->done++] = clock_monotonic_us() - run->arrived_us;
    if (run->done < run->rounds) {
        begin_round(run);
        return;
    }
    print_rounds(run);
    idle(run);
}

static const struct fleet_ops fleet_ops = {.welcomed = all_joined,
    .planned = all_planned,
    .acknowledged = one_acknowledged,
    .released = one_released};

int main(int argc, char **argv)
{
    if (argc != 5 && argc != 6) {
        fprintf(stderr,
            "usage: operate_agents ADDRESS N ROUNDS COORDINATOR_PID [each | CERTIFICATES]\n");
        return 2;
    }
    struct run run = {.agents = (uint32_t)strtoul(argv[2], NULL, 10),
        .rounds = (uint32_t)strtoul(argv[3], NULL, 10),
        .pid = strtol(argv[4], NULL, 10)};
    struct cadre_error error;
    run.last_us = calloc(run.rounds + 1, sizeof *run.last_us);
    setvbuf(stdout, NULL, _IOLBF, 0);
    rpc_tune_malloc();
    if (run.last_us == NULL || run.agents < 10 || rpc_loop_open(&run.loop, &error) != CADRE_OK) {
        fail("cannot start");
    }
    uv_timer_init(rpc_loop_uv(run.loop), &run.timer);
    run.timer.data = &run;
    printf("resident_empty_kib=%" PRIu64 "\n", resident_kib(&run));
    run.began_us = clock_monotonic_us();
    const char *certificates = argc == 6 && strcmp(argv[5], "each") != 0 ? argv[5] : NULL;
    run.fleet = argc == 6
                    ? fleet_open_each(run.loop, argv[1], run.agents, certificates, &fleet_ops, &run)
                    : fleet_open(run.loop, argv[1], run.agents, &fleet_ops, &run);
    rpc_loop_run(run.loop);
    fflush(stdout);
    _Exit(0); /* the streams are not worth an orderly end */
}
