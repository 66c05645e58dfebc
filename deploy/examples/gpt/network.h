/* SPDX-License-Identifier: Apache-2.0
 * A language model over bytes: what the next byte may be, from those before it.
 *
 *     bytes ─ EMBED + POSITIONS ─▶ stream ─┬──────────────── + ─┬──────────────── + ─▶ stream
 *                                          └ NORM1, QKV,        └ NORM2, UP,            (`layers`
 *                                            attention, PROJECT   GELU, DOWN             times)
 *     stream ─ NORM ─ HEAD ─▶ scores of the 256 bytes
 *
 * Matrices have no biases; layer norms have. One kind of weights of all layers is one array,
 * [layers, ...]. Written once for CPU and GPU: all numbers pass through the operations of a struct
 * compute. */
#ifndef GPT_NETWORK_H
#define GPT_NETWORK_H

#include "compute.h"

#ifdef __cplusplus
extern "C" {
#endif

enum kind { EMBED, POSITIONS, NORM1, QKV, PROJECT, NORM2, UP, DOWN, NORM, HEAD, KINDS };

struct shape {
    int64_t layers;
    int64_t heads; /* divides channels */
    int64_t channels;
    int64_t length; /* of a window */
};

/* Dimensions of a kind's array, rank 2 or 3; of a kind that each layer has the first is layers. */
uint32_t shape_dims(const struct shape *shape, enum kind kind, int64_t ret_dims[3]);
int64_t shape_count(const struct shape *shape, enum kind kind); /* elements */
static inline bool kind_of_layers(enum kind kind)
{
    return kind >= NORM1 && kind <= DOWN;
}

/* Operations on floats per byte that is learnt from, forward and back: two for each weight of a
 * matrix and each number that attention looks back at, and twice as much on the way back. */
double shape_work(const struct shape *shape);

/* One way forward and back of one replica. What each layer keeps for the way back comes first, then
 * what all of them share. */
struct pass {
    const struct shape *shape;
    struct compute *compute;
    struct windows windows;
    const float *weights[KINDS];
    float *slopes[KINDS]; /* NULL: forward only */

    float *streams;    /* [2 * layers + 1] of [rows * length, channels] */
    float *moments;    /* [2 * layers + 1] of [rows * length, 2] */
    float *normal1;    /* [layers, rows * length, channels] */
    float *qkv;        /* [layers, rows * length, 3 * channels] */
    float *odds;       /* [layers, rows, heads, length, length] */
    float *mixed;      /* [layers, rows * length, channels] */
    float *normal2;    /* [layers, rows * length, channels] */
    float *up;         /* [layers, rows * length, 4 * channels] */
    float *bent;       /* [layers, rows * length, 4 * channels]: GELU of it */
    float *normal;     /* [rows * length, channels] */
    float *scores;     /* [rows * length, VOCABULARY] */
    float *losses;     /* [rows * length] */
    float *errors;     /* of the stream */
    float *wide_error; /* [rows * length, 4 * channels] */
    float *thin_error; /* [rows * length, channels] */
    float *odds_error; /* [heads, length, length]: of one window at a time */
};

/* Floats of the arrays above for so many windows, and where each lies in such a room. */
int64_t pass_room(const struct shape *shape, int64_t rows);
void pass_lay_out(struct pass *pass, float *floats);

/* From the windows to the scores. */
void network_forward(const struct pass *pass);

/* *total = scale x the sum of losses; `scale` also stands before all gradients that follow. */
void network_loss(const struct pass *pass, float scale, float *total);

/* The backward pass, in this order: the gradients of HEAD and NORM, of one layer after the other
 * from the last, of EMBED and POSITIONS. */
void network_back_head(const struct pass *pass);
void network_back_layer(const struct pass *pass, int64_t layer);
void network_back_embedding(const struct pass *pass);

#ifdef __cplusplus
}
#endif
#endif
