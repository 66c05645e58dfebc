/* SPDX-License-Identifier: Apache-2.0
 * Writes a copy of the state: the tensors in blocks with checksums, then the manifest. The
 * writer's thread in checkpoint.c calls it. */
#include "worker/library/runtime/state/checkpoint/checkpoint_copy.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/pure/assert.h"
#include "worker/library/checksum/crc32c.h"
#include "worker/library/runtime/state/checkpoint/checkpoint_folder.h"
#include "worker/library/runtime/state/format/checkpoint_file.h"
#include "worker/library/runtime/state/layout/streamed.h"

#define BLOCK_BYTES LIMIT_CHECKPOINT_BLOCK_BYTES

/* --- the file of tensors, in blocks --- */

/* The parts of an object are blocks, so that bytes are hashed once, by the threads that send them.
 */
_Static_assert(BLOCK_BYTES == STORAGE_PART_BYTES, "a block is a part of an upload");

struct block_writer {
    struct checkpoint_file out;
    struct manifest_file *file;
    struct sha256_stream *whole; /* of a file, which is hashed as it is added; NULL: an object */
    uint64_t writer;             /* in its name; 0: none */
    uint64_t added;              /* bytes */
    char *pending;               /* BLOCK_BYTES: of a block that is not full */
    size_t pending_bytes;
};

static void note_block(struct manifest_file *file, uint64_t offset, const void *bytes, size_t size,
    const struct sha256 *hash)
{
    CADRE_ASSERT(offset % BLOCK_BYTES == 0 && offset / BLOCK_BYTES < file->block_count);
    CADRE_ASSERT(size > 0 && size <= BLOCK_BYTES);
    struct manifest_block *block = &file->blocks[offset / BLOCK_BYTES];
    *block =
        (struct manifest_block){.offset = offset, .bytes = size, .crc32c = crc32c(0, bytes, size)};
    memcpy(block->sha256, hash->bytes, sizeof block->sha256);
}

/* A part of an object, in any thread. One of more than a block has their hashes, not its own. */
static cadre_status see_part(void *user, uint64_t offset, const void *bytes, size_t size,
    const struct sha256 *hash, struct cadre_error *error)
{
    const struct block_writer *writer = user;
    if (size <= BLOCK_BYTES) {
        note_block(writer->file, offset, bytes, size, hash);
        return CADRE_OK;
    }
    for (size_t at = 0; at < size; at += BLOCK_BYTES) {
        const char *from = (const char *)bytes + at;
        size_t count = size - at < BLOCK_BYTES ? size - at : BLOCK_BYTES;
        struct sha256 own;
        CADRE_TRY(sha256_of(from, count, &own, error));
        note_block(writer->file, offset + at, from, count, &own);
    }
    return CADRE_OK;
}

static cadre_status add_block(
    struct block_writer *writer, const char *bytes, size_t size, struct cadre_error *error)
{
    uint64_t offset = writer->added;
    CADRE_TRY(checkpoint_file_add(&writer->out, bytes, size, error));
    writer->added += size;
    if (writer->whole == NULL) {
        return CADRE_OK;
    }
    struct sha256 hash;
    CADRE_TRY(sha256_of(bytes, size, &hash, error));
    note_block(writer->file, offset, bytes, size, &hash);
    return sha256_add(writer->whole, bytes, size, error);
}

static cadre_status checkpoint_write_flush(struct block_writer *writer, struct cadre_error *error)
{
    size_t size = writer->pending_bytes;
    writer->pending_bytes = 0;
    return size == 0 ? CADRE_OK : add_block(writer, writer->pending, size, error);
}

/* A whole block is not copied. */
static cadre_status checkpoint_write_add(
    void *user, const void *from, size_t size, struct cadre_error *error)
{
    struct block_writer *writer = user;
    CADRE_ASSERT(writer->pending_bytes < BLOCK_BYTES);
    const char *bytes = from;
    while (size > 0) {
        if (writer->pending_bytes == 0 && size >= BLOCK_BYTES) {
            CADRE_TRY(add_block(writer, bytes, BLOCK_BYTES, error));
            bytes += BLOCK_BYTES;
            size -= BLOCK_BYTES;
            continue;
        }
        size_t room = BLOCK_BYTES - writer->pending_bytes;
        size_t count = size < room ? size : room;
        memcpy(writer->pending + writer->pending_bytes, bytes, count);
        writer->pending_bytes += count;
        bytes += count;
        size -= count;
        if (writer->pending_bytes == BLOCK_BYTES) {
            CADRE_TRY(checkpoint_write_flush(writer, error));
        }
    }
    return CADRE_OK;
}

static cadre_status add_streamed(struct checkpoint_copy *copy,
    const struct safetensors_entry *entry, struct block_writer *writer, struct cadre_error *error)
{
    struct streamed *source = copy->source;
    CADRE_ASSERT(source != NULL);
    CADRE_ASSERT((size_t)(entry - copy->entries) >= copy->copied);
    uint32_t i = (uint32_t)((size_t)(entry - copy->entries) - copy->copied);
    return source->ops->read(source, i, checkpoint_write_add, writer, error);
}

