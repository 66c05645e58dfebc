/* SPDX-License-Identifier: Apache-2.0
 * See apply.h: what is computed once for a run, and which loop it is. */
#include "worker/library/optimizer/apply.h"

#include <math.h>

#include "common/pure/assert.h"
#include "worker/library/optimizer/isa.h"
#include "worker/library/optimizer/powers.h"

enum update_kind optimizer_update_kind(const struct optimizer_rule *rule)
{
    switch (rule->kind) {
    case OPTIMIZER_MOMENTUM:
        return rule->nesterov ? UPDATE_NESTEROV : UPDATE_MOMENTUM;
    case OPTIMIZER_ADAGRAD:
        return UPDATE_ADAGRAD;
    case OPTIMIZER_RMSPROP:
        return rule->momentum != 0
                   ? (rule->centered ? UPDATE_RMSPROP_CENTERED_MOMENTUM : UPDATE_RMSPROP_MOMENTUM)
                   : (rule->centered ? UPDATE_RMSPROP_CENTERED : UPDATE_RMSPROP);
    case OPTIMIZER_ADAM:
    case OPTIMIZER_ADAMW:
        return UPDATE_ADAM;
    case OPTIMIZER_LAMB:
        return UPDATE_LAMB;
    default:
        return UPDATE_SGD;
    }
}

struct update_terms optimizer_terms(
    const struct optimizer_rule *rule, double rate, uint64_t updates, double trust)
{
    struct update_terms terms = {.rate = rate,
        .decay = rule->weight_decay * rate,
        .momentum = rule->momentum,
        .rho = rule->rho,
        .rest_rho = 1 - rule->rho,
        .rest1 = 1 - rule->beta1,
        .rest2 = 1 - rule->beta2,
        .epsilon = rule->epsilon};
    if (rule->kind >= OPTIMIZER_ADAM) {
        double part1 = 1 - power_integer(rule->beta1, updates + 1);
        double part2 = 1 - power_integer(rule->beta2, updates + 1);
        if (rule->kind == OPTIMIZER_LAMB) {
            terms.rate *= trust;
            terms.correct1 = 1 / part1;
            terms.correct2 = 1 / part2;
            terms.decay = rule->weight_decay;
        } else {
            terms.rate *= sqrt(part2) / part1;
        }
    }
    return terms;
}

struct optimizer_update optimizer_update_of(
    const struct optimizer_rule *rule, double rate, uint64_t updates, double trust)
{
    CADRE_ASSERT(rule->kind != OPTIMIZER_NONE);
    return (struct optimizer_update){
        .kind = optimizer_update_kind(rule), .terms = optimizer_terms(rule, rate, updates, trust)};
}

void optimizer_run(const struct optimizer_update *update, cadre_dtype dtype, size_t count,
    void *values, const void *gradient, void *const slots[OPTIMIZER_SLOTS])
{
    CADRE_ASSERT(dtype == CADRE_F32 || dtype == CADRE_F64);
    optimizer_isa()->update[update->kind][dtype == CADRE_F64](
        &update->terms, values, slots[0], slots[1], slots[2], gradient, count);
}

void optimizer_apply(const struct optimizer_rule *rule, cadre_dtype dtype, double rate,
    uint64_t updates, size_t count, void *values, const void *gradient,
    void *const slots[OPTIMIZER_SLOTS], double trust)
{
    struct optimizer_update update = optimizer_update_of(rule, rate, updates, trust);
    optimizer_run(&update, dtype, count, values, gradient, slots);
}

/* ---- LAMB ---- */

void optimizer_norms_add(const struct optimizer_rule *rule, cadre_dtype dtype, uint64_t updates,
    uint64_t first, size_t count, const void *values, const void *gradient,
    void *const slots[OPTIMIZER_SLOTS], struct optimizer_norms *norms)
{
    CADRE_ASSERT(rule->kind == OPTIMIZER_LAMB);
    CADRE_ASSERT(dtype == CADRE_F32 || dtype == CADRE_F64);
    struct update_terms terms = optimizer_terms(rule, 0, updates, 1);
    optimizer_isa()->norms[dtype == CADRE_F64](
        &terms, first, values, slots[0], slots[1], gradient, count, norms);
}

void optimizer_norms_join(struct optimizer_norms *norms, const struct optimizer_norms *part)
{
    for (size_t i = 0; i < OPTIMIZER_LANES; i++) {
        norms->values[i] += part->values[i];
        norms->changes[i] += part->changes[i];
    }
}

static double optimizer_norm(const double sums[OPTIMIZER_LANES])
{
    double sum = 0;
    for (size_t i = 0; i < OPTIMIZER_LANES; i++) {
        sum += sums[i];
    }
    return sqrt(sum);
}

double optimizer_trust(const struct optimizer_norms *norms)
{
    double values = optimizer_norm(norms->values);
    double changes = optimizer_norm(norms->changes);
    return values > 0 && changes > 0 ? values / changes : 1;
}
