/* SPDX-License-Identifier: Apache-2.0
 * Times collectives of one subject (the mesh, an MPI, Gloo), the same way for each. A subject is a
 * struct of functions; its ranks are threads, children of this process, or processes that a
 * launcher of its own started.
 *
 * A figure: the ranks synchronize, and each does `times` operations back to back; the time from the
 * first one's beginning to the last one's end, by `times`. Of several such batches the median and
 * the best are printed, as NAME.BYTES.us and NAME.BYTES.best_us. Every operation is first checked
 * against its expected result; NAME.BYTES.wrong is how many ranks found another one. */
#ifndef BENCH_COLLECTIVES_HARNESS_H
#define BENCH_COLLECTIVES_HARNESS_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of a whole run: what hangs ends by SIGALRM. A launcher's processes arm it first of all. */
#define BENCH_LIMIT_S 100

enum bench_operation {
    BENCH_ALL_REDUCE,     /* in place, the same memory again and again */
    BENCH_FRESH,          /* the same, one at a time, on memory that its rank has just written */
    BENCH_REDUCE_SCATTER, /* `count` elements in, the rank's part out */
    BENCH_BROADCAST,      /* in place, from one root after the other */
    BENCH_ALL_GATHER,     /* a part in, `count` elements out */
    BENCH_BARRIER
};

/* One operation of float32, sums where there are any. `count` is of the whole vector, of which a
 * part is count / ranks. */
struct bench_call {
    enum bench_operation operation;
    float *in;
    float *out;
    size_t count;
    int root;
};

struct bench_subject {
    bool threads; /* the ranks are threads of one process */
    /* Once, before there are ranks; NULL: nothing to do. */
    bool (*open)(int ranks);
    /* By each rank, on its thread; what it returns is passed to the others. NULL: no. */
    void *(*join)(int rank, int ranks);
    /* Memory as a program with this subject would take it; NULL: private pages. */
    float *(*get)(size_t bytes);
    void (*give)(float *memory, size_t bytes);
    /* Before a series of calls with the same memory; NULL: nothing to do. */
    bool (*prepare)(void *self, const struct bench_call *call);
    bool (*run)(void *self, const struct bench_call *call);
    void (*leave)(void *self);
    void (*close)(void); /* once, after there were ranks; NULL: nothing to do */
};

/* The plan of the measurement: RANKS OPERATIONS SIZES BUDGET_MS, for example `4 rfsbgx 4,65536
 * 150`: all-reduce, on fresh memory, reduce-scatter, broadcast, all-gather, barrier; h: the bits of
 * a sum. Sizes are bytes of the whole vector. */
struct bench_plan {
    int ranks;
    const char *operations;
    size_t sizes[16];
    int size_count;
    double budget_s; /* for the batches of one figure, about */
    bool pinned;     /* each rank's thread to a CPU, once it has joined */
};

/* From arguments; false after it has printed what is wrong. */
bool bench_parse(char **arguments, struct bench_plan *ret_plan);

/* Starts all ranks and waits for them. Returns the exit status. */
int bench_run(const struct bench_plan *plan, const struct bench_subject *subject);

/* As one rank, started by another program; all of them give the same board file. */
int bench_run_rank(const struct bench_plan *plan, const struct bench_subject *subject, int rank,
    const char *board_path);

#ifdef __cplusplus
}
#endif

#endif
