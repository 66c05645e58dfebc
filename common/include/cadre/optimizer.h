/* SPDX-License-Identifier: Apache-2.0
 * Optimizers: what a parameter server makes of a gradient (cadre/served.h). */
#ifndef CADRE_OPTIMIZER_H
#define CADRE_OPTIMIZER_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum cadre_optimizer_kind {
    CADRE_OPTIMIZER_NONE = 0,
    CADRE_OPTIMIZER_SGD,      /* v -= rate * g */
    CADRE_OPTIMIZER_MOMENTUM, /* tf.keras.optimizers.SGD(momentum, nesterov) */
    CADRE_OPTIMIZER_ADAGRAD,  /* tf.keras.optimizers.Adagrad */
    CADRE_OPTIMIZER_ADAM      /* tf.keras.optimizers.Adam */
} cadre_optimizer_kind;

/* Zeroed numbers mean Keras' defaults: momentum 0.9 (of MOMENTUM), initial_accumulator 0.1, beta1
 * 0.9, beta2 0.999, epsilon 1e-7; the rate has to be given. */
typedef struct cadre_optimizer {
    cadre_optimizer_kind kind;
    double rate;
    double momentum;
    bool nesterov;
    double initial_accumulator;
    double beta1;
    double beta2;
    double epsilon;
} cadre_optimizer;

#ifdef __cplusplus
}
#endif
#endif
