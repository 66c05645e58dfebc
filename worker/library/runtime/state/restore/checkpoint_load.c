/* SPDX-License-Identifier: Apache-2.0
 * Going on from a checkpoint. All is read and checked before the state is changed. */
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/pure/assert.h"
#include "worker/library/runtime/state/checkpoint/checkpoint.h"
#include "worker/library/runtime/state/checkpoint/checkpoint_read.h"
#include "worker/library/runtime/state/checkpoint/manifest.h"
#include "worker/library/runtime/state/restore/restore.h"
#include "worker/library/runtime/state/layout/state.h"
#include "worker/library/runtime/state/layout/state_hash.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/variables/variable.h"

/* Strings are in the manifest; variables that were made from the checkpoint hold it already. */
static bool is_here(
    const struct cadre_strategy *strategy, uint32_t i, const struct state_tensor *tensor)
{
    return tensor->dtype == CADRE_STRING ||
           (i < strategy->variables->count && strategy->variables->list[i]->restored);
}

static cadre_status check_state(const struct cadre_strategy *strategy,
    struct checkpoint_reader *reader, size_t *ret_bytes, struct cadre_error *error)
{
    struct state_tensor tensor;
    const struct safetensors_entry *entry = NULL;
    *ret_bytes = 0;
    for (uint32_t i = 0; state_tensor_at(strategy, i, &tensor); i++) {
        if (!is_here(strategy, i, &tensor)) {
            CADRE_TRY(restore_entry(reader, &tensor, &entry, error));
            *ret_bytes += tensor.bytes;
        }
    }
    return CADRE_OK;
}

static cadre_status read_state(const struct cadre_strategy *strategy,
    struct checkpoint_reader *reader, char *into, struct cadre_error *error)
{
    struct state_tensor tensor;
    for (uint32_t i = 0; state_tensor_at(strategy, i, &tensor); i++) {
        if (!is_here(strategy, i, &tensor)) {
            const struct safetensors_entry *entry = checkpoint_reader_find(reader, tensor.name);
            CADRE_ASSERT(entry != NULL); /* check_state has found it */
            CADRE_TRY(restore_read(reader, entry, &tensor, into, error));
            into += tensor.bytes;
        }
    }
    return checkpoint_reader_verify(reader, error);
}

static cadre_status write_state(
    struct cadre_strategy *strategy, const char *from, struct cadre_error *error)
{
    struct state_tensor tensor;
    size_t offset = 0;
    for (uint32_t i = 0; state_tensor_at(strategy, i, &tensor); i++) {
        if (!is_here(strategy, i, &tensor)) {
            CADRE_TRY(state_write(strategy, offset, from, tensor.bytes, error));
            from += tensor.bytes;
        }
        offset += tensor.bytes;
    }
    CADRE_ASSERT(offset == state_bytes(strategy));
    return CADRE_OK;
}

static cadre_status take_over(struct cadre_strategy *strategy, struct manifest_content *content,
    const char *bytes, struct cadre_error *error)
{
    CADRE_TRY(state_receive(strategy, false, true, error));
    CADRE_TRY(write_state(strategy, bytes, error));
    manifest_take_over(strategy, content, true);
    state_commit(strategy);
    return CADRE_OK;
}

static cadre_status compare_all(const struct cadre_strategy *strategy,
    const struct manifest_content *content, const struct state_hashes *hashes,
    struct cadre_error *error)
{
    struct state_tensor tensor;
    for (uint32_t i = 0; state_tensor_at(strategy, i, &tensor); i++) {
        char text[STATE_TENSOR_TEXT_BYTES];
        uint64_t written = 0;
        if (manifest_hash_of(content, tensor.name, &written) && written != hashes->values[i]) {
            return cadre_error_set(error, CADRE_DATA_LOSS,
                "it is damaged: %s has another hash than was written; use another checkpoint",
                state_tensor_text(strategy, i, text));
        }
    }
    return CADRE_OK;
}

/* Compares this task's hashes with the manifest's. */
static cadre_status checkpoint_load_compare(struct cadre_strategy *strategy,
    const struct manifest_content *content, struct cadre_error *error)
{
    struct state_hashes hashes = {0};
    cadre_status status = state_hash_all(strategy, 0, &hashes, error);
    if (status == CADRE_OK) {
        status = compare_all(strategy, content, &hashes, error);
    }
    state_hashes_clear(&hashes);
    return status;
}

static cadre_status checkpoint_load_load(
    struct cadre_strategy *strategy, struct checkpoint_reader *reader, struct cadre_error *error)
{
    CADRE_TRY(checkpoint_reader_make_variables(reader, strategy, error));
    struct manifest_content *content = checkpoint_reader_manifest(reader);
    size_t size = 0;
    CADRE_TRY(check_state(strategy, reader, &size, error));
    CADRE_FREE_AT_EXIT char *bytes = malloc(size + 1);
    if (bytes == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for the %zu bytes of the state", size);
    }
    CADRE_TRY(read_state(strategy, reader, bytes, error));
    CADRE_TRY(manifest_fits(strategy, content, error));
    CADRE_TRY(manifest_make_iterators(strategy, content, error));
    CADRE_TRY(take_over(strategy, content, bytes, error));
    return strategy->environment->verify_off ? CADRE_OK
                                             : checkpoint_load_compare(strategy, content, error);
}

cadre_status checkpoint_load(struct cadre_strategy *strategy, const char *path,
    uint64_t *ret_position, struct cadre_error *error)
{
    struct checkpoint_reader *reader = NULL;
    cadre_status status = restore_open(strategy, path, &reader, error);
    if (status == CADRE_OK) {
        status = checkpoint_load_load(strategy, reader, error);
        if (status != CADRE_OK) {
            state_undo(strategy); /* with the variables that it was to fill */
            (void)restore_failed(path, status, error);
        }
    }
    if (status == CADRE_OK) {
        *ret_position = manifest_position(checkpoint_reader_manifest(reader));
    }
    restore_close(strategy);
    return status;
}
