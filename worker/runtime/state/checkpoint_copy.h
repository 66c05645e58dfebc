/* SPDX-License-Identifier: Apache-2.0
 * A copy of the state at one position, in memory as it will lie in the file. Taking it is all that
 * the training waits for: one memcpy per tensor into memory that was there before. */
#ifndef CADRE_RUNTIME_CHECKPOINT_COPY_H
#define CADRE_RUNTIME_CHECKPOINT_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "worker/runtime/state/manifest.h"
#include "worker/runtime/state/safetensors.h"

struct cadre_strategy;

struct checkpoint_copy {
    struct safetensors_entry *entries; /* where each tensor lies */
    size_t entry_count;
    uint32_t tensors; /* of the state, when the memory was made */
    char *memory;     /* room for the header, then the data; NULL: none yet */
    size_t memory_bytes;
    size_t header_room;
    size_t data_bytes;
    uint64_t position;         /* what it holds; POSITION_NONE: nothing whole */
    struct manifest *manifest; /* of the same moment */
};

/* Zeroed is one without memory. */
void checkpoint_copy_clear(struct checkpoint_copy *copy);

/* Makes the memory, as far as it is not there. RESOURCE_EXHAUSTED. */
cadre_status checkpoint_copy_prepare(
    struct checkpoint_copy *copy, const struct cadre_strategy *strategy, struct cadre_error *error);

/* Copies the state. *ret_same: it held the very same of the same position already. */
cadre_status checkpoint_copy_take(struct checkpoint_copy *copy,
    const struct cadre_strategy *strategy, bool *ret_same, struct cadre_error *error);

/* Puts the header in front: *ret_bytes is the whole file, in the copy's memory. */
cadre_status checkpoint_copy_file(struct checkpoint_copy *copy, const char **ret_bytes,
    size_t *ret_size, struct cadre_error *error);

#endif
