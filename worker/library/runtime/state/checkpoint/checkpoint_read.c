/* SPDX-License-Identifier: Apache-2.0
 * A checkpoint's file read block by block, each with its checksum, and its manifest.
 * checkpoint_load.c, restore.c and restoration.c open readers. */
#include "worker/library/runtime/state/checkpoint/checkpoint_read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "common/storage/ahead.h"
#include "common/storage/storage.h"
#include "worker/library/checksum/crc32c.h"
#include "worker/library/runtime/state/checkpoint/manifest_variables.h"
#include "worker/library/runtime/state/format/checkpoint_file.h"
#include "worker/library/runtime/strategy/strategy.h"

#define NO_BLOCK SIZE_MAX

struct checkpoint_reader {
    struct manifest_content *content; /* NULL: of a file of tensors alone */
    const struct manifest_file *file; /* of the content; or NULL */
    char *manifest;                   /* its path; or NULL */
    char *path;                       /* of the tensors */
    struct storage_object *object;    /* the same, open */
    struct storage_ahead *ahead;      /* of it */
    struct safetensors_list list;
    size_t cursor;  /* where the last tensor was found, + 1 */
    char *block;    /* LIMIT_CHECKPOINT_BLOCK_BYTES */
    size_t held;    /* which one it is, or NO_BLOCK */
    bool *verified; /* [file->block_count] */
    struct reading reading;
};

/* --- blocks --- */

static cadre_status read_file(struct checkpoint_reader *reader, uint64_t at, char *into,
    size_t bytes, struct cadre_error *error)
{
    uint64_t begun_us = clock_monotonic_us();
    CADRE_TRY(storage_ahead_read(reader->ahead, at, into, bytes, error));
    reading_add(&reader->reading, bytes, clock_monotonic_us() - begun_us);
    return CADRE_OK;
}

void checkpoint_reader_report(
    struct checkpoint_reader *reader, struct task *task, bool by_hand, uint64_t bytes)
{
    reader->reading.task = task;
    reader->reading.by_hand = by_hand;
    reader->reading.whole_bytes = bytes;
}

void checkpoint_reader_report_nothing(struct checkpoint_reader *reader)
{
    reader->reading = (struct reading){0};
}

static cadre_status read_block(
    struct checkpoint_reader *reader, size_t i, char *into, struct cadre_error *error)
{
    CADRE_ASSERT(i < reader->file->block_count);
    const struct manifest_block *block = &reader->file->blocks[i];
    CADRE_TRY(read_file(reader, block->offset, into, (size_t)block->bytes, error));
    uint32_t crc = crc32c(0, into, (size_t)block->bytes);
    if (crc == block->crc32c) {
        reader->verified[i] = true;
        return CADRE_OK;
    }
    return cadre_error_set(error, CADRE_DATA_LOSS,
        "%s is damaged: block %zu, the %llu bytes from offset %llu, has checksum %08x and not "
        "%08x; use another checkpoint",
        reader->path, i, (unsigned long long)block->bytes, (unsigned long long)block->offset,
        (unsigned)crc, (unsigned)block->crc32c);
}

static cadre_status hold_block(
    struct checkpoint_reader *reader, size_t i, struct cadre_error *error)
{
    if (reader->held == i) {
        return CADRE_OK;
    }
    reader->held = NO_BLOCK;
    CADRE_TRY(read_block(reader, i, reader->block, error));
    reader->held = i;
    return CADRE_OK;
}

/* The block of that byte of the file; blocks are one behind the other. */
static size_t block_at(const struct manifest_file *file, uint64_t at)
{
    CADRE_ASSERT(file->block_count > 0);
    size_t low = 0;
    size_t high = file->block_count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        low = file->blocks[middle].offset <= at ? middle : low;
        high = file->blocks[middle].offset <= at ? high : middle;
    }
    return low;
}

/* A range of the file, inside a block. A block that is read whole is read into its destination. */
static cadre_status read_range(struct checkpoint_reader *reader, uint64_t at, char *into,
    size_t bytes, struct cadre_error *error)
{
    if (reader->file == NULL) {
        return read_file(reader, at, into, bytes, error); /* a file without checksums */
    }
    while (bytes > 0) {
        size_t i = block_at(reader->file, at);
        const struct manifest_block *block = &reader->file->blocks[i];
        size_t inside = (size_t)(at - block->offset);
        CADRE_ASSERT(inside < block->bytes);
        size_t left = (size_t)block->bytes - inside;
        size_t count = bytes < left ? bytes : left;
        if (count == block->bytes && reader->held != i) {
            CADRE_TRY(read_block(reader, i, into, error));
        } else {
            CADRE_TRY(hold_block(reader, i, error));
            memcpy(into, reader->block + inside, count);
        }
        at += count;
        into += count;
        bytes -= count;
    }
    return CADRE_OK;
}

cadre_status checkpoint_reader_verify(struct checkpoint_reader *reader, struct cadre_error *error)
{
    for (size_t i = 0; reader->file != NULL && i < reader->file->block_count; i++) {
        if (!reader->verified[i]) {
            CADRE_TRY(hold_block(reader, i, error));
        }
    }
    return CADRE_OK;
}

