/* SPDX-License-Identifier: Apache-2.0
 * A factorization machine: each id has a weight and a vector; what a sample comes to is the sum of
 * its weights and of the products of its vectors, pair by pair. (S. Rendle, Factorization Machines,
 * ICDM 2010.) Of the table of all ids a batch needs the rows of its own. */
#ifndef RECSYS_MACHINE_H
#define RECSYS_MACHINE_H

#include "clicks.h"
#include "ids.h"

enum { WIDTH = 16 }; /* of a row: the weight, then the vector */

/* The rows of one batch, its gradients, and what came of it. */
struct machine {
    cadre_variable *table; /* f32 [rows, WIDTH] */
    cadre_variable *bias;  /* f32 [1] */
    struct ids ids;
    float *rows;   /* [ids.count, WIDTH] */
    float *slopes; /* likewise */
    float *logits; /* [batch] */
    int64_t batch; /* at most */
};

/* Finds the variables by name. */
cadre_status machine_create(struct machine *machine, int64_t batch);
void machine_free(struct machine *machine);

/* Pulls the rows of a batch and computes; *ret_loss: the sum over the batch. */
cadre_status machine_forward(struct machine *machine, const cadre_tensor *ids,
    const cadre_tensor *clicked, double *ret_loss);

/* Behind it: pushes the gradients of the mean. */
cadre_status machine_backward(struct machine *machine, const cadre_tensor *clicked);

#endif
