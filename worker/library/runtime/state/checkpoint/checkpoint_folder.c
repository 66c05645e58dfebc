/* SPDX-License-Identifier: Apache-2.0
 * The folder of checkpoints: names, stale temporary files, old checkpoints, the token of a
 * shared folder. checkpoint.c, checkpoint_list.c and checkpoint_probe.c call it. */
#include "worker/library/runtime/state/checkpoint/checkpoint_folder.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/model/limits.h"
#include "common/pure/assert.h"
#include "common/storage/storage.h"
#include "worker/library/runtime/state/format/checkpoint_file.h"
#include "worker/library/runtime/state/checkpoint/manifest.h"

#define NAME_HEAD       "checkpoint-"
#define RANDOM_PART     6 /* of mkostemp */
#define POSITION_MAX    (LIMIT_POSITION - 1)
#define STALE_UPLOAD_US INT64_C(86400000000) /* a day */
#define FOLDER_AT_EXIT  CADRE_CLEANUP(cadre_cleanup_dir)

void checkpoint_name(uint64_t position, const char *kind, char ret_name[CHECKPOINT_NAME_BYTES])
{
    snprintf(ret_name, CHECKPOINT_NAME_BYTES, NAME_HEAD "%" PRIu64 ".%s", position, kind);
}

/* Whether `name` is "checkpoint-<position>.<kind>" and then `tail_bytes` more. */
static bool is_name(const char *name, const char *kind, size_t tail_bytes, uint64_t *ret_position)
{
    char whole[CHECKPOINT_NAME_BYTES];
    if (strncmp(name, NAME_HEAD, strlen(NAME_HEAD)) != 0 || !isdigit(name[strlen(NAME_HEAD)])) {
        return false;
    }
    errno = 0;
    *ret_position = strtoull(name + strlen(NAME_HEAD), NULL, 10);
    if (errno != 0 || *ret_position > POSITION_MAX) {
        return false;
    }
    checkpoint_name(*ret_position, kind, whole);
    return strncmp(name, whole, strlen(whole)) == 0 && strlen(name) == strlen(whole) + tail_bytes;
}

/* It may be written, and removed. */
static cadre_status check_objects(const char *folder, struct cadre_error *error)
{
    char name[CHECKPOINT_NAME_BYTES];
    snprintf(name, sizeof name, ".cadre-%" PRIx64, clock_wall_us());
    CADRE_FREE_AT_EXIT char *path = storage_join(folder, name);
    if (path == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a path");
    }
    cadre_status status = storage_put(NULL, path, "", 0, error);
    if (status == CADRE_OK) {
        status = storage_remove(NULL, path, error);
    }
    return status == CADRE_OK
               ? CADRE_OK
               : cadre_error_wrap(error, status, "no checkpoint can be written to %s", folder);
}

cadre_status checkpoint_folder_check(const char *folder, struct cadre_error *error)
{
    if (storage_is_object(folder)) {
        return check_objects(folder, error);
    }
    CADRE_FREE_AT_EXIT char *path = storage_join(folder, ".cadre-XXXXXX");
    if (path == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a path");
    }
    CADRE_CLOSE_AT_EXIT int fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0) {
        return cadre_error_errno(
            error, errno, "no checkpoint can be written to the folder '%s'", folder);
    }
    unlink(path);
    return CADRE_OK;
}

/* --- files of dead writers --- */

static bool is_temporary(const char *name)
{
    uint64_t position;
    size_t prefix = strlen(CHECKPOINT_FILE_PREFIX);
    return strncmp(name, CHECKPOINT_FILE_PREFIX, prefix) == 0 &&
           (is_name(name + prefix, CHECKPOINT_TENSORS_NAME, 1 + RANDOM_PART, &position) ||
               is_name(name + prefix, CHECKPOINT_TEXT_NAME, 1 + RANDOM_PART, &position));
}

/* An upload has no lock. One that began so long ago is taken for a dead writer's, whose ever that
 * was. */
static void remove_stale_uploads(const char *folder)
{
    struct cadre_error ignored;
    uint32_t count = 0;
    CADRE_FREE_AT_EXIT char *start = storage_join(folder, NAME_HEAD);
    if (start != NULL) {
        (void)storage_uploads_clear(
            NULL, start, (int64_t)clock_wall_us() - STALE_UPLOAD_US, &count, &ignored);
    }
}

void checkpoint_folder_remove_stale(const char *folder)
{
    if (storage_is_object(folder)) {
        remove_stale_uploads(folder);
        return;
    }
    FOLDER_AT_EXIT DIR *dir = opendir(folder);
    const struct dirent *entry;
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        if (!is_temporary(entry->d_name)) {
            continue;
        }
        CADRE_CLOSE_AT_EXIT int fd =
            openat(dirfd(dir), entry->d_name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0) {
            unlinkat(dirfd(dir), entry->d_name, 0);
        }
    }
}

/* --- old ones --- */

