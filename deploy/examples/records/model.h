/* SPDX-License-Identifier: Apache-2.0
 * The smallest network that reads digits: one layer, 64 pixels -> softmax over 10 classes. */
#ifndef RECORDS_MODEL_H
#define RECORDS_MODEL_H

#include <cadre/cadre.h>

enum { PIXELS = 64, CLASSES = 10, PARAMETERS = 2 };

struct model {
    cadre_variable *weights[PARAMETERS]; /* w [PIXELS, CLASSES], b [CLASSES] */
    float learning_rate;                 /* set by the program at the start of each epoch */
};

/* Creates the variables in the strategy's scope; they begin at zero. */
cadre_status model_create(cadre_strategy *strategy, struct model *ret_model);

/* The likeliest class of one image, and how likely each is. */
int64_t model_classify(const struct model *model, const cadre_replica *replica, const float *image,
    float ret_odds[CLASSES]);

/* The gradients of the loss summed over `images` [n, PIXELS] and `labels` [n], and that loss. n may
 * be 0. On success the caller releases the tensors, one per variable. */
cadre_status model_gradients(const struct model *model, const cadre_replica *replica,
    const cadre_tensor *images, const cadre_tensor *labels, cadre_tensor *ret_gradients[PARAMETERS],
    float *ret_loss);

/* A step of gradient descent, with gradients summed over all replicas: `scale` is one by the rows
 * of the global batch. It writes the variables, so it comes after the step's last collective. */
cadre_status model_update(const struct model *model, cadre_replica *replica,
    cadre_tensor *const gradients[PARAMETERS], float scale);

#endif
