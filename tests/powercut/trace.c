/* SPDX-License-Identifier: Apache-2.0
 * Everything here is done by system calls of its own: the functions of the library are those that
 * are recorded. */
#include "trace.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* DISK_RECORDER_FOLDER, DISK_RECORDER_TRACE: the folder that is recorded, without links in its
 * path, and the file. */
static const char *recorded_folder(void)
{
    return getenv("DISK_RECORDER_FOLDER");
}

static const char *strip(char *whole)
{
    const char *folder = recorded_folder();
    size_t length = folder != NULL ? strlen(folder) : 0;
    if (length == 0 || strncmp(whole, folder, length) != 0) {
        return NULL;
    }
    return whole[length] == '/' ? whole + length + 1 : whole[length] == '\0' ? "." : NULL;
}

/* The path of an open file; false: it is not known. */
static bool path_of_fd(int fd, char *ret_path)
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, ret_path, PATH_MAX - 1);
    ret_path[length > 0 ? length : 0] = '\0';
    return length > 0 && ret_path[0] == '/';
}

static bool make_absolute(int folder_fd, const char *path, char *ret_path)
{
    char folder[PATH_MAX];
    if (path[0] == '/') {
        return snprintf(ret_path, PATH_MAX, "%s", path) < PATH_MAX;
    }
    bool known = folder_fd == AT_FDCWD ? getcwd(folder, sizeof folder) != NULL
                                       : path_of_fd(folder_fd, folder);
    return known && snprintf(ret_path, PATH_MAX, "%s/%s", folder, path) < PATH_MAX;
}

const char *trace_below(int folder_fd, const char *path, char *whole)
{
    char absolute[PATH_MAX];
    char parent[PATH_MAX];
    int number = errno;
    const char *below = NULL;
    if (recorded_folder() != NULL && path != NULL && make_absolute(folder_fd, path, absolute)) {
        size_t length = strlen(absolute);
        while (length > 1 && absolute[length - 1] == '/') {
            absolute[--length] = '\0';
        }
        char *slash = strrchr(absolute, '/');
        *slash = '\0';
        if (realpath(slash == absolute ? "/" : absolute, parent) != NULL &&
            snprintf(whole, PATH_MAX, "%s/%s", parent, slash + 1) < PATH_MAX) {
            below = strip(whole);
        }
    }
    errno = number;
    return below;
}

const char *trace_fd_below(int fd, char *whole, uint64_t *ret_inode)
{
    struct stat facts;
    int number = errno;
    const char *below = NULL;
    if (recorded_folder() != NULL && fstat(fd, &facts) == 0 &&
        (S_ISREG(facts.st_mode) || S_ISDIR(facts.st_mode)) && path_of_fd(fd, whole)) {
        *ret_inode = facts.st_ino;
        below = strip(whole);
    }
    errno = number;
    return below;
}

bool trace_is_output(int fd)
{
    struct stat facts;
    int number = errno;
    bool is_output = recorded_folder() != NULL && fstat(fd, &facts) == 0 &&
                     (S_ISSOCK(facts.st_mode) || S_ISFIFO(facts.st_mode));
    errno = number;
    return is_output;
}

/* ---- the lock ---- */

static pthread_mutex_t mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static int depth;
static int file_fd = -1; /* has the file's lock, shared, while depth is above 0 */

/* The thread that held the lock is not in the child, and the file's lock is its parent's. */
static void forget_lock(void)
{
    if (file_fd >= 0) {
        syscall(SYS_close, file_fd);
    }
    file_fd = -1;
    depth = 0;
    mutex = (pthread_mutex_t)PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
}

__attribute__((constructor)) static void trace_begin(void)
{
    pthread_atfork(NULL, NULL, forget_lock);
}

static int open_trace(void)
{
    const char *trace = getenv("DISK_RECORDER_TRACE");
    return trace != NULL
               ? (int)syscall(SYS_openat, AT_FDCWD, trace, O_WRONLY | O_APPEND | O_CLOEXEC)
               : -1;
}

void trace_lock(void)
{
    int number = errno;
    pthread_mutex_lock(&mutex);
    if (depth++ == 0) {
        file_fd = open_trace();
        while (file_fd >= 0 && syscall(SYS_flock, file_fd, LOCK_SH) != 0 && errno == EINTR) {
        }
    }
    errno = number;
}

void trace_unlock(void)
{
    if (--depth == 0 && file_fd >= 0) {
        syscall(SYS_close, file_fd);
        file_fd = -1;
    }
    pthread_mutex_unlock(&mutex);
}

/* A thread of the pool may be between a call and its record when the process exits: it ends that,
 * and no other call is made. */
__attribute__((destructor)) static void trace_end(void)
{
    trace_lock();
}

/* ---- records ---- */

static void give_up(const char *why)
{
    static const char said[] = "cannot write the trace: ";
    syscall(SYS_write, STDERR_FILENO, said, sizeof said - 1);
    syscall(SYS_write, STDERR_FILENO, why, strlen(why));
    _exit(99);
}

void trace_put(enum record_kind kind, uint64_t inode, uint64_t a, uint64_t b, const char *path,
    const void *data, size_t data_bytes)
{
    int number = errno;
    struct record_head head = {.path_bytes = path != NULL ? (uint32_t)strlen(path) : 0,
        .data_bytes = (uint32_t)data_bytes,
        .pid = (uint32_t)getpid(),
        .kind = kind,
        .inode = inode,
        .a = a,
        .b = b};
    struct iovec parts[3] = {{&head, sizeof head}, {(void *)(uintptr_t)path, head.path_bytes},
        {(void *)(uintptr_t)data, data_bytes}};
    size_t whole = sizeof head + head.path_bytes + data_bytes;
    /* opened for each record, because a process may close descriptors of others */
    int fd = open_trace();
    if (fd < 0) {
        give_up("it cannot be opened\n");
    }
    if (syscall(SYS_writev, fd, parts, 3) != (long)whole) {
        give_up("its disk is full\n");
    }
    syscall(SYS_close, fd);
    errno = number;
}

void trace_put_content(int fd, uint64_t inode, off_t offset, size_t bytes)
{
    char link[64];
    int number = errno;
    char *content = malloc(bytes + 1);
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    long reader = syscall(SYS_openat, AT_FDCWD, link, O_RDONLY | O_CLOEXEC);
    if (content == NULL || reader < 0 ||
        syscall(SYS_pread64, reader, content, bytes, offset) != (long)bytes) {
        give_up("what was written cannot be read\n");
    }
    syscall(SYS_close, reader);
    trace_put(RECORD_WRITE, inode, (uint64_t)offset, 0, NULL, content, bytes);
    free(content);
    errno = number;
}
