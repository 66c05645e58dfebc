/* SPDX-License-Identifier: Apache-2.0
 * The hashes of a checkpoint's tensors in its manifest. See manifest.h. */
#ifndef CADRE_RUNTIME_MANIFEST_HASHES_H
#define CADRE_RUNTIME_MANIFEST_HASHES_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "cadre/strategy.h"
#include "common/base/error.h"

/* Of the tensors that a program has, in their order. */
struct manifest_hashes {
    uint64_t *values; /* owned; 0: none is known */
    uint32_t count;
};

void manifest_hashes_clear(struct manifest_hashes *hashes);

/* 16 hexadecimal digits. NULL without memory. */
json_t *manifest_hash_digits(uint64_t hash);

/* Manifests of versions before it have none: *ret_hashes stays empty. Of a tensor that the manifest
 * does not name nothing is known. INVALID_ARGUMENT: one is not 16 digits. Cleared by the caller in
 * any case. */
cadre_status manifest_read_hashes(const cadre_strategy *strategy, const json_t *root,
    struct manifest_hashes *ret_hashes, struct cadre_error *error);

#endif
