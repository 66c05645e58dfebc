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
#include "common/base/files.h"
#include "common/model/limits.h"
#include "common/pure/assert.h"
#include "worker/library/runtime/state/format/checkpoint_file.h"
#include "worker/library/runtime/state/checkpoint/manifest.h"

#define NAME_HEAD      "checkpoint-"
#define RANDOM_PART    6 /* of mkostemp */
#define POSITION_MAX   (LIMIT_POSITION - 1)
#define FOLDER_AT_EXIT CADRE_CLEANUP(cadre_cleanup_dir)

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

static char *path_of(const char *folder, const char *name)
{
    char *path = NULL;
    return asprintf(&path, "%s/%s", folder, name) < 0 ? NULL : path;
}

cadre_status checkpoint_folder_check(const char *folder, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *path = path_of(folder, ".cadre-XXXXXX");
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

void checkpoint_folder_remove_stale(const char *folder)
{
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
    CADRE_FREE_AT_EXIT char *path = path_of(folder, name);
    CADRE_FREE_AT_EXIT char *text = NULL;
    size_t bytes = 0;
    return path != NULL && file_read(path, LIMIT_MANIFEST_BYTES, &text, &bytes, NULL) == CADRE_OK &&
           manifest_is_of(text, bytes, run, position);
}

static int newest_first(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a;
    uint64_t right = *(const uint64_t *)b;
    return left < right ? 1 : left > right ? -1 : 0;
}

/* The positions of all manifests up to `published`, newest first. *ret_positions is the caller's to
 * free. */
static cadre_status list_manifests(const char *folder, uint64_t published, uint64_t **ret_positions,
    size_t *ret_count, struct cadre_error *error)
{
    FOLDER_AT_EXIT DIR *dir = opendir(folder);
    if (dir == NULL) {
        return cadre_error_errno(error, errno, "cannot read the folder %s", folder);
    }
    size_t room = 0;
    const struct dirent *entry;
    while ((entry = readdir(dir)) != NULL) {
        uint64_t position;
        if (!is_name(entry->d_name, CHECKPOINT_TEXT_NAME, 0, &position) || position > published) {
            continue;
        }
        if (*ret_count == room) {
            room = room == 0 ? 64 : room * 2;
            uint64_t *grown = realloc(*ret_positions, room * sizeof *grown);
            if (grown == NULL) {
                return cadre_error_set(
                    error, CADRE_RESOURCE_EXHAUSTED, "no memory for a list of checkpoints");
            }
            *ret_positions = grown;
        }
        (*ret_positions)[(*ret_count)++] = position;
    }
    if (*ret_count > 0) {
        qsort(*ret_positions, *ret_count, sizeof **ret_positions, newest_first);
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
    char *path = NULL;
    return asprintf(&path, "%s/.cadre-%s", folder, run) < 0 ? NULL : path;
}

cadre_status checkpoint_token_write(const char *folder, const char *run, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *path = token_path(folder, run);
    return path == NULL ? cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a path")
                        : file_write_atomic(path, run, strlen(run), 0644, error);
}

bool checkpoint_token_exists(const char *folder, const char *run)
{
    CADRE_FREE_AT_EXIT char *path = token_path(folder, run);
    CADRE_FREE_AT_EXIT char *text = NULL;
    size_t bytes = 0;
    return path != NULL && file_read(path, MANIFEST_RUN_BYTES, &text, &bytes, NULL) == CADRE_OK &&
           strcmp(text, run) == 0;
}

void checkpoint_token_remove(const char *folder, const char *run)
{
    CADRE_FREE_AT_EXIT char *path = token_path(folder, run);
    if (path != NULL) {
        unlink(path);
    }
}
