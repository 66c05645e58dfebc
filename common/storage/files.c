/* SPDX-License-Identifier: Apache-2.0
 * Whole files and lists of them. */
#include "common/storage/files.h"

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

#define FILES_MODE  0644
#define FOLDER_MODE 0755
#define DEPTH_MAX   64

/* --- read --- */

static void describe_file(const struct stat *facts, struct storage_info *ret_info)
{
    int64_t modified_us =
        (int64_t)facts->st_mtim.tv_sec * (int64_t)CADRE_US_PER_S + facts->st_mtim.tv_nsec / 1000;
    *ret_info =
        (struct storage_info){.bytes = (uint64_t)facts->st_size, .modified_us = modified_us};
    (void)snprintf(ret_info->version, sizeof ret_info->version, "\"%ju-%jd-%jd.%09ld\"",
        (uintmax_t)facts->st_ino, (intmax_t)facts->st_size, (intmax_t)facts->st_mtim.tv_sec,
        facts->st_mtim.tv_nsec);
}

cadre_status files_open(
    const char *path, int *ret_fd, struct storage_info *ret_info, struct cadre_error *error)
{
    CADRE_CLOSE_AT_EXIT int fd = -1;
    CADRE_TRY(file_open_regular(path, &fd, NULL, error));
    struct stat facts;
    if (fstat(fd, &facts) != 0) {
        return cadre_error_errno(error, errno, "cannot open %s", path);
    }
    describe_file(&facts, ret_info);
    *ret_fd = fd;
    fd = -1;
    return CADRE_OK;
}

cadre_status files_read(
    int fd, const char *path, uint64_t offset, void *to, size_t bytes, struct cadre_error *error)
{
    size_t got = 0;
    while (got < bytes) {
        ssize_t count = fault_point("file.read")
                            ? (errno = EIO, -1)
                            : pread(fd, (char *)to + got, bytes - got, (off_t)(offset + got));
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0) {
            return cadre_error_errno(error, errno, "cannot read %s", path);
        }
        if (count == 0) {
            return cadre_error_set(error, CADRE_DATA_LOSS,
                "%s was cut short to %" PRIu64 " bytes since it was opened", path, offset + got);
        }
        got += (size_t)count;
    }
    return CADRE_OK;
}

/* --- write --- */

char *files_beside(const char *path, const char *middle, const char *tail)
{
    const char *slash = strrchr(path, '/');
    int folder_bytes = slash == NULL ? 0 : (int)(slash - path) + 1;
    char *beside = NULL;
    int written = fault_point("storage.memory") ? -1
                                                : asprintf(&beside, "%.*s" FILES_HIDDEN "%s-%s",
                                                      folder_bytes, path, middle, tail);
    return written < 0 ? NULL : beside;
}

static cadre_status make_folder_of(const char *path, struct cadre_error *error)
{
    const char *slash = strrchr(path, '/');
    if (slash == NULL || slash == path) {
        return CADRE_OK;
    }
    CADRE_FREE_AT_EXIT char *folder = strndup(path, (size_t)(slash - path));
    if (folder == NULL) {
        return cadre_error_errno(error, ENOMEM, "cannot write %s", path);
    }
    struct stat facts;
    return stat(folder, &facts) == 0 && S_ISDIR(facts.st_mode)
               ? CADRE_OK
               : folder_make_durable(folder, FOLDER_MODE, error);
}

cadre_status files_create_beside(
    const char *path, int *ret_fd, char **ret_temporary, struct cadre_error *error)
{
    CADRE_TRY(make_folder_of(path, error));
    char *temporary = files_beside(path, "put", "XXXXXX");
    if (temporary == NULL) {
        return cadre_error_errno(error, ENOMEM, "cannot write %s", path);
    }
    int fd = fault_point("file.create") ? (errno = EIO, -1) : mkostemp(temporary, O_CLOEXEC);
    if (fd < 0) {
        int errnum = errno;
        free(temporary);
        return cadre_error_errno(error, errnum, "cannot create a file beside %s", path);
    }
    *ret_fd = fd;
    *ret_temporary = temporary;
    return CADRE_OK;
}

/* Puts it in place unless something is there. */
static cadre_status put_absent(
    int fd, const char *temporary, const char *path, bool *ret_was_there, struct cadre_error *error)
{
    if (fault_point("file.fsync") || fsync(fd) != 0) {
        return cadre_error_errno(error, EIO, "cannot make %s durable", path);
    }
    if (renameat2(AT_FDCWD, temporary, AT_FDCWD, path, RENAME_NOREPLACE) != 0 &&
        (errno != EINVAL || link(temporary, path) != 0)) { /* EINVAL: NFS has links only */
        *ret_was_there = errno == EEXIST;
        return errno == EEXIST ? CADRE_OK
                               : cadre_error_errno(error, errno, "cannot put %s in place", path);
    }
    const char *slash = strrchr(path, '/');
    CADRE_FREE_AT_EXIT char *folder =
        slash == NULL ? strdup(".") : strndup(path, (size_t)(slash - path) + 1);
    return folder == NULL ? cadre_error_errno(error, ENOMEM, "cannot make %s durable", path)
                          : folder_sync(folder, error);
}

