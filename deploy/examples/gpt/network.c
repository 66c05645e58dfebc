/* SPDX-License-Identifier: Apache-2.0 */
#include "network.h"

#include <math.h>

uint32_t shape_dims(const struct shape *shape, enum kind kind, int64_t ret_dims[3])
{
    const int64_t c = shape->channels;
    const int64_t l = shape->layers;
    const struct {
        uint32_t rank;
        int64_t dims[3];
    } table[KINDS] = {
        [EMBED] = {2, {VOCABULARY, c, 0}},
        [POSITIONS] = {2, {shape->length, c, 0}},
        [NORM1] = {3, {l, 2, c}},
        [QKV] = {3, {l, c, 3 * c}},
        [PROJECT] = {3, {l, c, c}},
        [NORM2] = {3, {l, 2, c}},
        [UP] = {3, {l, c, 4 * c}},
        [DOWN] = {3, {l, 4 * c, c}},
        [NORM] = {2, {2, c, 0}},
        [HEAD] = {2, {c, VOCABULARY, 0}},
    };
    for (int i = 0; i < 3; i++) {
        ret_dims[i] = table[kind].dims[i];
    }
    return table[kind].rank;
}

int64_t shape_count(const struct shape *shape, enum kind kind)
{
    int64_t dims[3];
    const uint32_t rank = shape_dims(shape, kind, dims);
    return dims[0] * dims[1] * (rank == 3 ? dims[2] : 1);
}

double shape_work(const struct shape *shape)
{
    const int64_t matrices = shape_count(shape, QKV) + shape_count(shape, PROJECT) +
                             shape_count(shape, UP) + shape_count(shape, DOWN) +
                             shape_count(shape, HEAD);
    const int64_t back = shape->layers * shape->channels * shape->length; /* half of it is seen */
    return 6.0 * (double)(matrices + back);
}

/* --- where everything lies --- */

/* Room that is dealt out; with `begin` NULL it is only counted. */
struct room {
    float *begin;
    int64_t used;
};

static float *take(struct room *room, int64_t count)
{
    float *taken = room->begin == NULL ? NULL : room->begin + room->used;
    room->used += (count + 63) / 64 * 64; /* 256 bytes: what vectors and GPUs like */
    return taken;
}

static void lay_out(const struct shape *shape, int64_t rows, struct room *room, struct pass *pass)
{
    const int64_t l = shape->layers;
    const int64_t n = rows * shape->length;
    const int64_t c = shape->channels;
    const int64_t square = shape->heads * shape->length * shape->length;
    pass->streams = take(room, (2 * l + 1) * n * c);
    pass->moments = take(room, (2 * l + 1) * n * 2);
    pass->normal1 = take(room, l * n * c);
    pass->qkv = take(room, l * n * 3 * c);
    pass->odds = take(room, l * rows * square);
    pass->mixed = take(room, l * n * c);
    pass->normal2 = take(room, l * n * c);
    pass->up = take(room, l * n * 4 * c);
    pass->bent = take(room, l * n * 4 * c);
    pass->normal = take(room, n * c);
    pass->scores = take(room, n * VOCABULARY);
    pass->losses = take(room, n);
    pass->errors = take(room, n * c);
    pass->wide_error = take(room, n * 4 * c);
    pass->thin_error = take(room, n * c);
    pass->odds_error = take(room, square);
}

int64_t pass_room(const struct shape *shape, int64_t rows)
{
    struct pass unused;
    struct room room = {NULL, 0};
    lay_out(shape, rows, &room, &unused);
    return room.used;
}

void pass_lay_out(struct pass *pass, float *floats)
{
    struct room room = {floats, 0};
    lay_out(pass->shape, pass->windows.rows, &room, pass);
}

/* --- forward --- */

static int64_t tokens_of(const struct pass *pass)
{
    return pass->windows.rows * pass->windows.length;
}

/* A layer's part of an array that all layers have. */
static float *of_layer(const struct pass *pass, float *all, int64_t layer, int64_t width)
{
    return all + layer * tokens_of(pass) * width;
}

