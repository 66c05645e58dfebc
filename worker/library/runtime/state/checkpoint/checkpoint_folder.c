/* SPDX-License-Identifier: Apache-2.0
 * The folder of checkpoints: names, stale temporary files, old checkpoints, the token of a
 * shared folder. checkpoint.c, checkpoint_list.c and checkpoint_probe.c call it. */
#include "worker/library/runtime/state/checkpoint/checkpoint_folder.h"

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

#define RANDOM_PART     6                    /* of mkostemp */
#define STALE_UPLOAD_US INT64_C(86400000000) /* a day */
#define FOLDER_AT_EXIT  CADRE_CLEANUP(cadre_cleanup_dir)

uint64_t checkpoint_folder_writer(const char *folder, uint64_t incarnation)
{
    return storage_is_object(folder) ? checkpoint_name_writer(incarnation) : 0;
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
    struct checkpoint_named named;
    size_t prefix = strlen(CHECKPOINT_FILE_PREFIX);
    return strncmp(name, CHECKPOINT_FILE_PREFIX, prefix) == 0 &&
           (checkpoint_name_read(name + prefix, CHECKPOINT_TENSORS_NAME, 1 + RANDOM_PART, &named) ||
               checkpoint_name_read(name + prefix, CHECKPOINT_TEXT_NAME, 1 + RANDOM_PART, &named));
}

/* An upload has no lock. One that began so long ago is taken for a dead writer's, whose ever that
 * was. */
static void remove_stale_uploads(const char *folder)
{
    struct cadre_error ignored;
    uint32_t count = 0;
    CADRE_FREE_AT_EXIT char *start = storage_join(folder, CHECKPOINT_NAME_HEAD);
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

struct named_list {
    struct checkpoint_named *all;
    size_t count;
    size_t room;
};

static bool add_named(struct named_list *list, const struct checkpoint_named *named)
{
    if (list->count == list->room) {
        size_t room = list->room == 0 ? 64 : list->room * 2;
        struct checkpoint_named *grown = realloc(list->all, room * sizeof *grown);
        if (grown == NULL) {
            return false;
        }
        list->all = grown;
        list->room = room;
    }
    list->all[list->count++] = *named;
    return true;
}

/* What is in the folder, up to a position; newest first. */
struct folder_names {
    uint64_t published;
    struct named_list manifests; /* of whatever run */
    struct named_list ours;      /* of them */
    struct named_list tensors;
    bool no_memory;
};

static void names_free(struct folder_names *names)
{
    free(names->manifests.all);
    free(names->ours.all);
    free(names->tensors.all);
}

static bool add_entry(void *user, const struct storage_entry *entry)
{
    struct folder_names *names = user;
    const char *slash = strrchr(entry->path, '/');
    const char *name = slash != NULL ? slash + 1 : entry->path;
    struct checkpoint_named named;
    struct named_list *list = NULL;
    if (!entry->is_folder && checkpoint_name_read(name, CHECKPOINT_TEXT_NAME, 0, &named)) {
        list = &names->manifests;
    } else if (!entry->is_folder &&
               checkpoint_name_read(name, CHECKPOINT_TENSORS_NAME, 0, &named)) {
        list = &names->tensors;
    }
    if (list != NULL && named.position <= names->published) {
        names->no_memory = !add_named(list, &named);
    }
    return !names->no_memory;
}

static void sort(struct named_list *list)
{
    if (list->count > 0) {
        qsort(list->all, list->count, sizeof *list->all, checkpoint_newest_first);
    }
}

static bool is_of_run(const char *folder, const char *run, const struct checkpoint_named *named)
{
    char text[CHECKPOINT_NAME_BYTES];
    checkpoint_name_write(named->position, named->writer, CHECKPOINT_TEXT_NAME, text);
    return is_of(folder, text, run, named->position);
}

/* To be freed, also on failure. */
static cadre_status list_names(const char *folder, const char *run, uint64_t published,
    struct folder_names *ret_names, struct cadre_error *error)
{
    struct folder_names *names = ret_names;
    *names = (struct folder_names){.published = published};
    CADRE_TRY(storage_list(NULL, folder, CHECKPOINT_NAME_HEAD, false, add_entry, names, error));
    sort(&names->manifests);
    sort(&names->tensors);
    for (size_t i = 0; i < names->manifests.count && !names->no_memory; i++) {
        const struct checkpoint_named *named = &names->manifests.all[i];
        names->no_memory = is_of_run(folder, run, named) && !add_named(&names->ours, named);
    }
    return !names->no_memory ? CADRE_OK
                             : cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
                                   "no memory for a list of checkpoints");
}

cadre_status checkpoint_folder_list(const char *folder, const char *run, uint64_t published,
    uint64_t **ret_positions, size_t *ret_count, struct cadre_error *error)
{
    CADRE_CLEANUP(names_free) struct folder_names names;
    *ret_count = 0;
    *ret_positions = NULL;
    CADRE_TRY(list_names(folder, run, published, &names, error));
    uint64_t *positions = calloc(names.ours.count + 1, sizeof *positions);
    if (positions == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for a list of checkpoints");
    }
    *ret_positions = positions;
    for (size_t i = 0; i < names.ours.count; i++) {
        uint64_t position = names.ours.all[i].position;
        if (*ret_count == 0 || positions[*ret_count - 1] != position) { /* one of two writers */
            positions[(*ret_count)++] = position;
        }
    }
    return CADRE_OK;
}

static cadre_status remove_kind(const char *folder, const struct checkpoint_named *named,
    const char *kind, struct cadre_error *error)
{
    char name[CHECKPOINT_NAME_BYTES];
    checkpoint_name_write(named->position, named->writer, kind, name);
    return checkpoint_file_remove(folder, name, error);
}

/* Tensors whose writer died before it wrote their manifest, and which another one of the same run
 * has written since. */
static cadre_status remove_replaced(
    const char *folder, const struct folder_names *names, struct cadre_error *error)
{
    for (size_t i = 0; i < names->tensors.count; i++) {
        const struct checkpoint_named *named = &names->tensors.all[i];
        bool replaced = false;
        for (size_t k = 0; k < names->ours.count; k++) {
            replaced = replaced || names->ours.all[k].position == named->position;
        }
        for (size_t k = 0; k < names->manifests.count; k++) {
            replaced = replaced && checkpoint_newest_first(&names->manifests.all[k], named) != 0;
        }
        if (replaced) {
            CADRE_TRY(remove_kind(folder, named, CHECKPOINT_TENSORS_NAME, error));
        }
    }
    return CADRE_OK;
}

cadre_status checkpoint_folder_prune(const char *folder, const char *run, uint64_t published,
    uint32_t kept, struct cadre_error *error)
{
    CADRE_ASSERT(kept > 0);
    CADRE_CLEANUP(names_free) struct folder_names names;
    CADRE_TRY(list_names(folder, run, published, &names, error));
    CADRE_TRY(remove_replaced(folder, &names, error));
    uint32_t positions = 0;
    for (size_t i = 0; i < names.ours.count; i++) {
        const struct checkpoint_named *named = &names.ours.all[i];
        positions += i == 0 || named->position != named[-1].position ? 1 : 0;
        if (positions > kept) {
            CADRE_TRY(remove_kind(folder, named, CHECKPOINT_TENSORS_NAME, error));
            CADRE_TRY(remove_kind(folder, named, CHECKPOINT_TEXT_NAME, error));
        }
    }
    return CADRE_OK;
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
