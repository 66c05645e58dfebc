/* SPDX-License-Identifier: Apache-2.0 */
#include "common/checkpoint/content.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/files.h"
#include "common/base/sha256.h"

#define FORMAT "cadre-checkpoint"

static cadre_status checkpoint_content_malformed(struct cadre_error *error, const char *what)
{
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
        "this is no manifest of a checkpoint that can be read here: %s", what);
}

/* A whole number from 0; one that may need all 64 bits is written as a string of digits. */
static bool parse_number(const json_t *object, const char *name, uint64_t *ret_value)
{
    const json_t *value = json_object_get(object, name);
    if (json_is_integer(value)) {
        *ret_value = (uint64_t)json_integer_value(value);
        return json_integer_value(value) >= 0;
    }
    const char *digits = json_string_value(value);
    if (digits == NULL || digits[0] < '0' || digits[0] > '9') {
        return false;
    }
    char *end = NULL;
    errno = 0;
    *ret_value = strtoull(digits, &end, 10);
    return errno == 0 && *end == '\0';
}

static bool parse_hash(const json_t *object, uint8_t ret_hash[LIMIT_SHA256_BYTES])
{
    const char *text = json_string_value(json_object_get(object, "sha256"));
    struct sha256 hash;
    if (text == NULL || !sha256_parse(text, &hash)) {
        return false;
    }
    memcpy(ret_hash, hash.bytes, LIMIT_SHA256_BYTES);
    return true;
}

static cadre_status parse_file(const json_t *root, uint64_t version,
    struct checkpoint_content *content, struct cadre_error *error)
{
    const json_t *file = json_object_get(root, "file");
    const char *name = json_string_value(json_object_get(file, "name"));
    if (name == NULL || strchr(name, '/') != NULL || file_name_check(name, NULL) != CADRE_OK ||
        strlen(name) >= sizeof content->file_name) {
        return checkpoint_content_malformed(
            error, "\"file\" has no \"name\" that a file beside it could have");
    }
    memcpy(content->file_name, name, strlen(name) + 1);
    if (!parse_number(file, "bytes", &content->file_bytes) ||
        content->file_bytes > LIMIT_BLOB_BYTES) {
        return checkpoint_content_malformed(error, "\"file\" has no \"bytes\" that can be");
    }
    content->has_file_hash = json_object_get(file, "sha256") != NULL;
    bool may_lack = !content->has_file_hash && version > CHECKPOINT_VERSION_OLDEST;
    return may_lack || parse_hash(file, content->file_sha256)
               ? CADRE_OK
               : checkpoint_content_malformed(error, "\"file\" has no \"sha256\" of 64 digits");
}

static cadre_status parse_blocks(
    const json_t *root, struct checkpoint_content *content, struct cadre_error *error)
{
    const json_t *list = json_object_get(root, "blocks");
    if (!json_is_array(list)) {
        return checkpoint_content_malformed(error, "\"blocks\" is no list");
    }
    size_t count = json_array_size(list);
    content->blocks = calloc(count > 0 ? count : 1, sizeof *content->blocks);
    if (content->blocks == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for a manifest of %zu blocks", count);
    }
    uint64_t next = 0;
    for (size_t i = 0; i < count; i++) {
        const json_t *item = json_array_get(list, i);
        struct checkpoint_block *block = &content->blocks[i];
        if (!parse_number(item, "offset", &block->offset) || block->offset != next ||
            !parse_number(item, "bytes", &block->bytes) || block->bytes == 0 ||
            block->bytes > LIMIT_CHECKPOINT_BLOCK_BYTES || !parse_hash(item, block->sha256)) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "this is no manifest of a checkpoint that can be read here: block %zu does not "
                "follow the one before, is not 1 to %d bytes long, or has no hash",
                i, LIMIT_CHECKPOINT_BLOCK_BYTES);
        }
        next += block->bytes;
        content->block_count++;
    }
    return next == content->file_bytes
               ? CADRE_OK
               : checkpoint_content_malformed(error, "its blocks are not as long as its file");
}

static cadre_status checkpoint_content_take(
    const json_t *root, struct checkpoint_content *content, struct cadre_error *error)
{
    const char *format = json_string_value(json_object_get(root, "format"));
    uint64_t version = 0;
    if (format == NULL || strcmp(format, FORMAT) != 0) {
        return checkpoint_content_malformed(error, "\"format\" is not \"" FORMAT "\"");
    }
    if (!parse_number(root, "version", &version) || version < CHECKPOINT_VERSION_OLDEST ||
        version > CHECKPOINT_VERSION) {
        return checkpoint_content_malformed(
            error, "its \"version\" is not 1 or 2: a newer Cadre wrote it");
    }
    if (!parse_number(root, "position", &content->position) ||
        content->position >= LIMIT_POSITION) {
        return checkpoint_content_malformed(error, "\"position\" is no count of steps");
    }
    CADRE_TRY(parse_file(root, version, content, error));
    return parse_blocks(root, content, error);
}

cadre_status checkpoint_content_read(const char *text, size_t size,
    struct checkpoint_content *ret_content, struct cadre_error *error)
{
    *ret_content = (struct checkpoint_content){0};
    if (size > LIMIT_MANIFEST_BYTES) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "a manifest of %zu bytes is over the limit of %d", size, LIMIT_MANIFEST_BYTES);
    }
    json_error_t where;
    json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &where);
    if (root == NULL) {
        return checkpoint_content_malformed(error, where.text);
    }
    cadre_status status = checkpoint_content_take(root, ret_content, error);
    json_decref(root);
    if (status != CADRE_OK) {
        checkpoint_content_free(ret_content);
    }
    return status;
}

void checkpoint_content_free(struct checkpoint_content *content)
{
    free(content->blocks);
    *content = (struct checkpoint_content){0};
}
