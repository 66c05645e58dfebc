/* SPDX-License-Identifier: Apache-2.0
 * Preloaded into a daemon. A disk that takes its time: each look at a file below SLOW_DISK_FOLDER
 * (fstatat) takes SLOW_DISK_MS longer, each write at an offset (pwrite) SLOW_DISK_WRITE_MS, each
 * read at one (pread) SLOW_DISK_READ_MS, each call by a name SLOW_DISK_NAME_MS, in whatever thread.
 * A disk that stands still: reads at an offset, and writes, of files whose paths have
 * SLOW_DISK_HELD in them wait until the file SLOW_DISK_GATE is there. And a witness: each call on a
 * file below it that the daemon's first thread makes, which runs its loop, while the file
 * SLOW_DISK_FOLDER/witness is there is a line of that file. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

/* The call that ours stands before; as bytes, because a data pointer is no function pointer. */
#define REAL(name)                                                                                 \
    __typeof__(name) *real_##name;                                                                 \
    do {                                                                                           \
        void *found = dlsym(RTLD_NEXT, #name);                                                     \
        memcpy((void *)&real_##name, &found, sizeof real_##name);                                  \
    } while (0)

/* The path, or the one that the descriptor is of where it is relative or NULL; whether that is
 * below the folder. */
static bool is_below(int folder_fd, const char *path, char ret_path[PATH_MAX])
{
    const char *prefix = getenv("SLOW_DISK_FOLDER");
    ret_path[0] = '\0';
    if (path == NULL || path[0] != '/') {
        char link[64];
        snprintf(link, sizeof link, "/proc/self/fd/%d", folder_fd);
        ssize_t size = folder_fd >= 0 ? syscall(SYS_readlink, link, ret_path, PATH_MAX - 1) : 0;
        ret_path[size > 0 ? size : 0] = '\0';
    } else {
        snprintf(ret_path, PATH_MAX, "%s", path);
    }
    return prefix != NULL && strncmp(ret_path, prefix, strlen(prefix)) == 0;
}

/* So long, if it is below the folder. */
static void wait_for_disk(const char *variable, int folder_fd, const char *path)
{
    const char *ms = getenv(variable);
    char whole[PATH_MAX];
    if (ms != NULL && is_below(folder_fd, path, whole)) {
        (void)poll(NULL, 0, (int)strtol(ms, NULL, 10));
    }
}

static void wait_at_gate(int fd)
{
    const char *held = getenv("SLOW_DISK_HELD");
    const char *gate = getenv("SLOW_DISK_GATE");
    char path[PATH_MAX];
    if (held == NULL || gate == NULL) {
        return;
    }
    (void)is_below(fd, NULL, path);
    while (strstr(path, held) != NULL && syscall(SYS_faccessat, AT_FDCWD, gate, F_OK) != 0) {
        (void)poll(NULL, 0, 10);
    }
}

/* What is being done, with whatever errno is now. */
static void witness(const char *call, int folder_fd, const char *path)
{
    int errnum = errno;
    char name[PATH_MAX];
    char whole[PATH_MAX];
    char line[2 * PATH_MAX];
    if (syscall(SYS_gettid) == getpid() && is_below(folder_fd, path, whole)) {
        snprintf(name, sizeof name, "%s/witness", getenv("SLOW_DISK_FOLDER"));
        int fd = (int)syscall(SYS_openat, AT_FDCWD, name, O_WRONLY | O_APPEND | O_CLOEXEC);
        if (fd >= 0) {
            int size = snprintf(line, sizeof line, "%s %s\n", call, whole);
            (void)!syscall(SYS_write, fd, line, (size_t)size);
            syscall(SYS_close, fd);
        }
    }
    if (path != NULL) {
        wait_for_disk("SLOW_DISK_NAME_MS", folder_fd, path);
    }
    errno = errnum;
}

int open(const char *path, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    witness("open", AT_FDCWD, path);
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int openat(int folder, const char *path, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    witness("openat", folder, path);
    return (int)syscall(SYS_openat, folder, path, flags, mode);
}

int __open_2(const char *path, int flags);
int __open_2(const char *path, int flags)
{
    return open(path, flags);
}

int __openat_2(int folder, const char *path, int flags);
int __openat_2(int folder, const char *path, int flags)
{
    return openat(folder, path, flags);
}

ssize_t read(int fd, void *bytes, size_t size)
{
    witness("read", fd, NULL);
    return syscall(SYS_read, fd, bytes, size);
}

ssize_t write(int fd, const void *bytes, size_t size)
{
    witness("write", fd, NULL);
    wait_at_gate(fd);
    return syscall(SYS_write, fd, bytes, size);
}

ssize_t pread(int fd, void *bytes, size_t size, off_t offset)
{
    witness("pread", fd, NULL);
    wait_for_disk("SLOW_DISK_READ_MS", fd, NULL);
    wait_at_gate(fd);
    return syscall(SYS_pread64, fd, bytes, size, offset);
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t offset)
{
    witness("pwrite", fd, NULL);
    wait_at_gate(fd);
    wait_for_disk("SLOW_DISK_WRITE_MS", fd, NULL);
    return syscall(SYS_pwrite64, fd, bytes, size, offset);
}

int fsync(int fd)
{
    witness("fsync", fd, NULL);
    return (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
    witness("fdatasync", fd, NULL);
    return (int)syscall(SYS_fdatasync, fd);
}

int ftruncate(int fd, off_t size)
{
    witness("ftruncate", fd, NULL);
    return (int)syscall(SYS_ftruncate, fd, size);
}

int futimens(int fd, const struct timespec times[2])
{
    witness("futimens", fd, NULL);
    return (int)syscall(SYS_utimensat, fd, NULL, times, 0);
}

int statvfs(const char *restrict path, struct statvfs *restrict about)
{
    REAL(statvfs);
    witness("statvfs", AT_FDCWD, path);
    return real_statvfs(path, about);
}

ssize_t readlink(const char *restrict path, char *restrict target, size_t size)
{
    witness("readlink", AT_FDCWD, path);
    return syscall(SYS_readlink, path, target, size);
}

int symlink(const char *target, const char *path)
{
    witness("symlink", AT_FDCWD, path);
    return (int)syscall(SYS_symlink, target, path);
}

int fallocate(int fd, int mode, off_t offset, off_t size)
{
    witness("fallocate", fd, NULL);
    return (int)syscall(SYS_fallocate, fd, mode, offset, size);
}

int fstatat(int folder, const char *restrict path, struct stat *restrict about, int flags)
{
    witness("fstatat", folder, path);
    wait_for_disk("SLOW_DISK_MS", folder, path);
    return (int)syscall(SYS_newfstatat, folder, path, about, flags);
}

int stat(const char *restrict path, struct stat *restrict about)
{
    witness("stat", AT_FDCWD, path);
    return (int)syscall(SYS_newfstatat, AT_FDCWD, path, about, 0);
}

int lstat(const char *restrict path, struct stat *restrict about)
{
    witness("lstat", AT_FDCWD, path);
    return (int)syscall(SYS_newfstatat, AT_FDCWD, path, about, AT_SYMLINK_NOFOLLOW);
}

int access(const char *path, int mode)
{
    witness("access", AT_FDCWD, path);
    return (int)syscall(SYS_faccessat, AT_FDCWD, path, mode);
}

int mkdir(const char *path, mode_t mode)
{
    witness("mkdir", AT_FDCWD, path);
    return (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}

int rename(const char *from, const char *to)
{
    witness("rename", AT_FDCWD, from);
    return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags)
{
    witness("renameat2", from_folder, from);
    return (int)syscall(SYS_renameat2, from_folder, from, to_folder, to, flags);
}

int unlink(const char *path)
{
    witness("unlink", AT_FDCWD, path);
    return (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

int unlinkat(int folder, const char *path, int flags)
{
    witness("unlinkat", folder, path);
    return (int)syscall(SYS_unlinkat, folder, path, flags);
}

int rmdir(const char *path)
{
    witness("rmdir", AT_FDCWD, path);
    return (int)syscall(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR);
}

int lchown(const char *path, uid_t uid, gid_t gid)
{
    witness("lchown", AT_FDCWD, path);
    return (int)syscall(SYS_fchownat, AT_FDCWD, path, uid, gid, AT_SYMLINK_NOFOLLOW);
}

int chown(const char *path, uid_t uid, gid_t gid)
{
    witness("chown", AT_FDCWD, path);
    return (int)syscall(SYS_fchownat, AT_FDCWD, path, uid, gid, 0);
}

int bind(int fd, __CONST_SOCKADDR_ARG address, socklen_t size)
{
    if (address.__sockaddr__->sa_family == AF_UNIX) {
        witness("bind", AT_FDCWD, address.__sockaddr_un__->sun_path);
    }
    return (int)syscall(SYS_bind, fd, address.__sockaddr__, size);
}

int chmod(const char *path, mode_t mode)
{
    witness("chmod", AT_FDCWD, path);
    return (int)syscall(SYS_fchmodat, AT_FDCWD, path, mode);
}

int utimensat(int folder, const char *path, const struct timespec times[2], int flags)
{
    witness("utimensat", folder, path);
    return (int)syscall(SYS_utimensat, folder, path, times, flags);
}

int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags)
{
    witness("linkat", from_folder, from);
    return (int)syscall(SYS_linkat, from_folder, from, to_folder, to, flags);
}

DIR *opendir(const char *path)
{
    REAL(opendir);
    witness("opendir", AT_FDCWD, path);
    return real_opendir(path);
}

struct dirent *readdir(DIR *folder)
{
    REAL(readdir);
    witness("readdir", dirfd(folder), NULL);
    return real_readdir(folder);
}
