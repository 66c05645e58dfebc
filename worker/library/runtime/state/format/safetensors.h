/* SPDX-License-Identifier: Apache-2.0
 * The safetensors format, which any language reads: 8 bytes length of the header (little endian),
 * the header as JSON ({"name": {"dtype", "shape", "data_offsets"}, ...}, padded with spaces), then
 * the data without gaps. */
#ifndef CADRE_RUNTIME_FORMAT_SAFETENSORS_H
#define CADRE_RUNTIME_FORMAT_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>

#include "cadre/tensor.h"
#include "common/base/error.h"
#include "common/model/limits.h"

#define SAFETENSORS_NAME_BYTES       (LIMIT_NAME_BYTES + 16)
#define SAFETENSORS_HEADER_BYTES_MAX (64 * 1024 * 1024)

struct safetensors_entry {
    char name[SAFETENSORS_NAME_BYTES];
    cadre_dtype dtype; /* not CADRE_STRING */
    uint32_t rank;
    int64_t dims[CADRE_RANK_MAX];
    size_t bytes;
    size_t offset;    /* in the data */
    const void *data; /* in memory; NULL: in the file alone */
    /* The variable of the value, where its name is another one; else "". In the file it is an entry
     * of the metadata, "variable/<name of the tensor>". */
    char variable[SAFETENSORS_NAME_BYTES];
};

/* The name of the variable of the value. */
const char *safetensors_variable(const struct safetensors_entry *entry);

/* Gives each entry its offset, in the order of their element sizes, large ones first, so that all
 * data are aligned; equal sizes keep their order. Returns the bytes of the data. */
size_t safetensors_set_offsets(struct safetensors_entry *entries, size_t count);

/* The entry after `before` in the file; of NULL the first. NULL: there is none. */
const struct safetensors_entry *safetensors_next(
    const struct safetensors_entry *entries, size_t count, const struct safetensors_entry *before);

/* The bytes before the data, with their length: *ret_bytes is the caller's to free. `position` goes
 * into the metadata. The same entries give the same bytes. */
cadre_status safetensors_header(const struct safetensors_entry *entries, size_t count,
    uint64_t position, char **ret_bytes, size_t *ret_size, struct cadre_error *error);

/* The contents of a header. */
struct safetensors_list {
    struct safetensors_entry *entries; /* the caller's to free */
    size_t count;
    uint64_t position; /* POSITION_NONE when it is not of Cadre */
    size_t data_at;    /* in the file: what entries' offsets count from */
};

/* How many bytes of a file of `file_bytes` are before the data, by its first 8. DATA_LOSS. */
cadre_status safetensors_header_bytes(const void *bytes, size_t size, uint64_t file_bytes,
    size_t *ret_bytes, struct cadre_error *error);

/* Decodes the header of a file of `file_bytes`; `size` are at least those before the data, or all
 * that there are. DATA_LOSS names the fault: also that tensors overlap, or that bytes belong to
 * none. */
cadre_status safetensors_decode_header(const void *bytes, size_t size, uint64_t file_bytes,
    struct safetensors_list *ret_list, struct cadre_error *error);

/* Decodes a whole file; the entries' data point into `bytes`. *ret_entries is the caller's to free.
 * DATA_LOSS names the fault of the file. *ret_position: POSITION_NONE when it is not of Cadre. */
cadre_status safetensors_decode(const void *bytes, size_t size,
    struct safetensors_entry **ret_entries, size_t *ret_count, uint64_t *ret_position,
    struct cadre_error *error);

#endif
