/* SPDX-License-Identifier: Apache-2.0
 * The training of the example mlp with nothing around it: the same layers, batches and update on
 * OpenBLAS with one thread, all parameters in one vector, images in memory, shuffled in each
 * epoch; with two processes each computes half of every batch and they sum gradients: over one TCP
 * connection, or linked with plain_peer.c by Cadre.
 *
 *     bench_train_floor digits|big PROCESSES EPOCHS DIGITS-TRAIN.BIN
 *     cadre run -n 2 bench_train_plain -- digits|big 2 EPOCHS DIGITS-TRAIN.BIN own|arena */
#include <cblas.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "floor_peer.h"

enum { LAYERS = 3, RECORD_BYTES = 65 };

static const float rate = 0.1f;
static const float momentum = 0.9f;

struct run {
    int widths[LAYERS + 1];
    int batch;
    int images;
    float *pixels;
    int *labels;
    int *order;
    size_t weights_at[LAYERS]; /* in the vectors */
    size_t biases_at[LAYERS];
    size_t count;
    float *values, *slopes, *momenta;
    float *activations[LAYERS + 1];
    float *errors[LAYERS];
    struct peer *peer; /* NULL: alone */
};

static uint64_t drawn = 42;

static uint32_t draw(void)
{
    drawn ^= drawn << 13;
    drawn ^= drawn >> 7;
    drawn ^= drawn << 17;
    return (uint32_t)(drawn >> 32);
}

static float draw_unit(void)
{
    return (float)(draw() >> 8) * 0x1p-24f;
}

static void *zeros(size_t count, size_t bytes)
{
    const size_t size = (count * bytes + 63) / 64 * 64;
    void *memory = aligned_alloc(64, size);
    if (memory == NULL) {
        fprintf(stderr, "train_floor: no memory\n");
        exit(1);
    }
    return memset(memory, 0, size);
}

/* --- the data --- */

static void load_digits(struct run *run, const char *path)
{
    unsigned char record[RECORD_BYTES];
    FILE *file = fopen(path, "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0) {
        perror(path);
        exit(1);
    }
    run->images = (int)(ftell(file) / RECORD_BYTES);
    rewind(file);
    run->pixels = zeros((size_t)run->images * 64, sizeof *run->pixels);
    run->labels = zeros((size_t)run->images, sizeof *run->labels);
    for (int i = 0; i < run->images && fread(record, RECORD_BYTES, 1, file) == 1; i++) {
        for (int p = 0; p < 64; p++) {
            run->pixels[i * 64 + p] = (float)record[p] / 16;
        }
        run->labels[i] = record[64];
    }
    fclose(file);
}

static void make_big(struct run *run)
{
    run->images = 2048;
    run->pixels = zeros((size_t)run->images * (size_t)run->widths[0], sizeof *run->pixels);
    run->labels = zeros((size_t)run->images, sizeof *run->labels);
    for (int i = 0; i < run->images * run->widths[0]; i++) {
        run->pixels[i] = draw_unit();
    }
    for (int i = 0; i < run->images; i++) {
        run->labels[i] = (int)(draw() % 10);
    }
}

static void open_run(struct run *run, bool big, const char *path)
{
    static const int widths[2][LAYERS + 1] = {{64, 256, 256, 10}, {784, 2048, 2048, 10}};
    memcpy(run->widths, widths[big], sizeof run->widths);
    run->batch = big ? 256 : 64;
    if (big) {
        make_big(run);
    } else {
        load_digits(run, path);
    }
    run->order = zeros((size_t)run->images, sizeof *run->order);
    for (int i = 0; i < run->images; i++) {
        run->order[i] = i;
    }
    for (int l = 0; l < LAYERS; l++) {
        run->weights_at[l] = run->count;
        run->biases_at[l] = run->count + (size_t)(run->widths[l] * run->widths[l + 1]);
        run->count = run->biases_at[l] + (size_t)run->widths[l + 1];
    }
    run->values = zeros(run->count, sizeof *run->values);
    run->slopes = zeros(run->count, sizeof *run->slopes);
    run->momenta = zeros(run->count, sizeof *run->momenta);
    for (int l = 0; l < LAYERS; l++) {
        const float span = 1 / sqrtf((float)run->widths[l]);
        for (size_t i = run->weights_at[l]; i < run->biases_at[l] + (size_t)run->widths[l + 1];
             i++) {
            run->values[i] = span * (2 * draw_unit() - 1);
        }
    }
    for (int l = 0; l <= LAYERS; l++) {
        run->activations[l] = zeros((size_t)(run->batch * run->widths[l]), sizeof(float));
    }
    for (int l = 0; l < LAYERS; l++) {
        run->errors[l] = zeros((size_t)(run->batch * run->widths[l + 1]), sizeof(float));
    }
}

static void shuffle(struct run *run)
{
    for (int i = run->images - 1; i > 0; i--) {
        int j = (int)(draw() % (uint32_t)(i + 1));
        int kept = run->order[i];
        run->order[i] = run->order[j];
        run->order[j] = kept;
    }
}

/* --- one step --- */