static const float *weights_of(const struct pass *pass, enum kind kind, int64_t layer)
{
    return pass->weights[kind] + layer * shape_count(pass->shape, kind) / pass->shape->layers;
}

static float *slopes_of(const struct pass *pass, enum kind kind, int64_t layer)
{
    return pass->slopes[kind] + layer * shape_count(pass->shape, kind) / pass->shape->layers;
}

/* out [tokens, n] = in [tokens, k] x weights [k, n], or added to it. */
static void apply(const struct pass *pass, int64_t k, int64_t n, const float *in,
    const float *weights, bool add, float *out)
{
    const struct product product = {.m = tokens_of(pass),
        .n = n,
        .k = k,
        .a = {.data = in, .ld = k},
        .b = {.data = weights, .ld = n},
        .c = out,
        .ldc = n,
        .batch = 1,
        .add = add};
    pass->compute->does->product(pass->compute, &product);
}

/* The way back of it: slopes [k, n] = in^T x errors; in_errors [tokens, k] = errors x weights^T. */
static void apply_back(const struct pass *pass, int64_t k, int64_t n, const float *in,
    const float *weights, const float *errors, float *slopes, float *in_errors)
{
    const struct product by_weights = {.m = k,
        .n = n,
        .k = tokens_of(pass),
        .a = {.data = in, .ld = k, .transposed = true},
        .b = {.data = errors, .ld = n},
        .c = slopes,
        .ldc = n,
        .batch = 1};
    const struct product by_input = {.m = tokens_of(pass),
        .n = k,
        .k = n,
        .a = {.data = errors, .ld = n},
        .b = {.data = weights, .ld = n, .transposed = true},
        .c = in_errors,
        .ldc = k,
        .batch = 1};
    pass->compute->does->product(pass->compute, &by_weights);
    pass->compute->does->product(pass->compute, &by_input);
}

/* One part of the queries, keys and values of a window: [length, size] of each head. */
static struct matrix heads_of(
    const struct shape *shape, const float *data, int64_t width, bool transposed)
{
    return (struct matrix){.data = data,
        .ld = width * shape->channels,
        .transposed = transposed,
        .stride = shape->channels / shape->heads};
}

/* Scores or odds, or their errors, of a window: [length, length] of each head. */
static struct matrix squares_of(const struct shape *shape, const float *data, bool transposed)
{
    return (struct matrix){.data = data,
        .ld = shape->length,
        .transposed = transposed,
        .stride = shape->length * shape->length};
}

/* c [length, length] of each head = a x b^T, over the head's channels. */
static void compare(const struct pass *pass, struct matrix a, struct matrix b, float *c)
{
    const struct shape *shape = pass->shape;
    const struct product product = {.m = shape->length,
        .n = shape->length,
        .k = shape->channels / shape->heads,
        .a = a,
        .b = b,
        .c = c,
        .ldc = shape->length,
        .stride_c = shape->length * shape->length,
        .batch = shape->heads};
    pass->compute->does->product(pass->compute, &product);
}

/* c [length, size] of each head = squares x values; `width`: of c's rows, in channels. */
static void mix(
    const struct pass *pass, struct matrix squares, struct matrix values, float *c, int64_t width)
{
    const struct shape *shape = pass->shape;
    const struct product product = {.m = shape->length,
        .n = shape->channels / shape->heads,
        .k = shape->length,
        .a = squares,
        .b = values,
        .c = c,
        .ldc = width * shape->channels,
        .stride_c = shape->channels / shape->heads,
        .batch = shape->heads};
    pass->compute->does->product(pass->compute, &product);
}

static float attention_scale(const struct shape *shape)
{
    return 1 / sqrtf((float)(shape->channels / shape->heads));
}

