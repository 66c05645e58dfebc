/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/runtime/state/checkpoint_write.h"

#include <isa-l/crc.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "worker/runtime/state/checkpoint_file.h"
#include "worker/runtime/state/checkpoint_folder.h"

#define BLOCK_BYTES LIMIT_CHECKPOINT_BLOCK_BYTES

uint32_t checkpoint_crc32c(const void *bytes, size_t size)
{
    uint32_t crc = UINT32_MAX;
    for (size_t at = 0; at < size; at += BLOCK_BYTES) {
        size_t length = size - at < BLOCK_BYTES ? size - at : BLOCK_BYTES;
        /* It only reads, and says so in its manual. */
        crc = crc32_iscsi((unsigned char *)(uintptr_t)bytes + at, (int)length, crc);
    }
    return ~crc;
}

static cadre_status add_block(struct checkpoint_file *out, struct sha256_stream *whole,
    const char *bytes, struct manifest_block *block, struct cadre_error *error)
{
    struct sha256 hash;
    size_t size = (size_t)block->bytes;
    cadre_status status = checkpoint_file_add(out, bytes, size, error);
    if (status == CADRE_OK) {
        status = sha256_of(bytes, size, &hash, error);
    }
    if (status == CADRE_OK) {
        memcpy(block->sha256, hash.bytes, sizeof block->sha256);
        block->crc32c = checkpoint_crc32c(bytes, size);
        status = sha256_add(whole, bytes, size, error);
    }
    return status;
}

static cadre_status write_blocks(struct checkpoint_file *out, const char *bytes,
    struct manifest_file *file, struct cadre_error *error)
{
    struct sha256_stream *whole = NULL;
    struct sha256 hash = {{0}};
    cadre_status status = sha256_open(&whole, error);
    for (uint64_t at = 0; status == CADRE_OK && at < file->bytes; at += BLOCK_BYTES) {
        struct manifest_block *block = &file->blocks[file->block_count++];
        uint64_t left = file->bytes - at;
        *block =
            (struct manifest_block){.offset = at, .bytes = left < BLOCK_BYTES ? left : BLOCK_BYTES};
        status = add_block(out, whole, bytes + at, block, error);
    }
    if (status == CADRE_OK) {
        status = sha256_finish(whole, &hash, error);
    }
    memcpy(file->sha256, hash.bytes, sizeof file->sha256);
    sha256_close(whole);
    return status;
}

static cadre_status write_tensors(struct checkpoint_copy *copy, const char *folder,
    struct manifest_file *file, struct cadre_error *error)
{
    const char *bytes = NULL;
    size_t size = 0;
    cadre_status status = checkpoint_copy_file(copy, &bytes, &size, error);
    if (status != CADRE_OK) {
        return status;
    }
    checkpoint_name(copy->position, CHECKPOINT_TENSORS_NAME, file->name);
    file->bytes = size;
    file->blocks = calloc(size / BLOCK_BYTES + 1, sizeof *file->blocks);
    if (file->blocks == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for the blocks of %s", file->name);
    }
    struct checkpoint_file out;
    status = checkpoint_file_begin(&out, folder, file->name, error);
    if (status == CADRE_OK) {
        status = write_blocks(&out, bytes, file, error);
    }
    char older[CHECKPOINT_NAME_BYTES];
    checkpoint_name(copy->position, CHECKPOINT_TEXT_NAME, older);
    if (status == CADRE_OK) {
        status = checkpoint_file_settle(&out, error);
    }
    if (status == CADRE_OK) {
        /* A manifest that stands there is not of these tensors. On a full disk it stays. */
        status = checkpoint_file_remove(folder, older, error);
    }
    if (status == CADRE_OK) {
        status = checkpoint_file_end(&out, error);
    }
    checkpoint_file_drop(&out);
    return status;
}

static cadre_status write_text(struct checkpoint_copy *copy, const char *folder,
    const struct manifest_file *file, uint64_t *ret_bytes, struct sha256 *ret_hash,
    struct cadre_error *error)
{
    char name[CHECKPOINT_NAME_BYTES];
    CADRE_FREE_AT_EXIT char *text = NULL;
    size_t size = 0;
    checkpoint_name(copy->position, CHECKPOINT_TEXT_NAME, name);
    cadre_status status = manifest_text(copy->manifest, file, &text, &size, error);
    if (status == CADRE_OK) {
        status = sha256_of(text, size, ret_hash, error);
    }
    if (status != CADRE_OK) {
        return status;
    }
    struct checkpoint_file out;
    status = checkpoint_file_begin(&out, folder, name, error);
    if (status == CADRE_OK) {
        status = checkpoint_file_add(&out, text, size, error);
    }
    if (status == CADRE_OK) {
        status = checkpoint_file_settle(&out, error);
    }
    if (status == CADRE_OK) {
        status = checkpoint_file_end(&out, error);
    }
    checkpoint_file_drop(&out);
    *ret_bytes = size;
    return status;
}

cadre_status checkpoint_write(struct checkpoint_copy *copy, const char *folder,
    uint64_t *ret_manifest_bytes, struct sha256 *ret_manifest_hash, struct cadre_error *error)
{
    struct manifest_file file = {.bytes = 0};
    checkpoint_folder_clear(folder);
    cadre_status status = write_tensors(copy, folder, &file, error);
    if (status == CADRE_OK) {
        status = write_text(copy, folder, &file, ret_manifest_bytes, ret_manifest_hash, error);
    }
    manifest_file_clear(&file);
    return status;
}

cadre_status checkpoint_write_tensors(
    struct checkpoint_copy *copy, const char *folder, struct cadre_error *error)
{
    struct manifest_file file = {.bytes = 0};
    cadre_status status = write_tensors(copy, folder, &file, error);
    manifest_file_clear(&file);
    return status;
}
