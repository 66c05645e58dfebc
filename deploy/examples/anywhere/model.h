/* SPDX-License-Identifier: Apache-2.0
 * A linear model and one step of its training. Nothing here says where the variables lie. */
#ifndef ANYWHERE_MODEL_H
#define ANYWHERE_MODEL_H

#include <cadre/cadre.h>

enum { FEATURES = 16, BATCH = 32, STEPS = 60, EPOCHS = 5, SAMPLES = BATCH * STEPS };

struct model {
    cadre_variable *weights; /* f32 [FEATURES] */
    cadre_variable *bias;    /* f32 [1] */
    cadre_optimizer *optimizer;
};

/* What the strategy decides is where its variables are. `strategy` NULL: the current one; in a
 * worker of parameter servers, which finds what the chief has made. */
cadre_status model_open(cadre_strategy *strategy, struct model *ret_model);
void model_close(struct model *model);

/* A replica function; `user` is the model. inputs: f32 [n, FEATURES], f32 [n]. */
cadre_status model_step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user);

/* The mean distance of the weights from the true ones. */
cadre_status model_distance(const struct model *model, double *ret_distance);

/* Samples of what is to be learned, in batches; endless ones for workers. */
cadre_dataset *model_data(bool endless);

#endif
