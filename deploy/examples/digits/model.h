/* SPDX-License-Identifier: Apache-2.0
 * A perceptron with one hidden layer, 64 pixels -> hidden -> 10 classes, in plain C loops. Its
 * weights and the optimizer's momentum are Cadre variables, so that they are equal on all replicas,
 * undone when a step fails, and saved at the end. */
#ifndef DIGITS_MODEL_H
#define DIGITS_MODEL_H

#include <cadre/cadre.h>

enum { PIXELS = 64, HIDDEN = 128, CLASSES = 10, PARAMETERS = 4 };

struct model {
    cadre_variable *weights[PARAMETERS];  /* w1 [PIXELS, HIDDEN], b1, w2 [HIDDEN, CLASSES], b2 */
    cadre_variable *momentum[PARAMETERS]; /* one per weight, of its shape */
    uint64_t epoch;                       /* set by the program at its start, like the rate */
    float learning_rate;
    float friction;
};

/* Creates the variables in the strategy's scope, the weights drawn from `seed`. */
cadre_status model_create(cadre_strategy *strategy, uint64_t seed, struct model *ret_model);

/* What one replica works on during a call: its gradients, as tensors that can be all-reduced. */
struct gradients {
    cadre_tensor *tensors[PARAMETERS];
};

cadre_status gradients_create(const struct model *model, struct gradients *ret_gradients);
void gradients_release(struct gradients *gradients);

struct score {
    float loss; /* summed over the rows, not averaged */
    int64_t right;
};

/* Runs `rows` images [rows, PIXELS] through the model and adds up loss and hits. With `gradients`,
 * also adds the gradient of the summed loss to them. */
struct score model_run(const struct model *model, const cadre_replica *replica, const float *images,
    const int32_t *labels, int64_t rows, struct gradients *gradients);

/* One step of gradient descent with momentum, with gradients summed over all replicas: `scale` is
 * one by the rows of the global batch. Writes the variables, so it comes after the last collective
 * of the step. */
cadre_status model_update(
    struct model *model, cadre_replica *replica, struct gradients *gradients, float scale);

#endif