cadre_status files_put(const char *path, const void *bytes, size_t size, bool *ret_was_there,
    struct cadre_error *error)
{
    struct stat facts;
    if (ret_was_there != NULL) {
        *ret_was_there = stat(path, &facts) == 0;
        if (*ret_was_there) {
            return CADRE_OK;
        }
    }
    CADRE_CLOSE_AT_EXIT int fd = -1;
    CADRE_FREE_AT_EXIT char *temporary = NULL;
    CADRE_TRY(files_create_beside(path, &fd, &temporary, error));
    cadre_status status = file_write_all(fd, path, bytes, size, error);
    if (status == CADRE_OK && fchmod(fd, FILES_MODE) != 0) {
        status = cadre_error_errno(error, errno, "cannot make %s durable", path);
    }
    if (status == CADRE_OK && ret_was_there == NULL) {
        return file_replace(fd, temporary, path, error); /* removes it on error */
    }
    if (status == CADRE_OK) {
        status = put_absent(fd, temporary, path, ret_was_there, error);
    }
    unlink(temporary);
    return status;
}

cadre_status files_remove(const char *path, struct cadre_error *error)
{
    if (fault_point("file.unlink") ? (errno = EIO, true) : unlink(path) != 0) {
        return errno == ENOENT || errno == ENOTDIR
                   ? CADRE_OK
                   : cadre_error_errno(error, errno, "cannot remove %s", path);
    }
    return CADRE_OK;
}

/* --- list --- */

struct files_walk {
    const char *starts;
    bool deep;
    bool (*each)(void *user, const struct storage_entry *entry);
    void *user;
    bool ended; /* by `each` */
};

static cadre_status walk_folder(
    struct files_walk *walk, const char *folder, unsigned depth, struct cadre_error *error);

/* *ret_path: FOLDER/NAME, with a slash behind a folder. */
static cadre_status walk_name(struct files_walk *walk, const char *folder, int folder_fd,
    const char *name, unsigned depth, struct cadre_error *error)
{
    struct stat facts;
    struct stat link_facts;
    if (fstatat(folder_fd, name, &facts, 0) != 0) {
        return CADRE_OK; /* removed meanwhile, or a link to nothing */
    }
    bool is_folder = S_ISDIR(facts.st_mode);
    if (!is_folder && !S_ISREG(facts.st_mode)) {
        return CADRE_OK;
    }
    CADRE_FREE_AT_EXIT char *plain = storage_join(folder, name);
    CADRE_FREE_AT_EXIT char *path = is_folder && plain != NULL ? storage_join(plain, "") : NULL;
    if (plain == NULL || (is_folder && path == NULL)) {
        return cadre_error_errno(error, ENOMEM, "cannot list %s", folder);
    }
    if (is_folder && walk->deep) {
        bool is_link = fstatat(folder_fd, name, &link_facts, AT_SYMLINK_NOFOLLOW) == 0 &&
                       S_ISLNK(link_facts.st_mode);
        return is_link ? CADRE_OK : walk_folder(walk, plain, depth + 1, error);
    }
    struct storage_entry entry = {.path = is_folder ? path : plain, .is_folder = is_folder};
    if (!is_folder) {
        describe_file(&facts, &entry.info);
    }
    walk->ended = !walk->each(walk->user, &entry);
    return CADRE_OK;
}

static cadre_status walk_folder(
    struct files_walk *walk, const char *folder, unsigned depth, struct cadre_error *error)
{
    if (depth > DEPTH_MAX) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%.200s...: folders are at most %d deep here", folder, DEPTH_MAX);
    }
    CADRE_CLEANUP(cadre_cleanup_dir)
    DIR *dir = fault_point("file.opendir") ? (errno = EIO, NULL) : opendir(folder);
    if (dir == NULL) {
        return errno == ENOENT || errno == ENOTDIR
                   ? CADRE_OK
                   : cadre_error_errno(error, errno, "cannot list %s", folder);
    }
    size_t starts_bytes = depth == 0 && walk->starts != NULL ? strlen(walk->starts) : 0;
    while (!walk->ended) {
        errno = 0;
        const struct dirent *entry = readdir(dir);
        if (entry == NULL) {
            return errno == 0 ? CADRE_OK
                              : cadre_error_errno(error, errno, "cannot list %s", folder);
        }
        const char *name = entry->d_name;
        bool is_hidden = strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
                         strncmp(name, FILES_HIDDEN, strlen(FILES_HIDDEN)) == 0;
        bool begins = starts_bytes == 0 || strncmp(name, walk->starts, starts_bytes) == 0;
        if (!is_hidden && begins) {
            CADRE_TRY(walk_name(walk, folder, dirfd(dir), name, depth, error));
        }
    }
    return CADRE_OK;
}

cadre_status files_list(const char *folder, const char *starts, bool deep,
    bool (*each)(void *user, const struct storage_entry *entry), void *user,
    struct cadre_error *error)
{
    struct files_walk walk = {.starts = starts, .deep = deep, .each = each, .user = user};
    return walk_folder(&walk, folder, 0, error);
}
