/* SPDX-License-Identifier: Apache-2.0
 * A tiny GPT and one batch for it, on the host: what the tests of its gradients start from. */
#ifndef CADRE_TESTS_GPT_CASE_H
#define CADRE_TESTS_GPT_CASE_H

#include "deploy/examples/gpt/network.h"

#ifdef __cplusplus
extern "C" {
#endif

struct gpt_case {
    struct shape shape;
    int64_t rows;
    uint8_t *bytes; /* [rows, length + 1] */
    float *weights[KINDS];
    float *slopes[KINDS];
    float *room;
    float loss;
};

/* Bytes and weights are drawn; weights are large enough for all parts to matter. */
struct gpt_case *gpt_case_new(struct shape shape, int64_t rows);
void gpt_case_free(struct gpt_case *one);

/* Numbers from -1 to 1, the same in every run. */
float gpt_case_draw(uint64_t *state);

/* The loss of the batch, summed times `scale`; with `back` the slopes too. */
void gpt_case_run(struct gpt_case *one, struct compute *compute, float scale, bool back);

#ifdef __cplusplus
}
#endif
#endif