/* Queries look for keys before them, and mix the values there. */
static void attend(const struct pass *pass, const float *qkv, float *odds, float *mixed)
{
    const struct shape *shape = pass->shape;
    const int64_t c = shape->channels;
    const int64_t square = shape->heads * shape->length * shape->length;
    for (int64_t row = 0; row < pass->windows.rows; row++) {
        const float *part = qkv + row * shape->length * 3 * c;
        compare(pass, heads_of(shape, part, 3, false), heads_of(shape, part + c, 3, true),
            odds + row * square);
    }
    pass->compute->does->softmax(pass->compute, pass->windows.rows * shape->heads, shape->length,
        attention_scale(shape), odds);
    for (int64_t row = 0; row < pass->windows.rows; row++) {
        const float *part = qkv + row * shape->length * 3 * c;
        mix(pass, squares_of(shape, odds + row * square, false),
            heads_of(shape, part + 2 * c, 3, false), mixed + row * shape->length * c, 1);
    }
}

static void attend_back(const struct pass *pass, const float *qkv, const float *odds,
    const float *mixed_error, float *qkv_error)
{
    const struct shape *shape = pass->shape;
    const int64_t c = shape->channels;
    const int64_t square = shape->heads * shape->length * shape->length;
    for (int64_t row = 0; row < pass->windows.rows; row++) {
        const float *part = qkv + row * shape->length * 3 * c;
        const float *chance = odds + row * square;
        const float *error = mixed_error + row * shape->length * c;
        float *part_error = qkv_error + row * shape->length * 3 * c;
        mix(pass, squares_of(shape, chance, true), heads_of(shape, error, 1, false),
            part_error + 2 * c, 3);
        compare(pass, heads_of(shape, error, 1, false), heads_of(shape, part + 2 * c, 3, true),
            pass->odds_error);
        pass->compute->does->softmax_back(pass->compute, shape->heads, shape->length,
            attention_scale(shape), chance, pass->odds_error);
        mix(pass, squares_of(shape, pass->odds_error, false), heads_of(shape, part + c, 3, false),
            part_error, 3);
        mix(pass, squares_of(shape, pass->odds_error, true), heads_of(shape, part, 3, false),
            part_error + c, 3);
    }
}

static void forward_layer(const struct pass *pass, int64_t layer)
{
    const struct operations *does = pass->compute->does;
    const int64_t n = tokens_of(pass);
    const int64_t c = pass->shape->channels;
    const int64_t square = pass->shape->heads * pass->shape->length; /* per token */
    const float *in = of_layer(pass, pass->streams, 2 * layer, c);
    float *middle = of_layer(pass, pass->streams, 2 * layer + 1, c);
    float *out = of_layer(pass, pass->streams, 2 * layer + 2, c);
    float *normal1 = of_layer(pass, pass->normal1, layer, c);
    float *normal2 = of_layer(pass, pass->normal2, layer, c);
    float *qkv = of_layer(pass, pass->qkv, layer, 3 * c);
    float *mixed = of_layer(pass, pass->mixed, layer, c);
    float *up = of_layer(pass, pass->up, layer, 4 * c);
    float *bent = of_layer(pass, pass->bent, layer, 4 * c);
    does->norm(pass->compute, n, c, in, weights_of(pass, NORM1, layer), normal1,
        of_layer(pass, pass->moments, 2 * layer, 2));
    apply(pass, c, 3 * c, normal1, weights_of(pass, QKV, layer), false, qkv);
    attend(pass, qkv, of_layer(pass, pass->odds, layer, square), mixed);
    does->copy(pass->compute, n * c, in, middle);
    apply(pass, c, c, mixed, weights_of(pass, PROJECT, layer), true, middle);
    does->norm(pass->compute, n, c, middle, weights_of(pass, NORM2, layer), normal2,
        of_layer(pass, pass->moments, 2 * layer + 1, 2));
    apply(pass, c, 4 * c, normal2, weights_of(pass, UP, layer), false, up);
    does->gelu(pass->compute, n * 4 * c, up, bent);
    does->copy(pass->compute, n * c, middle, out);
    apply(pass, 4 * c, c, bent, weights_of(pass, DOWN, layer), true, out);
}

