/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench/gpu/rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static struct {
    const char *name;
    bench_block block;
    void *user;
    double figures[BENCH_BLOCKS];
} rows[BENCH_ROWS_MAX];
static size_t row_count;

void bench_add(const char *name, bench_block block, void *user)
{
    if (row_count == BENCH_ROWS_MAX) {
        fprintf(stderr, "bench_gpu: more than %d rows\n", BENCH_ROWS_MAX);
        exit(1);
    }
    rows[row_count].name = name;
    rows[row_count].block = block;
    rows[row_count].user = user;
    row_count++;
}

static int by_size(const void *a, const void *b)
{
    double left = *(const double *)a;
    double right = *(const double *)b;
    return (left > right) - (left < right);
}

void bench_measure(void)
{
    for (size_t i = 0; i < row_count; i++) {
        (void)rows[i].block(rows[i].user); /* clocks, caches, pools */
    }
    for (int block = 0; block < BENCH_BLOCKS; block++) {
        for (size_t i = 0; i < row_count; i++) {
            rows[i].figures[block] = rows[i].block(rows[i].user);
        }
    }
    for (size_t i = 0; i < row_count; i++) {
        qsort(rows[i].figures, BENCH_BLOCKS, sizeof rows[i].figures[0], by_size);
        printf("%s=%.4f\n", rows[i].name, rows[i].figures[BENCH_BLOCKS / 2]);
    }
}

void bench_cuda(cudaError_t result, const char *what)
{
    if (result != cudaSuccess) {
        fprintf(stderr, "bench_gpu: %s: %s\n", what, cudaGetErrorString(result));
        exit(1);
    }
}

double bench_now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}
