/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/daemon/moving/move_one.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/files.h"
#include "coordinator/daemon/contents/artifacts.h"
#include "coordinator/daemon/contents/settled_objects.h"
#include "coordinator/daemon/logs/log_copies.h"
#include "coordinator/daemon/logs/log_copy_files.h"
#include "coordinator/daemon/logs/log_upload.h"
#include "coordinator/daemon/objects/object_cache.h"
#include "coordinator/daemon/objects/object_names.h"
#include "coordinator/daemon/series/series_objects.h"

#define SERIES_BYTES_MAX ((size_t)64 * 1024 * 1024)

/* A copy is as new as what it was made of only if it was made so long after that had changed: by as
 * much the clocks of a store and of its clients may differ. */
#define CLOCKS_DIFFER_US (900 * CADRE_US_PER_S)

static cadre_status no_memory(struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory to copy contents");
}

cadre_status move_open(struct move *move, struct cadre_error *error)
{
    if (asprintf(&move->contents, "%s/blobs", move->folder) < 0) {
        move->contents = NULL;
        return no_memory(error);
    }
    if (move->to_store) {
        return CADRE_OK;
    }
    CADRE_TRY(folder_make_durable(move->contents, 0700, error));
    CADRE_TRY(object_cache_open(move->objects, move->contents, UINT64_MAX, &move->cache, error));
    return log_copies_open(move->objects, &move->leading, 0, UINT64_MAX, &move->copies, error);
}

void move_close(struct move *move)
{
    log_copies_close(move->copies);
    object_cache_close(move->cache);
    free(move->contents);
    move_list_free(&move->from);
    move_list_free(&move->there);
}

/* ---- names ---- */

/* NULL: no memory. */
static char *path_of_file(const struct move *move, const struct move_item *item)
{
    char *path = NULL;
    const char *folder = move->folder;
    uint64_t job = item->job.n;
    int length = -1;
    switch (item->kind) {
    case MOVE_CONTENT:
        length = asprintf(&path, "%s/%s", move->contents, item->name);
        break;
    case MOVE_LOG:
        length = asprintf(&path, "%s/jobs/%" PRIu64 "/logs/%" PRIu32, folder, job, item->number);
        break;
    case MOVE_SERIES:
        length = asprintf(&path, "%s/jobs/%" PRIu64 "/series", folder, job);
        break;
    case MOVE_OUTPUT:
    case MOVE_REFERENCE:
        length = asprintf(&path, "%s/jobs/%" PRIu64 "/outputs/%s", folder, job, item->name);
        break;
    case MOVE_SETTLED:
        length = asprintf(&path, "%s/jobs/%" PRIu64 "/files/%" PRIu32, folder, job, item->number);
        break;
    case MOVE_OTHER:
    case MOVE_KINDS:
        length = asprintf(&path, "%s/%s", folder, item->name);
        break;
    }
    return length >= 0 ? path : NULL;
}

/* Of a log and of values the folder of their objects. */
static char *path_of_object(const struct move *move, const struct move_item *item)
{
    struct sha256 hash;
    const struct objects *objects = move->objects;
    switch (item->kind) {
    case MOVE_CONTENT:
        return sha256_parse(item->name, &hash) ? object_name_of_blob(objects, hash.bytes) : NULL;
    case MOVE_LOG:
        return object_name_of_log(objects, item->job, item->number, NULL);
    case MOVE_SERIES:
        return object_name_of_series(objects, item->job, NULL);
    case MOVE_OUTPUT:
        return object_name_of_output(objects, item->job, item->name);
    case MOVE_REFERENCE:
        return object_name_of_reference(objects, item->job, item->name);
    case MOVE_SETTLED:
        return object_name_of_settled(objects, item->job, item->number);
    case MOVE_OTHER:
    case MOVE_KINDS:
        break;
    }
    return objects_path(objects, "%s", item->name);
}

bool move_has(const struct move *move, const struct move_item *item)
{
    const struct move_item *there = move_list_find(&move->there, item);
    if (there == NULL || item->kind == MOVE_LOG || item->kind == MOVE_SERIES ||
        item->kind == MOVE_SETTLED || there->bytes != item->bytes) {
        return false;
    }
    return item->kind == MOVE_CONTENT || there->changed_us > item->changed_us + CLOCKS_DIFFER_US;
}

