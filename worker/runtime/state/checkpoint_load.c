/* SPDX-License-Identifier: Apache-2.0
 * Going on from a checkpoint. All is read and checked before anything of the state is touched. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/files.h"
#include "worker/device/tensor.h"
#include "worker/runtime/state/checkpoint.h"
#include "worker/runtime/state/checkpoint_write.h"
#include "worker/runtime/state/manifest.h"
#include "worker/runtime/state/safetensors.h"
#include "worker/runtime/state/state.h"
#include "worker/runtime/strategy.h"

/* --- the file --- */

static cadre_status read_block(int fd, const char *path, size_t i,
    const struct manifest_block *block, char *into, struct cadre_error *error)
{
    size_t done = 0;
    while (done < block->bytes) {
        ssize_t count =
            pread(fd, into + done, (size_t)block->bytes - done, (off_t)(block->offset + done));
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0) {
            return cadre_error_errno(error, errno, "cannot read %s", path);
        }
        if (count == 0) {
            break;
        }
        done += (size_t)count;
    }
    uint32_t crc = checkpoint_crc32c(into, done);
    if (done == block->bytes && crc == block->crc32c) {
        return CADRE_OK;
    }
    return cadre_error_set(error, CADRE_DATA_LOSS,
        "%s is damaged: block %zu, the %llu bytes from offset %llu, has checksum %08x and not "
        "%08x; use another checkpoint",
        path, i, (unsigned long long)block->bytes, (unsigned long long)block->offset, (unsigned)crc,
        (unsigned)block->crc32c);
}

/* *ret_bytes is the caller's to free. */
static cadre_status read_tensors(
    const char *path, const struct manifest_file *file, char **ret_bytes, struct cadre_error *error)
{
    CADRE_CLOSE_AT_EXIT int fd = -1;
    uint64_t size = 0;
    cadre_status status = file_open_regular(path, &fd, &size, error);
    if (status != CADRE_OK) {
        return status;
    }
    if (size != file->bytes) {
        return cadre_error_set(error, CADRE_DATA_LOSS,
            "%s is damaged: it has %llu bytes and not %llu; use another checkpoint", path,
            (unsigned long long)size, (unsigned long long)file->bytes);
    }
    char *bytes = malloc((size_t)size + 1);
    *ret_bytes = bytes;
    if (bytes == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory for the %llu bytes of %s", (unsigned long long)size, path);
    }
    for (size_t i = 0; status == CADRE_OK && i < file->block_count; i++) {
        const struct manifest_block *block = &file->blocks[i];
        status = read_block(fd, path, i, block, bytes + block->offset, error);
    }
    return status;
}

/* --- what it holds --- */

/* Usually the one behind the last that was found. */
static const struct safetensors_entry *find(
    const struct safetensors_entry *entries, size_t count, const char *name, size_t *cursor)
{
    for (size_t i = 0; i < count; i++) {
        size_t at = (*cursor + i) % count;
        if (strcmp(entries[at].name, name) == 0) {
            *cursor = at + 1;
            return &entries[at];
        }
    }
    return NULL;
}

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

/* Where the data of each tensor of the state lie, strings without. *ret_data is the caller's to
 * free. */
static cadre_status match(const struct cadre_strategy *strategy,
    const struct safetensors_entry *entries, size_t count, const void ***ret_data,
    struct cadre_error *error)
{
    size_t tensors = (size_t)strategy->variable_count + strategy->registered_count;
    size_t cursor = 0;
    struct state_tensor tensor;
    cadre_status status = CADRE_OK;
    *ret_data = calloc(tensors + 1, sizeof **ret_data);
    if (*ret_data == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for %zu tensors", tensors);
    }
    for (uint32_t i = 0; status == CADRE_OK && state_tensor_at(strategy, i, &tensor); i++) {
        if (tensor.dtype != CADRE_STRING) {
            const struct safetensors_entry *entry = find(entries, count, tensor.name, &cursor);
            status = check_entry(&tensor, entry, error);
            (*ret_data)[i] = entry == NULL ? NULL : entry->data;
        }
    }
    return status;
}

