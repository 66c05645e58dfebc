/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/runtime/checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/files.h"
#include "common/base/sha256.h"
#include "worker/device/tensor.h"
#include "worker/runtime/safetensors.h"
#include "worker/runtime/variable.h"

#define CHECKPOINT_BYTES_MAX ((size_t)1 << 40)

static cadre_status encode(const cadre_strategy *strategy, uint64_t position, void **ret_bytes,
    size_t *ret_size, struct cadre_error *error)
{
    uint32_t count = strategy->variable_count;
    CADRE_FREE_AT_EXIT struct safetensors_entry *entries =
        calloc((size_t)count + 1, sizeof *entries);
    if (entries == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a checkpoint");
    }
    for (uint32_t i = 0; i < count; i++) {
        const cadre_variable *variable = strategy->variables[i];
        entries[i] = (struct safetensors_entry){.dtype = variable->dtype,
            .rank = variable->rank,
            .data = variable->components[0].value,
            .bytes = variable->bytes};
        memcpy(entries[i].name, variable->name, sizeof entries[i].name);
        memcpy(entries[i].dims, variable->dims, sizeof entries[i].dims);
    }
    return safetensors_encode(entries, count, position, ret_bytes, ret_size, error);
}

cadre_status checkpoint_probe(const char *folder, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *path = NULL;
    if (asprintf(&path, "%s/.cadre-XXXXXX", folder) < 0) {
        path = NULL;
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a path");
    }
    CADRE_CLOSE_AT_EXIT int fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0) {
        char reason[128];
        return cadre_error_set(error, cadre_status_from_errno(errno),
            "no checkpoint can be written to the output folder '%s': %s; set CADRE_OUTPUT_DIR to "
            "another one",
            folder, strerror_r(errno, reason, sizeof reason)); /* GNU's form: returns the text */
    }
    unlink(path);
    return CADRE_OK;
}

cadre_status checkpoint_write(
    cadre_strategy *strategy, const char *folder, struct cadre_error *error)
{
    uint64_t position = strategy_position(strategy);
    CADRE_FREE_AT_EXIT void *bytes = NULL;
    CADRE_FREE_AT_EXIT char *path = NULL;
    size_t size = 0;
    char name[64];
    struct sha256 hash;
    snprintf(name, sizeof name, "checkpoint-%" PRIu64 ".safetensors", position);
    if (asprintf(&path, "%s/%s", folder, name) < 0) {
        path = NULL;
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a path");
    }
    cadre_status status = encode(strategy, position, &bytes, &size, error);
    if (status == CADRE_OK) {
        status = sha256_of(bytes, size, &hash, error);
    }
    if (status == CADRE_OK) {
        status = file_write_atomic(path, bytes, size, 0644, error);
    }
    if (status != CADRE_OK) {
        return cadre_error_wrap(error, status, "write the checkpoint %s", path);
    }
    struct task_part part = {.position = position, .path = name, .size_bytes = size};
    memcpy(part.sha256, hash.bytes, sizeof part.sha256);
    task_part(strategy->task, &part);
    return CADRE_OK;
}

static cadre_status restore_variable(cadre_variable *variable,
    const struct safetensors_entry *entries, size_t count, struct cadre_error *error)
{
    size_t at = 0;
    while (at < count && strcmp(entries[at].name, variable->name) != 0) {
        at++;
    }
    if (at == count) {
        return cadre_error_set(error, CADRE_NOT_FOUND, "it holds no variable '%s'", variable->name);
    }
    const struct safetensors_entry *entry = &entries[at];
    if (entry->dtype != variable->dtype || entry->rank != variable->rank ||
        memcmp(entry->dims, variable->dims, entry->rank * sizeof entry->dims[0]) != 0) {
        char is[TENSOR_SHAPE_TEXT_BYTES];
        char wanted[TENSOR_SHAPE_TEXT_BYTES];
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "it holds '%s' as %s, and the program wants %s", variable->name,
            tensor_shape_text(entry->dtype, entry->rank, entry->dims, is),
            tensor_shape_text(variable->dtype, variable->rank, variable->dims, wanted));
    }
    for (uint32_t i = 0; i < variable->component_count; i++) {
        memcpy(variable->components[i].value, entry->data, variable->bytes);
    }
    return CADRE_OK;
}

cadre_status checkpoint_read(
    cadre_strategy *strategy, const char *path, uint64_t *ret_position, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *bytes = NULL;
    CADRE_FREE_AT_EXIT struct safetensors_entry *entries = NULL;
    size_t size = 0;
    size_t count = 0;
    cadre_status status = file_read(path, CHECKPOINT_BYTES_MAX, &bytes, &size, error);
    if (status == CADRE_OK) {
        status = safetensors_decode(bytes, size, &entries, &count, ret_position, error);
    }
    for (uint32_t i = 0; status == CADRE_OK && i < strategy->variable_count; i++) {
        status = restore_variable(strategy->variables[i], entries, count, error);
    }
    if (status != CADRE_OK) {
        return cadre_error_wrap(error, status, "read the checkpoint %s", path);
    }
    return CADRE_OK;
}