static bool is_of(const char *folder, const char *name, const char *run, uint64_t position)
{
    CADRE_FREE_AT_EXIT char *path = storage_join(folder, name);
    CADRE_FREE_AT_EXIT char *text = NULL;
    struct cadre_error ignored;
    size_t bytes = 0;
    return path != NULL &&
           storage_get(NULL, path, LIMIT_MANIFEST_BYTES, &text, &bytes, &ignored) == CADRE_OK &&
           manifest_is_of(text, bytes, run, position);
}

static int newest_first(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a;
    uint64_t right = *(const uint64_t *)b;
    return left < right ? 1 : left > right ? -1 : 0;
}

struct manifests {
    uint64_t published;
    uint64_t *positions;
    size_t count;
    size_t room;
    bool no_memory;
};

static bool add_manifest(void *user, const struct storage_entry *entry)
{
    struct manifests *list = user;
    const char *slash = strrchr(entry->path, '/');
    const char *name = slash != NULL ? slash + 1 : entry->path;
    uint64_t position;
    if (entry->is_folder || !is_name(name, CHECKPOINT_TEXT_NAME, 0, &position) ||
        position > list->published) {
        return true;
    }
    if (list->count == list->room) {
        size_t room = list->room == 0 ? 64 : list->room * 2;
        uint64_t *grown = realloc(list->positions, room * sizeof *grown);
        if (grown == NULL) {
            list->no_memory = true;
            return false;
        }
        list->positions = grown;
        list->room = room;
    }
    list->positions[list->count++] = position;
    return true;
}

/* The positions of all manifests up to `published`, newest first. *ret_positions is the caller's to
 * free, also on failure. */
static cadre_status list_manifests(const char *folder, uint64_t published, uint64_t **ret_positions,
    size_t *ret_count, struct cadre_error *error)
{
    struct manifests list = {.published = published};
    cadre_status status = storage_list(NULL, folder, NAME_HEAD, false, add_manifest, &list, error);
    *ret_positions = list.positions;
    *ret_count = list.count;
    CADRE_TRY(status);
    if (list.no_memory) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for a list of checkpoints");
    }
    if (list.count > 0) {
        qsort(list.positions, list.count, sizeof *list.positions, newest_first);
    }
    return CADRE_OK;
}

cadre_status checkpoint_folder_list(const char *folder, const char *run, uint64_t published,
    uint64_t **ret_positions, size_t *ret_count, struct cadre_error *error)
{
    size_t count = 0;
    *ret_positions = NULL;
    *ret_count = 0;
    cadre_status status = list_manifests(folder, published, ret_positions, &count, error);
    for (size_t i = 0; status == CADRE_OK && i < count; i++) {
        char text[CHECKPOINT_NAME_BYTES];
        uint64_t position = (*ret_positions)[i];
        checkpoint_name(position, CHECKPOINT_TEXT_NAME, text);
        if (is_of(folder, text, run, position)) {
            (*ret_positions)[(*ret_count)++] = position;
        }
    }
    return status;
}

cadre_status checkpoint_folder_prune(const char *folder, const char *run, uint64_t published,
    uint32_t kept, struct cadre_error *error)
{
    CADRE_ASSERT(kept > 0);
    CADRE_FREE_AT_EXIT uint64_t *positions = NULL;
    size_t count = 0;
    cadre_status status = checkpoint_folder_list(folder, run, published, &positions, &count, error);
    for (size_t i = kept; status == CADRE_OK && i < count; i++) {
        char tensors[CHECKPOINT_NAME_BYTES];
        char text[CHECKPOINT_NAME_BYTES];
        checkpoint_name(positions[i], CHECKPOINT_TENSORS_NAME, tensors);
        checkpoint_name(positions[i], CHECKPOINT_TEXT_NAME, text);
        status = checkpoint_file_remove(folder, tensors, error);
        if (status == CADRE_OK) {
            status = checkpoint_file_remove(folder, text, error);
        }
    }
    return status;
}

/* --- the proof that a folder is shared --- */

static char *token_path(const char *folder, const char *run)
{
    CADRE_ASSERT(run[0] != '\0');
    char name[CHECKPOINT_NAME_BYTES];
    snprintf(name, sizeof name, ".cadre-%s", run);
    return storage_join(folder, name);
}

cadre_status checkpoint_token_write(const char *folder, const char *run, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *path = token_path(folder, run);
    return path == NULL ? cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a path")
                        : storage_put(NULL, path, run, strlen(run), error);
}

cadre_status checkpoint_token_find(const char *folder, const char *run, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *path = token_path(folder, run);
    CADRE_FREE_AT_EXIT char *text = NULL;
    size_t bytes = 0;
    if (path == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a path");
    }
    CADRE_TRY(storage_get(NULL, path, MANIFEST_RUN_BYTES, &text, &bytes, error));
    return strcmp(text, run) == 0
               ? CADRE_OK
               : cadre_error_set(error, CADRE_NOT_FOUND, "%s is of another run", path);
}

void checkpoint_token_remove(const char *folder, const char *run)
{
    CADRE_FREE_AT_EXIT char *path = token_path(folder, run);
    struct cadre_error ignored;
    if (path != NULL) {
        (void)storage_remove(NULL, path, &ignored);
    }
}
