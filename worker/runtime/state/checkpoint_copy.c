/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/runtime/state/checkpoint_copy.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/base/cleanup.h"
#include "common/model/task_message.h"
#include "common/pure/assert.h"
#include "worker/runtime/state/state.h"
#include "worker/runtime/strategy.h"

#define DATA_ALIGN ((size_t)4096)

void checkpoint_copy_clear(struct checkpoint_copy *copy)
{
    if (copy->memory != NULL) {
        munmap(copy->memory, copy->memory_bytes);
    }
    free(copy->entries);
    manifest_free(copy->manifest);
    *copy = (struct checkpoint_copy){.position = POSITION_NONE};
}

/* Where each tensor goes. Strings are in the manifest. */
static cadre_status lay_out(
    struct checkpoint_copy *copy, const struct cadre_strategy *strategy, struct cadre_error *error)
{
    copy->tensors = strategy->variable_count + strategy->registered_count;
    copy->entries = calloc((size_t)copy->tensors + 1, sizeof *copy->entries);
    if (copy->entries == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for %u tensors", copy->tensors);
    }
    struct state_tensor tensor;
    for (uint32_t i = 0; state_tensor_at(strategy, i, &tensor); i++) {
        if (tensor.dtype == CADRE_STRING) {
            continue;
        }
        struct safetensors_entry *entry = &copy->entries[copy->entry_count++];
        entry->dtype = tensor.dtype;
        entry->rank = tensor.rank;
        entry->bytes = tensor.bytes;
        memcpy(entry->name, tensor.name, sizeof entry->name);
        memcpy(entry->dims, tensor.dims, sizeof entry->dims);
    }
    copy->data_bytes = safetensors_place(copy->entries, copy->entry_count);
    /* The header grows with the digits of the position. */
    CADRE_FREE_AT_EXIT char *header = NULL;
    cadre_status status = safetensors_header(
        copy->entries, copy->entry_count, UINT64_MAX, &header, &copy->header_room, error);
    copy->header_room = (copy->header_room + DATA_ALIGN - 1) / DATA_ALIGN * DATA_ALIGN;
    if (status == CADRE_OK && copy->header_room + copy->data_bytes > LIMIT_BLOB_BYTES) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "the state has %zu bytes, and a checkpoint at most %llu", copy->data_bytes,
            LIMIT_BLOB_BYTES);
    }
    return status;
}

cadre_status checkpoint_copy_prepare(
    struct checkpoint_copy *copy, const struct cadre_strategy *strategy, struct cadre_error *error)
{
    if (copy->memory != NULL &&
        copy->tensors == strategy->variable_count + strategy->registered_count) {
        return CADRE_OK;
    }
    checkpoint_copy_clear(copy);
    cadre_status status = lay_out(copy, strategy, error);
    if (status != CADRE_OK) {
        checkpoint_copy_clear(copy);
        return status;
    }
    copy->memory_bytes = copy->header_room + copy->data_bytes;
    void *memory =
        mmap(NULL, copy->memory_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        size_t bytes = copy->memory_bytes;
        checkpoint_copy_clear(copy);
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory for a copy of the state, %zu bytes; a checkpoint needs as much memory as "
            "the variables have",
            bytes);
    }
    copy->memory = memory;
    madvise(memory, copy->memory_bytes, MADV_HUGEPAGE); /* fewer faults; as well without */
    memset(memory, 0, copy->memory_bytes); /* faults now, not when the training waits for it */
    return CADRE_OK;
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
    /* Of a position that nothing was applied to, only what is no part of steps can differ. */
    bool same = copy->position != POSITION_NONE && held == strategy_position(strategy) && held > 0;
    copy->position = POSITION_NONE;
    char *data = copy->memory + copy->header_room;
    struct state_tensor tensor;
    const struct safetensors_entry *entry = copy->entries;
    for (uint32_t i = 0; state_tensor_at(strategy, i, &tensor); i++) {
        if (tensor.dtype == CADRE_STRING) {
            continue;
        }
        same = same && memcmp(data + entry->offset, tensor.data, tensor.bytes) == 0;
        if (!same && tensor.bytes > 0) {
            memcpy(data + entry->offset, tensor.data, tensor.bytes);
        }
        entry++;
    }
    CADRE_ASSERT((size_t)(entry - copy->entries) == copy->entry_count);
    copy->position = strategy_position(strategy);
    manifest_free(copy->manifest);
    copy->manifest = manifest;
    *ret_same = same;
    return CADRE_OK;
}

cadre_status checkpoint_copy_file(struct checkpoint_copy *copy, const char **ret_bytes,
    size_t *ret_size, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *header = NULL;
    size_t header_bytes = 0;
    cadre_status status = safetensors_header(
        copy->entries, copy->entry_count, copy->position, &header, &header_bytes, error);
    if (status != CADRE_OK) {
        return status;
    }
    CADRE_ASSERT(header_bytes <= copy->header_room);
    char *begin = copy->memory + copy->header_room - header_bytes;
    memcpy(begin, header, header_bytes);
    *ret_bytes = begin;
    *ret_size = header_bytes + copy->data_bytes;
    return CADRE_OK;
}
