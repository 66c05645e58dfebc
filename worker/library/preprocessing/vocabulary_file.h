/* SPDX-License-Identifier: Apache-2.0
 * Vocabularies in text files: one token a line. */
#ifndef CADRE_WORKER_PREPROCESSING_VOCABULARY_FILE_H
#define CADRE_WORKER_PREPROCESSING_VOCABULARY_FILE_H

#include <stddef.h>

#include "cadre/tensor.h"
#include "common/base/error.h"

#define VOCABULARY_BYTES_MAX ((size_t)4 << 30)

/* The lines of a file or object as a tensor of rank 1 (`dtype` CADRE_STRING or CADRE_I64), without
 * "\n" or
 * "\r\n"; the last need not be ended. INVALID_ARGUMENT names the line that is empty or no integer;
 * no line at all gives a tensor of none. */
cadre_status vocabulary_file_read(
    const char *path, cadre_dtype dtype, cadre_tensor **ret_tokens, struct cadre_error *error);

#endif
