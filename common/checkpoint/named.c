/* SPDX-License-Identifier: Apache-2.0
 * Called by `cadre run`, `cadre submit` and `cadre get`. */
#include "common/checkpoint/named.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/files.h"
#include "common/base/sha256.h"
#include "common/storage/ahead.h"
#include "common/storage/storage.h"

static cadre_status no_memory(struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a checkpoint");
}

static void object_close(struct storage_object **object)
{
    storage_close(*object);
}

static void ahead_close(struct storage_ahead **ahead)
{
    storage_ahead_close(*ahead);
}

/* The path of `name` beside `path`. NULL: no memory. */
static char *beside(const char *path, const char *name)
{
    const char *slash = strrchr(path, '/');
    CADRE_FREE_AT_EXIT char *folder = slash != NULL ? strndup(path, (size_t)(slash - path)) : NULL;
    if (slash == NULL) {
        return strdup(name);
    }
    return folder != NULL ? storage_join(folder, name) : NULL;
}

cadre_status checkpoint_named_read(struct storage_client *client, const char *path,
    struct checkpoint_named *ret_named, struct cadre_error *error)
{
    struct sha256 hash;
    *ret_named = (struct checkpoint_named){.path = strdup(path)};
    if (ret_named->path == NULL) {
        return no_memory(error);
    }
    CADRE_TRY(storage_get(
        client, path, LIMIT_MANIFEST_BYTES, &ret_named->text, &ret_named->text_bytes, error));
    CADRE_TRY(sha256_of(ret_named->text, ret_named->text_bytes, &hash, error));
    memcpy(ret_named->sha256, hash.bytes, sizeof ret_named->sha256);
    cadre_status status =
        checkpoint_content_read(ret_named->text, ret_named->text_bytes, &ret_named->content, error);
    if (status != CADRE_OK) {
        return cadre_error_wrap(error, status, "%s", path);
    }
    ret_named->tensors = beside(path, ret_named->content.file_name);
    return ret_named->tensors != NULL ? CADRE_OK : no_memory(error);
}

/* Opens the file of tensors, which has the size that the manifest says. */
static cadre_status open_tensors(struct storage_client *client,
    const struct checkpoint_named *named, struct storage_object **ret_object,
    struct cadre_error *error)
{
    cadre_status status = storage_open(client, named->tensors, ret_object, error);
    if (status == CADRE_NOT_FOUND) {
        return cadre_error_wrap(error, status,
            "the file %s of the manifest %s is not beside it: copy it there",
            named->content.file_name, named->path);
    }
    CADRE_TRY(status);
    uint64_t bytes = storage_info_of(*ret_object)->bytes;
    return bytes == named->content.file_bytes
               ? CADRE_OK
               : cadre_error_set(error, CADRE_DATA_LOSS,
                     "%s has %" PRIu64 " bytes, and its manifest says %" PRIu64 ": it is not whole",
                     named->tensors, bytes, named->content.file_bytes);
}

cadre_status checkpoint_named_check_size(
    struct storage_client *client, const struct checkpoint_named *named, struct cadre_error *error)
{
    CADRE_CLEANUP(object_close) struct storage_object *object = NULL;
    return open_tensors(client, named, &object, error);
}

static cadre_status copy_block(const struct checkpoint_named *named, size_t number,
    struct storage_ahead *ahead, char *bytes, int fd, struct cadre_error *error)
{
    const struct checkpoint_block *block = &named->content.blocks[number];
    struct sha256 made;
    CADRE_TRY(storage_ahead_read(ahead, block->offset, bytes, (size_t)block->bytes, error));
    CADRE_TRY(sha256_of(bytes, (size_t)block->bytes, &made, error));
    if (memcmp(made.bytes, block->sha256, sizeof made.bytes) != 0) {
        return cadre_error_set(error, CADRE_DATA_LOSS,
            "block %zu of %zu of %s does not have its hash: the object is damaged", number + 1,
            named->content.block_count, named->tensors);
    }
    return file_write_all(fd, named->content.file_name, bytes, (size_t)block->bytes, error);
}

cadre_status checkpoint_named_copy_tensors(struct storage_client *client,
    const struct checkpoint_named *named, int fd, void (*each)(void *user), void *user,
    struct cadre_error *error)
{
    CADRE_CLEANUP(object_close) struct storage_object *object = NULL;
    CADRE_CLEANUP(ahead_close) struct storage_ahead *ahead = NULL;
    CADRE_FREE_AT_EXIT char *bytes = malloc(LIMIT_CHECKPOINT_BLOCK_BYTES);
    if (bytes == NULL) {
        return no_memory(error);
    }
    CADRE_TRY(open_tensors(client, named, &object, error));
    CADRE_TRY(storage_ahead_open(object, &ahead, error));
    for (size_t i = 0; i < named->content.block_count; i++) {
        each(user);
        CADRE_TRY(copy_block(named, i, ahead, bytes, fd, error));
    }
    return CADRE_OK;
}

void checkpoint_named_free(struct checkpoint_named *named)
{
    free(named->path);
    free(named->text);
    free(named->tensors);
    checkpoint_content_free(&named->content);
    *named = (struct checkpoint_named){0};
}
