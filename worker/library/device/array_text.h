/* SPDX-License-Identifier: Apache-2.0
 * The elements of a tensor as numpy writes those of an array: in columns, lines of 75 characters,
 * and of more than 1000 the first and last three along each dimension. */
#ifndef CADRE_WORKER_DEVICE_ARRAY_TEXT_H
#define CADRE_WORKER_DEVICE_ARRAY_TEXT_H

#include <stdio.h>

#include "worker/library/device/tensor.h"

#define ARRAY_TEXT_COLUMNS 75

/* The text around the elements. */
struct array_margins {
    const char *separator; /* between elements: " " or ", " */
    size_t before;         /* columns in front of the first "[" */
    size_t after;          /* that are needed behind the last "]" */
};

/* Writes the elements, which are on the host, and returns the columns of the last line of text. */
size_t array_text(const cadre_tensor *tensor, const struct array_margins *margins, FILE *to);

/* Writes element `at`, in row-major order, as it is written alone: 1.0, True, b'a'. */
void element_text(const cadre_tensor *tensor, int64_t at, FILE *to);

#endif
