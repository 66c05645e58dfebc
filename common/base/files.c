/* SPDX-License-Identifier: Apache-2.0
 * Bounded reads, atomic writes, folders and lock files of files.h, over plain system calls; the
 * names in it are checked in file_name.c, trees are removed in tree_remove.c. */
#include "common/base/files.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/fault.h"

/* True when the call that returned `result` failed, or a test makes it fail. */
static bool files_failed(const char *point, int result)
{
    if (result >= 0 && fault_point(point)) {
        errno = EIO;
        return true;
    }
    return result < 0;
}

cadre_status file_open_regular(
    const char *path, int *ret_fd, uint64_t *ret_size, struct cadre_error *error)
{
    /* O_NONBLOCK: opening a pipe without a writer would wait for ever. It has no effect on a
     * file. */
    CADRE_CLOSE_AT_EXIT int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat facts;
    if (files_failed("file.open", fd) || fstat(fd, &facts) != 0) {
        return cadre_error_errno(error, errno, "cannot open %s", path);
    }
    if (!S_ISREG(facts.st_mode)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT, "%s is not a regular file but %s",
            path, S_ISDIR(facts.st_mode) ? "a folder" : "a pipe, socket or device");
    }
    if (ret_size != NULL) {
        *ret_size = (uint64_t)facts.st_size;
    }
    *ret_fd = fd;
    fd = -1;
    return CADRE_OK;
}

static cadre_status too_large(const char *path, size_t limit_bytes, struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_OUT_OF_RANGE,
        "%s is larger than the %zu bytes allowed here", path, limit_bytes);
}

/* Reads to the end; one byte beyond the limit shows that it is too large. */
static cadre_status read_all(const char *path, int fd, size_t limit_bytes, size_t room,
    char **ret_bytes, size_t *ret_size, struct cadre_error *error)
{
    char *bytes = NULL;
    size_t used = 0;
    for (;;) {
        if (bytes == NULL || used + 1 >= room) {
            room = bytes == NULL ? room : room * 2;
            char *grown = realloc(bytes, room);
            if (grown == NULL) {
                free(bytes);
                return cadre_error_errno(error, ENOMEM, "cannot read %s", path);
            }
            bytes = grown;
        }
        ssize_t count = read(fd, bytes + used, room - used - 1);
        if (files_failed("file.read", count < 0 ? -1 : 0)) {
            if (errno == EINTR) {
                continue;
            }
            int errnum = errno;
            explicit_bzero(bytes, used); /* it may be a secret */
            free(bytes);
            return cadre_error_errno(error, errnum, "cannot read %s", path);
        }
        if (count == 0) {
            break;
        }
        used += (size_t)count;
        if (used > limit_bytes) {
            free(bytes);
            return too_large(path, limit_bytes, error);
        }
    }
    bytes[used] = '\0';
    *ret_bytes = bytes;
    *ret_size = used;
    return CADRE_OK;
}

cadre_status file_read_fd(int fd, const char *path, uint64_t size_now, size_t limit_bytes,
    char **ret_bytes, size_t *ret_size, struct cadre_error *error)
{
    if (size_now > limit_bytes) {
        return too_large(path, limit_bytes, error);
    }
    /* The size is a hint only: files under /proc report 0, and a file may grow while it is read. */
    size_t room = (size_t)size_now + 2 < 64 ? 64 : (size_t)size_now + 2;
    return read_all(path, fd, limit_bytes, room, ret_bytes, ret_size, error);
}

cadre_status file_read(const char *path, size_t limit_bytes, char **ret_bytes, size_t *ret_size,
    struct cadre_error *error)
{
    CADRE_CLOSE_AT_EXIT int fd = -1;
    uint64_t size = 0;
    CADRE_TRY(file_open_regular(path, &fd, &size, error));
    return file_read_fd(fd, path, size, limit_bytes, ret_bytes, ret_size, error);
}

cadre_status file_write_all(
    int fd, const char *path, const void *bytes, size_t size, struct cadre_error *error)
{
    const char *from = bytes;
    size_t sent = 0;
    while (sent < size) {
        ssize_t count = write(fd, from + sent, size - sent);
        if (files_failed("file.write", count < 0 ? -1 : 0)) {
            if (errno == EINTR) {
                continue;
            }
            return cadre_error_errno(
                error, errno, "cannot write %zu bytes to %s", size - sent, path);
        }
        sent += (size_t)count;
    }
    return CADRE_OK;
}

/* The folder part of `path` into `ret_folder`, "." when there is none. False when it is too long.
 */
static bool folder_of(const char *path, char ret_folder[PATH_MAX])
{
    const char *slash = strrchr(path, '/');
    if (slash == NULL) {
        memcpy(ret_folder, ".", 2);
        return true;
    }
    size_t length = slash == path ? 1 : (size_t)(slash - path);
    if (length >= PATH_MAX) {
        return false;
    }
    memcpy(ret_folder, path, length);
    ret_folder[length] = '\0';
    return true;
}

cadre_status folder_sync(const char *folder, struct cadre_error *error)
{
    CADRE_CLOSE_AT_EXIT int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || files_failed("file.fsync-folder", fsync(fd))) {
        return cadre_error_errno(error, errno, "cannot make folder %s durable", folder);
    }
    return CADRE_OK;
}

