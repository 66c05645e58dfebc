/* SPDX-License-Identifier: Apache-2.0
 * cadre_run of a function that does nothing, by hand, on 1, 2 and 4 replicas; and the cost of
 * synchronizing alone: a thread that starts a round of N - 1 others and waits until all are
 * through, over futexes with all asleep in between, and by spinning where each has a CPU of its
 * own. Blocks of all of them take turns, so that a disturbance affects all; printed are medians.
 *
 *     bench_empty_run [BLOCKS], at most 11, which is also what it takes without */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "cadre/cadre.h"

#define BLOCKS_MAX 11
#define TIMES      100                /* between two readings of the clock */
#define WARM_NS    UINT64_C(50000000) /* meanwhile the scheduler spreads the threads */
#define BLOCK_NS   UINT64_C(50000000)
#define TEAM_MAX   4

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

/* us for one round, in a block of rounds. */
static double block_us(void (*round)(void *user), void *user)
{
    uint64_t took_ns = 0;
    uint64_t rounds = 0;
    uint64_t began_ns = now_ns();
    bool warm = false;
    while (!warm || took_ns < BLOCK_NS) {
        for (int i = 0; i < TIMES; i++) {
            round(user);
        }
        rounds += TIMES;
        took_ns = now_ns() - began_ns;
        if (!warm && took_ns >= WARM_NS) {
            warm = true;
            began_ns = now_ns();
            took_ns = 0;
            rounds = 0;
        }
    }
    return (double)took_ns / 1000 / (double)rounds;
}

/* --- the floors: a team of threads --- */

struct team {
    _Alignas(64) atomic_uint round;
    _Alignas(64) atomic_uint left; /* members that are not through with the round */
    uint32_t size;                 /* with the leader */
    bool spins;
    atomic_bool over;
    pthread_t threads[TEAM_MAX];
};

static void futex_wait(atomic_uint *word, uint32_t seen)
{
    if (syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0) != 0 && errno != EAGAIN &&
        errno != EINTR) {
        fprintf(stderr, "empty_run: no futex\n");
        exit(1);
    }
}

static void futex_wake(atomic_uint *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, TEAM_MAX, NULL, NULL, 0);
}

static void *member(void *user)
{
    struct team *team = user;
    for (uint32_t seen = 0;; seen++) {
        while (atomic_load_explicit(&team->round, memory_order_acquire) == seen) {
            if (!team->spins) {
                futex_wait(&team->round, seen);
            }
        }
        if (atomic_load(&team->over)) {
            return NULL;
        }
        if (atomic_fetch_sub(&team->left, 1) == 1 && !team->spins) {
            futex_wake(&team->left);
        }
    }
}

static void team_open(struct team *team, uint32_t size, bool spins)
{
    team->size = size;
    team->spins = spins;
    for (uint32_t i = 1; i < size; i++) {
        if (pthread_create(&team->threads[i], NULL, member, team) != 0) {
            fprintf(stderr, "empty_run: no thread\n");
            exit(1);
        }
    }
}

static void team_round(void *user)
{
    struct team *team = user;
    atomic_store_explicit(&team->left, team->size - 1, memory_order_relaxed);
    atomic_fetch_add(&team->round, 1);
    if (!team->spins) {
        futex_wake(&team->round);
    }
    uint32_t left;
    while ((left = atomic_load_explicit(&team->left, memory_order_acquire)) > 0) {
        if (!team->spins) {
            futex_wait(&team->left, left);
        }
    }
}

static void team_close(struct team *team)
{
    atomic_store(&team->over, true);
    atomic_fetch_add(&team->round, 1);
    futex_wake(&team->round);
    for (uint32_t i = 1; i < team->size; i++) {
        pthread_join(team->threads[i], NULL);
    }
}

/* A team exists for its block only: no thread spins while another one is measured. */
static double floor_us(uint32_t size, bool spins)
{
    struct team team = {.size = 0};
    team_open(&team, size, spins);
    double took_us = block_us(team_round, &team);
    team_close(&team);
    return took_us;
}

/* --- cadre --- */

static cadre_status nothing(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)replica;
    (void)inputs;
    (void)outputs;
    (void)user;
    return CADRE_OK;
}

static void run_once(void *strategy)
{
    CADRE_CHECK(cadre_run(strategy, nothing, NULL, NULL, 0, NULL));
}

/* --- rows --- */

struct row {
    const char *name;
    uint32_t size;
    enum { RUN, FUTEX, SPIN } kind;
    cadre_strategy *strategy;
    double took_us[BLOCKS_MAX];
};

static int by_size(const void *a, const void *b)
{
    double left = *(const double *)a;
    double right = *(const double *)b;
    return (left > right) - (left < right);
}

static double measure(const struct row *row)
{
    return row->kind == RUN ? block_us(run_once, row->strategy)
                            : floor_us(row->size, row->kind == SPIN);
}

int main(int argc, char **argv)
{
    struct row rows[] = {{.name = "run_1_us", .size = 1, .kind = RUN},
        {.name = "run_2_us", .size = 2, .kind = RUN}, {.name = "run_4_us", .size = 4, .kind = RUN},
        {.name = "futex_2_us", .size = 2, .kind = FUTEX},
        {.name = "futex_4_us", .size = 4, .kind = FUTEX},
        {.name = "spin_2_us", .size = 2, .kind = SPIN},
        {.name = "spin_4_us", .size = 4, .kind = SPIN}};
    const size_t count = sizeof rows / sizeof rows[0];
    cpu_set_t usable;
    CPU_ZERO(&usable);
    sched_getaffinity(0, sizeof usable, &usable);
    CADRE_CHECK(cadre_init(&argc, &argv));
    long asked = argc > 1 ? strtol(argv[1], NULL, 10) : BLOCKS_MAX;
    const int blocks = asked >= 1 && asked < BLOCKS_MAX ? (int)asked : BLOCKS_MAX;
    for (size_t i = 0; i < count; i++) {
        if (rows[i].kind == RUN) {
            CADRE_CHECK(cadre_strategy_mirrored(rows[i].size, &rows[i].strategy));
            cadre_show_progress(rows[i].strategy, false);
        }
    }
    for (int block = 0; block < blocks; block++) {
        for (size_t i = 0; i < count; i++) {
            bool fits = rows[i].kind != SPIN || (int)rows[i].size <= CPU_COUNT(&usable);
            rows[i].took_us[block] = fits ? measure(&rows[i]) : 0;
        }
    }
    for (size_t i = 0; i < count; i++) {
        qsort(rows[i].took_us, (size_t)blocks, sizeof rows[i].took_us[0], by_size);
        if (rows[i].took_us[blocks / 2] > 0) {
            printf("%s=%.3f\n", rows[i].name, rows[i].took_us[blocks / 2]);
        }
        cadre_strategy_release(rows[i].strategy);
    }
    return 0;
}
