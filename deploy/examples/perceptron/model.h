/* SPDX-License-Identifier: Apache-2.0
 * A perceptron with one hidden layer that reads 8x8 digits: its numbers in one array, as a program
 * that exchanges them has them, and nothing of how they are exchanged. */
#ifndef PERCEPTRON_MODEL_H
#define PERCEPTRON_MODEL_H

#include <stddef.h>
#include <stdint.h>

enum {
    PIXELS = 64,
    HIDDEN = 32,
    CLASSES = 10,
    WEIGHTS = PIXELS * HIDDEN + HIDDEN + HIDDEN * CLASSES + CLASSES,
    RECORD_BYTES = PIXELS + 1 /* pixels, 0 to 16, and the label */
};

/* The images of a file, one record after the other. */
struct images {
    uint8_t *records;
    size_t count;
};

/* The file `name` of the working folder, else beside `program`; ends the program without it. */
struct images images_read(const char *program, const char *name);

/* The order of the images in an epoch, a function of its number alone. */
void images_order(size_t count, uint64_t epoch, uint32_t *ret_order);

void model_start(float *ret_weights);

/* What a step makes of some images: what is added up over all tasks, in one array. */
struct sums {
    float gradient[WEIGHTS];
    float loss;
    float right; /* images that were read right */
};

enum { SUMS = WEIGHTS + 2 };
_Static_assert(sizeof(struct sums) == SUMS * sizeof(float), "sums are an array of floats");

/* Adds what the model makes of one image. */
void model_add(const float *weights, const uint8_t *record, struct sums *sums);

/* One step of gradient descent with momentum, after `rows` images. */
void model_update(float *weights, float *velocity, const struct sums *sums, float rows);

#endif
