/* SPDX-License-Identifier: Apache-2.0
 * The checkpoint that a job goes on from, at rank 0: opened once, read tensor by tensor as
 * variables are made; strings shared with all. initial_value.c, register.c and checkpoint_load.c
 * call it. */
#include "worker/library/runtime/state/restore/restore.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/checkpoint/choose.h"
#include "common/pure/assert.h"
#include "worker/library/device/tensor.h"
#include "worker/library/runtime/state/layout/state_part.h"
#include "worker/library/runtime/strategy/strategy.h"

/* --- the checkpoint --- */

cadre_status restore_open(struct cadre_strategy *strategy, const char *path,
    struct checkpoint_reader **ret_reader, struct cadre_error *error)
{
    cadre_status status =
        strategy->state_part->restoring == NULL
            ? checkpoint_reader_open(strategy, path, &strategy->state_part->restoring, error)
            : checkpoint_reader_follow(strategy->state_part->restoring, strategy, error);
    *ret_reader = strategy->state_part->restoring;
    if (status != CADRE_OK) {
        cadre_error_wrap(error, status, "the checkpoint %s", path);
        return checkpoint_suggest_other(path, error);
    }
    restore_report(strategy, *ret_reader);
    return CADRE_OK;
}

void restore_report(const struct cadre_strategy *strategy, struct checkpoint_reader *reader)
{
    const struct manifest_content *content = checkpoint_reader_manifest(reader);
    if (content != NULL) {
        checkpoint_reader_report(reader, strategy->task, strategy->environment->by_hand,
            manifest_tensors(content)->bytes);
    }
}

void restore_close(struct cadre_strategy *strategy)
{
    checkpoint_reader_close(strategy->state_part->restoring);
    strategy->state_part->restoring = NULL;
}

cadre_status restore_require(struct cadre_strategy *strategy, struct cadre_error *error)
{
    const char *path = strategy->environment->restore_path;
    uint64_t resume = strategy->roster.resume;
    struct checkpoint_reader *reader = strategy->state_part->restoring;
    if (path[0] == '\0') {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "the job goes on from step %" PRIu64
            ", and CADRE_RESTORE does not name the checkpoint to load",
            resume);
    }
    if (reader == NULL) {
        CADRE_TRY(restore_open(strategy, path, &reader, error));
    }
    CADRE_ASSERT(reader != NULL); /* it is open, or was opened now */
    uint64_t position = manifest_position(checkpoint_reader_manifest(reader));
    return position == resume ? CADRE_OK
                              : cadre_error_set(error, CADRE_FAILED_PRECONDITION,
                                    "the checkpoint %s is of step %" PRIu64
                                    ", and the job goes on from step %" PRIu64,
                                    path, position, resume);
}

/* --- one tensor --- */

cadre_status restore_entry(struct checkpoint_reader *reader, const struct state_tensor *tensor,
    const struct safetensors_entry **ret_entry, struct cadre_error *error)
{
    const struct safetensors_entry *entry = checkpoint_reader_find(reader, tensor->name);
    *ret_entry = entry;
    if (entry == NULL) {
        return cadre_error_set(
            error, CADRE_NOT_FOUND, "it holds no '%s', which the program has", tensor->name);
    }
    bool counts =
        tensor->counts && entry->dtype == tensor->dtype && entry->rank == 1 && entry->dims[0] > 0;
    if (counts) {
        return CADRE_OK;
    }
    if (entry->dtype != tensor->dtype || entry->rank != tensor->rank ||
        memcmp(entry->dims, tensor->dims, entry->rank * sizeof entry->dims[0]) != 0) {
        char is[TENSOR_SHAPE_TEXT_BYTES];
        char wanted[TENSOR_SHAPE_TEXT_BYTES];
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "it holds '%s' as %s, and the program has %s", tensor->name,
            tensor_shape_text(entry->dtype, entry->rank, entry->dims, is),
            tensor_shape_text(tensor->dtype, tensor->rank, tensor->dims, wanted));
    }
    return CADRE_OK;
}

/* The largest of several counts, as parameter servers keep one for each shard. */
static cadre_status largest_count(struct checkpoint_reader *reader,
    const struct safetensors_entry *entry, int64_t *ret_most, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT int64_t *counts = malloc(entry->bytes);
    if (counts == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for the counts '%s'", entry->name);
    }
    CADRE_TRY(checkpoint_reader_read(reader, entry, 0, counts, entry->bytes, error));
    *ret_most = counts[0];
    for (size_t i = 1; i < entry->bytes / sizeof counts[0]; i++) {
        *ret_most = counts[i] > *ret_most ? counts[i] : *ret_most;
    }
    return CADRE_OK;
}

cadre_status restore_read(struct checkpoint_reader *reader, const struct safetensors_entry *entry,
    const struct state_tensor *tensor, void *into, struct cadre_error *error)
{
    return tensor->counts ? largest_count(reader, entry, into, error)
                          : checkpoint_reader_read(reader, entry, 0, into, tensor->bytes, error);
}

