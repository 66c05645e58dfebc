/* SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "board.h"
#include "values.h"

#define BATCH_S     0.02
#define TIMES_MAX   20000
#define BATCHES_MIN 3
#define BATCHES_MAX 101
#define HUGE_BYTES  ((size_t)2 << 20)
#define FRESH_BYTES ((size_t)64 << 10) /* under it fresh memory makes no difference */

struct seat {
    const struct bench_plan *plan;
    const struct bench_subject *subject;
    struct board *board;
    int rank;
    void *self;
    int next_root;
    bool done;
};

static float *get(const struct bench_subject *subject, size_t bytes)
{
    float *memory;
    if (subject->get != NULL) {
        memory = subject->get(bytes);
    } else {
        memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        memory = memory == MAP_FAILED ? NULL : memory;
        if (memory != NULL && bytes >= HUGE_BYTES) {
            madvise(memory, bytes, MADV_HUGEPAGE);
        }
    }
    if (memory != NULL) {
        memset(memory, 0, bytes);
    }
    return memory;
}

static void give(const struct bench_subject *subject, float *memory, size_t bytes)
{
    if (memory != NULL && subject->give != NULL) {
        subject->give(memory, bytes);
    } else if (memory != NULL) {
        munmap(memory, bytes);
    }
}

static bool meet(struct seat *seat)
{
    return board_barrier(seat->board, seat->plan->ranks);
}

static struct board_seat *own(struct seat *seat)
{
    return &seat->board->seats[seat->rank];
}

/* What rank 0 decides, all do. */
static bool agree(struct seat *seat, uint64_t *word)
{
    own(seat)->word = *word;
    bool met = meet(seat);
    *word = seat->board->seats[0].word;
    return meet(seat) && met;
}

static bool run_once(struct seat *seat, struct bench_call *call)
{
    if (call->operation == BENCH_BROADCAST) {
        call->root = seat->next_root;
        seat->next_root = (seat->next_root + 1) % seat->plan->ranks;
    }
    return seat->subject->run(seat->self, call);
}

/* All ranks' operations, timed as one. */
static bool run_batch(struct seat *seat, struct bench_call *call, uint64_t times, double *ret_s)
{
    bool done = true;
    if (call->operation == BENCH_FRESH) {
        for (size_t i = 0; i < call->count; i++) {
            call->in[i] = (float)(i & 7);
        }
    }
    if (!meet(seat)) {
        return false;
    }
    own(seat)->began_s = board_now_s();
    for (uint64_t i = 0; i < times && done; i++) {
        done = run_once(seat, call);
    }
    own(seat)->ended_s = board_now_s();
    if (!done || !meet(seat)) {
        return false;
    }
    *ret_s = board_took_s(seat->board, seat->plan->ranks);
    return meet(seat);
}

static bool check(struct seat *seat, struct bench_call *call, unsigned *ret_wrong)
{
    values_fill(call, seat->rank, seat->plan->ranks);
    if (!meet(seat) || !run_once(seat, call)) {
        return false;
    }
    own(seat)->word = values_right(call, seat->rank, seat->plan->ranks) ? 0 : 1;
    bool met = meet(seat);
    *ret_wrong = 0;
    for (int i = 0; i < seat->plan->ranks; i++) {
        *ret_wrong += (unsigned)seat->board->seats[i].word;
    }
    return meet(seat) && met;
}

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;
    return (a > b) - (a < b);
}

/* How many operations make a batch, and how many batches fit the budget. */
static bool choose(
    struct seat *seat, struct bench_call *call, uint64_t *ret_times, uint64_t *ret_batches)
{
    double took_s = 0;
    if (!run_batch(seat, call, 1, &took_s)) {
        return false;
    }
    uint64_t times = took_s < 1e-4 ? 200 : took_s < 1e-2 ? 5 : 1;
    if (!agree(seat, &times) || !run_batch(seat, call, times, &took_s)) {
        return false;
    }
    double each_s = took_s / (double)times;
    double batch_s = seat->plan->budget_s < BATCH_S ? seat->plan->budget_s : BATCH_S;
    double fit = batch_s / each_s;
    *ret_times = fit < 1 ? 1 : fit > TIMES_MAX ? TIMES_MAX : (uint64_t)fit;
    if (call->operation == BENCH_FRESH) {
        *ret_times = 1;
        each_s *= 3; /* writing it */
    }
    fit = seat->plan->budget_s / (each_s * (double)*ret_times);
    *ret_batches = fit < BATCHES_MIN   ? BATCHES_MIN
                   : fit > BATCHES_MAX ? BATCHES_MAX
                                       : (uint64_t)fit;
    return agree(seat, ret_times) && agree(seat, ret_batches);
}

