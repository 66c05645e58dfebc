/* SPDX-License-Identifier: Apache-2.0
 * Tensors as text, in the forms of TensorFlow and numpy. */
#ifndef CADRE_WORKER_DEVICE_TENSOR_TEXT_H
#define CADRE_WORKER_DEVICE_TENSOR_TEXT_H

#include <stdio.h>

#include "worker/library/device/tensor.h"

enum tensor_form {
    TENSOR_FORM_STR = 0, /* cadre_tensor([1. 2.], shape=(2,), dtype=float32) */
    TENSOR_FORM_REPR,    /* <cadre_tensor: shape=(2,), dtype=float32, numpy=array(...)> */
    TENSOR_FORM_MEMBERS  /* "shape=(2,) dtype=float32, numpy=array(...)": the content of a
                          * variable */
};

/* Writes the tensor; one on a device is copied to the host first, and waited for. Its errors, and
 * RESOURCE_EXHAUSTED: no memory for the text. The caller checks whether `to` took it. */
cadre_status tensor_text(
    const cadre_tensor *tensor, enum tensor_form form, FILE *to, struct cadre_error *error);

/* A function that writes an object as text. */
typedef cadre_status (*text_writer)(const void *of, FILE *to, struct cadre_error *error);
/* What a public function that prints does: `write` into memory, then all of it and an end of line
 * to `file`. The error of `write`; else the system's for the file. */
cadre_status text_print(text_writer write, const void *of, FILE *file, struct cadre_error *error);

/* --- The elements of a tensor as numpy writes those of an array: in columns, lines of 75
 * characters, and of more than 1000 the first and last three along each dimension. --- */

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
