/* SPDX-License-Identifier: Apache-2.0
 * Preloaded into daemons and programs: writes to a trace what they do to the disk, with the
 * bytes that they write and their syncs, and each moment before an output of theirs. The
 * functions of the C library are replaced by the system calls that they are made of. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "trace.h"

#define NAME_LETTERS 6   /* that mkostemp draws */
#define SHOWN_BYTES  100 /* of a program's output: a text line */

/* ---- files that are opened ---- */

static int open_file(int folder_fd, const char *path, int flags, mode_t mode)
{
    char whole[PATH_MAX];
    struct stat facts;
    bool changes = (flags & (O_CREAT | O_TRUNC)) != 0;
    const char *below = changes ? trace_below(folder_fd, path, whole) : NULL;
    if (below == NULL) {
        return (int)syscall(SYS_openat, folder_fd, path, flags, mode);
    }
    trace_lock();
    bool was_here = fstatat(folder_fd, path, &facts, AT_SYMLINK_NOFOLLOW) == 0;
    bool was_empty = was_here && facts.st_size == 0;
    int fd = (int)syscall(SYS_openat, folder_fd, path, flags, mode);
    if (fd >= 0 && fstat(fd, &facts) == 0) {
        if ((flags & O_TMPFILE) == O_TMPFILE) {
            trace_put(RECORD_UNKNOWN, 0, 0, 0, below, "O_TMPFILE", 9);
        } else if (!was_here) {
            trace_put(RECORD_CREATE, facts.st_ino, facts.st_mode & 07777, 0, below, NULL, 0);
        } else if ((flags & O_TRUNC) != 0 && !was_empty && S_ISREG(facts.st_mode)) {
            trace_put(RECORD_SIZE, facts.st_ino, 0, 0, below, NULL, 0);
        }
    }
    trace_unlock();
    return fd;
}

#define MODE_OF(flags, last)                                                                       \
    mode_t mode = 0;                                                                               \
    if (((flags)&O_CREAT) != 0 || ((flags)&O_TMPFILE) == O_TMPFILE) {                              \
        va_list arguments;                                                                         \
        va_start(arguments, last);                                                                 \
        mode = va_arg(arguments, mode_t);                                                          \
        va_end(arguments);                                                                         \
    }

int open(const char *path, int flags, ...)
{
    MODE_OF(flags, flags)
    return open_file(AT_FDCWD, path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
    MODE_OF(flags, flags)
    return open_file(AT_FDCWD, path, flags, mode);
}

int openat(int folder_fd, const char *path, int flags, ...)
{
    MODE_OF(flags, flags)
    return open_file(folder_fd, path, flags, mode);
}

int openat64(int folder_fd, const char *path, int flags, ...)
{
    MODE_OF(flags, flags)
    return open_file(folder_fd, path, flags, mode);
}

int creat(const char *path, mode_t mode)
{
    return open_file(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

int creat64(const char *path, mode_t mode)
{
    return creat(path, mode);
}

/* What a fortified program calls instead. */
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int folder_fd, const char *path, int flags);
int __openat64_2(int folder_fd, const char *path, int flags);

int __open_2(const char *path, int flags)
{
    return open_file(AT_FDCWD, path, flags, 0);
}

int __open64_2(const char *path, int flags)
{
    return open_file(AT_FDCWD, path, flags, 0);
}

int __openat_2(int folder_fd, const char *path, int flags)
{
    return open_file(folder_fd, path, flags, 0);
}

int __openat64_2(int folder_fd, const char *path, int flags)
{
    return open_file(folder_fd, path, flags, 0);
}

int mkostemp(char *pattern, int flags)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    size_t length = strlen(pattern);
    char *name = pattern + length - NAME_LETTERS;
    if (length < NAME_LETTERS || strspn(name, "X") != NAME_LETTERS) {
        errno = EINVAL;
        return -1;
    }
    for (;;) {
        unsigned char drawn[NAME_LETTERS];
        if (getrandom(drawn, sizeof drawn, 0) != sizeof drawn) {
            return -1;
        }
        for (size_t i = 0; i < NAME_LETTERS; i++) {
            name[i] = letters[drawn[i] % (sizeof letters - 1)];
        }
        int fd = open_file(AT_FDCWD, pattern, O_RDWR | O_CREAT | O_EXCL | flags, 0600);
        if (fd >= 0 || errno != EEXIST) {
            return fd;
        }
    }
}

int mkostemp64(char *pattern, int flags)
{
    return mkostemp(pattern, flags);
}

int mkstemp(char *pattern)
{
    return mkostemp(pattern, 0);
}

int mkstemp64(char *pattern)
{
    return mkostemp(pattern, 0);
}

/* ---- content ---- */

/* At `offset`, or at -1: where the file stood. */
static ssize_t write_parts(int fd, const struct iovec *parts, int count, off_t offset)
{
    char whole[PATH_MAX];
    uint64_t inode = 0;
    bool at_offset = offset >= 0;
    if (!at_offset && trace_is_output(fd)) {
        size_t shown = parts[0].iov_len < SHOWN_BYTES ? parts[0].iov_len : SHOWN_BYTES;
        trace_put(RECORD_OUTPUT, 0, 0, 0, NULL, parts[0].iov_base, shown);
        return syscall(SYS_writev, fd, parts, count);
    }
    bool below = trace_fd_below(fd, whole, &inode) != NULL;
    if (below) {
        trace_lock();
    }
    ssize_t done = at_offset ? syscall(SYS_pwritev, fd, parts, count, offset, 0L)
                             : syscall(SYS_writev, fd, parts, count);
    if (below && done > 0) {
        off_t from = at_offset ? offset : (off_t)syscall(SYS_lseek, fd, 0L, SEEK_CUR) - done;
        trace_put_content(fd, inode, from, (size_t)done);
    }
    if (below) {
        trace_unlock();
    }
    return done;
}

ssize_t write(int fd, const void *bytes, size_t size)
{
    struct iovec part = {(void *)(uintptr_t)bytes, size};
    return write_parts(fd, &part, 1, -1);
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
    return count > 0 ? write_parts(fd, parts, count, -1) : syscall(SYS_writev, fd, parts, count);
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t offset)
{
    struct iovec part = {(void *)(uintptr_t)bytes, size};
    return write_parts(fd, &part, 1, offset);
}

ssize_t pwrite64(int fd, const void *bytes, size_t size, off64_t offset)
{
    return pwrite(fd, bytes, size, offset);
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset)
{
    return write_parts(fd, parts, count, offset);
}

ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t offset)
{
    return write_parts(fd, parts, count, offset);
}

