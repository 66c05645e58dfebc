/* SPDX-License-Identifier: Apache-2.0
 * Going on from a checkpoint. All is read and checked before anything of the state is touched. */
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "worker/device/tensor.h"
#include "worker/runtime/state/checkpoint.h"
#include "worker/runtime/state/checkpoint_read.h"
#include "worker/runtime/state/manifest.h"
#include "worker/runtime/state/state.h"
#include "worker/runtime/strategy.h"

static cadre_status check_entry(const struct state_tensor *tensor,
    const struct safetensors_entry *entry, struct cadre_error *error)
{
    if (entry == NULL) {
        return cadre_error_set(
            error, CADRE_NOT_FOUND, "it holds no '%s', which the program wants", tensor->name);
    }
    if (entry->dtype != tensor->dtype || entry->rank != tensor->rank ||
        memcmp(entry->dims, tensor->dims, entry->rank * sizeof entry->dims[0]) != 0) {
        char is[TENSOR_SHAPE_TEXT_BYTES];
        char wanted[TENSOR_SHAPE_TEXT_BYTES];
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "it holds '%s' as %s, and the program wants %s", tensor->name,
            tensor_shape_text(entry->dtype, entry->rank, entry->dims, is),
            tensor_shape_text(tensor->dtype, tensor->rank, tensor->dims, wanted));
    }
    return CADRE_OK;
}

/* All tensors of the state, strings without, as they lie in its space. */
static cadre_status read_state(const struct cadre_strategy *strategy,
    struct checkpoint_reader *reader, char *into, struct cadre_error *error)
{
    struct state_tensor tensor;
    for (uint32_t i = 0; state_tensor_at(strategy, i, &tensor); i++) {
        if (tensor.dtype == CADRE_STRING) {
            continue;
        }
        const struct safetensors_entry *entry = checkpoint_reader_find(reader, tensor.name);
        CADRE_TRY(check_entry(&tensor, entry, error));
    }
    for (uint32_t i = 0; state_tensor_at(strategy, i, &tensor); i++) {
        if (tensor.dtype != CADRE_STRING) {
            const struct safetensors_entry *entry = checkpoint_reader_find(reader, tensor.name);
            CADRE_TRY(checkpoint_reader_read(reader, entry, 0, into, tensor.bytes, error));
            into += tensor.bytes;
        }
    }
    return checkpoint_reader_verify(reader, error);
}

static cadre_status take_over(struct cadre_strategy *strategy, struct manifest_content *content,
    const char *bytes, struct cadre_error *error)
{
    CADRE_TRY(state_receive(strategy, false, true, error));
    CADRE_TRY(state_write(strategy, 0, bytes, state_bytes(strategy), error));
    manifest_take_over(strategy, content, true);
    state_commit(strategy);
    return CADRE_OK;
}

static cadre_status load(
    struct cadre_strategy *strategy, struct checkpoint_reader *reader, struct cadre_error *error)
{
    struct manifest_content *content = checkpoint_reader_manifest(reader);
    CADRE_FREE_AT_EXIT char *bytes = malloc(state_bytes(strategy) + 1);
    if (bytes == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory for the %zu bytes of the state", state_bytes(strategy));
    }
    CADRE_TRY(read_state(strategy, reader, bytes, error));
    CADRE_TRY(manifest_fits(strategy, content, error));
    return take_over(strategy, content, bytes, error);
}

cadre_status checkpoint_load(struct cadre_strategy *strategy, const char *path,
    uint64_t *ret_position, struct cadre_error *error)
{
    struct checkpoint_reader *reader = NULL;
    cadre_status status = checkpoint_reader_open(strategy, path, &reader, error);
    if (status == CADRE_OK) {
        status = load(strategy, reader, error);
    }
    if (status == CADRE_OK) {
        *ret_position = manifest_position(checkpoint_reader_manifest(reader));
    }
    checkpoint_reader_close(reader);
    return status == CADRE_OK ? CADRE_OK
                              : cadre_error_wrap(error, status, "the checkpoint %s", path);
}
