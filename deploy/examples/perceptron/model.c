/* SPDX-License-Identifier: Apache-2.0 */
#include "model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEARNING_RATE 0.05f
#define MOMENTUM      0.9f

/* --- images --- */

static FILE *open_beside(const char *program, const char *name)
{
    char path[4096];
    const char *slash = strrchr(program, '/');
    FILE *file = fopen(name, "rb");
    if (file == NULL && slash != NULL) {
        snprintf(path, sizeof path, "%.*s/%s", (int)(slash - program), program, name);
        file = fopen(path, "rb");
    }
    return file;
}

struct images images_read(const char *program, const char *name)
{
    struct images images = {.records = NULL};
    FILE *file = open_beside(program, name);
    if (file == NULL || fseek(file, 0, SEEK_END) != 0) {
        fprintf(stderr, "perceptron: there is no %s here or beside the program\n", name);
        exit(1);
    }
    images.count = (size_t)ftell(file) / RECORD_BYTES;
    images.records = malloc(images.count * RECORD_BYTES + 1);
    rewind(file);
    if (images.records == NULL ||
        fread(images.records, RECORD_BYTES, images.count, file) != images.count) {
        fprintf(stderr, "perceptron: %s cannot be read\n", name);
        exit(1);
    }
    fclose(file);
    for (size_t i = 0; i < images.count; i++) {
        if (images.records[i * RECORD_BYTES + PIXELS] >= CLASSES) {
            fprintf(stderr, "perceptron: image %zu of %s has no label from 0 to 9\n", i, name);
            exit(1);
        }
    }
    return images;
}

/* xorshift64* */
static uint32_t draw(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (uint32_t)((*state * UINT64_C(2685821657736338717)) >> 32);
}

void images_order(size_t count, uint64_t epoch, uint32_t *ret_order)
{
    uint64_t state = UINT64_C(88172645463325252) + epoch;
    for (size_t i = 0; i < count; i++) {
        size_t j = draw(&state) % (i + 1);
        ret_order[i] = ret_order[j];
        ret_order[j] = (uint32_t)i;
    }
}

/* --- the model --- */

void model_start(float *ret_weights)
{
    uint64_t state = 42;
    memset(ret_weights, 0, WEIGHTS * sizeof *ret_weights);
    for (int i = 0; i < PIXELS * HIDDEN; i++) {
        ret_weights[i] = ((float)(draw(&state) % 2001) / 1000 - 1) * 0.2f;
    }
    for (int i = 0; i < HIDDEN * CLASSES; i++) {
        ret_weights[PIXELS * HIDDEN + HIDDEN + i] =
            ((float)(draw(&state) % 2001) / 1000 - 1) * 0.3f;
    }
}

static void hidden_of(const float *weights, const float *image, float *ret_hidden)
{
    memcpy(ret_hidden, weights + PIXELS * HIDDEN, HIDDEN * sizeof *ret_hidden);
    for (int p = 0; p < PIXELS; p++) {
        for (int h = 0; h < HIDDEN; h++) {
            ret_hidden[h] += image[p] * weights[p * HIDDEN + h];
        }
    }
    for (int h = 0; h < HIDDEN; h++) {
        ret_hidden[h] = tanhf(ret_hidden[h]);
    }
}

/* The probability of each class; returns the likeliest. */
static int classes_of(const float *second, const float *hidden, float *ret_chances)
{
    float total = 0;
    int best = 0;
    for (int c = 0; c < CLASSES; c++) {
        ret_chances[c] = second[HIDDEN * CLASSES + c];
        for (int h = 0; h < HIDDEN; h++) {
            ret_chances[c] += hidden[h] * second[h * CLASSES + c];
        }
        best = ret_chances[c] > ret_chances[best] ? c : best;
    }
    float most = ret_chances[best];
    for (int c = 0; c < CLASSES; c++) {
        ret_chances[c] = expf(ret_chances[c] - most);
        total += ret_chances[c];
    }
    for (int c = 0; c < CLASSES; c++) {
        ret_chances[c] /= total;
    }
    return best;
}

void model_add(const float *weights, const uint8_t *record, struct sums *sums)
{
    const float *second = weights + PIXELS * HIDDEN + HIDDEN;
    float *of_second = sums->gradient + PIXELS * HIDDEN + HIDDEN;
    float image[PIXELS];
    float hidden[HIDDEN];
    float chances[CLASSES];
    int label = record[PIXELS];
    for (int p = 0; p < PIXELS; p++) {
        image[p] = ((float)record[p] - 4.9f) / 6.0f;
    }
    hidden_of(weights, image, hidden);
    sums->right += classes_of(second, hidden, chances) == label ? 1.0f : 0.0f;
    sums->loss -= logf(fmaxf(chances[label], 1e-30f));
    chances[label] -= 1; /* from here on the gradient of what goes into the softmax */
    for (int c = 0; c < CLASSES; c++) {
        of_second[HIDDEN * CLASSES + c] += chances[c];
    }
    for (int h = 0; h < HIDDEN; h++) {
        float back = 0;
        for (int c = 0; c < CLASSES; c++) {
            of_second[h * CLASSES + c] += hidden[h] * chances[c];
            back += second[h * CLASSES + c] * chances[c];
        }
        hidden[h] = back * (1 - hidden[h] * hidden[h]);
        sums->gradient[PIXELS * HIDDEN + h] += hidden[h];
    }
    for (int p = 0; p < PIXELS; p++) {
        for (int h = 0; h < HIDDEN; h++) {
            sums->gradient[p * HIDDEN + h] += image[p] * hidden[h];
        }
    }
}

void model_update(float *weights, float *velocity, const struct sums *sums, float rows)
{
    for (int i = 0; i < WEIGHTS; i++) {
        velocity[i] = MOMENTUM * velocity[i] + sums->gradient[i] / rows;
        weights[i] -= LEARNING_RATE * velocity[i];
    }
}
