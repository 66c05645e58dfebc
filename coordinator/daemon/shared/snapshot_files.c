/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/daemon/shared/snapshot_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/files.h"
#include "common/base/log.h"
#include "common/base/sha256.h"
#include "common/storage/storage.h"

#define COPY_BYTES  ((size_t)1024 * 1024)
#define COPY_PAGES  64 /* in a turn of the loop: a fraction of a millisecond */
#define NAME_DIGITS 16

struct snapshot_files {
    struct snapshot_files_owner owner;
    struct file_work_pool *pool;
    struct file_work work;
    uv_timer_t timer; /* of the copy's steps */
    bool timer_closed;
    struct store *store;     /* that is copied */
    struct store_copy *copy; /* under way, in steps; NULL: none */
    char *folder;            /* of all snapshots; of an object store, with: */
    struct storage_client *client;
    char *local; /* a copy in the state directory */
    bool closed; /* it is freed when the work is done */
    /* The thread's: */
    char *path; /* of the snapshot; NULL: not known yet */
    struct replica_snapshot snapshot;
    struct cadre_error error;
};

cadre_status snapshot_files_open(const char *contents, const char *state,
    struct file_work_pool *pool, const struct snapshot_files_owner *owner,
    struct snapshot_files **ret_files, struct cadre_error *error)
{
    struct snapshot_files *files = calloc(1, sizeof *files);
    if (files == NULL || (files->folder = storage_join(contents, "snapshots")) == NULL ||
        asprintf(&files->local, "%s/snapshot.db", state) < 0) {
        free(files != NULL ? files->folder : NULL);
        free(files);
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for snapshots");
    }
    files->owner = *owner;
    files->pool = pool;
    uv_timer_init(rpc_loop_uv(pool->loop), &files->timer);
    files->timer.data = files;
    const struct storage_options options = {.objects_only = true};
    cadre_status status = storage_is_object(contents)
                              ? storage_client_open(&options, &files->client, error)
                              : folder_make_durable(files->folder, 0700, error);
    if (status != CADRE_OK) {
        snapshot_files_close(files);
        return status;
    }
    *ret_files = files;
    return CADRE_OK;
}

static void free_when_idle(struct snapshot_files *files)
{
    if (!files->closed || !files->timer_closed || files->work.running) {
        return;
    }
    storage_client_close(files->client);
    free(files->folder);
    free(files->local);
    free(files->path);
    free(files);
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct snapshot_files *files = handle->data;
    files->timer_closed = true;
    free_when_idle(files);
}

void snapshot_files_close(struct snapshot_files *files)
{
    if (files == NULL) {
        return;
    }
    store_sqlite_copy_end(files->copy);
    files->copy = NULL;
    files->closed = true;
    if (files->client != NULL) {
        storage_client_stop(files->client);
    }
    uv_close((uv_handle_t *)&files->timer, on_timer_closed);
}

/* Whether the owner is still there. */
static bool is_wanted(struct snapshot_files *files)
{
    if (files->closed) {
        free_when_idle(files);
        return false;
    }
    return true;
}

/* False: other work is under way; `error` says so. */
static bool begin(struct snapshot_files *files, const struct replica_snapshot *snapshot,
    struct cadre_error *error)
{
    if (files->work.running || files->copy != NULL) {
        cadre_error_set(error, CADRE_UNAVAILABLE, "older snapshots are still being removed");
        return false;
    }
    files->snapshot = *snapshot;
    files->error = (struct cadre_error){0};
    return true;
}

/* By what it holds: two coordinators may each make one of the same entry, as an older leader does
 * that is slow to end. In a thread. */
static cadre_status name_it(
    struct snapshot_files *files, const struct sha256 *hash, struct cadre_error *error)
{
    char hex[SHA256_HEX_BYTES];
    sha256_hex(hash, hex);
    free(files->path);
    if (asprintf(&files->path, "%s/%016" PRIx64 "-%s.db", files->folder, files->snapshot.at.index,
            hex) < 0) {
        files->path = NULL;
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a snapshot");
    }
    return CADRE_OK;
}

/* Copies the file `from` to `to`, durably, and hashes what it read. In a thread. */
static cadre_status copy_file(const char *from, const char *to, struct sha256 *ret_hash,
    uint64_t *ret_size, struct cadre_error *error)
{
    CADRE_CLOSE_AT_EXIT int source = -1;
    CADRE_FREE_AT_EXIT char *temporary = NULL;
    CADRE_FREE_AT_EXIT char *buffer = malloc(COPY_BYTES);
    if (buffer == NULL || asprintf(&temporary, "%s.new", to) < 0) {
        temporary = NULL;
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory to copy %s", from);
    }
    CADRE_TRY(file_open_regular(from, &source, ret_size, error));
    CADRE_CLOSE_AT_EXIT int target =
        open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (target < 0) {
        return cadre_error_errno(error, errno, "cannot make %s", temporary);
    }
    ssize_t count;
    while ((count = read(source, buffer, COPY_BYTES)) > 0) {
        CADRE_TRY(file_write_all(target, temporary, buffer, (size_t)count, error));
    }
    if (count < 0 || lseek(source, 0, SEEK_SET) < 0) {
        return cadre_error_errno(error, errno, "cannot read %s", from);
    }
    CADRE_TRY(sha256_of_fd(source, ret_hash, ret_size, error));
    return file_replace(target, temporary, to, error);
}