/* What a copy within the kernel has brought to `to`, whose offset was `from` when it began. */
static void put_copied(int to, off_t from, ssize_t done)
{
    char whole[PATH_MAX];
    uint64_t inode = 0;
    if (done > 0 && trace_fd_below(to, whole, &inode) != NULL) {
        trace_put_content(to, inode, from, (size_t)done);
    }
}

ssize_t sendfile(int to, int from, off_t *at, size_t size)
{
    if (trace_is_output(to)) {
        trace_put(RECORD_OUTPUT, 0, 0, 0, NULL, NULL, 0);
    }
    trace_lock();
    off_t begin = (off_t)syscall(SYS_lseek, to, 0L, SEEK_CUR);
    ssize_t done = syscall(SYS_sendfile, to, from, at, size);
    put_copied(to, begin, done);
    trace_unlock();
    return done;
}

ssize_t sendfile64(int to, int from, off64_t *at, size_t size)
{
    return sendfile(to, from, at, size);
}

ssize_t copy_file_range(
    int from, off64_t *from_at, int to, off64_t *to_at, size_t size, unsigned flags)
{
    trace_lock();
    off_t begin = to_at != NULL ? *to_at : (off_t)syscall(SYS_lseek, to, 0L, SEEK_CUR);
    ssize_t done = syscall(SYS_copy_file_range, from, from_at, to, to_at, size, flags);
    put_copied(to, begin, done);
    trace_unlock();
    return done;
}

static int resize(int fd, off_t size, bool only_more)
{
    char whole[PATH_MAX];
    uint64_t inode = 0;
    struct stat facts;
    const char *below = trace_fd_below(fd, whole, &inode);
    trace_lock();
    bool more = fstat(fd, &facts) == 0 && facts.st_size < size;
    int result = only_more ? (int)syscall(SYS_fallocate, fd, 0, 0L, size)
                           : (int)syscall(SYS_ftruncate, fd, size);
    if (below != NULL && result == 0 && (more || !only_more)) {
        trace_put(RECORD_SIZE, inode, (uint64_t)size, 0, below, NULL, 0);
    }
    trace_unlock();
    return result;
}

int ftruncate(int fd, off_t size)
{
    return resize(fd, size, false);
}

int ftruncate64(int fd, off64_t size)
{
    return resize(fd, size, false);
}

int truncate(const char *path, off_t size)
{
    int fd = open_file(AT_FDCWD, path, O_WRONLY | O_CLOEXEC, 0);
    int result = fd >= 0 ? resize(fd, size, false) : -1;
    if (fd >= 0) {
        close(fd);
    }
    return result;
}

int truncate64(const char *path, off64_t size)
{
    return truncate(path, size);
}

