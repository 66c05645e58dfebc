/* SPDX-License-Identifier: Apache-2.0
 * The least that an all-reduce of vectors in one memory costs: as many threads as there are ranks,
 * or CPUs if those are fewer, each with a slice of all vectors: one pass that reads each and writes
 * the sum to each, without synchronization. And the cost of passing data from one thread to
 * another. `floor_fused RANKS BYTES,BYTES,... BUDGET_MS` prints the best batch of each size. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "board.h"
#include "harness.h"

#define RANKS_MAX   4
#define ALIGN       16 /* elements: slices begin at a cache line */
#define BATCH_BYTES ((size_t)64 << 20)
#define BATCHES_MIN 5
#define ROUND_TRIPS 20000

struct seat {
    struct board *board;
    int rank;
    int threads;
    int ranks;
    float *const *vectors;
    size_t count;
    bool fresh;
    double budget_s;
    double best_s;
};

static void sum_2(float *restrict a, float *restrict b, size_t low, size_t high)
{
    for (size_t i = low; i < high; i++) {
        float sum = a[i] + b[i];
        a[i] = sum;
        b[i] = sum;
    }
}

static void sum_4(float *restrict a, float *restrict b, float *restrict c, float *restrict d,
    size_t low, size_t high)
{
    for (size_t i = low; i < high; i++) {
        float sum = (a[i] + b[i]) + (c[i] + d[i]);
        a[i] = sum;
        b[i] = sum;
        c[i] = sum;
        d[i] = sum;
    }
}

static void pass(const struct seat *seat)
{
    float *const *v = seat->vectors;
    size_t lines = (seat->count + ALIGN - 1) / ALIGN;
    size_t low = lines * (size_t)seat->rank / (size_t)seat->threads * ALIGN;
    size_t high = lines * (size_t)(seat->rank + 1) / (size_t)seat->threads * ALIGN;
    high = high < seat->count ? high : seat->count;
    if (seat->ranks == 2) {
        sum_2(v[0], v[1], low, high);
    } else {
        sum_4(v[0], v[1], v[2], v[3], low, high);
    }
    __asm__ volatile("" ::: "memory"); /* a pass is not joined with the next one */
}

/* As the owner of every so manieth vector, which it has just computed. */
static void write_own(const struct seat *seat)
{
    for (int rank = seat->rank; rank < seat->ranks; rank += seat->threads) {
        for (size_t i = 0; i < seat->count; i++) {
            seat->vectors[rank][i] = (float)(i & 7);
        }
    }
}

static void *run_seat(void *argument)
{
    struct seat *seat = argument;
    struct board_seat *own = &seat->board->seats[seat->rank];
    size_t times = seat->fresh ? 1 : BATCH_BYTES / (seat->count * sizeof(float)) + 1;
    double spent_s = 0;
    times = times > 20000 ? 20000 : times;
    board_pin(seat->rank);
    for (int batch = 0; batch < BATCHES_MIN || spent_s < seat->budget_s; batch++) {
        if (seat->fresh) {
            write_own(seat);
        }
        board_barrier(seat->board, seat->threads);
        own->began_s = board_now_s();
        for (size_t i = 0; i < times; i++) {
            pass(seat);
        }
        own->ended_s = board_now_s();
        board_barrier(seat->board, seat->threads);
        double took_s = board_took_s(seat->board, seat->threads);
        spent_s += seat->fresh ? 3 * took_s : took_s; /* equal in all, so all end together */
        took_s /= (double)times;
        seat->best_s = seat->best_s == 0 || took_s < seat->best_s ? took_s : seat->best_s;
        board_barrier(seat->board, seat->threads);
    }
    return NULL;
}