static cadre_status take_over(struct cadre_strategy *strategy, struct manifest_content *content,
    const void *const *data, struct cadre_error *error)
{
    struct state_tensor tensor;
    size_t offset = 0;
    cadre_status status = state_receive(strategy, false, true, error);
    if (status != CADRE_OK) {
        return status;
    }
    for (uint32_t i = 0; state_tensor_at(strategy, i, &tensor); i++) {
        if (tensor.bytes > 0) {
            state_write(strategy, offset, data[i], tensor.bytes);
        }
        offset += tensor.bytes;
    }
    manifest_take_over(strategy, content, true);
    state_commit(strategy);
    return CADRE_OK;
}

/* --- all of it --- */

static cadre_status load_tensors(struct cadre_strategy *strategy, const char *path,
    struct manifest_content *content, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *bytes = NULL;
    CADRE_FREE_AT_EXIT struct safetensors_entry *entries = NULL;
    CADRE_FREE_AT_EXIT const void **data = NULL;
    size_t count = 0;
    uint64_t position = 0;
    const struct manifest_file *file = manifest_tensors(content);
    cadre_status status = read_tensors(path, file, &bytes, error);
    if (status == CADRE_OK) {
        status = safetensors_decode(bytes, (size_t)file->bytes, &entries, &count, &position, error);
    }
    if (status == CADRE_OK && position != manifest_position(content)) {
        status = cadre_error_set(error, CADRE_DATA_LOSS,
            "%s is not of the position that its manifest says, %llu", path,
            (unsigned long long)manifest_position(content));
    }
    if (status == CADRE_OK) {
        status = match(strategy, entries, count, &data, error);
    }
    if (status == CADRE_OK) {
        status = manifest_fits(strategy, content, error);
    }
    return status == CADRE_OK ? take_over(strategy, content, data, error) : status;
}

/* A file of tensors alone does not say where in which epoch it was written. */
static cadre_status read_manifest(
    const char *path, char **ret_text, size_t *ret_bytes, struct cadre_error *error)
{
    static const char tensors[] = ".safetensors";
    size_t length = strlen(path);
    if (length >= sizeof tensors && strcmp(path + length - (sizeof tensors - 1), tensors) == 0) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "it holds tensors only; what is missing is the manifest, which says where the "
            "training stood: name the file that ends with .json beside it");
    }
    return file_read(path, LIMIT_MANIFEST_BYTES, ret_text, ret_bytes, error);
}

cadre_status checkpoint_load(struct cadre_strategy *strategy, const char *path,
    uint64_t *ret_position, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *text = NULL;
    CADRE_FREE_AT_EXIT char *tensors = NULL;
    struct manifest_content *content = NULL;
    size_t bytes = 0;
    cadre_status status = read_manifest(path, &text, &bytes, error);
    if (status == CADRE_OK) {
        status = manifest_read(strategy, text, bytes, &content, error);
    }
    if (status == CADRE_OK && manifest_tensors(content) == NULL) {
        status = cadre_error_set(
            error, CADRE_INVALID_ARGUMENT, "it names no file of tensors (\"file\" is missing)");
    }
    if (status == CADRE_OK) {
        const char *slash = strrchr(path, '/');
        int folder = slash == NULL ? 0 : (int)(slash - path) + 1;
        if (asprintf(&tensors, "%.*s%s", folder, path, manifest_tensors(content)->name) < 0) {
            tensors = NULL;
            status = cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a path");
        }
    }
    if (status == CADRE_OK) {
        status = load_tensors(strategy, tensors, content, error);
    }
    if (status == CADRE_OK) {
        *ret_position = manifest_position(content);
    }
    manifest_content_free(content);
    return status == CADRE_OK ? CADRE_OK
                              : cadre_error_wrap(error, status, "the checkpoint %s", path);
}