static void forward(struct run *run, int rows)
{
    for (int l = 0; l < LAYERS; l++) {
        const int in = run->widths[l];
        const int out = run->widths[l + 1];
        const float *restrict biases = run->values + run->biases_at[l];
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, rows, out, in, 1,
            run->activations[l], in, run->values + run->weights_at[l], out, 0,
            run->activations[l + 1], out);
        for (int row = 0; row < rows; row++) {
            float *restrict at = run->activations[l + 1] + row * out;
            for (int n = 0; n < out; n++) {
                float sum = at[n] + biases[n];
                at[n] = l + 1 < LAYERS && !(sum > 0) ? 0 : sum;
            }
        }
    }
}

/* Returns the summed loss of these rows, over the rows of the whole batch. */
static float loss_of(struct run *run, const int *images, int rows, float scale)
{
    const int classes = run->widths[LAYERS];
    float loss = 0;
    for (int row = 0; row < rows; row++) {
        const float *scores = run->activations[LAYERS] + row * classes;
        float *errors = run->errors[LAYERS - 1] + row * classes;
        const int label = run->labels[images[row]];
        float top = scores[0];
        float sum = 0;
        for (int c = 1; c < classes; c++) {
            top = scores[c] > top ? scores[c] : top;
        }
        for (int c = 0; c < classes; c++) {
            errors[c] = expf(scores[c] - top);
            sum += errors[c];
        }
        for (int c = 0; c < classes; c++) {
            errors[c] = (errors[c] / sum - (c == label ? 1.0f : 0.0f)) * scale;
        }
        loss += logf(sum) + top - scores[label];
    }
    return loss * scale;
}

static void backward(struct run *run, int rows)
{
    for (int l = LAYERS - 1; l >= 0; l--) {
        const int in = run->widths[l];
        const int out = run->widths[l + 1];
        float *restrict biases = run->slopes + run->biases_at[l];
        const float *restrict errors = run->errors[l];
        cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, in, out, rows, 1, run->activations[l],
            in, errors, out, 0, run->slopes + run->weights_at[l], out);
        memset(biases, 0, (size_t)out * sizeof *biases);
        for (int row = 0; row < rows; row++) {
            for (int n = 0; n < out; n++) {
                biases[n] += errors[row * out + n];
            }
        }
        if (l > 0) {
            float *restrict before = run->errors[l - 1];
            const float *restrict activations = run->activations[l];
            cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, rows, in, out, 1, errors, out,
                run->values + run->weights_at[l], out, 0, before, in);
            for (int i = 0; i < rows * in; i++) {
                before[i] = activations[i] > 0 ? before[i] : 0;
            }
        }
    }
}

static void update(struct run *run)
{
    float *restrict values = run->values;
    float *restrict momenta = run->momenta;
    const float *restrict slopes = run->slopes;
    for (size_t i = 0; i < run->count; i++) {
        momenta[i] = momentum * momenta[i] + slopes[i];
        values[i] -= rate * momenta[i];
    }
}

static float step(struct run *run, const int *images, int batch_rows)
{
    int rows = batch_rows;
    if (run->peer != NULL) {
        rows = run->peer->rank == 0 ? (batch_rows + 1) / 2 : batch_rows / 2;
        images += run->peer->rank == 0 ? 0 : (batch_rows + 1) / 2;
    }
    for (int row = 0; row < rows; row++) {
        memcpy(run->activations[0] + row * run->widths[0],
            run->pixels + (size_t)images[row] * (size_t)run->widths[0],
            (size_t)run->widths[0] * sizeof(float));
    }
    forward(run, rows);
    float loss = loss_of(run, images, rows, 1 / (float)batch_rows);
    backward(run, rows);
    if (run->peer != NULL) {
        peer_sum(run->peer, run->slopes, run->count);
    }
    update(run);
    return loss;
}

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
    const bool two = argc > 2 && strcmp(argv[2], "2") == 0;
    const long epochs = argc > 3 ? strtol(argv[3], NULL, 10) : 0;
    struct run run = {.count = 0};
    struct peer peer = {.rank = 0};
    if (argc < 5 || argc > 6 || epochs < 2) {
        fprintf(stderr, "usage: %s digits|big 1|2 EPOCHS DIGITS-TRAIN.BIN [own|arena]\n", argv[0]);
        return 2;
    }
    openblas_set_num_threads(1);
    open_run(&run, strcmp(argv[1], "big") == 0, argv[4]);
    if (two) {
        peer_open(&peer, run.count);
        run.peer = &peer;
        free(run.slopes);
        run.slopes = peer_vector(argc > 5 ? argv[5] : "own", run.count);
    }
    const int steps = (run.images + run.batch - 1) / run.batch;
    double began_s = 0;
    float loss = 0;
    for (long epoch = 0; epoch < epochs; epoch++) {
        shuffle(&run);
        loss = 0;
        for (int s = 0; s < steps; s++) {
            const int left = run.images - s * run.batch;
            loss += step(&run, run.order + s * run.batch, left < run.batch ? left : run.batch);
        }
        began_s = epoch == 0 ? now_s() : began_s;
    }
    const double took_s = now_s() - began_s;
    if (peer.rank == 0) {
        printf("steps_per_s=%.3f\nloss=%.6f\n", (double)((epochs - 1) * steps) / took_s,
            (double)loss / steps * (two ? 2 : 1));
    }
    return two && peer_end(&peer) != 0;
}
