/* SPDX-License-Identifier: Apache-2.0
 * Loops over elements: pure, once for each instruction set (store_loops.h), chosen when the program
 * runs. The loops of optimizers are in worker/library/optimizer. The bits do not depend on the set,
 * because no product and sum are fused. */
#ifndef CADRE_PS_STORE_STORE_ISA_H
#define CADRE_PS_STORE_STORE_ISA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cadre/tensor.h"

#define STORE_DTYPES (CADRE_BOOL + 1)

/* into[i] = into[i] + from[i], and so on; of memory that does not overlap, of any alignment. */
typedef void element_loop(void *into, const void *from, size_t count);
typedef void mean_loop(void *into, const void *sums, double contributions, size_t count);
struct store_isa {
    const char *name;
    element_loop *add[STORE_DTYPES]; /* integers wrap */
    element_loop *sub[STORE_DTYPES];
    /* Sums over contributions: 16-bit floats are summed up in float32. */
    element_loop *sum[STORE_DTYPES];     /* sums += values */
    element_loop *add_sum[STORE_DTYPES]; /* values += sums */
    element_loop *sub_sum[STORE_DTYPES];
    mean_loop *mean[STORE_DTYPES]; /* f32 and f64 */
};

extern const struct store_isa store_isa_baseline;
#ifdef __x86_64__
extern const struct store_isa store_isa_avx2;
#endif

/* The best set that this processor has. */
const struct store_isa *store_isa(void);

#endif
