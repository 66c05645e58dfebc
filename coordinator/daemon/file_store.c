/* SPDX-License-Identifier: Apache-2.0
 * Which contents are here: the check at submit, MissingBlobs, and the clean-up. */
#include "coordinator/daemon/file_store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/fault.h"
#include "common/base/files.h"
#include "common/base/sha256.h"
#include "coordinator/daemon/needs.h"
#include "coordinator/daemon/storage.h"
#include "coordinator/daemon/worker_contents.h"

/* A content may be asked for (MissingBlobs) a while before the job that uses it is submitted. */
#define UNUSED_US      (3600 * CADRE_US_PER_S)
#define CLEAN_EVERY_US (600 * CADRE_US_PER_S)

cadre_status file_store_check(
    struct daemon *daemon, const struct job_file *file, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *path = path_of_blob(daemon, file->sha256);
    struct stat status;
    if (path == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory to look for %s", file->name);
    }
    if (stat(path, &status) != 0) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "the content of file %s is not here: upload it with PutBlob before Submit", file->name);
    }
    if ((uint64_t)status.st_size != file->size_bytes) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "file %s is said to have %llu bytes, its content has %llu", file->name,
            (unsigned long long)file->size_bytes, (unsigned long long)status.st_size);
    }
    return CADRE_OK;
}

/* The time of access says when somebody last counted on a content, and is 0 until then
 * (receive.c): what an upload is going to use is told from what it has just brought. */
static void note_asked(const char *path)
{
    const struct timespec times[2] = {{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_OMIT}};
    (void)utimensat(AT_FDCWD, path, times, 0);
}

bool file_store_has(const struct daemon *daemon, const struct sha256 *hash, uint64_t size_bytes)
{
    CADRE_FREE_AT_EXIT char *path = path_of_blob(daemon, hash->bytes);
    struct stat status;
    return path != NULL && stat(path, &status) == 0 && (uint64_t)status.st_size == size_bytes;
}

cadre_status file_store_sync(const struct daemon *daemon, struct cadre_error *error)
{
    CADRE_CLOSE_AT_EXIT int fd = open(daemon->blob_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool refused = fd >= 0 && fault_point("file_store.sync");
    if (fd < 0 || refused || fsync(fd) != 0) {
        return cadre_error_errno(error, refused ? EIO : errno,
            "the coordinator cannot bring the files in %s to the disk", daemon->blob_dir);
    }
    return CADRE_OK;
}

bool file_store_is_older(const struct daemon *daemon, const struct sha256 *hash, uint64_t wall_us)
{
    CADRE_FREE_AT_EXIT char *path = path_of_blob(daemon, hash->bytes);
    struct stat status;
    return path != NULL && stat(path, &status) == 0 &&
           (uint64_t)status.st_mtim.tv_sec * CADRE_US_PER_S < wall_us;
}

static bool is_here(const struct daemon *daemon, const struct sha256 *hash)
{
    CADRE_FREE_AT_EXIT char *path = path_of_blob(daemon, hash->bytes);
    struct stat status;
    return path != NULL && stat(path, &status) == 0;
}

static void count_on(const struct daemon *daemon, const struct sha256 *hash)
{
    CADRE_FREE_AT_EXIT char *path = path_of_blob(daemon, hash->bytes);
    if (path != NULL) {
        note_asked(path);
    }
}

static void swap(struct sha256 *a, struct sha256 *b)
{
    const struct sha256 kept = *a;
    *a = *b;
    *b = kept;
}

/* Of what is asked: those that are here, and that the caller may be told of, who counts on them
 * from now on, in front; then those that are to be brought. */
static cadre_status split(struct daemon *daemon, const struct tls_identity *caller,
    struct sha256 *hashes, size_t count, size_t *ret_told, struct cadre_error *error)
{
    size_t here = 0;
    size_t told = 0;
    bool is_worker = caller->role == TLS_ROLE_WORKER;
    for (size_t i = 0; i < count; i++) {
        if (is_here(daemon, &hashes[i])) {
            swap(&hashes[i], &hashes[here++]);
        }
    }
    CADRE_FREE_AT_EXIT bool *may = calloc(here + 1, sizeof *may);
    if (may == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "the coordinator has no memory for the list");
    }
    if (is_worker) {
        CADRE_TRY(worker_contents_may(daemon, caller->name, hashes, here, may, error));
    }
    for (size_t i = 0; i < here; i++) {
        if (is_worker && !may[i]) {
            continue;
        }
        if (is_worker) {
            worker_contents_note(daemon, caller->name, &hashes[i]);
        }
        count_on(daemon, &hashes[i]);
        swap(&hashes[i], &hashes[told++]);
    }
    *ret_told = told;
    return CADRE_OK;
}

