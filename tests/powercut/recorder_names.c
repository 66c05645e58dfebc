/* SPDX-License-Identifier: Apache-2.0
 * The recorder's part about names: folders, links, renames, removals, and modes. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "trace.h"

int mkdirat(int folder_fd, const char *path, mode_t mode)
{
    char whole[PATH_MAX];
    struct stat facts;
    const char *below = trace_below(folder_fd, path, whole);
    trace_lock();
    int result = (int)syscall(SYS_mkdirat, folder_fd, path, mode);
    if (below != NULL && result == 0 && fstatat(folder_fd, path, &facts, 0) == 0) {
        trace_put(RECORD_FOLDER, facts.st_ino, facts.st_mode & 07777, 0, below, NULL, 0);
    }
    trace_unlock();
    return result;
}

int mkdir(const char *path, mode_t mode)
{
    return mkdirat(AT_FDCWD, path, mode);
}

int unlinkat(int folder_fd, const char *path, int flags)
{
    char whole[PATH_MAX];
    const char *below = trace_below(folder_fd, path, whole);
    trace_lock();
    int result = (int)syscall(SYS_unlinkat, folder_fd, path, flags);
    if (below != NULL && result == 0) {
        trace_put(RECORD_UNLINK, 0, 0, 0, below, NULL, 0);
    }
    trace_unlock();
    return result;
}

int unlink(const char *path)
{
    return unlinkat(AT_FDCWD, path, 0);
}

int rmdir(const char *path)
{
    return unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
}

int symlinkat(const char *says, int folder_fd, const char *path)
{
    char whole[PATH_MAX];
    const char *below = trace_below(folder_fd, path, whole);
    trace_lock();
    int result = (int)syscall(SYS_symlinkat, says, folder_fd, path);
    if (below != NULL && result == 0) {
        trace_put(RECORD_SYMLINK, 0, 0, 0, below, says, strlen(says));
    }
    trace_unlock();
    return result;
}

int symlink(const char *says, const char *path)
{
    return symlinkat(says, AT_FDCWD, path);
}

/* One of two names is recorded and the other is not: then it is not known what is there. */
static void put_two(enum record_kind kind, const char *old, const char *fresh)
{
    if (old != NULL && fresh != NULL) {
        trace_put(kind, 0, 0, 0, fresh, old, strlen(old));
    } else if (old != NULL || fresh != NULL) {
        trace_put(RECORD_UNKNOWN, 0, 0, 0, old != NULL ? old : fresh, "half outside", 12);
    }
}

int renameat2(int old_fd, const char *old, int new_fd, const char *fresh, unsigned flags)
{
    char old_whole[PATH_MAX];
    char new_whole[PATH_MAX];
    const char *old_below = trace_below(old_fd, old, old_whole);
    const char *new_below = trace_below(new_fd, fresh, new_whole);
    trace_lock();
    int result = (int)syscall(SYS_renameat2, old_fd, old, new_fd, fresh, flags);
    if (result == 0 && (flags & RENAME_EXCHANGE) != 0 && old_below != NULL) {
        trace_put(RECORD_UNKNOWN, 0, 0, 0, old_below, "RENAME_EXCHANGE", 15);
    } else if (result == 0) {
        put_two(RECORD_RENAME, old_below, new_below);
    }
    trace_unlock();
    return result;
}

int renameat(int old_fd, const char *old, int new_fd, const char *fresh)
{
    return renameat2(old_fd, old, new_fd, fresh, 0);
}

int rename(const char *old, const char *fresh)
{
    return renameat2(AT_FDCWD, old, AT_FDCWD, fresh, 0);
}

int linkat(int old_fd, const char *old, int new_fd, const char *fresh, int flags)
{
    char old_whole[PATH_MAX];
    char new_whole[PATH_MAX];
    const char *old_below = trace_below(old_fd, old, old_whole);
    const char *new_below = trace_below(new_fd, fresh, new_whole);
    trace_lock();
    int result = (int)syscall(SYS_linkat, old_fd, old, new_fd, fresh, flags);
    if (result == 0) {
        put_two(RECORD_LINK, old_below, new_below);
    }
    trace_unlock();
    return result;
}

int link(const char *old, const char *fresh)
{
    return linkat(AT_FDCWD, old, AT_FDCWD, fresh, 0);
}

int fchmod(int fd, mode_t mode)
{
    char whole[PATH_MAX];
    uint64_t inode = 0;
    const char *below = trace_fd_below(fd, whole, &inode);
    int result = (int)syscall(SYS_fchmod, fd, mode);
    if (below != NULL && result == 0) {
        trace_put(RECORD_MODE, inode, mode & 07777, 0, below, NULL, 0);
    }
    return result;
}
