/* SPDX-License-Identifier: Apache-2.0
 * Releases of many streams by a real coordinator: joins N fake workers, prints "ready", waits for a
 * job of N tasks, and runs rounds. In a round N - 1 tasks arrive and are acknowledged; then the
 * last one arrives. Prints how long after it the first and the last stream had the release.
 * release_agents ADDRESS N ROUNDS */
#include <stdio.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/rpc/loop.h"
#include "tests/bench/release/fake_agent.h"

struct rounds {
    struct rpc_loop *loop;
    struct fleet *fleet;
    uint32_t agents;
    uint32_t count;
    uint32_t done;
    uint32_t acknowledged;
    uint32_t released;
    uint64_t arrived_us;
    uint64_t *first_us;
    uint64_t *last_us;
};

static void all_joined(void *user)
{
    (void)user;
    printf("ready\n");
    fflush(stdout);
}

static void last_arrives(struct rounds *rounds)
{
    rounds->arrived_us = clock_monotonic_us();
    fleet_arrive(rounds->fleet, rounds->agents - 1, rounds->done + 1, false);
}

static void begin(void *user)
{
    struct rounds *rounds = user;
    rounds->acknowledged = 0;
    rounds->released = 0;
    for (uint32_t i = 0; i < rounds->agents - 1; i++) {
        fleet_arrive(rounds->fleet, i, rounds->done + 1, true);
    }
}

static void one_acknowledged(void *user)
{
    struct rounds *rounds = user;
    if (++rounds->acknowledged == rounds->agents - 1) {
        last_arrives(rounds);
    }
}

static void one_released(void *user)
{
    struct rounds *rounds = user;
    uint64_t took_us = clock_monotonic_us() - rounds->arrived_us;
    if (rounds->acknowledged < rounds->agents - 1) {
        fprintf(stderr, "release_agents: released before the last one arrived\n");
        exit(1);
    }
    rounds->released++;
    if (rounds->released == 1) {
        rounds->first_us[rounds->done] = took_us;
    }
    if (rounds->released < rounds->agents) {
        return;
    }
    rounds->last_us[rounds->done] = took_us;
    rounds->done++;
    if (rounds->done == rounds->count) {
        rpc_loop_stop(rounds->loop);
    } else {
        begin(rounds);
    }
}

static const struct fleet_ops fleet_ops = {.welcomed = all_joined,
    .planned = begin,
    .acknowledged = one_acknowledged,
    .released = one_released};

static int compare(const void *left, const void *right)
{
    const uint64_t *a = left;
    const uint64_t *b = right;
    return (*a > *b) - (*a < *b);
}

static void print_median(const char *name, uint64_t *times_us, uint32_t count)
{
    qsort(times_us, count, sizeof *times_us, compare);
    printf("%s=%llu\n", name, (unsigned long long)times_us[count / 2]);
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: release_agents ADDRESS N ROUNDS\n");
        return 2;
    }
    struct rounds rounds = {.agents = (uint32_t)strtoul(argv[2], NULL, 10),
        .count = (uint32_t)strtoul(argv[3], NULL, 10)};
    struct cadre_error error;
    rounds.first_us = calloc(rounds.count, sizeof *rounds.first_us);
    rounds.last_us = calloc(rounds.count, sizeof *rounds.last_us);
    rpc_tune_malloc();
    if (rounds.first_us == NULL || rounds.last_us == NULL ||
        rpc_loop_open(&rounds.loop, &error) != CADRE_OK) {
        fprintf(stderr, "release_agents: cannot start\n");
        return 1;
    }
    rounds.fleet = fleet_open(rounds.loop, argv[1], rounds.agents, &fleet_ops, &rounds);
    rpc_loop_run(rounds.loop);
    print_median("first_us", rounds.first_us, rounds.count);
    print_median("last_us", rounds.last_us, rounds.count);
    fflush(stdout);
    _Exit(0); /* the streams are not worth an orderly end */
}
