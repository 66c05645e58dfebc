/* SPDX-License-Identifier: Apache-2.0
 * An update of elements by a rule. The bits depend on the numbers only: neither on the instruction
 * set, nor on the runs in which a variable is updated. Allocates nothing.
 *
 *     LAMB    norms of all its runs ──▶ optimizer_trust ──▶ optimizer_apply of all its runs */
#ifndef CADRE_OPTIMIZER_APPLY_H
#define CADRE_OPTIMIZER_APPLY_H

#include <stddef.h>

#include "worker/library/optimizer/rule.h"
#include "worker/library/optimizer/terms.h"

/* What is the same for all elements of an update. */
struct optimizer_update {
    enum update_kind kind;
    struct update_terms terms;
};

/* The update after the first `updates` ones. `rate` is schedule_rate's of them, or another.
 * `trust`: of LAMB, optimizer_trust; other kinds ignore it. */
struct optimizer_update optimizer_update_of(
    const struct optimizer_rule *rule, double rate, uint64_t updates, double trust);
/* f32 or f64; gradient and slots have the type of the values and any alignment; none of them
 * overlap. */
void optimizer_run(const struct optimizer_update *update, cadre_dtype dtype, size_t count,
    void *values, const void *gradient, void *const slots[OPTIMIZER_SLOTS]);
/* optimizer_update_of and optimizer_run in one. */
void optimizer_apply(const struct optimizer_rule *rule, cadre_dtype dtype, double rate,
    uint64_t updates, size_t count, void *values, const void *gradient,
    void *const slots[OPTIMIZER_SLOTS], double trust);

/* Sums of squares, in float64: element i of the variable is added in lane i % OPTIMIZER_LANES. */
#define OPTIMIZER_LANES 8
struct optimizer_norms {
    double values[OPTIMIZER_LANES];
    double changes[OPTIMIZER_LANES];
};

/* Adds what LAMB sums up over `count` elements, the first of which is element `first` of the
 * variable; in ascending order the bits do not depend on the runs. Only *norms changes, which
 * begins zeroed. */
void optimizer_norms_add(const struct optimizer_rule *rule, cadre_dtype dtype, uint64_t updates,
    uint64_t first, size_t count, const void *values, const void *gradient,
    void *const slots[OPTIMIZER_SLOTS], struct optimizer_norms *norms);
/* Adds the sums of another range of the variable: ranges in order, each zeroed at its beginning. */
void optimizer_norms_join(struct optimizer_norms *norms, const struct optimizer_norms *part);
/* |values| / |changes|, or 1 where one of them is 0. */
double optimizer_trust(const struct optimizer_norms *norms);

#endif
