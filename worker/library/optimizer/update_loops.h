/* SPDX-License-Identifier: Apache-2.0
 * The loops of isa.h as plain C, and OPTIMIZER_LOOPS, their table. Each file of an instruction set
 * includes this once. */
#ifndef CADRE_OPTIMIZER_UPDATE_LOOPS_H
#define CADRE_OPTIMIZER_UPDATE_LOOPS_H

#include <math.h>
#include <stdbool.h>

#include "worker/library/optimizer/isa.h"

/* Values come from the network and have any alignment. */
#define UNALIGNED __attribute__((aligned(1), may_alias))
typedef double any_f64 UNALIGNED;
typedef float any_f32 UNALIGNED;

/* `BODY` for each i, with value[i] after its decay as `kept`; BODY writes the new value. */
#define UPDATE_LOOP(name, type, any, BEFORE, BODY)                                                 \
    static void name(const struct update_terms *terms, void *v, void *slot_a, void *slot_b,        \
        void *slot_c, const void *g, size_t count)                                                 \
    {                                                                                              \
        (void)slot_c;                                                                              \
        any *restrict value = v;                                                                   \
        any *restrict a = slot_a;                                                                  \
        any *restrict b = slot_b;                                                                  \
        const any *restrict gradient = g;                                                          \
        const type rate = (type)terms->rate;                                                       \
        const type decay = (type)terms->decay;                                                     \
        (void)a;                                                                                   \
        (void)b;                                                                                   \
        BEFORE for (size_t i = 0; i < count; i++)                                                  \
        {                                                                                          \
            const type by = gradient[i];                                                           \
            const type kept = value[i] - value[i] * decay;                                         \
            BODY                                                                                   \
        }                                                                                          \
    }

/* ---- RMSPROP: which slots there are is a constant when it is compiled ---- */

#define RMSPROP_LOOP(name, type, any, root, CENTERED, MOVES)                                       \
    static void name(const struct update_terms *terms, void *v, void *slot_a, void *slot_b,        \
        void *slot_c, const void *g, size_t count)                                                 \
    {                                                                                              \
        any *restrict value = v;                                                                   \
        any *restrict square = slot_a;                                                             \
        any *restrict velocity = slot_b;                                                           \
        any *restrict average = (MOVES) ? slot_c : slot_b;                                         \
        const any *restrict gradient = g;                                                          \
        const type rate = (type)terms->rate;                                                       \
        const type decay = (type)terms->decay;                                                     \
        const type rho = (type)terms->rho;                                                         \
        const type rest = (type)terms->rest_rho;                                                   \
        const type momentum = (type)terms->momentum;                                               \
        const type epsilon = (type)terms->epsilon;                                                 \
        for (size_t i = 0; i < count; i++) {                                                       \
            const type by = gradient[i];                                                           \
            const type kept = value[i] - value[i] * decay;                                         \
            const type mean = rho * square[i] + rest * (by * by);                                  \
            type spread = mean;                                                                    \
            square[i] = mean;                                                                      \
            if (CENTERED) {                                                                        \
                const type middle = rho * average[i] + rest * by;                                  \
                average[i] = middle;                                                               \
                spread = mean - middle * middle;                                                   \
                spread = spread < 0 ? 0 : spread; /* because of rounding */                        \
            }                                                                                      \
            type step = rate * by / root(spread + epsilon);                                        \
            if (MOVES) {                                                                           \
                step = momentum * velocity[i] + step;                                              \
                velocity[i] = step;                                                                \
            }                                                                                      \
            value[i] = kept - step;                                                                \
        }                                                                                          \
    }

/* ---- LAMB ---- */

/* The change of the value, without the rate and the trust ratio. */
#define LAMB_CHANGE(root, m, w, value)                                                             \
    ((m)*correct1 / (root((w)*correct2) + epsilon) + (value)*decay)
