/* SPDX-License-Identifier: Apache-2.0
 * Three dense layers with rectifiers between them and softmax at the end, on OpenBLAS.
 *
 *     layer l: activations[l] [rows, in] ── x weights[l] [in, out] + biases[l] ──▶ activations[l+1]
 *     its gradients: slopes[l] = activations[l]^T x errors[l], of which errors[l] [rows, out] comes
 *     from behind
 *
 * Weights, biases and their momenta are variables; everything a replica computes with beside them
 * is its workspace. */
#ifndef MLP_NETWORK_H
#define MLP_NETWORK_H

#include <cadre/cadre.h>

#include "settings.h"

/* What a layer learns: its weights [in, out] and its biases [out]. */
enum { WEIGHTS, BIASES, PARAMETERS };

struct network {
    const struct preset *preset;
    cadre_variable *values[LAYERS][PARAMETERS];
    cadre_variable *momenta[LAYERS][PARAMETERS];
    float learning_rate;
    float momentum;
};

struct workspace {
    const float *activations[LAYERS + 1]; /* the first: the images themselves */
    float *outputs[LAYERS];               /* room for activations[1] and on */
    float *errors[LAYERS];
    cadre_tensor *slopes[LAYERS][PARAMETERS];
    cadre_tensor *loss; /* scalar: the mean over the global batch, of this replica's rows */
    int64_t rows;
};

/* Creates the variables, drawn from `seed`. */
cadre_status network_create(cadre_strategy *strategy, const struct preset *preset, uint64_t seed,
    struct network *ret_network);

/* Room for up to a whole global batch. Called in a replica function, so that the gradients lie
 * where other tasks of the host find them. Kept for all steps. */
cadre_status workspace_create(const struct network *network, struct workspace *ret_space);

/* Frees it; a zeroed one is allowed. */
void workspace_free(struct workspace *space);

/* From images [rows, pixels] to the scores of the classes, in outputs[LAYERS - 1]. */
void network_forward(const struct network *network, const cadre_replica *replica,
    const cadre_tensor *images, struct workspace *space);

/* From the scores to the errors of the last layer and the loss, both divided by the rows of the
 * global batch: sums over all replicas are the means. */
void network_loss(const struct network *network, const cadre_replica *replica,
    const cadre_tensor *labels, struct workspace *space);

/* How many rows have their label as the highest score. */
int64_t network_right(
    const struct network *network, const cadre_tensor *labels, const struct workspace *space);

/* The gradients of a layer, from its errors. */
void network_slopes(const struct network *network, int layer, struct workspace *space);

/* The errors of the layer before `layer` (which is not the first). */
void network_pass_back(const struct network *network, const cadre_replica *replica, int layer,
    struct workspace *space);

/* One step of gradient descent with momentum. Writes the variables in place, so it is for
 * cadre_on_apply. */
void network_update(struct network *network, cadre_replica *replica, const struct workspace *space);

#endif
