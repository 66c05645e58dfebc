/* SPDX-License-Identifier: Apache-2.0
 * A file that exists whole or not at all: temporary name, lock, fsync, rename.
 * checkpoint_write.c, checkpoint_probe.c and export.c use it. */
#include "worker/library/runtime/state/format/checkpoint_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/fault.h"
#include "common/pure/assert.h"
#include "common/storage/storage.h"
#include "common/storage/writer.h"

#define TRIES 8 /* to make a temporary file before another process removes it */

/* True when the call of `result` failed, or a test injects that, as on a full disk. */
static bool checkpoint_file_failed(const char *point, int result)
{
    if (result >= 0 && fault_point(point)) {
        errno = ENOSPC;
        return true;
    }
    return result < 0;
}

static cadre_status write_failed(
    const struct checkpoint_file *file, const char *what, struct cadre_error *error)
{
    return cadre_error_errno(error, errno, "cannot %s %s", what, file->path);
}

/* Before it is locked another writer may take it for a dead one's and remove it; then *ret_again.
 */
static bool checkpoint_file_lock(const struct checkpoint_file *file, bool *ret_again)
{
    struct stat facts;
    int result = flock(file->fd, LOCK_EX | LOCK_NB);
    if (result != 0 && errno != EWOULDBLOCK) {
        result = 0; /* a file system without locks: no writer can remove it there either */
        *ret_again = false;
        return true;
    }
    *ret_again = result != 0 || fstat(file->fd, &facts) != 0 || facts.st_nlink == 0;
    return !*ret_again;
}

static cadre_status format_checkpoint_file_begin(
    struct checkpoint_file *file, struct cadre_error *error)
{
    for (int i = 0; i < TRIES; i++) {
        bool again = false;
        file->fd = mkostemp(file->temporary, O_CLOEXEC);
        if (checkpoint_file_failed("checkpoint.create", file->fd)) {
            return cadre_error_errno(error, errno, "cannot create a file in %s", file->folder);
        }
        if (checkpoint_file_lock(file, &again)) {
            return CADRE_OK;
        }
        unlink(file->temporary);
        close(file->fd);
        file->fd = -1;
        size_t length = strlen(file->temporary);
        memcpy(file->temporary + length - 6, "XXXXXX", 6);
    }
    return cadre_error_set(error, CADRE_UNAVAILABLE,
        "another process removes each temporary file that is made in %s", file->folder);
}

/* What a writer that died has left of the same object is ended, and so is the upload of one that
 * goes on although it was replaced: before an upload begins, which a small object has none of.
 * Where that is not permitted the object is written all the same: an upload that is not finished is
 * not seen. */
static void clear_uploads(struct checkpoint_file *file)
{
    uint32_t cleared = 0;
    struct cadre_error ignored;
    CADRE_FREE_AT_EXIT char *start =
        file->replaced != NULL ? storage_join(file->folder, file->replaced) : strdup(file->path);
    if (start != NULL) {
        (void)storage_uploads_clear(NULL, start, INT64_MAX, &cleared, &ignored);
    }
}

static cadre_status add_to_object(
    struct checkpoint_file *file, const void *bytes, size_t size, struct cadre_error *error)
{
    if (fault_point("checkpoint.write")) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "cannot write to %s: %s",
            file->path, strerror(ENOSPC));
    }
    bool is_small = file->added < STORAGE_PART_BYTES;
    file->added += size;
    if (is_small && file->added >= STORAGE_PART_BYTES) {
        clear_uploads(file);
    }
    return storage_writer_add(file->upload, bytes, size, error);
}

cadre_status checkpoint_file_begin(
    struct checkpoint_file *file, const char *folder, const char *name, struct cadre_error *error)
{
    bool is_object = storage_is_object(folder);
    *file =
        (struct checkpoint_file){.folder = folder, .fd = -1, .path = storage_join(folder, name)};
    if (file->path != NULL && is_object) {
        return storage_writer_open(NULL, file->path, &file->upload, error);
    }
    if (file->path != NULL &&
        asprintf(&file->temporary, "%s/" CHECKPOINT_FILE_PREFIX "%s.XXXXXX", folder, name) < 0) {
        file->temporary = NULL;
    }
    if (file->path == NULL || file->temporary == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a path");
    }
    return format_checkpoint_file_begin(file, error);
}

bool checkpoint_file_watch(struct checkpoint_file *file, storage_part_seen *seen, void *user)
{
    if (file->upload != NULL) {
        storage_writer_watch(file->upload, seen, user);
    }
    return file->upload != NULL;
}

cadre_status checkpoint_file_add(
    struct checkpoint_file *file, const void *bytes, size_t size, struct cadre_error *error)
{
    CADRE_ASSERT(file->fd >= 0 || file->upload != NULL);
    const char *from = bytes;
    if (file->upload != NULL) {
        return add_to_object(file, bytes, size, error);
    }
    while (size > 0) {
        ssize_t count = write(file->fd, from, size);
        if (checkpoint_file_failed("checkpoint.write", count < 0 ? -1 : 0)) {
            if (errno == EINTR) {
                continue;
            }
            return write_failed(file, "write to", error);
        }
        from += count;
        size -= (size_t)count;
    }
    return CADRE_OK;
}

/* Makes what happened to the names in the folder durable. */
static cadre_status checkpoint_folder_sync(const char *folder, struct cadre_error *error)
{
    CADRE_CLOSE_AT_EXIT int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || checkpoint_file_failed("checkpoint.fsync-folder", fsync(fd))) {
        return cadre_error_errno(error, errno, "cannot make folder %s durable", folder);
    }
    return CADRE_OK;
}

cadre_status checkpoint_file_settle(struct checkpoint_file *file, struct cadre_error *error)
{
    CADRE_ASSERT(file->fd >= 0 || file->upload != NULL);
    if (file->upload != NULL) {
        return CADRE_OK;
    }
    if (fchmod(file->fd, 0644) != 0 ||
        checkpoint_file_failed("checkpoint.fsync", fsync(file->fd))) {
        return write_failed(file, "make durable", error);
    }
    return CADRE_OK;
}

cadre_status checkpoint_file_end(struct checkpoint_file *file, struct cadre_error *error)
{
    CADRE_ASSERT(file->temporary != NULL || file->upload != NULL);
    if (file->upload != NULL) {
        struct storage_writer *upload = file->upload;
        file->upload = NULL;
        return storage_writer_finish(upload, error);
    }
    if (checkpoint_file_failed("checkpoint.rename", rename(file->temporary, file->path))) {
        return write_failed(file, "put in place", error);
    }
    free(file->temporary);
    file->temporary = NULL;
    return checkpoint_folder_sync(file->folder, error);
}

void checkpoint_file_drop(struct checkpoint_file *file)
{
    if (file->fd >= 0 && file->temporary != NULL) {
        unlink(file->temporary);
    }
    if (file->fd >= 0) {
        close(file->fd);
    }
    storage_writer_abort(file->upload);
    free(file->temporary);
    free(file->path);
    *file = (struct checkpoint_file){.fd = -1};
}

cadre_status checkpoint_file_remove(const char *folder, const char *name, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *path = storage_join(folder, name);
    if (path == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a path");
    }
    if (storage_is_object(path)) {
        return storage_remove(NULL, path, error);
    }
    if (checkpoint_file_failed("checkpoint.unlink", unlink(path)) && errno != ENOENT) {
        return cadre_error_errno(error, errno, "cannot remove %s", path);
    }
    return CADRE_OK;
}
