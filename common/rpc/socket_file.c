/* SPDX-License-Identifier: Apache-2.0 */
#include "common/rpc/server_state.h"

#include "common/base/cleanup.h"
#include "common/base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define LOCK_WAIT_US  (2 * CADRE_US_PER_S)
#define LOCK_RETRY_MS 5
#define OWNER_ONLY    0600
#define OWNER_GROUP   0660

/* The lock is held for the few system calls of a start, so it is tried again for a while and
 * never waited on for good: in a folder like /tmp any process could hold it. */
static cadre_status lock_folder(const char *path, int *ret_fd, struct cadre_error *error)
{
    char folder[sizeof((struct rpc_socket_file){0}.path)];
    const char *slash = strrchr(path, '/');
    size_t length = slash == path ? 1 : (size_t)(slash - path);
    memcpy(folder, path, length);
    folder[length] = '\0';
    CADRE_CLOSE_AT_EXIT int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return cadre_error_errno(error, errno, "socket %s: its folder cannot be opened", path);
    }
    uint64_t give_up_us = clock_monotonic_us() + LOCK_WAIT_US;
    while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK && errno != EINTR) {
            return cadre_error_errno(error, errno, "socket %s: its folder cannot be locked", path);
        }
        if (clock_monotonic_us() >= give_up_us) {
            return cadre_error_set(error, CADRE_UNAVAILABLE,
                "socket %s: another server is starting in that folder; try again", path);
        }
        poll(NULL, 0, LOCK_RETRY_MS);
    }
    *ret_fd = fd;
    fd = -1;
    return CADRE_OK;
}

/* Connecting shows whether a server listens: a socket file without one refuses. */
static cadre_status remove_stale(const struct rpc_address *address, struct cadre_error *error)
{
    struct stat found;
    if (lstat(address->path, &found) != 0) {
        return errno == ENOENT ? CADRE_OK
                               : cadre_error_errno(error, errno, "socket %s", address->path);
    }
    if (!S_ISSOCK(found.st_mode)) {
        return cadre_error_set(error, CADRE_ALREADY_EXISTS,
            "socket %s: something that is not a socket is there; remove it or choose another path",
            address->path);
    }
    CADRE_CLOSE_AT_EXIT int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return cadre_error_errno(error, errno, "socket %s", address->path);
    }
    const struct sockaddr *to = (const struct sockaddr *)&address->socket_address;
    if (connect(fd, to, address->socket_address_bytes) == 0 || errno == EAGAIN) {
        return cadre_error_set(error, CADRE_ALREADY_EXISTS,
            "socket %s: a server is listening there already; stop it or choose another path",
            address->path);
    }
    if (errno != ECONNREFUSED) {
        return cadre_error_errno(error, errno, "socket %s", address->path);
    }
    if (unlink(address->path) != 0) {
        return cadre_error_errno(error, errno,
            "socket %s: left by a server that has exited, and not removable", address->path);
    }
    return CADRE_OK;
}

cadre_status rpc_socket_file_begin(struct rpc_socket_file *ret_socket_file,
    const struct rpc_address *address, struct cadre_error *error)
{
    *ret_socket_file = (struct rpc_socket_file){.folder_fd = -1};
    memcpy(ret_socket_file->path, address->path, sizeof ret_socket_file->path);
    CADRE_TRY(lock_folder(address->path, &ret_socket_file->folder_fd, error));
    cadre_status status = remove_stale(address, error);
    if (status != CADRE_OK) {
        close(ret_socket_file->folder_fd);
        ret_socket_file->folder_fd = -1;
        return status;
    }
    ret_socket_file->old_umask = umask((mode_t)~OWNER_ONLY & 0777);
    return CADRE_OK;
}

cadre_status rpc_socket_file_end(struct rpc_socket_file *socket_file, bool bound,
    const struct rpc_socket_access *access, struct cadre_error *error)
{
    cadre_status status = CADRE_OK;
    struct stat made;
    umask(socket_file->old_umask);
    if (bound && lstat(socket_file->path, &made) != 0) {
        status = cadre_error_errno(error, errno, "socket %s", socket_file->path);
    } else if (bound) {
        socket_file->device = made.st_dev;
        socket_file->inode = made.st_ino;
        if (access != NULL && access->group_may_connect &&
            (chown(socket_file->path, (uid_t)-1, access->group) != 0 ||
                chmod(socket_file->path, OWNER_GROUP) != 0)) {
            status = cadre_error_errno(error, errno, "socket %s: cannot be opened to group %lu",
                socket_file->path, (unsigned long)access->group);
        }
    }
    close(socket_file->folder_fd);
    socket_file->folder_fd = -1;
    return status;
}

void rpc_socket_file_remove(const struct rpc_socket_file *socket_file)
{
    struct stat found;
    if (lstat(socket_file->path, &found) == 0 && found.st_dev == socket_file->device &&
        found.st_ino == socket_file->inode) {
        unlink(socket_file->path);
    }
}
