/* SPDX-License-Identifier: Apache-2.0
 * What is trained: the network's weights and the optimizer's two moments of each, as variables, so
 * that they are equal on all replicas, undone when a step fails, and in checkpoints. */
#ifndef GPT_MODEL_H
#define GPT_MODEL_H

#include <cadre/cadre.h>

#include "network.h"

struct model {
    struct shape shape;
    cadre_variable *weights[KINDS];
    cadre_variable *first[KINDS];  /* mean of the slopes */
    cadre_variable *second[KINDS]; /* mean of their squares */
    struct adamw step;             /* set by the program before each step */
};

/* Creates the variables, drawn from `seed`. */
cadre_status model_create(
    cadre_strategy *strategy, const struct shape *shape, uint64_t seed, struct model *ret_model);

int64_t model_weights(const struct shape *shape); /* how many numbers it learns */

/* One step of AdamW on the replica's variables. For cadre_on_apply: it writes in place. */
void model_update(const struct model *model, cadre_replica *replica, struct compute *compute,
    cadre_tensor *const slopes[KINDS]);

#endif
