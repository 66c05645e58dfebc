/* SPDX-License-Identifier: Apache-2.0
 * A large file in parts: a folder beside the path with a file per part, and the file "for", which
 * says whose parts they are. At the end the parts are copied into one file, by sharing their blocks
 * where the file system can. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/fault.h"
#include "common/base/files.h"
#include "common/storage/files.h"

#define UPLOAD        "upload"
#define UPLOAD_PREFIX FILES_HIDDEN UPLOAD "-"
#define OWNER         "for"
#define FILES_MODE    0644
#define DEPTH_MAX     64
#define COPY_BYTES    ((size_t)1 << 20)

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

static cadre_status no_memory(const char *path, struct cadre_error *error)
{
    return cadre_error_errno(error, ENOMEM, "cannot write %s", path);
}

/* --- begin and join --- */

cadre_status files_upload_begin(
    const char *path, char ret_name[FILES_UPLOAD_NAME_BYTES], struct cadre_error *error)
{
    /* A file beside it shows that the folder is there and can be written to. */
    CADRE_CLOSE_AT_EXIT int fd = -1;
    CADRE_FREE_AT_EXIT char *temporary = NULL;
    CADRE_TRY(files_create_beside(path, &fd, &temporary, error));
    unlink(temporary);
    CADRE_FREE_AT_EXIT char *folder = files_beside(path, UPLOAD, "XXXXXX");
    if (folder == NULL) {
        return no_memory(path, error);
    }
    if (fault_point("file.mkdir") ? (errno = EIO, true) : mkdtemp(folder) == NULL) {
        return cadre_error_errno(error, errno, "cannot make a folder beside %s", path);
    }
    (void)snprintf(ret_name, FILES_UPLOAD_NAME_BYTES, "%s", folder + strlen(folder) - 6);
    CADRE_FREE_AT_EXIT char *owner = storage_join(folder, OWNER);
    cadre_status status =
        owner == NULL ? no_memory(path, error)
                      : file_write_atomic(owner, base_of(path), strlen(base_of(path)), 0600, error);
    if (status != CADRE_OK) {
        files_upload_abort(path, ret_name);
    }
    return status;
}

static bool is_name(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    return strlen(name) == 6 && strspn(name, letters) == 6;
}

/* Whether the folder of an upload is of the file `base`; an empty one began just now. */
static bool is_owner(const char *folder, const char *base)
{
    CADRE_FREE_AT_EXIT char *owner = storage_join(folder, OWNER);
    CADRE_FREE_AT_EXIT char *text = NULL;
    size_t size = 0;
    return owner != NULL && file_read(owner, FILE_NAME_PART_BYTES_MAX, &text, &size, NULL) == 0 &&
           strcmp(text, base) == 0;
}

cadre_status files_upload_check(const char *path, const char *name, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *folder = is_name(name) ? files_beside(path, UPLOAD, name) : NULL;
    if (folder == NULL || !is_owner(folder, base_of(path))) {
        return cadre_error_set(
            error, CADRE_NOT_FOUND, "there is no upload \"%.32s\" to %s", name, path);
    }
    return CADRE_OK;
}

/* --- parts --- */

static char *part_path(const char *path, const char *name, uint32_t number)
{
    char tail[32];
    (void)snprintf(tail, sizeof tail, "%.6s/%" PRIu32, name, number);
    return files_beside(path, UPLOAD, tail);
}

cadre_status files_upload_part(const char *path, const char *name, uint32_t number,
    const void *bytes, size_t size, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *part = part_path(path, name, number);
    CADRE_FREE_AT_EXIT char *temporary = part != NULL ? malloc(strlen(part) + 8) : NULL;
    if (temporary == NULL) {
        return no_memory(path, error);
    }
    memcpy(temporary, part, strlen(part));
    memcpy(temporary + strlen(part), ".XXXXXX", 8);
    CADRE_CLOSE_AT_EXIT int fd =
        fault_point("file.create") ? (errno = EIO, -1) : mkostemp(temporary, O_CLOEXEC);
    if (fd < 0) {
        return cadre_error_errno(
            error, errno, "cannot write part %" PRIu32 " of the upload to %s", number, path);
    }
    cadre_status status = file_write_all(fd, path, bytes, size, error);
    if (status == CADRE_OK &&
        (fault_point("file.rename") ? (errno = EIO, true) : rename(temporary, part) != 0)) {
        status = cadre_error_errno(
            error, errno, "cannot write part %" PRIu32 " of the upload to %s", number, path);
    }
    if (status != CADRE_OK) {
        unlink(temporary);
    }
    return status;
}

/* Appends what is read from `from` to `to`, through memory. */
static cadre_status copy_bytes(int from, int to, const char *path, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *buffer = fault_point("storage.memory") ? NULL : malloc(COPY_BYTES);
    if (buffer == NULL) {
        return no_memory(path, error);
    }
    for (;;) {
        ssize_t count = read(from, buffer, COPY_BYTES);
        if (count == 0) {
            return CADRE_OK;
        }
        if (count > 0) {
            CADRE_TRY(file_write_all(to, path, buffer, (size_t)count, error));
        } else if (errno != EINTR) {
            return cadre_error_errno(error, errno, "cannot read a part of %s", path);
        }
    }
}

