/* SPDX-License-Identifier: Apache-2.0
 * The reduction kernels alone, on one thread: the sum of 2 and of 4 vectors, written back to all of
 * them (what replicas in one address space do) and into one. Beside them what the memory allows:
 * memcpy, and a plain loop over float32 that the compiler made AVX2 of.
 *
 * A line per case: GB/s of what is read and written together, the best of some rounds.
 * reduce_kernels [ROUNDS] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "worker/library/mesh/reduce/reduce_isa.h"
#include "worker/library/mesh/reduce/reduce_kernels.h"

#define VECTORS     4
#define ROUNDS      60 /* where none are named */
#define ROUND_US    1500
#define BYTES_MOST  ((size_t)64 << 20)
#define EACH_VECTOR (BYTES_MOST + 4096 + 64) /* not all at the same offset in their pages */

static uint8_t *vectors[VECTORS];
static uint8_t *separate;
static long rounds;

struct task {
    void (*run)(const struct task *task);
    enum mesh_dtype dtype;
    size_t ins;
    size_t outs;
    uint8_t *into; /* where there is one output */
    size_t bytes;
};

static void run_copy(const struct task *task)
{
    memcpy(vectors[0], vectors[1], task->bytes);
}

#ifdef __x86_64__
#define PLAIN __attribute__((target("avx2")))
#else
#define PLAIN
#endif

PLAIN static void plain_2(float *restrict a, float *restrict b, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        float sum = a[i] + b[i];
        a[i] = sum;
        b[i] = sum;
    }
}

PLAIN static void plain_4(
    float *restrict a, float *restrict b, float *restrict c, float *restrict d, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        float sum = (a[i] + b[i]) + (c[i] + d[i]);
        a[i] = sum;
        b[i] = sum;
        c[i] = sum;
        d[i] = sum;
    }
}

static void run_plain(const struct task *task)
{
    float **v = (float **)(void *)vectors;
    if (task->ins == 2) {
        plain_2(v[0], v[1], task->bytes / sizeof(float));
    } else {
        plain_4(v[0], v[1], v[2], v[3], task->bytes / sizeof(float));
    }
}

static void run_kernel(const struct task *task)
{
    uint8_t *const one[] = {task->into};
    mesh_reduce_many(MESH_SUM, task->dtype, task->outs == 1 ? one : vectors, task->outs,
        (const uint8_t *const *)vectors, task->ins, 0, task->bytes, NULL);
}

static double best_gb(const struct task *task)
{
    double best = 0;
    for (long round = 0; round < rounds; round++) {
        uint64_t times = 0;
        uint64_t began_us = clock_monotonic_us();
        uint64_t took_us = 0;
        while (took_us < ROUND_US) {
            for (size_t moved = 0; moved < BYTES_MOST / 64; moved += task->bytes) {
                task->run(task);
                __asm__ volatile("" ::: "memory");
                times++;
            }
            took_us = clock_monotonic_us() - began_us;
        }
        double gb =
            (double)((task->ins + task->outs) * task->bytes * times) / 1e3 / (double)took_us;
        best = gb > best ? gb : best;
    }
    return best;
}

static void print_row(const char *name, struct task task)
{
    static const size_t sizes[] = {16 << 10, 256 << 10, 4 << 20, 64 << 20};
    printf("%-32s", name);
    for (size_t i = 0; i < CADRE_COUNT_OF(sizes); i++) {
        task.bytes = sizes[i];
        printf(" %9.1f", best_gb(&task));
        fflush(stdout);
    }
    printf("\n");
}

static void print_kernels(const struct reduce_isa *isa)
{
    static const enum mesh_dtype dtypes[] = {MESH_F32, MESH_BF16, MESH_F16};
    reduce_isa_use(isa);
    for (size_t i = 0; i < CADRE_COUNT_OF(dtypes); i++) {
        for (size_t ins = 2; ins <= VECTORS; ins += 2) {
            char name[64];
            struct task task = {.run = run_kernel, .dtype = dtypes[i], .ins = ins, .outs = ins};
            snprintf(
                name, sizeof name, "%s %s %zu to all", isa->name, mesh_dtype_name(dtypes[i]), ins);
            print_row(name, task);
            task.outs = 1;
            task.into = vectors[0];
            snprintf(name, sizeof name, "%s %s %zu in place", isa->name, mesh_dtype_name(dtypes[i]),
                ins);
            print_row(name, task);
            task.into = separate;
            snprintf(name, sizeof name, "%s %s %zu elsewhere", isa->name,
                mesh_dtype_name(dtypes[i]), ins);
            print_row(name, task);
        }
    }
}

/* Zeros stay finite however often they are summed; the time does not depend on the values. */
static uint8_t *new_vectors(void)
{
    uint8_t *memory = mmap(NULL, (VECTORS + 1) * EACH_VECTOR, PROT_READ | PROT_WRITE,
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED) {
        fprintf(stderr, "reduce_kernels: no memory\n");
        exit(1);
    }
    return memory;
}

int main(int argc, char **argv)
{
    rounds = argc > 1 ? strtol(argv[1], NULL, 10) : ROUNDS;
    if (rounds < 1) {
        fprintf(stderr, "usage: reduce_kernels [ROUNDS (1 or more)]\n");
        return 2;
    }
    const struct reduce_isa *isas[2];
    uint8_t *memory = new_vectors();
    for (size_t i = 0; i < VECTORS; i++) {
        vectors[i] = memory + i * EACH_VECTOR;
    }
    separate = memory + VECTORS * EACH_VECTOR;
    printf(
        "%-32s %9s %9s %9s %9s\n", "GB/s read and written", "16 KiB", "256 KiB", "4 MiB", "64 MiB");
    print_row("memcpy", (struct task){.run = run_copy, .ins = 1, .outs = 1});
    print_row("plain float32 2 to all", (struct task){.run = run_plain, .ins = 2, .outs = 2});
    print_row("plain float32 4 to all", (struct task){.run = run_plain, .ins = 4, .outs = 4});
    for (size_t i = reduce_isas(isas); i > 0; i--) {
        print_kernels(isas[i - 1]);
    }
    return 0;
}
