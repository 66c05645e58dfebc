/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/examples/gpt_case.h"

#include <stdlib.h>

#include "common/pure/assert.h"

static void *zeros(int64_t count, size_t bytes)
{
    void *memory = calloc((size_t)count, bytes);
    CADRE_ASSERT(memory != NULL);
    return memory;
}

float gpt_case_draw(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (float)(int32_t)(*state >> 32) / 2147483648.0f;
}

struct gpt_case *gpt_case_new(struct shape shape, int64_t rows)
{
    struct gpt_case *one = zeros(1, sizeof *one);
    uint64_t state = 7;
    one->shape = shape;
    one->rows = rows;
    one->bytes = zeros(rows * (shape.length + 1), 1);
    for (int64_t i = 0; i < rows * (shape.length + 1); i++) {
        one->bytes[i] = (uint8_t)(128 + 127 * gpt_case_draw(&state));
    }
    for (int kind = 0; kind < KINDS; kind++) {
        const int64_t count = shape_count(&shape, (enum kind)kind);
        one->weights[kind] = zeros(count, sizeof(float));
        one->slopes[kind] = zeros(count, sizeof(float));
        for (int64_t i = 0; i < count; i++) {
            one->weights[kind][i] = 0.5f * gpt_case_draw(&state);
        }
    }
    one->room = zeros(pass_room(&shape, rows), sizeof(float));
    return one;
}

void gpt_case_free(struct gpt_case *one)
{
    for (int kind = 0; kind < KINDS; kind++) {
        free(one->weights[kind]);
        free(one->slopes[kind]);
    }
    free(one->bytes);
    free(one->room);
    free(one);
}

void gpt_case_run(struct gpt_case *one, struct compute *compute, float scale, bool back)
{
    struct pass pass = {
        .shape = &one->shape,
        .compute = compute,
        .windows = {one->bytes, one->rows, one->shape.length},
    };
    for (int kind = 0; kind < KINDS; kind++) {
        pass.weights[kind] = one->weights[kind];
        pass.slopes[kind] = one->slopes[kind];
    }
    pass_lay_out(&pass, one->room);
    network_forward(&pass);
    network_loss(&pass, scale, &one->loss);
    if (back) {
        network_back_head(&pass);
        for (int64_t layer = one->shape.layers - 1; layer >= 0; layer--) {
            network_back_layer(&pass, layer);
        }
        network_back_embedding(&pass);
    }
}
