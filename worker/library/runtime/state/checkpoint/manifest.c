/* SPDX-License-Identifier: Apache-2.0
 * Writes manifests: the strategy's positions and strings as JSON, then the file's blocks and
 * hashes. checkpoint_copy.c and state_hooks.c call it. */
#include "worker/library/runtime/state/checkpoint/manifest.h"
#include "common/pure/assert.h"
#include "worker/library/runtime/input/input.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/sha256.h"
#include "common/checkpoint/content.h"
#include "worker/library/device/memory_hash.h"
#include "worker/library/runtime/state/checkpoint/checkpointer.h"
#include "worker/library/runtime/state/checkpoint/manifest_variables.h"
#include "worker/library/runtime/state/format/manifest_json.h"
#include "worker/library/runtime/state/layout/state_part.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/variables/variable.h"

#define ITERATORS_BYTES_MAX (LIMIT_MANIFEST_BYTES / 2) /* in it they take a third more */

/* Every function of jansson accepts the NULL of another one that had no memory, so that one check
 * at the end is enough. */
struct manifest {
    json_t *root;
};

void manifest_file_clear(struct manifest_file *file)
{
    free(file->blocks);
    *file = (struct manifest_file){0};
}

void manifest_free(struct manifest *manifest)
{
    if (manifest != NULL) {
        json_decref(manifest->root);
        free(manifest);
    }
}

static cadre_status no_memory(struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a manifest");
}

static json_t *hash_of(const uint8_t bytes[LIMIT_SHA256_BYTES])
{
    struct sha256 hash;
    char hex[SHA256_HEX_BYTES];
    memcpy(hash.bytes, bytes, sizeof hash.bytes);
    sha256_hex(&hash, hex);
    return json_string(hex);
}

/* --- what belongs to the moment --- */

