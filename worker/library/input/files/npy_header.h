/* SPDX-License-Identifier: Apache-2.0
 * The header of numpy's .npy format, versions 1.0 and 2.0: a magic string, a length, and a Python
 * dictionary of three entries. The parser reads bytes and nothing else, so it can be fuzzed. */
#ifndef CADRE_WORKER_INPUT_FILES_NPY_HEADER_H
#define CADRE_WORKER_INPUT_FILES_NPY_HEADER_H

#include <stddef.h>
#include <stdint.h>

#include "cadre/tensor.h"
#include "common/base/error.h"

#define NPY_PREFIX_BYTES     12      /* enough to learn the length of the header */
#define NPY_HEADER_BYTES_MAX 1048576 /* of the dictionary; numpy writes a few hundred */

struct npy_header {
    cadre_tensor_spec spec; /* of the whole array */
    int64_t data_offset;    /* where the values begin in the file */
    int64_t data_bytes;     /* how many there should be */
};

/* How many bytes of the file the header takes, found from its first `size` bytes (up to
 * NPY_PREFIX_BYTES are looked at). DATA_LOSS: not an npy file, or too short to say. UNIMPLEMENTED:
 * another version. Messages name `path` and the offset. */
cadre_status npy_header_size(const uint8_t *bytes, size_t size, const char *path, size_t *ret_size,
    struct cadre_error *error);

/* Parses a whole header of `size` bytes, as npy_header_size gave it. DATA_LOSS: damaged.
 * UNIMPLEMENTED: a type, byte order or memory order that is not read here. */
cadre_status npy_header_parse(const uint8_t *bytes, size_t size, const char *path,
    struct npy_header *ret_header, struct cadre_error *error);

#endif
