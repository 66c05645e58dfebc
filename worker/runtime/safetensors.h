/* SPDX-License-Identifier: Apache-2.0
 * The safetensors format, which any language reads: 8 bytes length of the header (little endian),
 * the header as JSON ({"name": {"dtype", "shape", "data_offsets"}, ...}, padded with spaces), then
 * the data without gaps. */
#ifndef CADRE_RUNTIME_SAFETENSORS_H
#define CADRE_RUNTIME_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>

#include "cadre/tensor.h"
#include "common/base/error.h"
#include "common/model/limits.h"

#define SAFETENSORS_HEADER_BYTES_MAX (64 * 1024 * 1024)

struct safetensors_entry {
    char name[LIMIT_NAME_BYTES];
    cadre_dtype dtype; /* not CADRE_STRING */
    uint32_t rank;
    int64_t dims[CADRE_RANK_MAX];
    const void *data;
    size_t bytes;
};

/* Encodes entries, in the order of their element sizes, large ones first, so that all data are
 * aligned; equal sizes keep their order. `position` goes into the metadata. *ret_bytes is the
 * caller's to free. The same entries give the same bytes. */
cadre_status safetensors_encode(const struct safetensors_entry *entries, size_t count,
    uint64_t position, void **ret_bytes, size_t *ret_size, struct cadre_error *error);

/* Decodes a whole file; the entries' data point into `bytes`. *ret_entries is the caller's to free.
 * DATA_LOSS says what is wrong with the file. *ret_position: POSITION_NONE when it is not of
 * Cadre. */
cadre_status safetensors_decode(const void *bytes, size_t size,
    struct safetensors_entry **ret_entries, size_t *ret_count, uint64_t *ret_position,
    struct cadre_error *error);

#endif
