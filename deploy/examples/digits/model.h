/* SPDX-License-Identifier: Apache-2.0
 * A perceptron with one hidden layer, 64 pixels -> hidden -> 10 classes, in plain C loops. Its
 * weights, and what the optimizer remembers, are Cadre variables, so that they are equal on all
 * replicas, as they were when a step fails, and saved at the end. */
#ifndef DIGITS_MODEL_H
#define DIGITS_MODEL_H

#include <cadre/cadre.h>

enum { PIXELS = 64, HIDDEN = 128, CLASSES = 10, PARAMETERS = 4 };

struct model {
    cadre_variable *weights[PARAMETERS]; /* w1 [PIXELS, HIDDEN], b1, w2 [HIDDEN, CLASSES], b2 */
    cadre_optimizer *optimizer;          /* descent with momentum */
    uint64_t epoch;                      /* set by the program at its start */
};

/* Creates the variables in the strategy's scope, the weights drawn from `seed`, and the optimizer:
 * its rate falls to 0 in so many steps. */
cadre_status model_create(cadre_strategy *strategy, uint64_t seed, double learning_rate,
    uint64_t steps, struct model *ret_model);

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
 * also adds the gradient of the summed loss to them, times `scale`: one by the rows of the global
 * batch. */
struct score model_run(const struct model *model, const cadre_replica *replica, const float *images,
    const int32_t *labels, int64_t rows, float scale, struct gradients *gradients);

#endif