#define LAMB_TERMS(type)                                                                           \
    const type rest1 = (type)terms->rest1;                                                         \
    const type rest2 = (type)terms->rest2;                                                         \
    const type correct1 = (type)terms->correct1;                                                   \
    const type correct2 = (type)terms->correct2;                                                   \
    const type epsilon = (type)terms->epsilon;                                                     \
    const type decay = (type)terms->decay;

/* Memory that a loop only reads is prefetched this far ahead: with roots and divisions between them
 * the processor keeps too few reads in flight by itself. Behind the end nothing is read. */
#define AHEAD_BYTES 384
#define AHEAD(at)   __builtin_prefetch((const char *)(at) + AHEAD_BYTES)

/* Eight elements at a time, each in its lane; the rest one by one. */
#define NORMS_LOOP(name, type, any, root)                                                          \
    static void name(const struct update_terms *terms, uint64_t first, const void *v,              \
        const void *slot_a, const void *slot_b, const void *g, size_t count,                       \
        struct optimizer_norms *norms)                                                             \
    {                                                                                              \
        const any *value = v;                                                                      \
        const any *a = slot_a;                                                                     \
        const any *b = slot_b;                                                                     \
        const any *gradient = g;                                                                   \
        double values[OPTIMIZER_LANES];                                                            \
        double changes[OPTIMIZER_LANES];                                                           \
        LAMB_TERMS(type)                                                                           \
        for (size_t k = 0; k < OPTIMIZER_LANES; k++) { /* lane k is of element i + k */            \
            values[k] = norms->values[(first + k) % OPTIMIZER_LANES];                              \
            changes[k] = norms->changes[(first + k) % OPTIMIZER_LANES];                            \
        }                                                                                          \
        size_t whole = count - count % OPTIMIZER_LANES;                                            \
        for (size_t i = 0; i < whole; i += OPTIMIZER_LANES) {                                      \
            AHEAD(value + i);                                                                      \
            AHEAD(a + i);                                                                          \
            AHEAD(b + i);                                                                          \
            AHEAD(gradient + i);                                                                   \
            for (size_t k = 0; k < OPTIMIZER_LANES; k++) {                                         \
                const type m = a[i + k] + (gradient[i + k] - a[i + k]) * rest1;                    \
                const type w = b[i + k] + (gradient[i + k] * gradient[i + k] - b[i + k]) * rest2;  \
                const double change = (double)LAMB_CHANGE(root, m, w, value[i + k]);               \
                const double at = (double)value[i + k];                                            \
                values[k] += at * at;                                                              \
                changes[k] += change * change;                                                     \
            }                                                                                      \
        }                                                                                          \
        for (size_t k = 0; k < count - whole; k++) {                                               \
            const size_t i = whole + k;                                                            \
            const type m = a[i] + (gradient[i] - a[i]) * rest1;                                    \
            const type w = b[i] + (gradient[i] * gradient[i] - b[i]) * rest2;                      \
            const double change = (double)LAMB_CHANGE(root, m, w, value[i]);                       \
            const double at = (double)value[i];                                                    \
            values[k] += at * at;                                                                  \
            changes[k] += change * change;                                                         \
        }                                                                                          \
        for (size_t k = 0; k < OPTIMIZER_LANES; k++) {                                             \
            norms->values[(first + k) % OPTIMIZER_LANES] = values[k];                              \
            norms->changes[(first + k) % OPTIMIZER_LANES] = changes[k];                            \
        }                                                                                          \
    }

/* ---- all loops of a type ---- */