/* ---- into a store ---- */

static cadre_status check_content(
    int fd, const char *path, const struct move_item *item, struct cadre_error *error)
{
    struct sha256 made;
    struct sha256 wanted;
    uint64_t bytes = 0;
    CADRE_TRY(sha256_of_fd(fd, &made, &bytes, error));
    if (sha256_parse(item->name, &wanted) && sha256_equal(&made, &wanted)) {
        return CADRE_OK;
    }
    return cadre_error_set(error, CADRE_DATA_LOSS, "%s does not have its hash", path);
}

static cadre_status put_file(const struct move *move, const struct move_item *item,
    const char *path, const char *object, struct cadre_error *error)
{
    CADRE_CLOSE_AT_EXIT int fd = -1;
    CADRE_TRY(file_open_regular(path, &fd, NULL, error));
    if (item->kind == MOVE_CONTENT) {
        CADRE_TRY(check_content(fd, path, item, error));
    }
    return objects_put_file(move->objects, object, fd, error);
}

static struct series_objects series_of(const struct move *move, const struct move_item *item)
{
    return (struct series_objects){
        .objects = move->objects, .leading = &move->leading, .job = item->job};
}

static bool may_always(const void *user)
{
    (void)user;
    return true;
}

/* Instead of a chain of newer terms, if the contents come back to where they were. */
static cadre_status put_series(const struct move *move, const struct move_item *item,
    const char *path, const char *object, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *bytes = NULL;
    size_t size = 0;
    struct series_objects series = series_of(move, item);
    CADRE_TRY(file_read(path, SERIES_BYTES_MAX, &bytes, &size, error));
    CADRE_TRY(objects_remove_all(move->objects, object, may_always, NULL, error));
    return size > 0 ? series_objects_put(&series, true, (const uint8_t *)bytes, size, error)
                    : CADRE_OK;
}

/* What is there may be of a copy before, of which the folder has changed since. */
static cadre_status put_settled(
    const struct move *move, const char *path, const char *object, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *bytes = NULL;
    size_t size = 0;
    CADRE_TRY(file_read(path, SETTLED_BYTES, &bytes, &size, error));
    CADRE_TRY(objects_remove_all(move->objects, object, may_always, NULL, error));
    return settled_objects_put_first(move->objects, object, bytes, size, error);
}

static cadre_status to_store(const struct move *move, const struct move_item *item,
    const char *path, const char *object, struct cadre_error *error)
{
    switch (item->kind) {
    case MOVE_LOG:
        return log_upload(move->objects, item->job, item->number, path, error);
    case MOVE_SERIES:
        return put_series(move, item, path, object, error);
    case MOVE_REFERENCE:
        return objects_put(move->objects, object, "", 0, error);
    case MOVE_SETTLED:
        return put_settled(move, path, object, error);
    case MOVE_CONTENT:
    case MOVE_OUTPUT:
    case MOVE_OTHER:
    case MOVE_KINDS:
        break;
    }
    return put_file(move, item, path, object, error);
}

/* ---- into a folder ---- */

static cadre_status make_folder_of(const char *path, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *folder = strndup(path, (size_t)(strrchr(path, '/') - path));
    return folder != NULL ? folder_make_durable(folder, 0700, error) : no_memory(error);
}

/* Among the contents, where a start removes what has another name than a hash. */
static char *part_of(struct move *move)
{
    char *path = NULL;
    unsigned number = atomic_fetch_add(&move->files_made, 1);
    return asprintf(&path, "%s/moving-%u", move->contents, number) >= 0 ? path : NULL;
}

static cadre_status get_file(
    struct move *move, const char *path, const char *object, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *part = part_of(move);
    if (part == NULL) {
        return no_memory(error);
    }
    CADRE_TRY(make_folder_of(path, error));
    CADRE_CLOSE_AT_EXIT int fd =
        open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        return cadre_error_errno(error, errno, "cannot make %s", part);
    }
    CADRE_TRY(objects_fetch(move->objects, object, fd, error));
    return file_replace(fd, part, path, error);
}

