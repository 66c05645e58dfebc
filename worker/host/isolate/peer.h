/* SPDX-License-Identifier: Apache-2.0
 * The process at the other end of a task's Unix socket. */
#ifndef CADRE_WORKER_ISOLATE_PEER_H
#define CADRE_WORKER_ISOLATE_PEER_H

#include "worker/host/isolate/cgroup.h"

struct peer {
    pid_t pid;
    uid_t uid;
};

/* Whether the process that connected `fd` is of the task: runs as `uid`, and is in its group,
 * or, without one, in the session that `leader` leads or a descendant of it. *ret_peer (may be
 * NULL) gets its pid and uid. False also when that cannot be read, as of a process that has
 * exited. */
bool peer_is_task(
    int fd, uid_t uid, pid_t leader, const struct task_cgroup *group, struct peer *ret_peer);

#endif
