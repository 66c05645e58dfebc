/* SPDX-License-Identifier: Apache-2.0
 * Loops over elements: pure, once for each instruction set (update_loops.h), chosen when the
 * program runs. The bits do not depend on the set, because no product and sum are fused. */
#ifndef CADRE_OPTIMIZER_ISA_H
#define CADRE_OPTIMIZER_ISA_H

#include <stddef.h>
#include <stdint.h>

#include "worker/library/optimizer/apply.h"
#include "worker/library/optimizer/terms.h"

/* Elements v with their slots a, b and c (those that the rule has) and gradients g. */
typedef void update_loop(const struct update_terms *terms, void *v, void *a, void *b, void *c,
    const void *g, size_t count);
typedef void norms_loop(const struct update_terms *terms, uint64_t first, const void *v,
    const void *a, const void *b, const void *g, size_t count, struct optimizer_norms *norms);

struct optimizer_isa {
    const char *name;
    update_loop *update[UPDATE_KINDS][2]; /* f32 and f64 */
    norms_loop *norms[2];
};

extern const struct optimizer_isa optimizer_isa_baseline;
#ifdef __x86_64__
extern const struct optimizer_isa optimizer_isa_avx2;
#endif

/* The best set that this processor has. */
const struct optimizer_isa *optimizer_isa(void);

#endif
