/* SPDX-License-Identifier: Apache-2.0
 * The loops of reduce_kernels.h for one instruction set. reduce_loops.h has them as plain C, and
 * one file per set compiles that under its own options; reduce_kernels.c chooses. The bits do not
 * depend on the set: each element goes through the same operations, and none is fused. */
#ifndef CADRE_WORKER_MESH_REDUCE_REDUCE_ISA_H
#define CADRE_WORKER_MESH_REDUCE_REDUCE_ISA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "worker/library/mesh/names.h"

/* So many inputs one loop takes. */
#define REDUCE_INS_MAX 4

/* into[i] = the tree over ins[0][i], ins[1][i], ...; `into` may be one of them. */
typedef void reduce_loop(void *into, const void *const *ins, size_t count);

/* The same into as many outputs as there are inputs. */
typedef void reduce_all_loop(void *const *outs, const void *const *ins, size_t count);

/* For 2, 3 and 4 inputs. */
struct reduce_row {
    reduce_loop *of[REDUCE_INS_MAX - 1];
    reduce_all_loop *all[REDUCE_INS_MAX - 1]; /* NULL but for sums of floats, which gradients are */
};

enum { REDUCE_F16, REDUCE_BF16, REDUCE_HALVES };

struct reduce_isa {
    const char *name;
    struct reduce_row same[MESH_DTYPE_COUNT][MESH_OP_COUNT]; /* the result has the inputs' type */
    struct reduce_row wide[REDUCE_HALVES][MESH_OP_COUNT];    /* 16-bit inputs, float32 result */
    void (*widen[REDUCE_HALVES])(float *into, const void *from, size_t count);
    void (*narrow[REDUCE_HALVES])(void *into, const float *from, size_t count);
};

extern const struct reduce_isa reduce_isa_baseline; /* what the compiler assumes */
#ifdef __x86_64__
extern const struct reduce_isa reduce_isa_avx2; /* and F16C */
#endif

/* The sets that this processor has, best last; ret_isas[2]. */
size_t reduce_isas(const struct reduce_isa *ret_isas[2]);

/* For tests and benches: all reductions use this one from now on. */
void reduce_isa_use(const struct reduce_isa *isa);

#endif