cadre_status restore_failed(const char *path, cadre_status status, struct cadre_error *error)
{
    CADRE_ASSERT(status != CADRE_OK);
    cadre_error_wrap(error, status, "the checkpoint %s", path);
    return status == CADRE_DATA_LOSS ? checkpoint_suggest_other(path, error) : status;
}

cadre_status restore_tensor(struct cadre_strategy *strategy, const struct state_tensor *tensor,
    void *into, struct cadre_error *error)
{
    const struct safetensors_entry *entry = NULL;
    CADRE_TRY(restore_require(strategy, error));
    CADRE_ASSERT(strategy->state_part->restoring != NULL);
    cadre_status status = restore_entry(strategy->state_part->restoring, tensor, &entry, error);
    if (status == CADRE_OK) {
        status = restore_read(strategy->state_part->restoring, entry, tensor, into, error);
    }
    return status == CADRE_OK ? CADRE_OK
                              : restore_failed(strategy->environment->restore_path, status, error);
}

/* --- strings --- */

cadre_status restore_strings(struct cadre_strategy *strategy, const cadre_variable *variable,
    cadre_tensor **ret_strings, struct cadre_error *error)
{
    *ret_strings = NULL;
    CADRE_TRY(restore_require(strategy, error));
    cadre_status status =
        checkpoint_reader_strings(strategy->state_part->restoring, variable, ret_strings, error);
    return status == CADRE_OK ? CADRE_OK
                              : restore_failed(strategy->environment->restore_path, status, error);
}

/* The lengths, then the bytes. */
static char *pack_strings(const cadre_tensor *strings, uint64_t *ret_bytes)
{
    CADRE_ASSERT(cadre_tensor_dtype(strings) == CADRE_STRING);
    const cadre_string *each = cadre_tensor_const_data(strings);
    size_t count = (size_t)cadre_tensor_count(strings);
    size_t bytes = count * sizeof(uint64_t);
    for (size_t i = 0; i < count; i++) {
        bytes += each[i].size;
    }
    char *packed = malloc(bytes + 1);
    size_t at = count * sizeof(uint64_t);
    for (size_t i = 0; packed != NULL && i < count; i++) {
        uint64_t size = each[i].size;
        memcpy(packed + i * sizeof size, &size, sizeof size);
        if (size > 0) {
            memcpy(packed + at, each[i].bytes, each[i].size);
        }
        at += each[i].size;
    }
    *ret_bytes = bytes;
    CADRE_ASSERT(packed == NULL || at == bytes); /* the lengths were counted before */
    return packed;
}

static cadre_status unpack_strings(
    cadre_variable *variable, const char *packed, uint64_t bytes, struct cadre_error *error)
{
    CADRE_ASSERT(variable->dtype == CADRE_STRING);
    size_t count = (size_t)variable->count;
    cadre_tensor *strings = NULL;
    CADRE_FREE_AT_EXIT cadre_string *each = calloc(count + 1, sizeof *each);
    if (each == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory for the %zu strings of variable '%s'", count, variable->name);
    }
    size_t at = count * sizeof(uint64_t);
    for (size_t i = 0; i < count; i++) {
        uint64_t size = 0;
        if (at <= bytes) {
            memcpy(&size, packed + i * sizeof size, sizeof size);
        }
        if (at > bytes || size > bytes - at) {
            return cadre_error_set(error, CADRE_INTERNAL,
                "the strings of variable '%s' came cut off from the first task", variable->name);
        }
        each[i] = (cadre_string){packed + at, (size_t)size};
        at += (size_t)size;
    }
    CADRE_TRY(
        tensor_from_data(CADRE_STRING, variable->rank, variable->dims, each, &strings, error));
    cadre_tensor_release(variable->strings);
    variable->strings = strings;
    return CADRE_OK;
}

cadre_status restore_share_strings(struct cadre_strategy *strategy, uint32_t local,
    cadre_variable *variable, const cadre_tensor *strings, struct cadre_error *error)
{
    uint64_t bytes = 0;
    bool first = strategy->roster.rank == 0 && local == 0;
    CADRE_FREE_AT_EXIT char *packed = first ? pack_strings(strings, &bytes) : NULL;
    struct mesh *mesh = strategy->mesh;
    const struct mesh_buffer size = {.data = &bytes, .bytes = sizeof bytes, .dtype = MESH_U8};
    CADRE_TRY(mesh->ops->broadcast(mesh, local, 0, &size, 1, NULL, error));
    if (packed == NULL) {
        packed = malloc((size_t)bytes + 1);
    }
    if (packed == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory for the %" PRIu64 " bytes of variable '%s'", bytes, variable->name);
    }
    const struct mesh_buffer all = {.data = packed, .bytes = (size_t)bytes, .dtype = MESH_U8};
    CADRE_TRY(mesh->ops->broadcast(mesh, local, 0, &all, 1, NULL, error));
    return local == 0 ? unpack_strings(variable, packed, bytes, error) : CADRE_OK;
}