static cadre_status write_blocks(
    struct checkpoint_copy *copy, struct block_writer *writer, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *header = NULL;
    size_t size = 0;
    CADRE_TRY(checkpoint_copy_header(copy, &header, &size, error));
    CADRE_TRY(checkpoint_write_add(writer, header, size, error));
    const struct safetensors_entry *entry = NULL;
    while ((entry = safetensors_next(copy->entries, copy->entry_count, entry)) != NULL) {
        CADRE_TRY(entry->data != NULL
                      ? checkpoint_write_add(writer, entry->data, entry->bytes, error)
                      : add_streamed(copy, entry, writer, error));
    }
    CADRE_TRY(checkpoint_write_flush(writer, error));
    CADRE_ASSERT(writer->added == writer->file->bytes);
    if (writer->whole != NULL) {
        struct sha256 hash;
        CADRE_TRY(sha256_finish(writer->whole, &hash, error));
        memcpy(writer->file->sha256, hash.bytes, sizeof writer->file->sha256);
        writer->file->has_hash = true;
    }
    return CADRE_OK;
}

static cadre_status checkpoint_write_prepare(
    const struct checkpoint_copy *copy, struct block_writer *writer, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *header = NULL;
    struct manifest_file *file = writer->file;
    size_t header_bytes = 0;
    CADRE_TRY(checkpoint_copy_header(copy, &header, &header_bytes, error));
    checkpoint_name_write(copy->position, writer->writer, CHECKPOINT_TENSORS_NAME, file->name);
    file->bytes = header_bytes + copy->data_bytes;
    file->block_count = (size_t)((file->bytes + BLOCK_BYTES - 1) / BLOCK_BYTES);
    file->blocks = calloc(file->block_count + 1, sizeof *file->blocks);
    writer->pending = malloc(BLOCK_BYTES);
    return file->blocks != NULL && writer->pending != NULL
               ? CADRE_OK
               : cadre_error_set(
                     error, CADRE_RESOURCE_EXHAUSTED, "no memory for the blocks of %s", file->name);
}

static cadre_status write_out(struct checkpoint_copy *copy, const char *folder,
    struct block_writer *writer, struct cadre_error *error)
{
    char older[CHECKPOINT_NAME_BYTES];
    char start[CHECKPOINT_NAME_BYTES];
    checkpoint_name_write(copy->position, writer->writer, CHECKPOINT_TEXT_NAME, older);
    checkpoint_name_start(copy->position, start);
    CADRE_TRY(checkpoint_file_begin(&writer->out, folder, writer->file->name, error));
    writer->out.replaced = start; /* of all writers */
    if (!checkpoint_file_watch(&writer->out, see_part, writer)) {
        CADRE_TRY(sha256_open(&writer->whole, error));
    }
    CADRE_TRY(write_blocks(copy, writer, error));
    CADRE_TRY(checkpoint_file_settle(&writer->out, error));
    /* A manifest of that name is not of these tensors. On a full disk it stays. */
    CADRE_TRY(checkpoint_file_remove(folder, older, error));
    return checkpoint_file_end(&writer->out, error);
}

static cadre_status write_tensors(struct checkpoint_copy *copy, const char *folder, uint64_t writer,
    struct manifest_file *file, struct cadre_error *error)
{
    struct block_writer blocks = {.file = file, .out = {.fd = -1}, .writer = writer};
    cadre_status status = checkpoint_write_prepare(copy, &blocks, error);
    if (status == CADRE_OK) {
        status = write_out(copy, folder, &blocks, error);
    }
    checkpoint_file_drop(&blocks.out);
    sha256_close(blocks.whole);
    free(blocks.pending);
    return status;
}

/* --- the manifest --- */

static cadre_status write_text(struct checkpoint_copy *copy, const char *folder, uint64_t writer,
    const struct manifest_file *file, uint64_t *ret_bytes, struct sha256 *ret_hash,
    struct cadre_error *error)
{
    CADRE_ASSERT(copy->manifest != NULL);
    char name[CHECKPOINT_NAME_BYTES];
    CADRE_FREE_AT_EXIT char *text = NULL;
    size_t size = 0;
    checkpoint_name_write(copy->position, writer, CHECKPOINT_TEXT_NAME, name);
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

cadre_status checkpoint_write(struct checkpoint_copy *copy, const char *folder, uint64_t writer,
    uint64_t *ret_manifest_bytes, struct sha256 *ret_manifest_hash, struct cadre_error *error)
{
    struct manifest_file file = {.bytes = 0};
    checkpoint_folder_remove_stale(folder);
    cadre_status status = write_tensors(copy, folder, writer, &file, error);
    if (status == CADRE_OK) {
        status = checkpoint_copy_hash(copy, error);
    }
    if (status == CADRE_OK) {
        status =
            write_text(copy, folder, writer, &file, ret_manifest_bytes, ret_manifest_hash, error);
    }
    manifest_file_clear(&file);
    return status;
}

cadre_status checkpoint_write_tensors(
    struct checkpoint_copy *copy, const char *folder, struct cadre_error *error)
{
    struct manifest_file file = {.bytes = 0};
    cadre_status status = write_tensors(copy, folder, 0, &file, error);
    manifest_file_clear(&file);
    return status;
}