static cadre_status get_settled(
    struct move *move, const char *path, const char *object, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *bytes = NULL;
    size_t size = 0;
    CADRE_TRY(settled_objects_get(move->objects, object, &bytes, &size, error));
    CADRE_TRY(make_folder_of(path, error));
    return file_write_atomic(path, bytes, size, 0600, error);
}

static cadre_status get_reference(
    struct move *move, const struct move_item *item, const char *path, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *part = part_of(move);
    const char *slash = strrchr(item->name, '/');
    if (part == NULL) {
        return no_memory(error);
    }
    (void)unlink(part);
    CADRE_TRY(make_folder_of(path, error));
    return artifacts_put_link(slash != NULL ? slash + 1 : item->name, part, path, error);
}

static cadre_status get_content(
    const struct move *move, const struct move_item *item, struct cadre_error *error)
{
    struct sha256 hash;
    CADRE_CLOSE_AT_EXIT int fd = -1;
    return sha256_parse(item->name, &hash)
               ? object_cache_read(move->cache, move->contents, hash.bytes, &fd, NULL, error)
               : CADRE_OK;
}

static cadre_status get_log(const struct move *move, const struct move_item *item, const char *path,
    struct cadre_error *error)
{
    struct log_copy *copy = log_copies_use(move->copies, item->job, item->number, path);
    cadre_status status = copy != NULL ? log_copy_fill(copy, error) : no_memory(error);
    log_copies_done(move->copies, copy);
    return status;
}

static cadre_status to_folder(struct move *move, const struct move_item *item, const char *path,
    const char *object, struct cadre_error *error)
{
    struct series_objects series = series_of(move, item);
    if (item->name != NULL) { /* another program may have made the object */
        CADRE_TRY(file_name_check(item->name, error));
    }
    switch (item->kind) {
    case MOVE_CONTENT:
        return get_content(move, item, error);
    case MOVE_LOG:
        return get_log(move, item, path, error);
    case MOVE_SERIES:
        return series_objects_fetch(&series, path, error);
    case MOVE_REFERENCE:
        return get_reference(move, item, path, error);
    case MOVE_SETTLED:
        return get_settled(move, path, object, error);
    case MOVE_OUTPUT:
    case MOVE_OTHER:
    case MOVE_KINDS:
        break;
    }
    return get_file(move, path, object, error);
}

cadre_status move_one(struct move *move, const struct move_item *item, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *path = path_of_file(move, item);
    CADRE_FREE_AT_EXIT char *object = path_of_object(move, item);
    if (path == NULL || object == NULL) {
        return no_memory(error);
    }
    return move->to_store ? to_store(move, item, path, object, error)
                          : to_folder(move, item, path, object, error);
}

/* ---- what is not where it is copied from ---- */

static cadre_status remove_object(
    const struct move *move, const struct move_item *item, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *object = path_of_object(move, item);
    if (item->kind == MOVE_LOG) {
        CADRE_FREE_AT_EXIT char *head =
            object_name_of_log_head(move->objects, item->job, item->number);
        CADRE_TRY(objects_remove(move->objects, head, error));
    }
    return item->kind == MOVE_LOG || item->kind == MOVE_SERIES || item->kind == MOVE_SETTLED
               ? objects_remove_all(move->objects, object, may_always, NULL, error)
               : objects_remove(move->objects, object, error);
}

static cadre_status remove_file(
    const struct move *move, const struct move_item *item, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *path = path_of_file(move, item);
    if (path == NULL) {
        return no_memory(error);
    }
    if (item->kind == MOVE_LOG) {
        log_copy_files_remove(path);
        return CADRE_OK;
    }
    return unlink(path) == 0 || errno == ENOENT
               ? CADRE_OK
               : cadre_error_errno(error, errno, "cannot remove %s", path);
}

cadre_status move_remove_others(const struct move *move, struct cadre_error *error)
{
    for (size_t i = 0; i < move->there.count; i++) {
        const struct move_item *item = &move->there.items[i];
        if (move_list_find(&move->from, item) == NULL) {
            CADRE_TRY(
                move->to_store ? remove_object(move, item, error) : remove_file(move, item, error));
        }
    }
    return CADRE_OK;
}
