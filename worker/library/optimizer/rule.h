/* SPDX-License-Identifier: Apache-2.0
 * Optimizers as numbers: how a gradient changes the values, and which slots are kept beside them.
 * As tf.keras.optimizers has them, LAMB as its paper (arXiv:1904.00962). g is the
 * gradient, t the number of the update, from 1; with weight_decay first v -= v * weight_decay *
 * rate (decoupled, as Keras does for all kinds), but for LAMB.
 *
 *     SGD        v -= rate * g
 *     MOMENTUM   a = momentum * a - rate * g;   v += a, or by Nesterov v += momentum * a - rate * g
 *     ADAGRAD    a += g^2;                      v -= rate * g / sqrt(a + epsilon)
 *     RMSPROP    a = rho * a + (1 - rho) * g^2; d = a, or centered: c = rho * c + (1 - rho) * g,
 *                d = a - c^2; p = rate * g / sqrt(d + epsilon); v -= p, or with momentum
 *                b = momentum * b + p, v -= b
 *     ADAM(W)    m += (g - m)(1 - beta1); w += (g^2 - w)(1 - beta2)
 *                v -= rate * sqrt(1 - beta2^t) / (1 - beta1^t) * m / (sqrt(w) + epsilon)
 *     LAMB       m, w as ADAM; u = m / (1 - beta1^t) / (sqrt(w / (1 - beta2^t)) + epsilon)
 *                + weight_decay * v;            v -= rate * |v| / |u| * u   (a norm of 0: without)
 */
#ifndef CADRE_OPTIMIZER_RULE_H
#define CADRE_OPTIMIZER_RULE_H

#include <stdbool.h>
#include <stdint.h>

#include "cadre/tensor.h"
#include "common/base/error.h"
#include "worker/library/optimizer/schedule.h"

#define OPTIMIZER_SLOTS 3

enum optimizer_kind {
    OPTIMIZER_NONE = 0,
    OPTIMIZER_SGD,
    OPTIMIZER_MOMENTUM,
    OPTIMIZER_ADAGRAD,
    OPTIMIZER_RMSPROP,
    OPTIMIZER_ADAM,
    OPTIMIZER_ADAMW,
    OPTIMIZER_LAMB
};
#define OPTIMIZER_KINDS (OPTIMIZER_LAMB + 1)

struct optimizer_rule {
    enum optimizer_kind kind;
    bool nesterov; /* MOMENTUM */
    bool centered; /* RMSPROP */
    double rate;
    double momentum;            /* MOMENTUM, RMSPROP (0: none) */
    double rho;                 /* RMSPROP */
    double initial_accumulator; /* ADAGRAD */
    double beta1;               /* ADAM, ADAMW, LAMB */
    double beta2;
    double epsilon;
    double weight_decay; /* 0: none */
    struct schedule schedule;
};

/* How many slots, tensors of the variable's shape and type, the rule has. */
uint32_t optimizer_slots(const struct optimizer_rule *rule);
/* Their names as in Keras: "momentum", "accumulator", "velocity", "average_gradient", or "m" and
 * "v". */
const char *optimizer_slot_name(const struct optimizer_rule *rule, uint32_t slot);
/* The initial value of each of its elements. */
double optimizer_slot_initial(const struct optimizer_rule *rule, uint32_t slot);
/* Whether an update depends on the number of updates before it: they are counted then. */
bool optimizer_counts(const struct optimizer_rule *rule);

/* INVALID_ARGUMENT names the field, the value and its range. */
cadre_status optimizer_check(const struct optimizer_rule *rule, struct cadre_error *error);

#endif
