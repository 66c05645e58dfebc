/* SPDX-License-Identifier: Apache-2.0
 * The hashes of a checkpoint's tensors in its manifest. See manifest.h. */
#ifndef CADRE_RUNTIME_FORMAT_MANIFEST_HASHES_H
#define CADRE_RUNTIME_FORMAT_MANIFEST_HASHES_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"

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
