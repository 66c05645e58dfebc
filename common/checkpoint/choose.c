/* SPDX-License-Identifier: Apache-2.0
 * Reads manifests and every byte of their tensors, and chooses the newest whole checkpoint of a
 * folder. Called by the worker daemon, the coordinator and `cadre run`, in a thread. */
#include "common/checkpoint/choose.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/cleanup.h"
#include "common/base/sha256.h"
#include "common/checkpoint/content.h"
#include "common/checkpoint/name.h"
#include "common/storage/ahead.h"
#include "common/storage/storage.h"

#define TEXT_END    "." CHECKPOINT_TEXT_NAME
#define TENSORS_END "." CHECKPOINT_TENSORS_NAME

static bool ends_with(const char *path, const char *end)
{
    size_t length = strlen(path);
    return length >= strlen(end) && strcmp(path + length - strlen(end), end) == 0;
}

bool checkpoint_is_folder(const char *path)
{
    struct stat status;
    return storage_is_object(path) ? !ends_with(path, TEXT_END) && !ends_with(path, TENSORS_END)
                                   : stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

void checkpoint_choice_free(struct checkpoint_choice *choice)
{
    free(choice->path);
    *choice = (struct checkpoint_choice){0};
}

/* Of a manifest, or of tensors. */
static bool is_name(const char *name, struct checkpoint_named *ret_named)
{
    return checkpoint_name_read(name, CHECKPOINT_TEXT_NAME, 0, ret_named) ||
           checkpoint_name_read(name, CHECKPOINT_TENSORS_NAME, 0, ret_named);
}

/* ---- one checkpoint ---- */

static cadre_status no_memory(struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory to check a checkpoint");
}

/* A disk that cannot be read may work again; an object may be whole that was written over
 * meanwhile. */
static cadre_status unreadable(cadre_status status, struct cadre_error *error)
{
    if (status == CADRE_DATA_LOSS) {
        error->code = CADRE_UNAVAILABLE;
        return CADRE_UNAVAILABLE;
    }
    return status;
}

static void object_close(struct storage_object **object)
{
    storage_close(*object);
}

static void ahead_close(struct storage_ahead **ahead)
{
    storage_ahead_close(*ahead);
}

static cadre_status check_blocks(const struct storage_object *object,
    const struct checkpoint_content *content, struct checkpoint_counts *counts,
    struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *bytes = malloc(LIMIT_CHECKPOINT_BLOCK_BYTES);
    CADRE_CLEANUP(ahead_close) struct storage_ahead *ahead = NULL;
    if (bytes == NULL) {
        return no_memory(error);
    }
    CADRE_TRY(storage_ahead_open(object, &ahead, error));
    for (size_t i = 0; i < content->block_count; i++) {
        const struct checkpoint_block *block = &content->blocks[i];
        struct sha256 made;
        cadre_status status =
            storage_ahead_read(ahead, block->offset, bytes, (size_t)block->bytes, error);
        CADRE_TRY(unreadable(status, error));
        CADRE_TRY(sha256_of(bytes, (size_t)block->bytes, &made, error));
        if (memcmp(made.bytes, block->sha256, sizeof made.bytes) != 0) {
            return cadre_error_set(error, CADRE_DATA_LOSS,
                "block %zu of %zu of %s does not have its hash", i + 1, content->block_count,
                content->file_name);
        }
        atomic_fetch_add(&counts->done_bytes, block->bytes);
    }
    return CADRE_OK;
}

/* `counts` NULL: their size is enough. */
static cadre_status check_tensors(struct storage_client *client, const char *folder,
    const struct checkpoint_content *content, struct checkpoint_counts *counts,
    struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *path = storage_join(folder, content->file_name);
    CADRE_CLEANUP(object_close) struct storage_object *object = NULL;
    if (path == NULL) {
        return no_memory(error);
    }
    cadre_status status = storage_open(client, path, &object, error);
    if (status == CADRE_NOT_FOUND) {
        return cadre_error_set(error, CADRE_DATA_LOSS, "%s is missing", content->file_name);
    }
    CADRE_TRY(status);
    uint64_t size = storage_info_of(object)->bytes;
    if (size != content->file_bytes) {
        return cadre_error_set(error, CADRE_DATA_LOSS,
            "%s has %" PRIu64 " bytes, not the %" PRIu64 " of its manifest", content->file_name,
            size, content->file_bytes);
    }
    if (counts == NULL) {
        return CADRE_OK;
    }
    atomic_store(&counts->whole_bytes, content->file_bytes);
    return check_blocks(object, content, counts, error);
}

/* DATA_LOSS: it is missing; *ret_text is the caller's to free. */
static cadre_status read_manifest(struct storage_client *client, const char *path, char **ret_text,
    size_t *ret_size, struct cadre_error *error)
{
    cadre_status status =
        storage_get(client, path, LIMIT_MANIFEST_BYTES, ret_text, ret_size, error);
    return status == CADRE_NOT_FOUND
               ? cadre_error_set(error, CADRE_DATA_LOSS, "%s is missing", strrchr(path, '/') + 1)
               : unreadable(status, error);
}

static cadre_status parse_manifest(const char *path, const char *text, size_t size,
    struct checkpoint_content *ret_content, struct cadre_error *error)
{
    cadre_status status = checkpoint_content_read(text, size, ret_content, error);
    return status == CADRE_INVALID_ARGUMENT
               ? cadre_error_wrap(error, CADRE_DATA_LOSS, "%s", strrchr(path, '/') + 1)
               : status;
}

/* A search: where, with whose credentials, and whether tensors are read or only their size is
 * compared. */
struct search {
    struct storage_client *client; /* NULL: the process's */
    const char *folder;
    bool by_size;
};

/* DATA_LOSS names the file and what is wrong with it. */
static cadre_status choose_check(const struct search *search, const struct checkpoint_named *named,
    char **ret_path, struct cadre_error *error)
{
    char name[CHECKPOINT_NAME_BYTES];
    CADRE_FREE_AT_EXIT char *text = NULL;
    CADRE_CLEANUP(checkpoint_content_free) struct checkpoint_content content = {0};
    size_t size = 0;
    checkpoint_name_write(named->position, named->writer, CHECKPOINT_TEXT_NAME, name);
    CADRE_FREE_AT_EXIT char *path = storage_join(search->folder, name);
    if (path == NULL) {
        return no_memory(error);
    }
    CADRE_TRY(read_manifest(search->client, path, &text, &size, error));
    CADRE_TRY(parse_manifest(path, text, size, &content, error));
    if (content.position != named->position) {
        return cadre_error_set(
            error, CADRE_DATA_LOSS, "%s is of step %" PRIu64, name, content.position);
    }
    struct checkpoint_counts counts = {0};
    CADRE_TRY(check_tensors(
        search->client, search->folder, &content, search->by_size ? NULL : &counts, error));
    *ret_path = path;
    path = NULL;
    return CADRE_OK;
}

/* Of a checkpoint whose manifest is missing. */
static bool tensors_exist(struct storage_client *client, const char *path)
{
    CADRE_FREE_AT_EXIT char *tensors = NULL;
    CADRE_CLEANUP(object_close) struct storage_object *object = NULL;
    struct cadre_error ignored;
    int stem = (int)(strlen(path) - strlen(TEXT_END));
    if (!ends_with(path, TEXT_END) || asprintf(&tensors, "%.*s" TENSORS_END, stem, path) < 0) {
        tensors = NULL;
        return false;
    }
    return storage_open(client, tensors, &object, &ignored) == CADRE_OK;
}

cadre_status checkpoint_check(struct storage_client *client, const char *path,
    const uint8_t manifest_sha256[LIMIT_SHA256_BYTES], struct checkpoint_counts *counts,
    struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *text = NULL;
    CADRE_CLEANUP(checkpoint_content_free) struct checkpoint_content content = {0};
    struct sha256 made;
    size_t size = 0;
    const char *slash = strrchr(path, '/');
    cadre_status status = read_manifest(client, path, &text, &size, error);
    if (status == CADRE_DATA_LOSS && !tensors_exist(client, path)) {
        error->code = CADRE_NOT_FOUND;
        return CADRE_NOT_FOUND;
    }
    CADRE_TRY(status);
    CADRE_TRY(sha256_of(text, size, &made, error));
    if (memcmp(made.bytes, manifest_sha256, sizeof made.bytes) != 0) { /* its content is not
                                                                        * shown */
        return cadre_error_set(
            error, CADRE_DATA_LOSS, "the manifest %s is not the one that was published", slash + 1);
    }
    CADRE_TRY(parse_manifest(path, text, size, &content, error));
    CADRE_FREE_AT_EXIT char *folder = strndup(path, (size_t)(slash - path));
    return folder != NULL ? check_tensors(client, folder, &content, counts, error)
                          : no_memory(error);
}

/* ---- those of a folder ---- */

struct found {
    struct checkpoint_named *all;
    size_t count;
    size_t room;
    bool no_memory;
};

static bool choose_add(struct found *found, const struct checkpoint_named *named)
{
    if (found->count == found->room) {
        size_t room = found->room > 0 ? found->room * 2 : 64;
        struct checkpoint_named *grown = realloc(found->all, room * sizeof *grown);
        if (grown == NULL) {
            return false;
        }
        found->all = grown;
        found->room = room;
    }
    found->all[found->count++] = *named;
    return true;
}

static bool add_entry(void *user, const struct storage_entry *entry)
{
    struct found *found = user;
    const char *slash = strrchr(entry->path, '/');
    struct checkpoint_named named;
    bool is_named = !entry->is_folder && is_name(slash != NULL ? slash + 1 : entry->path, &named);
    found->no_memory = is_named && !choose_add(found, &named);
    return !found->no_memory;
}

/* A manifest and its tensors give the same one twice. */
static cadre_status choose_list(
    const struct search *search, struct found *found, struct cadre_error *error)
{
    const char *folder = search->folder;
    struct stat status;
    if (!storage_is_object(folder) && stat(folder, &status) != 0) {
        return cadre_error_errno(error, errno, "cannot read the folder %s", folder);
    }
    CADRE_TRY(
        storage_list(search->client, folder, CHECKPOINT_NAME_HEAD, false, add_entry, found, error));
    if (found->no_memory) {
        return no_memory(error);
    }
    if (found->count > 0) {
        qsort(found->all, found->count, sizeof *found->all, checkpoint_newest_first);
    }
    return CADRE_OK;
}

cadre_status checkpoint_exists(
    const char *folder, bool *ret_exists, uint64_t *ret_position, struct cadre_error *error)
{
    struct found found = {0};
    struct cadre_error own;
    const struct search search = {.folder = folder};
    cadre_status status = choose_list(&search, &found, &own);
    *ret_exists = status == CADRE_OK && found.count > 0;
    *ret_position = *ret_exists ? found.all[0].position : 0;
    free(found.all);
    if (status != CADRE_OK && storage_is_object(folder)) {
        *error = own;
        return status;
    }
    return CADRE_OK;
}

/* The first that is whole. `first` is what is wrong with the newest, when that is not. */
static cadre_status choose_choose(const struct search *search, const struct found *found,
    struct checkpoint_choice *choice, struct cadre_error *first, uint32_t *ret_suppressed,
    struct cadre_error *error)
{
    const char *folder = search->folder;
    for (size_t i = 0; i < found->count; i++) {
        const struct checkpoint_named *named = &found->all[i];
        if (i > 0 && checkpoint_newest_first(named, named - 1) == 0) {
            continue;
        }
        cadre_status status = choose_check(search, named, &choice->path, error);
        if (status == CADRE_OK) {
            choice->position = named->position;
            return CADRE_OK;
        }
        bool is_away = status == CADRE_UNAVAILABLE && storage_is_object(folder);
        if (is_away || (status != CADRE_DATA_LOSS && status != CADRE_UNAVAILABLE)) {
            return cadre_error_wrap(
                error, status, "the checkpoint of step %" PRIu64 " in %s", named->position, folder);
        }
        if ((*ret_suppressed)++ == 0) {
            *first = *error;
        }
    }
    return cadre_error_set(error, CADRE_DATA_LOSS,
        "no checkpoint in %s is whole: that of step %" PRIu64 " is damaged (%s)%s", folder,
        found->all[0].position, first->text,
        *ret_suppressed > 1 ? ", and so are all before it" : "");
}

static cadre_status choose_search(
    const struct search *search, struct checkpoint_choice *ret_choice, struct cadre_error *error)
{
    const char *folder = search->folder;
    struct found found = {0};
    struct cadre_error first = {0};
    uint32_t left_out = 0;
    *ret_choice = (struct checkpoint_choice){0};
    cadre_status status = choose_list(search, &found, error);
    if (status == CADRE_OK && found.count == 0) {
        status = cadre_error_set(error, CADRE_NOT_FOUND,
            "the folder %s holds no checkpoint (checkpoint-STEP.json and .safetensors)", folder);
    }
    if (status == CADRE_OK) {
        status = choose_choose(search, &found, ret_choice, &first, &left_out, error);
    }
    if (status == CADRE_OK && left_out > 0) {
        char more[64] = "";
        if (left_out > 1) {
            snprintf(more, sizeof more, ", and so are %" PRIu32 " before it", left_out - 1);
        }
        snprintf(ret_choice->note, sizeof ret_choice->note,
            "the checkpoint of step %" PRIu64 " in %.120s is damaged (%.200s)%s: that of step "
            "%" PRIu64 " is taken",
            found.all[0].position, folder, first.text, more, ret_choice->position);
    }
    free(found.all);
    return status;
}

cadre_status checkpoint_choose(
    const char *folder, struct checkpoint_choice *ret_choice, struct cadre_error *error)
{
    return choose_search(&(struct search){.folder = folder}, ret_choice, error);
}

cadre_status checkpoint_choose_by_size(struct storage_client *client, const char *folder,
    struct checkpoint_choice *ret_choice, struct cadre_error *error)
{
    const struct search search = {.client = client, .folder = folder, .by_size = true};
    return choose_search(&search, ret_choice, error);
}

cadre_status checkpoint_suggest_other(const char *path, struct cadre_error *error)
{
    struct checkpoint_choice choice;
    struct cadre_error ignored = {0};
    const char *slash = strrchr(path, '/');
    bool damaged = error->code == CADRE_DATA_LOSS || error->code == CADRE_NOT_FOUND ||
                   error->code == CADRE_INVALID_ARGUMENT;
    if (!damaged) {
        return error->code;
    }
    CADRE_FREE_AT_EXIT char *folder =
        slash == NULL ? strdup(".") : strndup(path, slash == path ? 1 : (size_t)(slash - path));
    if (folder == NULL || checkpoint_choose(folder, &choice, &ignored) != CADRE_OK) {
        return error->code;
    }
    if (strcmp(strrchr(choice.path, '/') + 1, slash == NULL ? path : slash + 1) != 0) {
        size_t length = strlen(error->text);
        snprintf(error->text + length, sizeof error->text - length,
            "; the newest whole one beside it is %s: name that, or the folder %s", choice.path,
            folder);
    }
    checkpoint_choice_free(&choice);
    return error->code;
}