#define ALL_LOOPS(name, type, any, root)                                                           \
    UPDATE_LOOP(sgd_##name, type, any, , { value[i] = kept - rate * by; })                         \
    UPDATE_LOOP(momentum_##name, type, any, const type momentum = (type)terms->momentum;, {        \
        const type moved = momentum * a[i] - rate * by;                                            \
        a[i] = moved;                                                                              \
        value[i] = kept + moved;                                                                   \
    })                                                                                             \
    UPDATE_LOOP(nesterov_##name, type, any, const type momentum = (type)terms->momentum;, {        \
        const type step = rate * by;                                                               \
        const type moved = momentum * a[i] - step;                                                 \
        a[i] = moved;                                                                              \
        value[i] = kept + (momentum * moved - step);                                               \
    })                                                                                             \
    UPDATE_LOOP(adagrad_##name, type, any, const type epsilon = (type)terms->epsilon;, {           \
        const type sum = a[i] + by * by;                                                           \
        a[i] = sum;                                                                                \
        value[i] = kept - rate * by / root(sum + epsilon);                                         \
    })                                                                                             \
    RMSPROP_LOOP(rmsprop_##name, type, any, root, false, false)                                    \
    RMSPROP_LOOP(rmsprop_m_##name, type, any, root, false, true)                                   \
    RMSPROP_LOOP(rmsprop_c_##name, type, any, root, true, false)                                   \
    RMSPROP_LOOP(rmsprop_cm_##name, type, any, root, true, true)                                   \
    UPDATE_LOOP(adam_##name, type, any, const type rest1 = (type)terms->rest1;                     \
                const type rest2 = (type)terms->rest2; const type epsilon = (type)terms->epsilon;  \
                , {                                                                                \
                    const type m = a[i] + (by - a[i]) * rest1;                                     \
                    const type w = b[i] + (by * by - b[i]) * rest2;                                \
                    a[i] = m;                                                                      \
                    b[i] = w;                                                                      \
                    value[i] = kept - m * rate / (root(w) + epsilon);                              \
                })                                                                                 \
    static void lamb_##name(const struct update_terms *terms, void *v, void *slot_a, void *slot_b, \
        void *slot_c, const void *g, size_t count)                                                 \
    {                                                                                              \
        (void)slot_c;                                                                              \
        any *restrict value = v;                                                                   \
        any *restrict a = slot_a;                                                                  \
        any *restrict b = slot_b;                                                                  \
        const any *restrict gradient = g;                                                          \
        const type rate = (type)terms->rate;                                                       \
        LAMB_TERMS(type)                                                                           \
        for (size_t i = 0; i < count; i++) {                                                       \
            const type m = a[i] + (gradient[i] - a[i]) * rest1;                                    \
            const type w = b[i] + (gradient[i] * gradient[i] - b[i]) * rest2;                      \
            a[i] = m;                                                                              \
            b[i] = w;                                                                              \
            value[i] -= rate * LAMB_CHANGE(root, m, w, value[i]);                                  \
        }                                                                                          \
    }                                                                                              \
    NORMS_LOOP(norms_##name, type, any, root)
ALL_LOOPS(f32, float, any_f32, sqrtf)
ALL_LOOPS(f64, double, any_f64, sqrt)

#define LOOPS_OF(kind)                                                                             \
    {                                                                                              \
        kind##_f32, kind##_f64                                                                     \
    }
#define OPTIMIZER_LOOPS                                                                            \
    .update = {[UPDATE_SGD] = LOOPS_OF(sgd),                                                       \
        [UPDATE_MOMENTUM] = LOOPS_OF(momentum),                                                    \
        [UPDATE_NESTEROV] = LOOPS_OF(nesterov),                                                    \
        [UPDATE_ADAGRAD] = LOOPS_OF(adagrad),                                                      \
        [UPDATE_RMSPROP] = LOOPS_OF(rmsprop),                                                      \
        [UPDATE_RMSPROP_MOMENTUM] = LOOPS_OF(rmsprop_m),                                           \
        [UPDATE_RMSPROP_CENTERED] = LOOPS_OF(rmsprop_c),                                           \
        [UPDATE_RMSPROP_CENTERED_MOMENTUM] = LOOPS_OF(rmsprop_cm),                                 \
        [UPDATE_ADAM] = LOOPS_OF(adam),                                                            \
        [UPDATE_LAMB] = LOOPS_OF(lamb)},                                                           \
    .norms = LOOPS_OF(norms)

#endif
