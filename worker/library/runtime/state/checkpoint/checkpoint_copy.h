/* SPDX-License-Identifier: Apache-2.0
 * A copy of the state at one position, in memory, and what else will be in the file. Taking it is
 * all that the training waits for: one memcpy per tensor into memory that was there before. */
#ifndef CADRE_RUNTIME_CHECKPOINT_CHECKPOINT_COPY_H
#define CADRE_RUNTIME_CHECKPOINT_CHECKPOINT_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/base/sha256.h"
#include "common/model/task_message.h"
#include "worker/library/runtime/state/checkpoint/manifest.h"
#include "worker/library/runtime/state/format/safetensors.h"
#include "worker/library/runtime/state/layout/state_hash.h"

struct cadre_strategy;
struct streamed;

struct checkpoint_copy {
    /* The offset of each tensor in the file, and its copy; those that are streamed come last,
     * without one. */
    struct safetensors_entry *entries;
    size_t entry_count;
    size_t copied;           /* of them, that are in memory */
    uint32_t tensors;        /* of the state, and streamed ones, when the memory was made */
    struct streamed *source; /* the strategy's; borrowed */
    char *memory;            /* NULL: none yet */
    size_t memory_bytes;
    bool pinned;                /* page-locked: devices copy into it by themselves */
    size_t data_bytes;          /* in the file */
    uint64_t position;          /* of the state in it; POSITION_NONE: nothing whole */
    struct manifest *manifest;  /* of the same moment */
    struct state_hashes hashes; /* of what is copied, once checkpoint_copy_hash was called */
    uint32_t *tensors_of;       /* the tensor of the state of each of the `copied` entries */
    uint64_t digest;            /* 0: states are not compared */
    bool compared;              /* the digest is wanted */
    bool stamped;               /* `stamp` is that of the streamed tensors then */
    uint64_t stamp;
};

/* Frees all. Zeroed is one without memory. */
void checkpoint_copy_clear(struct checkpoint_copy *copy);

/* Makes the memory, as far as it is not there. RESOURCE_EXHAUSTED. */
cadre_status checkpoint_copy_prepare(
    struct checkpoint_copy *copy, const struct cadre_strategy *strategy, struct cadre_error *error);

/* Copies the state. *ret_same: it was the same of the same position already. */
cadre_status checkpoint_copy_take(struct checkpoint_copy *copy,
    const struct cadre_strategy *strategy, bool *ret_same, struct cadre_error *error);

/* The hashes of the copy, into the manifest too, and its digest; in the thread that has the copy.
 */
cadre_status checkpoint_copy_hash(struct checkpoint_copy *copy, struct cadre_error *error);

/* The header of the file, before the data: *ret_bytes is the caller's to free. */
cadre_status checkpoint_copy_header(const struct checkpoint_copy *copy, char **ret_bytes,
    size_t *ret_size, struct cadre_error *error);

/* --- checkpoint_write.c: the file of tensors, then the manifest that names its blocks, so that a
 * manifest that exists has its tensors, whenever the writer dies --- */

/* Any thread, as long as no other uses the copy. `writer`: in the names (checkpoint_folder.h).
 * Returns the manifest's size and hash, for the report. */
cadre_status checkpoint_write(struct checkpoint_copy *copy, const char *folder, uint64_t writer,
    uint64_t *ret_manifest_bytes, struct sha256 *ret_manifest_hash, struct cadre_error *error);

/* The file of tensors alone, for people. */
cadre_status checkpoint_write_tensors(
    struct checkpoint_copy *copy, const char *folder, struct cadre_error *error);

#endif
