/* SPDX-License-Identifier: Apache-2.0
 * Writes .npy files into memory, also wrong ones. */
#ifndef CADRE_TESTS_INPUT_NPY_WRITING_H
#define CADRE_TESTS_INPUT_NPY_WRITING_H

#include <stddef.h>
#include <stdint.h>

/* Format `major`.0 with `dictionary` padded as numpy does, then `data_bytes` of data. Returns the
 * size. */
size_t npy_make(uint8_t *bytes, size_t room, unsigned major, const char *dictionary,
    const void *data, size_t data_bytes);

#endif
