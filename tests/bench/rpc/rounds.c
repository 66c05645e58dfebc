/* SPDX-License-Identifier: Apache-2.0 */
#include "rounds.h"

#include "common/base/clock.h"
#include "common/pure/assert.h"

#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

#define SAMPLES_MAX   2000000
#define OTHERS_MAX    0.2
#define WINDOW_MS     600
#define WINDOW_MS_MAX 60000

struct samples samples_open(void)
{
    struct samples samples = {
        .took_us = malloc(SAMPLES_MAX * sizeof(uint64_t)), .room = SAMPLES_MAX};
    CADRE_ASSERT(samples.took_us != NULL);
    return samples;
}

void samples_add(struct samples *samples, uint64_t took_us)
{
    CADRE_ASSERT(samples->count < samples->room);
    samples->took_us[samples->count++] = took_us;
}

/* ---- processes ---- */

struct server_process server_spawn(const char *program, const char *role, const char *folder)
{
    struct server_process server = {0};
    int ends[2];
    posix_spawn_file_actions_t actions;
    char *arguments[] = {
        (char *)(uintptr_t)program, (char *)(uintptr_t)role, (char *)(uintptr_t)folder, NULL};
    int failed = pipe(ends);
    CADRE_ASSERT(failed == 0);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    failed = posix_spawn(&server.pid, "/proc/self/exe", &actions, NULL, arguments, environ);
    CADRE_ASSERT(failed == 0);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    FILE *out = fdopen(ends[0], "r");
    char line[32] = "";
    char *read = fgets(line, sizeof line, out);
    CADRE_ASSERT(read != NULL);
    server.port = (int)strtol(line, NULL, 10);
    fclose(out);
    return server;
}

void server_kill(const struct server_process *server)
{
    kill(server->pid, SIGKILL);
    waitpid(server->pid, NULL, 0);
}

void server_tell_port(int port)
{
    printf("%d\n", port);
    fflush(stdout);
}

/* ---- windows ---- */

static uint64_t clock_us(clockid_t clock)
{
    struct timespec spent;
    clock_gettime(clock, &spent);
    return (uint64_t)spent.tv_sec * CADRE_US_PER_S + (uint64_t)spent.tv_nsec / 1000;
}

static uint64_t server_cpu_us(const struct server_process *server)
{
    clockid_t clock;
    int failed = clock_getcpuclockid(server->pid, &clock);
    CADRE_ASSERT(failed == 0);
    return clock_us(clock);
}

/* All CPUs together, since the machine started. */
static uint64_t machine_busy_us(void)
{
    unsigned long long user, nice, system, idle, iowait, irq, softirq, steal;
    FILE *file = fopen("/proc/stat", "r");
    CADRE_ASSERT(file != NULL);
    int read = fscanf(file, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &system,
        &idle, &iowait, &irq, &softirq, &steal);
    CADRE_ASSERT(read == 8);
    fclose(file);
    uint64_t ticks = user + nice + system + irq + softirq + steal;
    return ticks * CADRE_US_PER_S / (uint64_t)sysconf(_SC_CLK_TCK);
}

struct window window_begin(const struct server_process *server)
{
    return (struct window){
        .server = server,
        .start_us = clock_monotonic_us(),
        .server_us = server_cpu_us(server),
        .own_us = clock_us(CLOCK_PROCESS_CPUTIME_ID),
        .busy_us = machine_busy_us(),
    };
}

/* ---- rows ---- */

static int compare_u64(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

static int compare_double(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

bool row_add(struct row *row, int round, struct samples *samples, const struct window *window)
{
    struct window end = window_begin(window->server);
    uint32_t count = samples->count;
    CADRE_ASSERT(count > 0);
    double server_us = (double)(end.server_us - window->server_us);
    double ours_us = server_us + (double)(end.own_us - window->own_us);
    double others_us = (double)(end.busy_us - window->busy_us) - ours_us;
    double took_us = (double)(end.start_us - window->start_us);
    double others = others_us / took_us;
    samples->count = 0;
    if (row->taken[round] && others >= row->others[round]) {
        return others < OTHERS_MAX;
    }
    row->taken[round] = true;
    row->others[round] = others;
    qsort(samples->took_us, count, sizeof samples->took_us[0], compare_u64);
    row->per_s[round] = count / (took_us / CADRE_US_PER_S);
    row->p50_us[round] = (double)samples->took_us[count / 2];
    row->p99_us[round] = (double)samples->took_us[(uint64_t)count * 99 / 100];
    row->cpu_us[round] = server_us / count;
    return others < OTHERS_MAX;
}

struct spread {
    double least, median, most;
};

static struct spread spread_of(const double *values, int count)
{
    double sorted[ROUNDS_MAX];
    memcpy(sorted, values, (size_t)count * sizeof sorted[0]);
    qsort(sorted, (size_t)count, sizeof sorted[0], compare_double);
    return (struct spread){sorted[0], sorted[count / 2], sorted[count - 1]};
}

void row_print(const char *name, int concurrency, const struct row *row, int rounds,
    const char *base_name, const struct row *base)
{
    struct spread rate = spread_of(row->per_s, rounds);
    printf("%-20s %3d %7.0f/s [%6.0f-%6.0f]  p50 %4.0f us  p99 %5.0f us  server %5.1f us  %.2f of "
           "%s  others %.2f CPUs\n",
        name, concurrency, rate.median, rate.least, rate.most,
        spread_of(row->p50_us, rounds).median, spread_of(row->p99_us, rounds).median,
        spread_of(row->cpu_us, rounds).median, rate.median / spread_of(base->per_s, rounds).median,
        base_name, spread_of(row->others, rounds).median);
}

/* ---- arguments ---- */

static bool parse_number(const char *text, long max, long *ret_value)
{
    char *end;
    *ret_value = strtol(text, &end, 10);
    return end != text && *end == '\0' && *ret_value >= 1 && *ret_value <= max;
}

void rounds_arguments(
    int argc, char **argv, const char *program, int *ret_rounds, uint64_t *ret_window_us)
{
    long rounds = 3, window_ms = WINDOW_MS;
    if (argc > 3 || (argc > 1 && !parse_number(argv[1], ROUNDS_MAX, &rounds)) ||
        (argc > 2 && !parse_number(argv[2], WINDOW_MS_MAX, &window_ms))) {
        fprintf(stderr, "usage: %s [ROUNDS (1-%d) [WINDOW_MS (1-%d)]]\n", program, ROUNDS_MAX,
            WINDOW_MS_MAX);
        exit(1);
    }
    *ret_rounds = (int)rounds;
    *ret_window_us = (uint64_t)window_ms * CADRE_US_PER_MS;
}
