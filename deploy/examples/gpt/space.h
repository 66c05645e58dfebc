/* SPDX-License-Identifier: Apache-2.0
 * What one replica computes with beside the variables: its operations, room for a pass, and its
 * gradients as tensors, in the order in which the way back makes them. Kept from step to step. */
#ifndef GPT_SPACE_H
#define GPT_SPACE_H

#include <cadre/cadre.h>

#include "model.h"

struct space {
    bool ready;
    struct compute *compute;
    cadre_tensor *loss; /* [1] */
    cadre_tensor *slopes[KINDS];
    /* The same for cadre_buckets_begin: the loss, HEAD and NORM, each layer's part of DOWN to NORM1
     * from the last layer on, EMBED and POSITIONS. */
    cadre_tensor **travelling;
    size_t travelling_count;
    cadre_tensor *room;
    int64_t room_rows;
    double ceiling; /* operations per second of a large matrix product; 0: not measured */
};

enum { LAYER_KINDS = DOWN - NORM1 + 1 };

/* Where in `travelling` they begin. */
static inline size_t travelling_layer(const struct shape *shape, int64_t layer)
{
    return 3 + (size_t)(shape->layers - 1 - layer) * LAYER_KINDS;
}
static inline size_t travelling_embedding(const struct shape *shape)
{
    return travelling_layer(shape, -1);
}

/* In a replica function: on its GPU, or the CPU. What was made before a failure stays, and is made
 * no second time. */
cadre_status space_create(cadre_replica *replica, const struct model *model,
    enum precision precision, struct space *space);
void space_free(struct space *space); /* a zeroed one is allowed */

/* A pass over windows u8 [rows, length + 1] in the replica's memory, with more room if it needs it.
 */
cadre_status space_pass(cadre_replica *replica, const struct model *model, struct space *space,
    const cadre_tensor *windows, struct pass *ret_pass);

/* Measures the ceiling: for a fifth of a second, products of large matrices. */
cadre_status space_measure(cadre_replica *replica, struct space *space);

/* Seconds, of the monotonic clock. */
double now_s(void);

#endif
