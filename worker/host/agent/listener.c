/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/host/agent/agent.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "worker/host/keeper/messages.h"

cadre_status listener_make(const char *path, const struct task_confinement *user, int *ret_listener,
    struct cadre_error *error)
{
    struct sockaddr_un limit;
    if (strlen(path) >= sizeof limit.sun_path) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the task's socket %s has a path over %zu bytes: choose a shorter state or runtime "
            "directory",
            path, sizeof limit.sun_path - 1);
    }
    (void)unlink(path);
    CADRE_CLOSE_AT_EXIT int fd = private_socket_bind(path, SOCK_STREAM);
    if (fd < 0) {
        return cadre_error_errno(error, errno, "cannot serve the task on %s", path);
    }
    if (user->change_user && chown(path, user->uid, user->gid) != 0) {
        return cadre_error_errno(
            error, errno, "cannot give the socket %s to user %u", path, (unsigned)user->uid);
    }
    *ret_listener = fd;
    fd = -1;
    return CADRE_OK;
}
