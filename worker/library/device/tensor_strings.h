/* SPDX-License-Identifier: Apache-2.0
 * The elements of a CADRE_STRING tensor: an array of cadre_string whose bytes are packed behind
 * it. */
#ifndef CADRE_WORKER_DEVICE_TENSOR_STRINGS_H
#define CADRE_WORKER_DEVICE_TENSOR_STRINGS_H

#include <stddef.h>
#include <stdint.h>

#include "cadre/tensor.h"
#include "common/base/error.h"

/* Makes all `count` elements empty. */
void strings_clear(cadre_string *strings, int64_t count);

/* The bytes of all elements together. INVALID_ARGUMENT: a NULL with a size, or too many bytes. */
cadre_status strings_measure(
    const cadre_string *strings, int64_t count, size_t *ret_bytes, struct cadre_error *error);

/* Copies `count` elements to `to` and their bytes to `text`; returns where the bytes end. */
char *strings_copy(cadre_string *to, const cadre_string *from, int64_t count, char *text);

#endif