/* ---- in an object store ---- */

static cadre_status put_object(
    const struct snapshot_files *files, uint64_t size, struct cadre_error *error)
{
    CADRE_CLOSE_AT_EXIT int fd = -1;
    CADRE_TRY(file_open_regular(files->local, &fd, NULL, error));
    void *bytes = mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED) {
        return cadre_error_errno(error, errno, "cannot read %s", files->local);
    }
    cadre_status status = storage_put(files->client, files->path, bytes, (size_t)size, error);
    munmap(bytes, (size_t)size);
    return status;
}

/* Reads the object, writes it to `fd` (-1: nowhere), and hashes what came. */
static cadre_status read_object(const struct snapshot_files *files, int fd, struct sha256 *ret_hash,
    uint64_t *ret_size, struct cadre_error *error)
{
    struct storage_object *object = NULL;
    struct sha256_stream *hash = NULL;
    CADRE_FREE_AT_EXIT uint8_t *buffer = malloc(COPY_BYTES);
    if (buffer == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a snapshot");
    }
    CADRE_TRY(storage_open(files->client, files->path, &object, error));
    cadre_status status = sha256_open(&hash, error);
    *ret_size = storage_info_of(object)->bytes;
    for (uint64_t at = 0; at < *ret_size && status == CADRE_OK;) {
        size_t want = *ret_size - at < COPY_BYTES ? (size_t)(*ret_size - at) : COPY_BYTES;
        status = storage_read(object, at, buffer, want, error);
        status = status == CADRE_OK ? sha256_add(hash, buffer, want, error) : status;
        status = status == CADRE_OK && fd >= 0
                     ? file_write_all(fd, files->local, buffer, want, error)
                     : status;
        at += want;
    }
    status = status == CADRE_OK ? sha256_finish(hash, ret_hash, error) : status;
    sha256_close(hash);
    storage_close(object);
    return status;
}

static cadre_status get_object(const struct snapshot_files *files, struct sha256 *ret_hash,
    uint64_t *ret_size, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *temporary = NULL;
    if (asprintf(&temporary, "%s.new", files->local) < 0) {
        temporary = NULL;
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a snapshot");
    }
    CADRE_CLOSE_AT_EXIT int fd =
        open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        return cadre_error_errno(error, errno, "cannot make %s", temporary);
    }
    CADRE_TRY(read_object(files, fd, ret_hash, ret_size, error));
    return file_replace(fd, temporary, files->local, error);
}

static cadre_status hash_file(
    const char *path, struct sha256 *ret_hash, uint64_t *ret_size, struct cadre_error *error)
{
    CADRE_CLOSE_AT_EXIT int fd = -1;
    CADRE_TRY(file_open_regular(path, &fd, ret_size, error));
    return sha256_of_fd(fd, ret_hash, ret_size, error);
}

/* ---- making ---- */

static cadre_status put(struct snapshot_files *files, struct cadre_error *error)
{
    struct sha256 hash, again;
    uint64_t size = 0;
    uint64_t size_again = 0;
    CADRE_TRY(hash_file(files->local, &hash, &size, error));
    CADRE_TRY(name_it(files, &hash, error));
    if (files->client != NULL) {
        CADRE_TRY(put_object(files, size, error));
        CADRE_TRY(read_object(files, -1, &again, &size_again, error));
    } else {
        CADRE_TRY(copy_file(files->local, files->path, &again, &size_again, error));
        CADRE_TRY(hash_file(files->path, &again, &size_again, error));
    }
    if (size != size_again || !sha256_equal(&hash, &again)) {
        return cadre_error_set(error, CADRE_DATA_LOSS,
            "%s is not what was written to it: look at the disk of the contents' folder",
            files->path);
    }
    memcpy(files->snapshot.sha256, hash.bytes, sizeof files->snapshot.sha256);
    files->snapshot.size = size;
    return CADRE_OK;
}

static void put_in_thread(void *user)
{
    struct snapshot_files *files = user;
    (void)put(files, &files->error);
    (void)unlink(files->local);
}

static void after_put(void *user)
{
    struct snapshot_files *files = user;
    if (is_wanted(files)) {
        files->owner.made(files->owner.user, &files->snapshot, &files->error);
    }
}

static void end_copy(struct snapshot_files *files)
{
    uv_timer_stop(&files->timer);
    store_sqlite_copy_end(files->copy);
    files->copy = NULL;
}