static json_t *streams_of(const struct cadre_strategy *strategy)
{
    json_t *list = json_array();
    size_t state_room = ITERATORS_BYTES_MAX;
    for (uint32_t i = 0; i < strategy->input->dataset_count; i++) {
        json_t *stream = manifest_stream(strategy->input->datasets[i], &state_room);
        if (json_array_append_new(list, stream) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static json_t *bytes_of(const cadre_string *string)
{
    bool zero = string->size > 0 && memchr(string->bytes, 0, string->size) != NULL;
    json_t *text = zero ? NULL : json_stringn(string->size > 0 ? string->bytes : "", string->size);
    if (text != NULL) {
        return text;
    }
    CADRE_FREE_AT_EXIT char *hex = malloc(2 * string->size + 1);
    if (hex == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < string->size; i++) {
        snprintf(hex + 2 * i, 3, "%02x", (unsigned)(unsigned char)string->bytes[i]);
    }
    hex[2 * string->size] = '\0';
    return json_pack("{s:s}", "hex", hex);
}

static json_t *strings_of(const struct cadre_strategy *strategy)
{
    json_t *all = json_object();
    for (uint32_t i = 0; i < strategy->variables->count; i++) {
        const cadre_variable *variable = strategy->variables->list[i];
        if (variable->dtype != CADRE_STRING) {
            continue;
        }
        CADRE_ASSERT(variable->strings != NULL);
        const cadre_string *strings = cadre_tensor_const_data(variable->strings);
        json_t *list = json_array();
        int failed = 0;
        for (int64_t at = 0; at < variable->count; at++) {
            failed |= json_array_append_new(list, bytes_of(&strings[at]));
        }
        if (json_object_set_new(all, variable->name, list) != 0 || failed != 0) {
            json_decref(all);
            return NULL;
        }
    }
    return all;
}

cadre_status manifest_take(const struct cadre_strategy *strategy, struct manifest **ret_manifest,
    struct cadre_error *error)
{
    const struct checkpointer *checkpointer = strategy->state_part->checkpointer;
    uint64_t position = strategy_position(strategy);
    bool restored =
        checkpointer->restored_at != POSITION_NONE && position <= checkpointer->restored_at;
    struct manifest *manifest = calloc(1, sizeof *manifest);
    *ret_manifest = NULL;
    if (manifest == NULL) {
        return no_memory(error);
    }
    manifest->root = json_pack("{s:s, s:i, s:o, s:o, s:o, s:s, s:b, s:o, s:o}", "format",
        "cadre-checkpoint", "version", CHECKPOINT_VERSION, "position",
        manifest_number(restored ? checkpointer->restored_at : position), "generation",
        manifest_number(strategy->roster.generation.number), "job",
        manifest_number(strategy->environment->job), "run", checkpointer->run, "restored",
        restored ? 1 : 0, "streams", streams_of(strategy), "strings", strings_of(strategy));
    /* What waits for its point of the loop is the state still. */
    enum loop_point loop_point = strategy->state_part->captured_at != LOOP_BETWEEN_STEPS
                                     ? strategy->state_part->captured_at
                                     : strategy->state_part->loop_point;
    int failed = json_object_set_new(manifest->root, "place", json_integer(loop_point));
    failed |= json_object_set_new(manifest->root, "variables", manifest_variables(strategy));
    if (manifest->root == NULL || failed != 0) {
        manifest_free(manifest);
        return no_memory(error);
    }
    *ret_manifest = manifest;
    return CADRE_OK;
}

cadre_status manifest_plain_make(
    const struct manifest_plain *plain, struct manifest **ret_manifest, struct cadre_error *error)
{
    CADRE_ASSERT(plain->tasks > 0);
    struct manifest *manifest = calloc(1, sizeof *manifest);
    *ret_manifest = NULL;
    if (manifest == NULL) {
        return no_memory(error);
    }
    manifest->root = json_pack("{s:s, s:i, s:o, s:o, s:o, s:s, s:b, s:[], s:{}, s:{}, s:{s:i}}",
        "format", "cadre-checkpoint", "version", CHECKPOINT_VERSION, "position",
        manifest_number(plain->position), "generation", manifest_number(plain->generation), "job",
        manifest_number(plain->job), "run", plain->run, "restored", 0, "streams", "strings",
        "variables", "plain", "tasks", (int)plain->tasks);
    if (manifest->root == NULL) {
        manifest_free(manifest);
        return no_memory(error);
    }
    *ret_manifest = manifest;
    return CADRE_OK;
}

/* --- what belongs to the file --- */

static int add_file(json_t *root, const struct manifest_file *file)
{
    json_t *blocks = json_array();
    int failed = 0;
    for (size_t i = 0; i < file->block_count; i++) {
        const struct manifest_block *block = &file->blocks[i];
        char crc[16];
        snprintf(crc, sizeof crc, "%08" PRIx32, block->crc32c);
        failed |= json_array_append_new(blocks,
            json_pack("{s:o, s:o, s:s, s:o}", "offset", manifest_number(block->offset), "bytes",
                manifest_number(block->bytes), "crc32c", crc, "sha256", hash_of(block->sha256)));
    }
    json_t *facts =
        json_pack("{s:s, s:o}", "name", file->name, "bytes", manifest_number(file->bytes));
    if (file->has_hash) {
        failed |= json_object_set_new(facts, "sha256", hash_of(file->sha256));
    }
    failed |= json_object_set_new(root, "file", facts);
    failed |= json_object_set_new(root, "blocks", blocks);
    return failed;
}

bool manifest_note_hash(struct manifest *manifest, const char *name, uint64_t hash)
{
    json_t *digits = manifest_hash_digits(hash);
    if (name == NULL) {
        return json_object_set_new(manifest->root, "hash", json_string(HASH_NAME)) == 0 &&
               json_object_set_new(manifest->root, "digest", digits) == 0;
    }
    json_t *all = json_object_get(manifest->root, "hashes");
    if (all == NULL && json_object_set_new(manifest->root, "hashes", json_object()) == 0) {
        all = json_object_get(manifest->root, "hashes");
    }
    return json_object_set_new(all, name, digits) == 0;
}

cadre_status manifest_text(struct manifest *manifest, const struct manifest_file *file,
    char **ret_text, size_t *ret_bytes, struct cadre_error *error)
{
    CADRE_ASSERT(manifest->root != NULL);
    *ret_text = NULL;
    if (file != NULL && add_file(manifest->root, file) != 0) {
        return no_memory(error);
    }
    char *text = json_dumps(manifest->root, JSON_COMPACT);
    if (text == NULL) {
        return no_memory(error);
    }
    size_t bytes = strlen(text);
    if (bytes > LIMIT_MANIFEST_BYTES) {
        free(text);
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "the manifest has %zu bytes and at most %d are possible; keep less in variables of "
            "strings",
            bytes, LIMIT_MANIFEST_BYTES);
    }
    *ret_text = text;
    *ret_bytes = bytes;
    return CADRE_OK;
}

cadre_status manifest_encode(const struct cadre_strategy *strategy, char **ret_text,
    size_t *ret_bytes, struct cadre_error *error)
{
    struct manifest *manifest = NULL;
    *ret_text = NULL;
    cadre_status status = manifest_take(strategy, &manifest, error);
    if (status == CADRE_OK) {
        status = manifest_text(manifest, NULL, ret_text, ret_bytes, error);
    }
    manifest_free(manifest);
    return status;
}
