/* SPDX-License-Identifier: Apache-2.0
 * A copy of the state in memory, its entries of the file and its hashes. checkpoint.c takes it,
 * checkpoint_write.c writes it. */
#include "worker/library/runtime/state/checkpoint/checkpoint_copy.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/base/cleanup.h"
#include "common/base/fault.h"
#include "common/model/task_message.h"
#include "common/pure/assert.h"
#include "worker/library/device/device.h"
#include "worker/library/runtime/state/layout/state.h"
#include "worker/library/runtime/state/layout/state_part.h"
#include "worker/library/runtime/state/layout/streamed.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/variables/variable.h"

void checkpoint_copy_clear(struct checkpoint_copy *copy)
{
    if (copy->memory != NULL && copy->pinned) {
        tensor_memory_give(TENSOR_MEMORY_PINNED, copy->memory, copy->memory_bytes);
    } else if (copy->memory != NULL) {
        munmap(copy->memory, copy->memory_bytes);
    }
    free(copy->entries);
    free(copy->tensors_of);
    state_hashes_clear(&copy->hashes);
    manifest_free(copy->manifest);
    *copy = (struct checkpoint_copy){.position = POSITION_NONE};
}

/* Strings are in the manifest. */
static void describe_state(struct checkpoint_copy *copy, const struct cadre_strategy *strategy)
{
    CADRE_ASSERT(copy->entry_count == 0);
    CADRE_ASSERT(copy->entries != NULL);
    struct state_tensor tensor;
    for (uint32_t i = 0; state_tensor_at(strategy, i, &tensor); i++) {
        if (tensor.dtype == CADRE_STRING) {
            continue;
        }
        copy->tensors_of[copy->entry_count] = i;
        struct safetensors_entry *entry = &copy->entries[copy->entry_count++];
        entry->dtype = tensor.dtype;
        entry->rank = tensor.rank;
        entry->bytes = tensor.bytes;
        memcpy(entry->name, tensor.name, sizeof entry->name);
        memcpy(entry->dims, tensor.dims, sizeof entry->dims);
    }
    copy->copied = copy->entry_count;
}

static uint32_t count_tensors(const struct cadre_strategy *strategy)
{
    return strategy->variables->count + strategy->state_part->registered_count +
           streamed_count(strategy);
}

/* Gives each tensor its offset in the file and in the memory. */
static cadre_status lay_out(
    struct checkpoint_copy *copy, const struct cadre_strategy *strategy, struct cadre_error *error)
{
    CADRE_ASSERT(copy->entries == NULL);
    uint32_t streamed = streamed_count(strategy);
    copy->tensors = strategy->variables->count + strategy->state_part->registered_count + streamed;
    copy->source = strategy->state_part->streamed;
    copy->entries = calloc((size_t)copy->tensors + 1, sizeof *copy->entries);
    copy->tensors_of = calloc((size_t)copy->tensors + 1, sizeof *copy->tensors_of);
    if (copy->entries == NULL || copy->tensors_of == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for %u tensors", copy->tensors);
    }
    describe_state(copy, strategy);
    copy->memory_bytes = safetensors_set_offsets(copy->entries, copy->copied);
    for (uint32_t i = 0; i < streamed; i++) {
        struct safetensors_entry *entry = &copy->entries[copy->entry_count++];
        copy->source->ops->describe(copy->source, i, entry);
    }
    CADRE_ASSERT(copy->entry_count <= copy->tensors);
    return CADRE_OK;
}

/* Points each entry to its memory, in the order of the file. */
static cadre_status checkpoint_copy_target(struct checkpoint_copy *copy, struct cadre_error *error)
{
    CADRE_ASSERT(copy->memory != NULL);
    CADRE_FREE_AT_EXIT char *header = NULL;
    size_t header_bytes = 0;
    for (size_t i = 0; i < copy->copied; i++) {
        copy->entries[i].data = copy->memory + copy->entries[i].offset;
    }
    copy->data_bytes = safetensors_set_offsets(copy->entries, copy->entry_count);
    CADRE_TRY(safetensors_header(
        copy->entries, copy->entry_count, UINT64_MAX, &header, &header_bytes, error));
    if (header_bytes + copy->data_bytes > LIMIT_BLOB_BYTES) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "the state has %zu bytes, and a checkpoint at most %llu", copy->data_bytes,
            LIMIT_BLOB_BYTES);
    }
    return CADRE_OK;
}