void network_forward(const struct pass *pass)
{
    const struct operations *does = pass->compute->does;
    const int64_t l = pass->shape->layers;
    const int64_t c = pass->shape->channels;
    does->embed(pass->compute, &pass->windows, c, pass->weights[EMBED], pass->weights[POSITIONS],
        pass->streams);
    for (int64_t layer = 0; layer < l; layer++) {
        forward_layer(pass, layer);
    }
    does->norm(pass->compute, tokens_of(pass), c, of_layer(pass, pass->streams, 2 * l, c),
        pass->weights[NORM], pass->normal, of_layer(pass, pass->moments, 2 * l, 2));
    apply(pass, c, VOCABULARY, pass->normal, pass->weights[HEAD], false, pass->scores);
}

/* --- back --- */

void network_loss(const struct pass *pass, float scale, float *total)
{
    pass->compute->does->loss(
        pass->compute, &pass->windows, scale, pass->scores, pass->losses, total);
}

void network_back_head(const struct pass *pass)
{
    const int64_t l = pass->shape->layers;
    const int64_t c = pass->shape->channels;
    apply_back(pass, c, VOCABULARY, pass->normal, pass->weights[HEAD], pass->scores,
        pass->slopes[HEAD], pass->thin_error);
    pass->compute->does->zero(pass->compute, tokens_of(pass) * c, pass->errors);
    pass->compute->does->norm_back(pass->compute, tokens_of(pass), c,
        of_layer(pass, pass->streams, 2 * l, c), pass->weights[NORM],
        of_layer(pass, pass->moments, 2 * l, 2), pass->thin_error, pass->errors,
        pass->slopes[NORM]);
}

void network_back_layer(const struct pass *pass, int64_t layer)
{
    const struct operations *does = pass->compute->does;
    const int64_t n = tokens_of(pass);
    const int64_t c = pass->shape->channels;
    const int64_t square = pass->shape->heads * pass->shape->length;
    apply_back(pass, 4 * c, c, of_layer(pass, pass->bent, layer, 4 * c),
        weights_of(pass, DOWN, layer), pass->errors, slopes_of(pass, DOWN, layer),
        pass->wide_error);
    does->gelu_back(
        pass->compute, n * 4 * c, of_layer(pass, pass->up, layer, 4 * c), pass->wide_error);
    apply_back(pass, c, 4 * c, of_layer(pass, pass->normal2, layer, c), weights_of(pass, UP, layer),
        pass->wide_error, slopes_of(pass, UP, layer), pass->thin_error);
    does->norm_back(pass->compute, n, c, of_layer(pass, pass->streams, 2 * layer + 1, c),
        weights_of(pass, NORM2, layer), of_layer(pass, pass->moments, 2 * layer + 1, 2),
        pass->thin_error, pass->errors, slopes_of(pass, NORM2, layer));
    apply_back(pass, c, c, of_layer(pass, pass->mixed, layer, c), weights_of(pass, PROJECT, layer),
        pass->errors, slopes_of(pass, PROJECT, layer), pass->thin_error);
    attend_back(pass, of_layer(pass, pass->qkv, layer, 3 * c),
        of_layer(pass, pass->odds, layer, square), pass->thin_error, pass->wide_error);
    apply_back(pass, c, 3 * c, of_layer(pass, pass->normal1, layer, c),
        weights_of(pass, QKV, layer), pass->wide_error, slopes_of(pass, QKV, layer),
        pass->thin_error);
    does->norm_back(pass->compute, n, c, of_layer(pass, pass->streams, 2 * layer, c),
        weights_of(pass, NORM1, layer), of_layer(pass, pass->moments, 2 * layer, 2),
        pass->thin_error, pass->errors, slopes_of(pass, NORM1, layer));
}

void network_back_embedding(const struct pass *pass)
{
    pass->compute->does->embed_slopes(pass->compute, &pass->windows, pass->shape->channels,
        pass->errors, pass->slopes[EMBED], pass->slopes[POSITIONS]);
}