cadre_status file_replace(
    int fd, const char *temporary, const char *path, struct cadre_error *error)
{
    char folder[PATH_MAX];
    cadre_status status = CADRE_OK;
    if (!folder_of(path, folder)) {
        status = cadre_error_errno(error, ENAMETOOLONG, "cannot write a file of a name this long");
    } else if (files_failed("file.fsync", fsync(fd))) {
        status = cadre_error_errno(error, errno, "cannot make %s durable", path);
    } else if ((fault_point("file.rename") ? (errno = EIO, -1) : rename(temporary, path)) != 0) {
        status = cadre_error_errno(error, errno, "cannot put %s in place", path);
    }
    if (status != CADRE_OK) {
        unlink(temporary);
        return status;
    }
    return folder_sync(folder, error);
}

cadre_status file_write_atomic(
    const char *path, const void *bytes, size_t size, mode_t mode, struct cadre_error *error)
{
    char temporary[PATH_MAX];
    int length = snprintf(temporary, sizeof temporary, "%s.XXXXXX", path);
    if (length < 0 || (size_t)length >= sizeof temporary) {
        return cadre_error_errno(error, ENAMETOOLONG, "cannot write a file of a name this long");
    }
    CADRE_CLOSE_AT_EXIT int fd = mkostemp(temporary, O_CLOEXEC);
    if (fd < 0 || fault_point("file.create")) {
        int errnum = fd < 0 ? errno : EIO;
        if (fd >= 0) {
            unlink(temporary);
        }
        return cadre_error_errno(error, errnum, "cannot create a file beside %s", path);
    }
    cadre_status status = file_write_all(fd, path, bytes, size, error);
    if (status == CADRE_OK && fchmod(fd, mode) != 0) {
        status = cadre_error_errno(error, errno, "cannot make %s durable", path);
    }
    if (status != CADRE_OK) {
        unlink(temporary);
        return status;
    }
    return file_replace(fd, temporary, path, error);
}

/* The parent of a folder that another user made may not be readable here. */
static cadre_status sync_name(const char *path, bool made, struct cadre_error *error)
{
    char parent[PATH_MAX];
    if (!folder_of(path, parent) || (!made && access(parent, R_OK) != 0)) {
        return CADRE_OK;
    }
    return folder_sync(parent, error);
}

static cadre_status make_folders(
    const char *path, mode_t mode, bool durable, struct cadre_error *error)
{
    char part[PATH_MAX];
    size_t length = strlen(path);
    if (length == 0 || length >= sizeof part) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "a folder's name has 1 to %zu bytes, this one %zu", sizeof part - 1, length);
    }
    for (size_t end = 1; end <= length; end++) {
        if (path[end] != '/' && path[end] != '\0') {
            continue;
        }
        bool last = path[end + strspn(path + end, "/")] == '\0';
        memcpy(part, path, end);
        part[end] = '\0';
        bool made = mkdir(part, last ? mode : 0755) == 0;
        struct stat facts;
        int errnum = errno;
        if (!made && stat(part, &facts) != 0) {
            return cadre_error_errno(error, errnum, "cannot make folder %s", part);
        }
        if (!made && !S_ISDIR(facts.st_mode)) {
            return cadre_error_errno(
                error, ENOTDIR, "cannot make folder %s: %s is a file", path, part);
        }
        if (durable && (made || last)) {
            CADRE_TRY(sync_name(part, made, error));
        }
    }
    return CADRE_OK;
}

cadre_status folder_make(const char *path, mode_t mode, struct cadre_error *error)
{
    return make_folders(path, mode, false, error);
}

cadre_status folder_make_durable(const char *path, mode_t mode, struct cadre_error *error)
{
    return make_folders(path, mode, true, error);
}

int file_open_made(const char *path)
{
    const int flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW;
    int fd = open(path, flags, 0600);
    if (fd >= 0 || errno != ENOENT) {
        return fd;
    }
    CADRE_FREE_AT_EXIT char *parent = strdup(path);
    if (parent == NULL || folder_make(dirname(parent), 0700, NULL) != CADRE_OK) {
        return -1;
    }
    return open(path, flags, 0600);
}

bool file_lock_try(int fd)
{
    return flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

cadre_status lock_file_acquire(const char *path, int *ret_fd, struct cadre_error *error)
{
    CADRE_CLOSE_AT_EXIT int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (files_failed("file.lock", fd)) {
        return cadre_error_errno(error, errno, "cannot open lock file %s", path);
    }
    char text[32];
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK) {
            return cadre_error_errno(error, errno, "cannot lock %s", path);
        }
        ssize_t count = pread(fd, text, sizeof text - 1, 0);
        text[count > 0 ? count : 0] = '\0';
        unsigned long holder = strtoul(text, NULL, 10);
        if (holder == 0) {
            return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
                "%s is held by another process; stop it or choose another folder", path);
        }
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s is held by pid %lu; stop that process or choose another folder", path, holder);
    }
    int length = snprintf(text, sizeof text, "%ld\n", (long)getpid());
    if (ftruncate(fd, 0) != 0 || pwrite(fd, text, (size_t)length, 0) != length) {
        return cadre_error_errno(error, errno, "cannot write our process id to %s", path);
    }
    *ret_fd = fd;
    fd = -1;
    return CADRE_OK;
}

bool disk_free_bytes(const char *path, uint64_t *ret_bytes)
{
    struct statvfs room;
    if (statvfs(path, &room) != 0) {
        return false;
    }
    *ret_bytes = (uint64_t)room.f_bavail * room.f_frsize;
    return true;
}
