/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/daemon/shared/snapshot_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/files.h"
#include "common/base/log.h"
#include "common/base/sha256.h"

#define COPY_BYTES  ((size_t)1024 * 1024)
#define NAME_DIGITS 16

struct snapshot_files {
    struct snapshot_files_owner owner;
    struct file_work_pool *pool;
    struct file_work work;
    char *folder; /* of all snapshots */
    char *local;  /* a copy in the state directory */
    bool closed;  /* it is freed when the work is done */
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
    if (files == NULL || asprintf(&files->folder, "%s/snapshots", contents) < 0 ||
        asprintf(&files->local, "%s/snapshot.db", state) < 0) {
        snapshot_files_close(files);
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for snapshots");
    }
    files->owner = *owner;
    files->pool = pool;
    cadre_status status = folder_make_durable(files->folder, 0700, error);
    if (status != CADRE_OK) {
        snapshot_files_close(files);
        return status;
    }
    *ret_files = files;
    return CADRE_OK;
}

void snapshot_files_close(struct snapshot_files *files)
{
    if (files == NULL) {
        return;
    }
    if (files->work.running) {
        files->closed = true;
        return;
    }
    free(files->folder);
    free(files->local);
    free(files->path);
    free(files);
}

/* Whether the owner is still there. */
static bool is_wanted(struct snapshot_files *files)
{
    if (files->closed) {
        snapshot_files_close(files);
        return false;
    }
    return true;
}

/* False: other work is under way; `error` says so. */
static bool begin(struct snapshot_files *files, const struct replica_snapshot *snapshot,
    struct cadre_error *error)
{
    if (files->work.running) {
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
    CADRE_TRY(copy_file(files->local, files->path, &again, &size_again, error));
    CADRE_TRY(hash_file(files->path, &again, &size_again, error));
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

void snapshot_files_make(
    struct snapshot_files *files, struct store *store, const struct leadership_position *at)
{
    const struct replica_snapshot snapshot = {.at = *at};
    struct cadre_error error = {0};
    if (!begin(files, &snapshot, &error) ||
        store_sqlite_copy(store, files->local, &error) != CADRE_OK) {
        files->owner.made(files->owner.user, &snapshot, &error);
        return;
    }
    file_work_start(&files->work, files->pool, put_in_thread, after_put, files);
}

/* ---- fetching ---- */

static cadre_status get(struct snapshot_files *files, struct cadre_error *error)
{
    struct sha256 hash;
    uint64_t size = 0;
    memcpy(hash.bytes, files->snapshot.sha256, sizeof hash.bytes);
    CADRE_TRY(name_it(files, &hash, error));
    CADRE_TRY(copy_file(files->path, files->local, &hash, &size, error));
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

static void remove_in_thread(void *user)
{
    const struct snapshot_files *files = user;
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
    if (files->work.running) {
        return; /* the next snapshot's turn comes */
    }
    files->snapshot.at.index = index;
    file_work_start(&files->work, files->pool, remove_in_thread, after_remove, files);
}