/* Whether there is a tensor that a device copies. */
static bool reads_devices(const struct cadre_strategy *strategy)
{
    struct state_tensor tensor;
    for (uint32_t i = 0; state_tensor_at(strategy, i, &tensor); i++) {
        if (tensor.device != NULL) {
            return true;
        }
    }
    return false;
}

static cadre_status get_memory(
    struct checkpoint_copy *copy, const struct cadre_strategy *strategy, struct cadre_error *error)
{
    CADRE_ASSERT(copy->memory == NULL);
    size_t bytes = copy->memory_bytes > 0 ? copy->memory_bytes : 1;
    copy->memory_bytes = bytes;
    if (reads_devices(strategy)) {
        copy->memory = tensor_memory_get(TENSOR_MEMORY_PINNED, bytes);
        copy->pinned = copy->memory != NULL;
    }
    if (copy->memory != NULL) {
        memset(copy->memory, 0, bytes);
        return CADRE_OK;
    }
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory for a copy of the state, %zu bytes; a checkpoint takes as much memory as "
            "the variables have",
            bytes);
    }
    copy->memory = memory;
    madvise(memory, bytes, MADV_HUGEPAGE); /* fewer faults; also correct without */
    memset(memory, 0, bytes);              /* faults now, not while the training waits */
    return CADRE_OK;
}

cadre_status checkpoint_copy_prepare(
    struct checkpoint_copy *copy, const struct cadre_strategy *strategy, struct cadre_error *error)
{
    if (copy->memory != NULL && copy->tensors == count_tensors(strategy)) {
        return CADRE_OK;
    }
    checkpoint_copy_clear(copy);
    cadre_status status = lay_out(copy, strategy, error);
    if (status == CADRE_OK) {
        status = get_memory(copy, strategy, error);
    }
    if (status == CADRE_OK) {
        status = checkpoint_copy_target(copy, error);
    }
    if (status != CADRE_OK) {
        checkpoint_copy_clear(copy);
    }
    return status;
}

/* Brings one tensor's bytes up to date; *same: they did not change, as all before. The copy of a
 * device is under way when this returns, and *ret_waits is that device. */
static cadre_status take_tensor(const struct checkpoint_copy *copy,
    const struct state_tensor *tensor, char *to, bool *same, struct device **ret_waits,
    struct cadre_error *error)
{
    CADRE_ASSERT(tensor->dtype != CADRE_STRING);
    if (tensor->bytes == 0) {
        return CADRE_OK;
    }
    if (tensor->device == NULL) {
        *same = *same && memcmp(to, tensor->data, tensor->bytes) == 0;
        if (!*same) {
            memcpy(to, tensor->data, tensor->bytes);
        }
        return CADRE_OK;
    }
    if (*same) { /* a variable on a device is changed by steps only */
        return CADRE_OK;
    }
    if (!copy->pinned) {
        return device_copy(to, NULL, tensor->data, tensor->device, tensor->bytes, error);
    }
    *ret_waits = tensor->device; /* all are of the first local replica */
    return tensor->device->ops->copy(
        to, tensor->data, tensor->bytes, tensor->device->compute, error);
}

static cadre_status take_tensors(struct checkpoint_copy *copy,
    const struct cadre_strategy *strategy, bool *same, struct cadre_error *error)
{
    struct state_tensor tensor;
    struct device *waits = NULL;
    cadre_status status = CADRE_OK;
    const struct safetensors_entry *entry = copy->entries;
    for (uint32_t i = 0; status == CADRE_OK && state_tensor_at(strategy, i, &tensor); i++) {
        if (tensor.dtype != CADRE_STRING) {
            char *to = copy->memory + ((const char *)entry->data - copy->memory);
            status = take_tensor(copy, &tensor, to, same, &waits, error);
            entry++;
        }
    }
    CADRE_ASSERT(status != CADRE_OK || (size_t)(entry - copy->entries) == copy->copied);
    if (waits != NULL) {
        cadre_status waited = device_wait_stream(
            waits, waits->compute, 0, NULL, NULL, status == CADRE_OK ? error : NULL);
        status = status == CADRE_OK ? waited : status;
    }
    return status == CADRE_OK
               ? status
               : cadre_error_wrap(error, status, "the copy of the state for a checkpoint");
}

