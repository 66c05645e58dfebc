/* SPDX-License-Identifier: Apache-2.0 */

#include <sys/socket.h>
#include <unistd.h>

#include "worker/host/isolate/process_stat.h"

/* A longer chain of parents is not followed. */
#define DESCENT_MAX 64

static bool descends_from(pid_t pid, pid_t leader)
{
    struct process_stat process_stat;
    for (int depth = 0; depth < DESCENT_MAX && pid > 1; depth++) {
        if (pid == leader) {
            return true;
        }
        if (!process_stat_read(pid, &process_stat)) {
            return false;
        }
        if (process_stat.session == leader) {
            return true;
        }
        pid = (pid_t)process_stat.parent;
    }
    return false;
}

bool peer_is_task(
    int fd, uid_t uid, pid_t leader, const struct task_cgroup *group, struct peer *ret_peer)
{
    struct ucred credentials = {0};
    socklen_t size = sizeof credentials;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
        return false;
    }
    if (ret_peer != NULL) {
        *ret_peer = (struct peer){.pid = credentials.pid, .uid = credentials.uid};
    }
    if (credentials.uid != uid || credentials.pid <= 0) {
        return false;
    }
    return group != NULL && group->kind != CGROUP_NONE ? cgroup_has(group, credentials.pid)
                                                       : descends_from(credentials.pid, leader);
}