static double measure(struct board *board, struct seat like, int threads)
{
    struct seat seats[RANKS_MAX];
    pthread_t ids[RANKS_MAX];
    for (int i = 0; i < threads; i++) {
        seats[i] = like;
        seats[i].board = board;
        seats[i].rank = i;
        seats[i].threads = threads;
        if (pthread_create(&ids[i], NULL, run_seat, &seats[i]) != 0) {
            perror("floor_fused");
            exit(1);
        }
    }
    for (int i = 0; i < threads; i++) {
        pthread_join(ids[i], NULL);
    }
    return seats[0].best_s;
}

/* One of two threads that pass a word to and fro; on CPUs of their own they spin, else they yield.
 */
static void *play(void *argument)
{
    struct seat *seat = argument;
    bool spins = seat->threads == 2;
    bool first = seat->rank == 0;
    _Atomic uint32_t *mine = first ? &seat->board->ping : &seat->board->pong;
    _Atomic uint32_t *other = first ? &seat->board->pong : &seat->board->ping;
    board_pin(spins ? seat->rank : 0);
    board_barrier(seat->board, 2);
    double began_s = board_now_s();
    for (uint32_t i = 1; i <= ROUND_TRIPS; i++) {
        if (first) {
            atomic_store(mine, i);
        }
        while (atomic_load(other) != i) {
            if (!spins) {
                sched_yield();
            }
        }
        if (!first) {
            atomic_store(mine, i);
        }
    }
    seat->best_s = (board_now_s() - began_s) / ROUND_TRIPS / 2;
    return NULL;
}

static double hand_over_s(struct board *board, bool spins)
{
    double best_s = 0;
    for (int i = 0; i < 7; i++) {
        struct seat seats[2] = {{.board = board, .threads = spins ? 2 : 1},
            {.board = board, .rank = 1, .threads = spins ? 2 : 1}};
        pthread_t other;
        atomic_store(&board->ping, 0);
        atomic_store(&board->pong, 0);
        if (pthread_create(&other, NULL, play, &seats[1]) != 0) {
            perror("floor_fused");
            exit(1);
        }
        pthread_t own;
        if (pthread_create(&own, NULL, play, &seats[0]) != 0) {
            perror("floor_fused");
            exit(1);
        }
        pthread_join(own, NULL);
        pthread_join(other, NULL);
        best_s = best_s == 0 || seats[0].best_s < best_s ? seats[0].best_s : best_s;
    }
    return best_s;
}

int main(int argc, char **argv)
{
    struct bench_plan plan;
    float *vectors[RANKS_MAX];
    int cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
    char *arguments[] = {
        argc > 1 ? argv[1] : NULL, "r", argc > 2 ? argv[2] : NULL, argc > 3 ? argv[3] : NULL, NULL};
    struct board *board = board_open(NULL);
    if (!bench_parse(arguments, &plan) || (plan.ranks != 2 && plan.ranks != 4) || board == NULL) {
        return 2;
    }
    int threads = plan.ranks < cpus ? plan.ranks : cpus;
    printf("hand_over_us=%.3f\n", hand_over_s(board, plan.ranks <= cpus) * 1e6);
    for (int i = 0; i < plan.size_count; i++) {
        size_t bytes = plan.sizes[i];
        for (int rank = 0; rank < plan.ranks; rank++) {
            void *memory =
                mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (memory == MAP_FAILED) {
                perror("floor_fused");
                return 1;
            }
            madvise(memory, bytes, MADV_HUGEPAGE);
            vectors[rank] = memset(memory, 0, bytes);
        }
        struct seat like = {.ranks = plan.ranks,
            .vectors = vectors,
            .count = bytes / sizeof(float),
            .budget_s = plan.budget_s};
        for (int fresh = 0; fresh < 2; fresh++) {
            like.fresh = fresh == 1;
            double alone_s = measure(board, like, 1);
            double together_s = measure(board, like, threads);
            printf("%s.%zu.us=%.3f\n", fresh ? "fresh" : "all_reduce", bytes,
                (alone_s < together_s ? alone_s : together_s) * 1e6);
        }
        for (int rank = 0; rank < plan.ranks; rank++) {
            munmap(vectors[rank], bytes);
        }
    }
    return 0;
}