int fallocate(int fd, int mode, off_t offset, off_t length)
{
    char whole[PATH_MAX];
    uint64_t inode = 0;
    const char *below = trace_fd_below(fd, whole, &inode);
    if (mode == 0) {
        return resize(fd, offset + length, true);
    }
    trace_lock();
    int result = (int)syscall(SYS_fallocate, fd, mode, offset, length);
    if (below != NULL && result == 0 && mode == (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE)) {
        trace_put(RECORD_HOLE, inode, (uint64_t)offset, (uint64_t)length, below, NULL, 0);
    } else if (below != NULL && result == 0 && mode != FALLOC_FL_KEEP_SIZE) {
        trace_put(RECORD_UNKNOWN, inode, (uint64_t)mode, 0, below, "fallocate", 9);
    }
    trace_unlock();
    return result;
}

int fallocate64(int fd, int mode, off64_t offset, off64_t length)
{
    return fallocate(fd, mode, offset, length);
}

int posix_fallocate(int fd, off_t offset, off_t length)
{
    int number = errno;
    int result = fallocate(fd, 0, offset, length) == 0 ? 0 : errno;
    errno = number;
    return result;
}

int posix_fallocate64(int fd, off64_t offset, off64_t length)
{
    return posix_fallocate(fd, offset, length);
}

void *mmap(void *at, size_t length, int protection, int flags, int fd, off_t offset)
{
    char whole[PATH_MAX];
    uint64_t inode = 0;
    bool shared = (flags & MAP_TYPE) != MAP_PRIVATE && (flags & MAP_ANONYMOUS) == 0;
    if (shared && (protection & PROT_WRITE) != 0) {
        const char *below = trace_fd_below(fd, whole, &inode);
        if (below != NULL) {
            trace_put(RECORD_UNKNOWN, inode, 0, 0, below, "mmap", 4);
        }
    }
    return (void *)syscall(SYS_mmap, at, length, protection, flags, fd, offset);
}

void *mmap64(void *at, size_t length, int protection, int flags, int fd, off64_t offset)
{
    return mmap(at, length, protection, flags, fd, offset);
}

/* ---- syncs: nothing else is done meanwhile, so that what was recorded before one is in it ---- */

static int sync_file(int fd, long call)
{
    char whole[PATH_MAX];
    uint64_t inode = 0;
    const char *below = trace_fd_below(fd, whole, &inode);
    trace_lock();
    int result = (int)syscall(call, fd);
    if (below != NULL && result == 0) {
        trace_put(RECORD_SYNC, inode, 0, 0, below, NULL, 0);
    }
    trace_unlock();
    return result;
}

int fsync(int fd)
{
    return sync_file(fd, SYS_fsync);
}

int fdatasync(int fd)
{
    return sync_file(fd, SYS_fdatasync);
}

int syncfs(int fd)
{
    char whole[PATH_MAX];
    uint64_t inode = 0;
    const char *below = trace_fd_below(fd, whole, &inode);
    trace_lock();
    int result = (int)syscall(SYS_syncfs, fd);
    if (below != NULL && result == 0) {
        trace_put(RECORD_SYNC_ALL, inode, 0, 0, below, NULL, 0);
    }
    trace_unlock();
    return result;
}

/* ---- output ---- */

ssize_t sendto(int fd, const void *bytes, size_t size, int flags, __CONST_SOCKADDR_ARG address,
    socklen_t address_bytes)
{
    if (trace_is_output(fd)) {
        trace_put(RECORD_OUTPUT, 0, 0, 0, NULL, NULL, 0);
    }
    return syscall(SYS_sendto, fd, bytes, size, flags, address.__sockaddr__, address_bytes);
}

ssize_t send(int fd, const void *bytes, size_t size, int flags)
{
    return sendto(fd, bytes, size, flags, NULL, 0);
}

/* The daemons have a sendmsg of their own (common/rpc), which is made of this. */
long syscall(long number, ...)
{
    static long (*next)(long, ...);
    long a[6];
    va_list arguments;
    va_start(arguments, number);
    for (int i = 0; i < 6; i++) { /* as many as there may be: what is not meant is not looked at */
        a[i] = va_arg(arguments, long);
    }
    va_end(arguments);
    if (number == SYS_sendmsg && trace_is_output((int)a[0])) {
        trace_put(RECORD_OUTPUT, 0, 0, 0, NULL, NULL, 0);
    }
    if (next == NULL) {
        void *found = dlsym(RTLD_NEXT, "syscall");
        memcpy(&next, &found, sizeof next);
    }
    return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    return syscall(SYS_sendmsg, fd, message, flags);
}