static const char *name_of(char letter)
{
    static const struct {
        char letter;
        const char *name;
    } names[] = {{'r', "all_reduce"}, {'f', "fresh"}, {'s', "reduce_scatter"}, {'b', "broadcast"},
        {'g', "all_gather"}, {'x', "barrier"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (names[i].letter == letter) {
            return names[i].name;
        }
    }
    return NULL;
}

static bool measure(struct seat *seat, char letter, struct bench_call *call, size_t bytes)
{
    double took_s[BATCHES_MAX];
    uint64_t times = 0;
    uint64_t batches = 0;
    unsigned wrong = 0;
    if (!check(seat, call, &wrong)) {
        return false;
    }
    memset(call->in, 0, call->count * sizeof(float)); /* repeated sums stay finite */
    if (!choose(seat, call, &times, &batches)) {
        return false;
    }
    for (uint64_t i = 0; i < batches; i++) {
        if (!run_batch(seat, call, times, &took_s[i])) {
            return false;
        }
        took_s[i] /= (double)times;
    }
    if (seat->rank == 0) {
        qsort(took_s, batches, sizeof *took_s, compare);
        const char *name = name_of(letter);
        printf("%s.%zu.us=%.3f\n%s.%zu.best_us=%.3f\n%s.%zu.wrong=%u\n", name, bytes,
            took_s[batches / 2] * 1e6, name, bytes, took_s[0] * 1e6, name, bytes, wrong);
        fflush(stdout);
    }
    return true;
}

/* The bits of the sum of rough numbers: 32 of them are enough to tell one order from another. */
static bool measure_bits(struct seat *seat, struct bench_call *call, size_t bytes)
{
    values_fill_rough(call->in, call->count, seat->rank);
    if (!meet(seat) || !run_once(seat, call)) {
        return false;
    }
    own(seat)->word = values_hash(call->in, call->count);
    bool met = meet(seat);
    unsigned differ = 0;
    for (int i = 1; i < seat->plan->ranks; i++) {
        differ += seat->board->seats[i].word != seat->board->seats[0].word;
    }
    if (seat->rank == 0) {
        printf(
            "bits.%zu=%u\nbits_differ.%zu=%u\n", bytes, (unsigned)own(seat)->word, bytes, differ);
        fflush(stdout);
    }
    return meet(seat) && met;
}

static enum bench_operation operation_of(char letter)
{
    return letter == 'f'   ? BENCH_FRESH
           : letter == 's' ? BENCH_REDUCE_SCATTER
           : letter == 'b' ? BENCH_BROADCAST
           : letter == 'g' ? BENCH_ALL_GATHER
           : letter == 'x' ? BENCH_BARRIER
                           : BENCH_ALL_REDUCE;
}

static bool run_figure(struct seat *seat, char letter, size_t bytes)
{
    size_t ranks = (size_t)seat->plan->ranks;
    struct bench_call call = {.operation = operation_of(letter), .count = bytes / sizeof(float)};
    bool parts = call.operation == BENCH_REDUCE_SCATTER || call.operation == BENCH_ALL_GATHER;
    if (parts) {
        call.count = call.count < ranks ? ranks : call.count / ranks * ranks;
    }
    size_t whole = call.count * sizeof(float);
    call.in = get(seat->subject, whole);
    call.out = parts ? get(seat->subject, whole) : NULL;
    bool done =
        call.in != NULL && (!parts || call.out != NULL) &&
        (seat->subject->prepare == NULL || seat->subject->prepare(seat->self, &call)) &&
        (letter == 'h' ? measure_bits(seat, &call, bytes) : measure(seat, letter, &call, bytes));
    if (done) { /* after a failure a peer may still be at work there */
        give(seat->subject, call.in, whole);
        give(seat->subject, call.out, whole);
    }
    return done;
}

static bool run_plan(struct seat *seat)
{
    const struct bench_plan *plan = seat->plan;
    for (const char *letter = plan->operations; *letter != '\0'; letter++) {
        if (*letter == 'x' && !run_figure(seat, *letter, sizeof(float))) {
            return false;
        }
        for (int i = 0; i < plan->size_count && *letter != 'x'; i++) {
            bool skipped = *letter == 'f' && plan->sizes[i] < FRESH_BYTES;
            if (!skipped && !run_figure(seat, *letter, plan->sizes[i])) {
                return false;
            }
        }
    }
    return true;
}

static void *run_seat(void *argument)
{
    struct seat *seat = argument;
    seat->self = seat->subject->join(seat->rank, seat->plan->ranks);
    if (seat->self != NULL) {
        if (seat->plan->pinned) {
            board_pin(seat->rank);
        }
        seat->done = meet(seat) && run_plan(seat) && meet(seat);
    }
    if (!seat->done) {
        atomic_store(&seat->board->failed, true);
    } else {
        seat->subject->leave(seat->self);
    }
    return NULL;
}

static bool run_threads(struct seat *seats, int ranks)
{
    pthread_t threads[BOARD_RANKS_MAX];
    bool done = true;
    for (int i = 0; i < ranks; i++) {
        if (pthread_create(&threads[i], NULL, run_seat, &seats[i]) != 0) {
            return false;
        }
    }
    for (int i = 0; i < ranks; i++) {
        pthread_join(threads[i], NULL);
        done = done && seats[i].done;
    }
    return done;
}

static bool run_children(struct seat *seats, int ranks)
{
    bool done = true;
    pid_t parent = getpid();
    for (int i = 0; i < ranks; i++) {
        pid_t child = fork();
        if (child == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            alarm(BENCH_LIMIT_S);
            if (getppid() == parent) {
                run_seat(&seats[i]);
            }
            fflush(stdout);
            _exit(seats[i].done ? 0 : 1);
        }
        done = done && child > 0;
    }
    for (int i = 0; i < ranks; i++) {
        int status = 1;
        if (wait(&status) < 0 || status != 0) {
            done = false;
            atomic_store(&seats[0].board->failed, true);
        }
    }
    return done;
}

int bench_run(const struct bench_plan *plan, const struct bench_subject *subject)
{
    struct seat seats[BOARD_RANKS_MAX];
    struct board *board = board_open(NULL);
    alarm(BENCH_LIMIT_S);
    if (board == NULL || (subject->open != NULL && !subject->open(plan->ranks))) {
        return 1;
    }
    for (int i = 0; i < plan->ranks; i++) {
        seats[i] = (struct seat){.plan = plan, .subject = subject, .board = board, .rank = i};
    }
    bool done =
        subject->threads ? run_threads(seats, plan->ranks) : run_children(seats, plan->ranks);
    if (subject->close != NULL) {
        subject->close();
    }
    return done ? 0 : 1;
}

int bench_run_rank(const struct bench_plan *plan, const struct bench_subject *subject, int rank,
    const char *board_path)
{
    struct seat seat = {
        .plan = plan, .subject = subject, .board = board_open(board_path), .rank = rank};
    if (seat.board == NULL) {
        fprintf(stderr, "collectives: the board %s cannot be opened\n", board_path);
        return 1;
    }
    run_seat(&seat);
    return seat.done ? 0 : 1;
}

static bool parse_sizes(const char *text, struct bench_plan *plan)
{
    while (*text != '\0') {
        char *end;
        size_t bytes = strtoull(text, &end, 10);
        if (end == text || bytes < sizeof(float) || plan->size_count == 16) {
            return false;
        }
        plan->sizes[plan->size_count++] = bytes;
        text = *end == ',' ? end + 1 : end;
        if (*end != ',' && *end != '\0') {
            return false;
        }
    }
    return plan->size_count > 0;
}

bool bench_parse(char **arguments, struct bench_plan *ret_plan)
{
    *ret_plan = (struct bench_plan){.pinned = true};
    bool good = arguments[0] != NULL && arguments[1] != NULL && arguments[2] != NULL &&
                arguments[3] != NULL;
    if (good) {
        ret_plan->ranks = (int)strtol(arguments[0], NULL, 10);
        ret_plan->operations = arguments[1];
        ret_plan->budget_s = strtod(arguments[3], NULL) / 1000;
        good = ret_plan->ranks >= 2 && ret_plan->ranks <= BOARD_RANKS_MAX &&
               strspn(arguments[1], "rfsbgxh") == strlen(arguments[1]) &&
               parse_sizes(arguments[2], ret_plan) && ret_plan->budget_s > 0;
    }
    if (!good) {
        fprintf(stderr, "usage: RANKS OPERATIONS(rfsbgxh) BYTES,BYTES,... BUDGET_MS\n");
    }
    return good;
}
