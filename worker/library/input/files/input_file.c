/* SPDX-License-Identifier: Apache-2.0
 * Data files and objects; see input_file.h. */
#include "worker/library/input/files/input_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/pure/assert.h"
#include "common/storage/storage.h"
#include "worker/library/input/files/block_cache.h"
#include "worker/library/input/node/node.h"

/* O_NONBLOCK: opening a FIFO must not wait for its writer. It changes nothing for regular files. */
#define OPEN_FLAGS (O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)

/* Objects that are looked up at a time where many are opened one after the other. */
#define OPENED_AHEAD 32

/* One read call asks for no more than this: Linux never gives more than 2 GiB at a time. */
#define READ_BYTES_MAX ((size_t)1 << 30)

static cadre_status open_path(const char *path, int *ret_fd, struct cadre_error *error)
{
    *ret_fd = open(path, OPEN_FLAGS);
    if (*ret_fd < 0) {
        return cadre_error_errno(error, errno, "cannot open the data file %s%s", path,
            errno == ENOENT && path[0] != '/'
                ? " (looked for from the working folder; a job's files come with cadre submit "
                  "--file)"
                : "");
    }
    return CADRE_OK;
}

static cadre_status open_object(
    struct input_file *file, const char *path, struct cadre_error *error)
{
    struct object *object = NULL;
    CADRE_TRY(object_open(path, &object, error));
    char *copy = object_bytes(object) > INT64_MAX ? NULL : strdup(path);
    if (copy == NULL) {
        object_close(object);
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a path");
    }
    *file = (struct input_file){
        .path = copy, .fd = -1, .bytes = (int64_t)object_bytes(object), .object = object};
    return CADRE_OK;
}

cadre_status input_file_open(
    struct input_file *file, const char *path, bool keep_open, struct cadre_error *error)
{
    CADRE_CLOSE_AT_EXIT int fd = -1;
    struct stat status;
    *file = (struct input_file){0};
    if (storage_is_object(path)) {
        return open_object(file, path, error);
    }
    CADRE_TRY(open_path(path, &fd, error));
    if (fstat(fd, &status) != 0) {
        return cadre_error_errno(error, errno, "cannot look at the data file %s", path);
    }
    if (!S_ISREG(status.st_mode)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s is not a regular file, so it cannot be read at any place", path);
    }
    char *copy = strdup(path);
    if (copy == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a path");
    }
    *file = (struct input_file){.path = copy,
        .fd = keep_open ? fd : -1,
        .bytes = status.st_size,
        .blocks = block_cache_new(status.st_size)};
    if (keep_open) {
        fd = -1;
    }
    return CADRE_OK;
}

static cadre_status read_all(const struct input_file *file, int fd, int64_t offset, char *to,
    size_t bytes, struct cadre_error *error)
{
    size_t done = 0;
    while (done < bytes) {
        size_t want = bytes - done < READ_BYTES_MAX ? bytes - done : READ_BYTES_MAX;
        ssize_t got = pread(fd, to + done, want, (off_t)(offset + (int64_t)done));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return cadre_error_errno(error, errno, "cannot read %s at byte %" PRId64, file->path,
                offset + (int64_t)done);
        }
        if (got == 0) {
            return cadre_error_set(error, CADRE_DATA_LOSS,
                "%s is cut short: it ends at byte %" PRId64 ", but byte %" PRId64
                " is needed; copy the file again",
                file->path, offset + (int64_t)done, offset + (int64_t)bytes - 1);
        }
        done += (size_t)got;
    }
    return CADRE_OK;
}

void input_file_expect(const char *path, size_t bytes)
{
    if (storage_is_object(path)) {
        object_expect(path, (bytes + OBJECT_BLOCK_BYTES - 1) / OBJECT_BLOCK_BYTES);
    }
}

void input_files_expect(const char *const paths[], size_t count, size_t number)
{
    for (size_t i = number == 0 ? 1 : OPENED_AHEAD; i <= OPENED_AHEAD; i++) {
        if (number + i < count) {
            input_file_expect(paths[number + i], 0);
        }
    }
}

cadre_status input_file_size(const char *path, int64_t *ret_bytes, struct cadre_error *error)
{
    struct stat status;
    if (storage_is_object(path)) {
        struct object *object = NULL;
        CADRE_TRY(object_open(path, &object, error));
        *ret_bytes = (int64_t)object_bytes(object);
        object_close(object);
        return CADRE_OK;
    }
    if (stat(path, &status) != 0) {
        return cadre_error_errno(error, errno, "cannot look at the data file %s", path);
    }
    *ret_bytes = status.st_size;
    return CADRE_OK;
}

/* The part of these bytes that is inside. */
static size_t bytes_inside(const struct input_file *file, int64_t offset, size_t bytes)
{
    uint64_t left = offset < file->bytes ? (uint64_t)(file->bytes - offset) : 0;
    return left < bytes ? (size_t)left : bytes;
}

static cadre_status read_object(const struct input_file *file, struct object_ahead *ahead,
    int64_t offset, void *to, size_t bytes, struct cadre_error *error)
{
    CADRE_ASSERT(offset >= 0);
    if (bytes_inside(file, offset, bytes) < bytes) {
        return cadre_error_set(error, CADRE_DATA_LOSS,
            "%s is cut short: it ends at byte %" PRId64 ", but byte %" PRId64
            " is needed; copy the object again",
            file->path, file->bytes, offset + (int64_t)bytes - 1);
    }
    return ahead == NULL ? object_read(file->object, (uint64_t)offset, to, bytes, error)
                         : object_read_on(file->object, ahead, (uint64_t)offset, to, bytes, error);
}

cadre_status input_file_read_on(const struct input_file *file, struct object_ahead *ahead,
    int64_t offset, void *to, size_t bytes, struct cadre_error *error)
{
    return file->object != NULL ? read_object(file, ahead, offset, to, bytes, error)
                                : input_file_read(file, offset, to, bytes, error);
}

void input_file_ask(const struct input_file *file, int64_t offset, size_t bytes)
{
    if (file->object != NULL) {
        object_ask(file->object, (uint64_t)offset, bytes_inside(file, offset, bytes));
    }
}

cadre_status input_file_read(const struct input_file *file, int64_t offset, void *to, size_t bytes,
    struct cadre_error *error)
{
    CADRE_CLOSE_AT_EXIT int own = -1;
    int fd = file->fd;
    if (file->object != NULL) {
        return read_object(file, NULL, offset, to, bytes, error);
    }
    if (fd < 0) {
        CADRE_TRY(open_path(file->path, &own, error));
        fd = own;
    }
    return read_all(file, fd, offset, to, bytes, error);
}

void input_file_close(struct input_file *file)
{
    if (file->path != NULL && file->fd >= 0) {
        close(file->fd);
    }
    block_cache_free(file->blocks);
    object_close(file->object);
    free(file->path);
    *file = (struct input_file){0};
}

void input_file_describe(const struct input_file *file, struct description *text)
{
    const char *slash = strrchr(file->path, '/');
    description_add(
        text, ", %s (%" PRId64 " bytes)", slash != NULL ? slash + 1 : file->path, file->bytes);
}