/* --- tensors --- */

/* Usually the one after the last that was found. */
const struct safetensors_entry *checkpoint_reader_find(
    struct checkpoint_reader *reader, const char *name)
{
    CADRE_ASSERT(reader->cursor <= reader->list.count);
    for (size_t i = 0; i < reader->list.count; i++) {
        size_t at = (reader->cursor + i) % reader->list.count;
        if (strcmp(safetensors_variable(&reader->list.entries[at]), name) == 0) {
            reader->cursor = at + 1;
            return &reader->list.entries[at];
        }
    }
    return NULL;
}

cadre_status checkpoint_reader_read(struct checkpoint_reader *reader,
    const struct safetensors_entry *entry, size_t offset, void *into, size_t bytes,
    struct cadre_error *error)
{
    CADRE_ASSERT(offset + bytes <= entry->bytes);
    return read_range(reader, reader->list.data_at + entry->offset + offset, into, bytes, error);
}

struct manifest_content *checkpoint_reader_manifest(struct checkpoint_reader *reader)
{
    return reader->content;
}

const struct safetensors_list *checkpoint_reader_list(const struct checkpoint_reader *reader)
{
    return &reader->list;
}

/* --- opening --- */

static cadre_status open_object(struct checkpoint_reader *reader, struct cadre_error *error)
{
    CADRE_TRY(storage_open(NULL, reader->path, &reader->object, error));
    return storage_ahead_open(reader->object, &reader->ahead, error);
}

/* A file of tensors alone has no position in an epoch. */
static cadre_status read_manifest(
    const char *path, char **ret_text, size_t *ret_bytes, struct cadre_error *error)
{
    static const char tensors[] = ".safetensors";
    size_t length = strlen(path);
    if (length >= sizeof tensors && strcmp(path + length - (sizeof tensors - 1), tensors) == 0) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "it holds tensors only; what is missing is the manifest, which has the position of "
            "the training: name the file that ends with .json beside it");
    }
    return storage_get(NULL, path, LIMIT_MANIFEST_BYTES, ret_text, ret_bytes, error);
}

static cadre_status open_manifest(const struct cadre_strategy *strategy, const char *path,
    struct checkpoint_reader *reader, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *text = NULL;
    size_t bytes = 0;
    CADRE_TRY(read_manifest(path, &text, &bytes, error));
    CADRE_TRY(manifest_read(strategy, text, bytes, &reader->content, error));
    reader->file = manifest_tensors(reader->content);
    if (reader->file == NULL) {
        return cadre_error_set(
            error, CADRE_INVALID_ARGUMENT, "it names no file of tensors (\"file\" is missing)");
    }
    const char *slash = strrchr(path, '/');
    int folder = slash == NULL ? 0 : (int)(slash - path) + 1;
    if (asprintf(&reader->path, "%.*s%s", folder, path, reader->file->name) < 0) {
        reader->path = NULL;
    }
    reader->manifest = strdup(path);
    reader->block = malloc(LIMIT_CHECKPOINT_BLOCK_BYTES);
    reader->verified = calloc(reader->file->block_count + 1, sizeof *reader->verified);
    bool whole = reader->path != NULL && reader->manifest != NULL && reader->block != NULL &&
                 reader->verified != NULL;
    return whole ? CADRE_OK
                 : cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory to read it");
}

static cadre_status read_header(
    struct checkpoint_reader *reader, uint64_t size, struct cadre_error *error)
{
    char head[8] = {0};
    size_t head_bytes = size < sizeof head ? (size_t)size : sizeof head;
    size_t header_bytes = 0;
    CADRE_TRY(read_range(reader, 0, head, head_bytes, error));
    CADRE_TRY(safetensors_header_bytes(head, head_bytes, size, &header_bytes, error));
    CADRE_FREE_AT_EXIT char *header = malloc(header_bytes);
    if (header == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory for the %zu bytes of the header of %s", header_bytes, reader->path);
    }
    CADRE_TRY(read_range(reader, 0, header, header_bytes, error));
    return safetensors_decode_header(header, header_bytes, size, &reader->list, error);
}

static cadre_status open_tensors(struct checkpoint_reader *reader, struct cadre_error *error)
{
    const struct manifest_file *file = reader->file;
    CADRE_TRY(open_object(reader, error));
    uint64_t size = storage_info_of(reader->object)->bytes;
    if (size != file->bytes) {
        return cadre_error_set(error, CADRE_DATA_LOSS,
            "%s is damaged: it has %llu bytes and not %llu; use another checkpoint", reader->path,
            (unsigned long long)size, (unsigned long long)file->bytes);
    }
    CADRE_TRY(read_header(reader, size, error));
    if (reader->list.position != manifest_position(reader->content)) {
        return cadre_error_set(error, CADRE_DATA_LOSS,
            "%s is not of the position of its manifest, %llu", reader->path,
            (unsigned long long)manifest_position(reader->content));
    }
    return CADRE_OK;
}