static cadre_status append_part(
    int to, const char *path, const char *name, uint32_t number, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *part = part_path(path, name, number);
    if (part == NULL) {
        return no_memory(path, error);
    }
    CADRE_CLOSE_AT_EXIT int from = open(part, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (from < 0) {
        return errno == ENOENT
                   ? cadre_error_set(error, CADRE_DATA_LOSS,
                         "part %" PRIu32 " of the upload to %s is missing", number, path)
                   : cadre_error_errno(
                         error, errno, "cannot read part %" PRIu32 " of %s", number, path);
    }
    for (;;) {
        ssize_t count = copy_file_range(from, NULL, to, NULL, (size_t)1 << 30, 0);
        if (count == 0) {
            break;
        }
        if (count < 0 && errno != EINTR) {
            return errno == EXDEV || errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP
                       ? copy_bytes(from, to, path, error)
                       : cadre_error_errno(error, errno, "cannot write %s", path);
        }
    }
    return copy_bytes(from, to, path, error); /* what a file system of little size hides */
}

cadre_status files_upload_finish(
    const char *path, const char *name, uint32_t count, struct cadre_error *error)
{
    CADRE_CLOSE_AT_EXIT int fd = -1;
    CADRE_FREE_AT_EXIT char *temporary = NULL;
    CADRE_TRY(files_upload_check(path, name, error));
    CADRE_TRY(files_create_beside(path, &fd, &temporary, error));
    cadre_status status = CADRE_OK;
    for (uint32_t number = 1; number <= count && status == CADRE_OK; number++) {
        status = append_part(fd, path, name, number, error);
    }
    if (status == CADRE_OK && fchmod(fd, FILES_MODE) != 0) {
        status = cadre_error_errno(error, errno, "cannot make %s durable", path);
    }
    if (status != CADRE_OK) {
        unlink(temporary);
        return status;
    }
    CADRE_TRY(file_replace(fd, temporary, path, error));
    files_upload_abort(path, name);
    return CADRE_OK;
}

void files_upload_abort(const char *path, const char *name)
{
    CADRE_FREE_AT_EXIT char *folder = is_name(name) ? files_beside(path, UPLOAD, name) : NULL;
    if (folder != NULL) {
        (void)tree_remove(folder, NULL);
    }
}

/* --- clear --- */

struct upload_sweep {
    const char *start;
    int64_t before_us;
    uint32_t count;
};

/* The folder `name` within `folder` is one of an upload: whether it is to go. */
static bool is_stale(const struct upload_sweep *sweep, const char *folder, const char *upload)
{
    CADRE_FREE_AT_EXIT char *owner = storage_join(upload, OWNER);
    CADRE_FREE_AT_EXIT char *base = NULL;
    size_t size = 0;
    struct stat facts;
    if (owner == NULL || stat(owner, &facts) != 0 ||
        file_read(owner, FILE_NAME_PART_BYTES_MAX, &base, &size, NULL) != CADRE_OK) {
        return false;
    }
    CADRE_FREE_AT_EXIT char *target = storage_join(folder, base);
    int64_t began_us =
        (int64_t)facts.st_mtim.tv_sec * (int64_t)CADRE_US_PER_S + facts.st_mtim.tv_nsec / 1000;
    return target != NULL && strncmp(target, sweep->start, strlen(sweep->start)) == 0 &&
           began_us < sweep->before_us;
}

static cadre_status sweep_folder(
    struct upload_sweep *sweep, const char *folder, unsigned depth, struct cadre_error *error)
{
    CADRE_CLEANUP(cadre_cleanup_dir) DIR *dir = depth > DEPTH_MAX ? NULL : opendir(folder);
    if (dir == NULL) {
        return CADRE_OK;
    }
    for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        struct stat facts;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            fstatat(dirfd(dir), entry->d_name, &facts, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISDIR(facts.st_mode)) {
            continue;
        }
        CADRE_FREE_AT_EXIT char *path = storage_join(folder, entry->d_name);
        if (path == NULL) {
            return no_memory(folder, error);
        }
        if (strncmp(entry->d_name, UPLOAD_PREFIX, strlen(UPLOAD_PREFIX)) != 0) {
            CADRE_TRY(sweep_folder(sweep, path, depth + 1, error));
        } else if (is_stale(sweep, folder, path)) {
            CADRE_TRY(tree_remove(path, error));
            sweep->count++;
        }
    }
    return CADRE_OK;
}

cadre_status files_uploads_clear(
    const char *start, int64_t before_us, uint32_t *ret_count, struct cadre_error *error)
{
    struct upload_sweep sweep = {.start = start, .before_us = before_us};
    const char *slash = strrchr(start, '/');
    CADRE_FREE_AT_EXIT char *folder =
        slash == NULL ? strdup(".") : strndup(start, (size_t)(slash - start) + (slash == start));
    if (folder == NULL) {
        return no_memory(start, error);
    }
    cadre_status status = sweep_folder(&sweep, folder, 0, error);
    *ret_count = sweep.count;
    return status;
}