/* What was applied between the steps is in the copy, which is as of now. */
static void note_position(struct snapshot_files *files)
{
    struct store_position at;
    files->store->ops->position(files->store, &at);
    files->snapshot.at = (struct leadership_position){.index = at.index, .term = at.term};
    memcpy(files->snapshot.at.hash.bytes, at.hash, sizeof at.hash);
}

static void on_step(uv_timer_t *timer)
{
    struct snapshot_files *files = timer->data;
    bool whole = false;
    cadre_status status = store_sqlite_copy_step(files->copy, COPY_PAGES, &whole, &files->error);
    if (status == CADRE_OK && !whole) {
        return;
    }
    end_copy(files);
    if (status != CADRE_OK) {
        files->owner.made(files->owner.user, &files->snapshot, &files->error);
        return;
    }
    note_position(files);
    file_work_start(&files->work, files->pool, put_in_thread, after_put, files);
}

void snapshot_files_make(struct snapshot_files *files, struct store *store)
{
    const struct replica_snapshot snapshot = {0};
    struct cadre_error error = {0};
    if (!begin(files, &snapshot, &error) ||
        store_sqlite_copy_begin(store, files->local, &files->copy, &error) != CADRE_OK) {
        files->owner.made(files->owner.user, &snapshot, &error);
        return;
    }
    files->store = store;
    uv_timer_start(&files->timer, on_step, 0, 1);
}

/* ---- fetching ---- */

static cadre_status get(struct snapshot_files *files, struct cadre_error *error)
{
    struct sha256 hash;
    uint64_t size = 0;
    memcpy(hash.bytes, files->snapshot.sha256, sizeof hash.bytes);
    CADRE_TRY(name_it(files, &hash, error));
    CADRE_TRY(files->client != NULL ? get_object(files, &hash, &size, error)
                                    : copy_file(files->path, files->local, &hash, &size, error));
    if (size != files->snapshot.size ||
        memcmp(hash.bytes, files->snapshot.sha256, sizeof hash.bytes) != 0) {
        (void)unlink(files->local);
        return cadre_error_set(error, CADRE_DATA_LOSS,
            "%s is not the snapshot that etcd names: put that file back, or copy the state "
            "directory of another coordinator, which is stopped meanwhile",
            files->path);
    }
    return CADRE_OK;
}

static void get_in_thread(void *user)
{
    struct snapshot_files *files = user;
    (void)get(files, &files->error);
}

static void after_get(void *user)
{
    struct snapshot_files *files = user;
    if (is_wanted(files)) {
        files->owner.fetched(files->owner.user, &files->snapshot, files->local, &files->error);
    }
}

void snapshot_files_fetch(struct snapshot_files *files, const struct replica_snapshot *snapshot)
{
    struct cadre_error error = {0};
    if (!begin(files, snapshot, &error)) {
        files->owner.fetched(files->owner.user, snapshot, files->local, &error);
        return;
    }
    file_work_start(&files->work, files->pool, get_in_thread, after_get, files);
}

/* ---- removing ---- */

static bool is_older(const char *name, uint64_t index)
{
    char *end = NULL;
    uint64_t number = strtoull(name, &end, 16);
    return end == name + NAME_DIGITS && *end == '-' && number < index;
}

/* A few at a time: the others' turn comes with the next snapshot. */
#define REMOVED_MAX 16

struct older {
    const struct snapshot_files *files;
    char *paths[REMOVED_MAX];
    size_t count;
};

static bool note_older(void *user, const struct storage_entry *entry)
{
    struct older *older = user;
    const char *slash = strrchr(entry->path, '/');
    if (!entry->is_folder && slash != NULL &&
        is_older(slash + 1, older->files->snapshot.at.index)) {
        older->paths[older->count] = strdup(entry->path);
        older->count += older->paths[older->count] != NULL ? 1 : 0;
    }
    return older->count < REMOVED_MAX;
}

static void remove_objects(const struct snapshot_files *files)
{
    struct older older = {.files = files};
    struct cadre_error error = {0}; /* what stays is found the next time */
    (void)storage_list(files->client, files->folder, NULL, true, note_older, &older, &error);
    for (size_t i = 0; i < older.count; i++) {
        (void)storage_remove(files->client, older.paths[i], &error);
        free(older.paths[i]);
    }
}

static void remove_in_thread(void *user)
{
    const struct snapshot_files *files = user;
    if (files->client != NULL) {
        remove_objects(files);
        return;
    }
    CADRE_CLEANUP(cadre_cleanup_dir) DIR *folder = opendir(files->folder);
    const struct dirent *entry;
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        if (is_older(entry->d_name, files->snapshot.at.index)) {
            (void)unlinkat(dirfd(folder), entry->d_name, 0);
        }
    }
}

static void after_remove(void *user)
{
    (void)is_wanted(user);
}

void snapshot_files_remove_older(struct snapshot_files *files, uint64_t index)
{
    if (files->work.running || files->copy != NULL) {
        return; /* the next snapshot's turn comes */
    }
    files->snapshot.at.index = index;
    file_work_start(&files->work, files->pool, remove_in_thread, after_remove, files);
}