static cadre_status new_reader(struct checkpoint_reader **ret_reader, struct cadre_error *error)
{
    *ret_reader = calloc(1, sizeof **ret_reader);
    if (*ret_reader == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory to read it");
    }
    (*ret_reader)->held = NO_BLOCK;
    return CADRE_OK;
}

static cadre_status open_alone(
    struct checkpoint_reader *reader, const char *path, struct cadre_error *error)
{
    reader->path = strdup(path);
    if (reader->path == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory to read it");
    }
    CADRE_TRY(open_object(reader, error));
    cadre_status status = read_header(reader, storage_info_of(reader->object)->bytes, error);
    return status == CADRE_OK ? CADRE_OK : cadre_error_wrap(error, status, "%s", path);
}

cadre_status checkpoint_reader_open_tensors(
    const char *path, struct checkpoint_reader **ret_reader, struct cadre_error *error)
{
    struct checkpoint_reader *reader;
    *ret_reader = NULL;
    CADRE_TRY(new_reader(&reader, error));
    cadre_status status = open_alone(reader, path, error);
    if (status != CADRE_OK) {
        checkpoint_reader_close(reader);
        return status;
    }
    *ret_reader = reader;
    return CADRE_OK;
}

cadre_status checkpoint_reader_open(const struct cadre_strategy *strategy, const char *path,
    struct checkpoint_reader **ret_reader, struct cadre_error *error)
{
    struct checkpoint_reader *reader;
    *ret_reader = NULL;
    CADRE_TRY(new_reader(&reader, error));
    cadre_status status = open_manifest(strategy, path, reader, error);
    if (status == CADRE_OK) {
        status = open_tensors(reader, error);
    }
    if (status != CADRE_OK) {
        checkpoint_reader_close(reader);
        return status;
    }
    *ret_reader = reader;
    return CADRE_OK;
}

static bool same_blocks(const struct manifest_file *a, const struct manifest_file *b)
{
    bool same = a->block_count == b->block_count;
    for (size_t i = 0; same && i < a->block_count; i++) {
        same = memcmp(a->blocks[i].sha256, b->blocks[i].sha256, sizeof a->blocks[i].sha256) == 0;
    }
    return same;
}

cadre_status checkpoint_reader_follow(struct checkpoint_reader *reader,
    const struct cadre_strategy *strategy, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *text = NULL;
    size_t bytes = 0;
    struct manifest_content *content = NULL;
    CADRE_TRY(read_manifest(reader->manifest, &text, &bytes, error));
    CADRE_TRY(manifest_read(strategy, text, bytes, &content, error));
    const struct manifest_file *file = manifest_tensors(content);
    bool same = file != NULL && file->bytes == reader->file->bytes &&
                same_blocks(file, reader->file) &&
                manifest_position(content) == manifest_position(reader->content);
    if (!same) {
        manifest_content_free(content);
        return cadre_error_set(error, CADRE_DATA_LOSS,
            "its manifest was written over while it was read; use another checkpoint");
    }
    manifest_content_free(reader->content);
    reader->content = content;
    reader->file = file;
    return CADRE_OK;
}

cadre_status checkpoint_reader_each_strings(struct checkpoint_reader *reader,
    void (*each)(void *user, const char *name, size_t count), void *user, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *text = NULL;
    size_t bytes = 0;
    if (reader->manifest == NULL) {
        return CADRE_OK;
    }
    CADRE_TRY(read_manifest(reader->manifest, &text, &bytes, error));
    return manifest_each_strings(text, bytes, each, user, error);
}

cadre_status checkpoint_reader_make_variables(
    struct checkpoint_reader *reader, struct cadre_strategy *strategy, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *text = NULL;
    size_t bytes = 0;
    bool made = false;
    if (strategy->kind == STRATEGY_PARAMETER_SERVER) {
        return CADRE_OK; /* a missing one may be about to be created on servers */
    }
    CADRE_TRY(read_manifest(reader->manifest, &text, &bytes, error));
    CADRE_TRY(manifest_make_variables(strategy, text, bytes, &made, error));
    return made ? checkpoint_reader_follow(reader, strategy, error) : CADRE_OK;
}

cadre_status checkpoint_reader_strings(struct checkpoint_reader *reader,
    const struct cadre_variable *variable, cadre_tensor **ret_strings, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *text = NULL;
    size_t bytes = 0;
    CADRE_TRY(read_manifest(reader->manifest, &text, &bytes, error));
    return manifest_read_strings(text, bytes, variable, ret_strings, error);
}

void checkpoint_reader_close(struct checkpoint_reader *reader)
{
    if (reader == NULL) {
        return;
    }
    reading_end(&reader->reading);
    storage_ahead_close(reader->ahead);
    storage_close(reader->object);
    free(reader->list.entries);
    free(reader->block);
    free(reader->verified);
    free(reader->manifest);
    free(reader->path);
    manifest_content_free(reader->content);
    free(reader);
}
