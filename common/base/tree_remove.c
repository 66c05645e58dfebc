/* SPDX-License-Identifier: Apache-2.0
 * Removal of a tree by descriptors: a link that is swapped in for a folder on the way is never
 * followed. Recursion and open descriptors are bounded: a folder deeper than that is first moved up
 * to the top. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/fault.h"
#include "common/base/files.h"

#define DEPTH_MAX 64

struct removal {
    const char *path;
    int top;         /* the folder `path` itself */
    uint64_t serial; /* of the names given to folders that were moved up */
    bool moved;      /* something was moved up in this pass: another one is due */
    cadre_status status;
    struct cadre_error *error;
};

/* Keeps the first failure; later ones are mostly its consequence (ENOTEMPTY). */
static void note_failure(struct removal *removal, int errnum, const char *name)
{
    if (removal->status == CADRE_OK) {
        removal->status = cadre_error_errno(
            removal->error, errnum, "cannot remove %s in %s", name, removal->path);
    }
}

static void move_to_top(struct removal *removal, int parent, const char *name)
{
    char fresh[64];
    do {
        snprintf(fresh, sizeof fresh, ".cadre-remove-%" PRIu64, removal->serial++);
        if (renameat2(parent, name, removal->top, fresh, RENAME_NOREPLACE) == 0) {
            removal->moved = true;
            return;
        }
    } while (errno == EEXIST);
    note_failure(removal, errno, name);
}

/* Removes what the open folder holds, and closes it. */
static void empty_folder(struct removal *removal, int fd, unsigned depth);

static void remove_entry(struct removal *removal, int parent, const char *name, unsigned depth)
{
    int result = fault_point("tree.unlink") ? (errno = EIO, -1) : unlinkat(parent, name, 0);
    if (result == 0 || errno == ENOENT) {
        return;
    }
    if (errno != EISDIR) {
        note_failure(removal, errno, name);
        return;
    }
    if (unlinkat(parent, name, AT_REMOVEDIR) == 0) {
        return;
    }
    if (depth == DEPTH_MAX) {
        move_to_top(removal, parent, name);
        return;
    }
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno == EACCES && fchmodat(parent, name, 0700, 0) == 0) {
        fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    }
    if (fd < 0) {
        note_failure(removal, errno, name);
        return;
    }
    empty_folder(removal, fd, depth + 1);
    if (unlinkat(parent, name, AT_REMOVEDIR) != 0 && errno != ENOENT) {
        note_failure(removal, errno, name);
    }
}

static void empty_folder(struct removal *removal, int fd, unsigned depth)
{
    DIR *folder = fdopendir(fd);
    if (folder == NULL) {
        note_failure(removal, errno, "a folder");
        close(fd);
        return;
    }
    struct dirent *entry;
    while ((entry = readdir(folder)) != NULL) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            remove_entry(removal, dirfd(folder), entry->d_name, depth);
        }
    }
    closedir(folder);
}

cadre_status tree_remove(const char *path, struct cadre_error *error)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) {
        return CADRE_OK;
    }
    if (fd < 0 && (errno == ENOTDIR || errno == ELOOP)) {
        return unlink(path) == 0 || errno == ENOENT
                   ? CADRE_OK
                   : cadre_error_errno(error, errno, "cannot remove %s", path);
    }
    if (fd < 0) {
        return cadre_error_errno(error, errno, "cannot remove %s", path);
    }
    struct removal removal = {.path = path, .top = fd, .status = CADRE_OK, .error = error};
    do {
        removal.moved = false;
        int pass = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (pass < 0) {
            note_failure(&removal, errno, "a folder");
            break;
        }
        empty_folder(&removal, pass, 0);
    } while (removal.moved && removal.status == CADRE_OK);
    close(fd);
    if (removal.status == CADRE_OK && rmdir(path) != 0 && errno != ENOENT) {
        note_failure(&removal, errno, "the folder");
    }
    return removal.status;
}