static void missing_message(struct rpc_call *call, const void *data, size_t length, void *user)
{
    struct daemon *daemon = user;
    struct cadre_error error = {0};
    struct blob_list asked;
    wire_arena_reset(daemon->arena);
    if (wire_unpack_blob_list(data, length, daemon->arena, &asked, &error) != CADRE_OK) {
        rpc_call_fail(call, &error);
        return;
    }
    CADRE_FREE_AT_EXIT struct sha256 *hashes = calloc(asked.count + 1, sizeof *hashes);
    if (hashes == NULL) {
        rpc_call_finish(
            call, CADRE_RESOURCE_EXHAUSTED, "the coordinator has no memory for the list");
        return;
    }
    for (size_t i = 0; i < asked.count; i++) {
        memcpy(hashes[i].bytes, asked.sha256[i], SHA256_BYTES);
    }
    size_t told = 0;
    if (split(daemon, rpc_call_identity(call), hashes, asked.count, &told, &error) != CADRE_OK) {
        rpc_call_fail(call, &error);
        return;
    }
    struct blob_list answer = {.sha256 = (const uint8_t(*)[LIMIT_SHA256_BYTES])(hashes + told),
        .count = asked.count - told};
    DAEMON_SEND(daemon, call, blob_list, &answer);
    rpc_call_finish(call, CADRE_OK, "");
}

const struct rpc_server_ops missing_blobs_ops = {.on_message = missing_message};

cadre_status file_store_none(const struct sha256 *hash, struct cadre_error *error)
{
    char hex[SHA256_HEX_BYTES];
    sha256_hex(hash, hex);
    return cadre_error_set(error, CADRE_NOT_FOUND,
        "there is no content %s here that a job of this worker needs: what a job needs comes with "
        "its tasks",
        hex);
}

/* ---- what nobody needs ---- */

static bool is_recent(const struct timespec *when)
{
    return (uint64_t)when->tv_sec * CADRE_US_PER_S + UNUSED_US > clock_wall_us();
}

void file_store_remove(const struct daemon *daemon, const struct sha256 *hash, bool unless_asked)
{
    CADRE_FREE_AT_EXIT char *path = path_of_blob(daemon, hash->bytes);
    struct stat status;
    if (path != NULL && stat(path, &status) == 0 && !(unless_asked && is_recent(&status.st_atim))) {
        if (unlink(path) == 0) { /* what stays is found by the next clean-up */
            storage_blob(daemon->storage, -(int64_t)status.st_size);
        }
    }
}

/* Calls `wanted` with each name in the folder of contents, and removes those for which it says
 * false. */
static cadre_status remove_unless(const struct daemon *daemon,
    bool (*wanted)(const struct daemon *daemon, const char *name, const char *path),
    struct cadre_error *error)
{
    CADRE_CLEANUP(cadre_cleanup_dir) DIR *folder = opendir(daemon->blob_dir);
    const struct dirent *entry;
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) {
            continue;
        }
        CADRE_FREE_AT_EXIT char *path = NULL;
        if (asprintf(&path, "%s/%s", daemon->blob_dir, entry->d_name) < 0) {
            path = NULL;
            return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory to clean up");
        }
        struct stat status;
        if (!wanted(daemon, entry->d_name, path)) {
            uint64_t bytes = lstat(path, &status) == 0 ? (uint64_t)status.st_size : 0;
            CADRE_TRY(tree_remove(path, error));
            storage_blob(daemon->storage, -(int64_t)bytes);
        }
    }
    return CADRE_OK;
}

static bool is_whole(const struct daemon *daemon, const char *name, const char *path)
{
    (void)daemon;
    (void)path;
    struct sha256 hash;
    return sha256_parse(name, &hash);
}

static bool is_needed(const struct daemon *daemon, const char *name, const char *path)
{
    struct sha256 hash;
    struct stat status;
    bool needed = sha256_parse(name, &hash) && needs_has(daemon->needs, &hash);
    return needed || stat(path, &status) != 0 || is_recent(&status.st_atim) ||
           is_recent(&status.st_mtim);
}

cadre_status file_store_remove_halves(const struct daemon *daemon, struct cadre_error *error)
{
    return remove_unless(daemon, is_whole, error);
}

void file_store_clean_some_time(struct daemon *daemon)
{
    struct cadre_error error = {0};
    uint64_t now_us = clock_monotonic_us();
    if (now_us - daemon->cleaned_us < CLEAN_EVERY_US) {
        return;
    }
    daemon->cleaned_us = now_us;
    if (remove_unless(daemon, is_needed, &error) != CADRE_OK) {
        log_event(
            LOG_LEVEL_WARNING, "files", "unused contents stay", LOG_STR("reason", error.text));
    }
}