static cadre_status no_memory(struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for hashes");
}

/* Strings are not copied, but in the manifest: they are hashed now. */
static cadre_status prepare_hashes(struct checkpoint_copy *copy,
    const struct cadre_strategy *strategy, struct manifest *manifest, struct cadre_error *error)
{
    struct state_tensor tensor;
    copy->compared = !strategy->environment->verify_off;
    copy->digest = 0;
    if (!copy->compared) {
        return CADRE_OK;
    }
    CADRE_TRY(state_hash_prepare(strategy, &copy->hashes, error));
    state_hash_strings(strategy, &copy->hashes);
    for (uint32_t i = 0; state_tensor_at(strategy, i, &tensor); i++) {
        if (tensor.dtype == CADRE_STRING &&
            !manifest_note_hash(manifest, tensor.name, copy->hashes.values[i])) {
            return no_memory(error);
        }
    }
    return CADRE_OK;
}

cadre_status checkpoint_copy_hash(struct checkpoint_copy *copy, struct cadre_error *error)
{
    CADRE_ASSERT(copy->manifest != NULL);
    bool noted = true;
    if (!copy->compared) {
        return CADRE_OK;
    }
    for (size_t i = 0; i < copy->copied; i++) {
        const struct safetensors_entry *entry = &copy->entries[i];
        if (entry->bytes > 0 && fault_point("copy.flip")) {
            copy->memory[(const char *)entry->data - copy->memory] ^= 1;
        }
        CADRE_ASSERT(copy->tensors_of[i] < copy->hashes.count);
        state_hash_copied(&copy->hashes, copy->tensors_of[i], entry->data, entry->bytes);
        noted = noted && manifest_note_hash(
                             copy->manifest, entry->name, copy->hashes.values[copy->tensors_of[i]]);
    }
    copy->digest = state_digest(&copy->hashes);
    return noted && manifest_note_hash(copy->manifest, NULL, copy->digest) ? CADRE_OK
                                                                           : no_memory(error);
}

cadre_status checkpoint_copy_take(struct checkpoint_copy *copy,
    const struct cadre_strategy *strategy, bool *ret_same, struct cadre_error *error)
{
    uint64_t held = copy->position;
    *ret_same = false;
    cadre_status status = checkpoint_copy_prepare(copy, strategy, error);
    struct manifest *manifest = NULL;
    if (status == CADRE_OK) {
        status = manifest_take(strategy, &manifest, error);
    }
    if (status != CADRE_OK) {
        return status;
    }
    uint64_t stamp = 0;
    bool stamped = streamed_stamp(strategy, &stamp);
    /* At the same position only what is no part of steps can differ. */
    bool same = copy->position != POSITION_NONE && held == strategy_position(strategy) &&
                held > 0 && stamped && copy->stamped && stamp == copy->stamp;
    copy->position = POSITION_NONE;
    status = prepare_hashes(copy, strategy, manifest, error);
    if (status == CADRE_OK) {
        status = take_tensors(copy, strategy, &same, error);
    }
    if (status != CADRE_OK) {
        manifest_free(manifest);
        return status;
    }
    copy->position = strategy_position(strategy);
    copy->stamped = stamped;
    copy->stamp = stamp;
    manifest_free(copy->manifest);
    copy->manifest = manifest;
    *ret_same = same;
    return CADRE_OK;
}

cadre_status checkpoint_copy_header(const struct checkpoint_copy *copy, char **ret_bytes,
    size_t *ret_size, struct cadre_error *error)
{
    return safetensors_header(
        copy->entries, copy->entry_count, copy->position, ret_bytes, ret_size, error);
}
