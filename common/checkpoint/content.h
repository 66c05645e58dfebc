/* SPDX-License-Identifier: Apache-2.0
 * The files, blocks and hashes that a checkpoint's manifest lists. For programs that move
 * checkpoints and do not read the tensors: the worker daemon, the coordinator, `cadre run`. The
 * meaning of the tensors is the runtime's (worker/library/runtime/state/checkpoint/manifest.h). */
#ifndef CADRE_CHECKPOINT_CONTENT_H
#define CADRE_CHECKPOINT_CONTENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/model/limits.h"

/* Of manifests: what is written, and the oldest that is read, in which `file` always has a hash and
 * blocks have 4 MiB at most. */
#define CHECKPOINT_VERSION        2
#define CHECKPOINT_VERSION_OLDEST 1

/* Travels as a content of its own, by its hash. */
struct checkpoint_block {
    uint64_t offset;
    uint64_t bytes; /* 1 to LIMIT_CHECKPOINT_BLOCK_BYTES */
    uint8_t sha256[LIMIT_SHA256_BYTES];
};

struct checkpoint_content {
    uint64_t position;
    char file_name[LIMIT_FILE_NAME_BYTES]; /* without a folder: the file lies beside the manifest */
    uint64_t file_bytes;
    bool has_file_hash; /* in a store it has none: blocks are what is read and checked */
    uint8_t file_sha256[LIMIT_SHA256_BYTES];
    struct checkpoint_block *blocks; /* one behind the other, they are the whole file */
    size_t block_count;
};

/* Parses a manifest of any origin. INVALID_ARGUMENT: the message names the fault. Thread-safe. */
cadre_status checkpoint_content_read(const char *text, size_t size,
    struct checkpoint_content *ret_content, struct cadre_error *error);

/* Frees the blocks; accepts {0}. */
void checkpoint_content_free(struct checkpoint_content *content);

#endif
