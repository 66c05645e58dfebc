/* SPDX-License-Identifier: Apache-2.0
 * Members of the manifest as JSON (manifest.h). A distributed dataset: its position, the
 * description of its pipeline, which of its files were consumed, and the position of its
 * iterator. And the hashes of tensors. */
#ifndef CADRE_RUNTIME_FORMAT_MANIFEST_JSON_H
#define CADRE_RUNTIME_FORMAT_MANIFEST_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "worker/library/runtime/input/input.h"

struct saved_stream {
    char name[LIMIT_NAME_BYTES];
    char of[LIMIT_NAME_BYTES]; /* the dataset whose iterator it is; "": it is a dataset */
    struct dataset_position at;
    int64_t steps;
    char *pipeline; /* owned; or NULL */
    struct dataset_received received;
};

/* Frees what it owns, and zeroes it. */
void saved_stream_clear(struct saved_stream *saved);

/* A number as JSON: digits in a string where it is over 2^63 - 1. */
json_t *manifest_number(uint64_t value);

/* A number from JSON. False: the member is absent or none. */
bool manifest_read_number(const json_t *object, const char *name, uint64_t *ret_value);
/* The same for counts of steps, which have a lower limit. */
bool manifest_read_count(const json_t *object, const char *name, uint64_t *ret_value);
/* A truth value from JSON. */
bool manifest_read_bool(const json_t *object, const char *name, bool *ret_value);

/* The dataset at its position. *state_room: bytes of iterators' positions that have room in the
 * manifest, less by what it takes. NULL without memory. */
json_t *manifest_stream(const cadre_distributed_dataset *dataset, size_t *state_room);

/* False: it is not such an object; *ret_saved is the caller's to clear in any case. Members that
 * may be absent are: in manifests of programs by hand, and of versions before them. */
bool manifest_read_stream(const json_t *object, struct saved_stream *ret_saved);

/* --- manifest_hashes.c: the hashes of its tensors --- */

struct manifest_hash {
    char *name; /* owned */
    uint64_t value;
};

struct manifest_hashes {
    struct manifest_hash *list; /* owned */
    size_t count;
};

/* Frees the list, and zeroes it. */
void manifest_hashes_clear(struct manifest_hashes *hashes);

/* 16 hexadecimal digits, the caller's. NULL without memory. */
json_t *manifest_hash_digits(uint64_t hash);

/* Manifests of versions before it have none, or hashes of another kind: *ret_hashes stays empty.
 * INVALID_ARGUMENT: one is not 16 digits. Cleared by the caller in any case. */
cadre_status manifest_read_hashes(
    const json_t *root, struct manifest_hashes *ret_hashes, struct cadre_error *error);

/* Finds the hash of the tensor of that name. False: there is none. */
bool manifest_hashes_find(
    const struct manifest_hashes *hashes, const char *name, uint64_t *ret_hash);

#endif
