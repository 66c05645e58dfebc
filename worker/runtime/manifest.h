/* SPDX-License-Identifier: Apache-2.0
 * The text beside the tensors: JSON. In a checkpoint it is the manifest; in a state sync the same
 * text travels before the tensors.
 *
 *     {"format": "cadre-checkpoint", "version": 1, "position": 120, "generation": 3,
 *      "streams": [{"name": "train", "stream": 1, "epochs_begun": 2, "applied": 40, "steps": 80,
 *                   "open": true, "serial": 7, "feed": {...}}],
 *      "strings": {"vocabulary": ["a", "b"]},
 *      "file": {"name": "checkpoint-120.safetensors", "bytes": 1234, "sha256": "..."},
 *      "blocks": [{"offset": 0, "bytes": 4194304, "crc32c": "89abcdef", "sha256": "..."}]}
 *
 * `file` and `blocks` are a checkpoint's only. Numbers of 64 bits that may use all of them are
 * written as decimal strings. */
#ifndef CADRE_RUNTIME_MANIFEST_H
#define CADRE_RUNTIME_MANIFEST_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/model/limits.h"

struct cadre_strategy;

struct manifest_block {
    uint64_t offset;
    uint64_t bytes;
    uint32_t crc32c;
    uint8_t sha256[LIMIT_SHA256_BYTES];
};

/* A checkpoint's file of tensors. */
struct manifest_file {
    char name[LIMIT_FILE_NAME_BYTES];
    uint64_t bytes;
    uint8_t sha256[LIMIT_SHA256_BYTES];
    struct manifest_block *blocks; /* owned */
    size_t block_count;
};

void manifest_file_clear(struct manifest_file *file);

/* The strategy's positions and strings as text, malloc'ed, terminated. `file` may be NULL. */
cadre_status manifest_encode(const struct cadre_strategy *strategy,
    const struct manifest_file *file, char **ret_text, size_t *ret_bytes,
    struct cadre_error *error);

/* Takes positions and strings over into the strategy; *ret_file (may be NULL) is the caller's to
 * clear. INVALID_ARGUMENT names what is malformed or does not fit the program (then nothing was
 * taken over). Text of any origin is checked. */
cadre_status manifest_decode(struct cadre_strategy *strategy, const char *text, size_t bytes,
    uint64_t *ret_position, struct manifest_file *ret_file, struct cadre_error *error);

#endif
