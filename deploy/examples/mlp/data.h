/* SPDX-License-Identifier: Apache-2.0
 * What the networks learn from: elements (image f32 [pixels], label i32 scalar). */
#ifndef MLP_DATA_H
#define MLP_DATA_H

#include <cadre/cadre.h>

#include "settings.h"

/* The images of a file of the example digits, with pixels from 0 to 1; looked for in `folder`, or
 * with NULL in the working folder, then beside the executable `program`. They are few, and kept as
 * two tensors: the dataset takes its batches from there. */
cadre_dataset *data_digits(const char *program, const char *folder, const char *name);

/* 2,048 images of random numbers with random labels: there is nothing to learn but by heart. They
 * stand in for images of that size where only the speed counts. */
cadre_dataset *data_synthetic(const struct preset *preset);

#endif
