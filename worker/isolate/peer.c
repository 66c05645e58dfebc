/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/isolate/peer.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/cleanup.h"

/* A chain of parents that is longer is not believed. */
#define DESCENT_MAX 64

struct kin {
    int parent;
    int session;
};

/* From /proc/<pid>/stat; false when it is gone. */
static bool read_kin(pid_t pid, struct kin *ret_kin)
{
    char path[64];
    char text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    CADRE_CLOSE_AT_EXIT int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (size <= 0) {
        return false;
    }
    text[size] = '\0';
    const char *after = strrchr(text, ')'); /* the name may hold spaces and brackets, too */
    char state;
    int group;
    return after != NULL &&
           sscanf(after, ") %c %d %d %d", &state, &ret_kin->parent, &group, &ret_kin->session) == 4;
}

static bool descends_from(pid_t pid, pid_t leader)
{
    struct kin kin;
    for (int depth = 0; depth < DESCENT_MAX && pid > 1; depth++) {
        if (pid == leader) {
            return true;
        }
        if (!read_kin(pid, &kin)) {
            return false;
        }
        if (kin.session == leader) {
            return true;
        }
        pid = (pid_t)kin.parent;
    }
    return false;
}

bool peer_is_task(
    int fd, uid_t uid, pid_t leader, const struct task_group *group, struct peer *ret_peer)
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
    return group != NULL && group->kind != GROUP_NONE ? group_has(group, credentials.pid)
                                                      : descends_from(credentials.pid, leader);
}
