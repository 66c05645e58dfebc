/* SPDX-License-Identifier: Apache-2.0
 * The parent, state and uids of a process. */
#ifndef CADRE_WORKER_ISOLATE_PROCESS_STAT_H
#define CADRE_WORKER_ISOLATE_PROCESS_STAT_H

#include <stdbool.h>
#include <sys/types.h>

#include "worker/host/isolate/cgroup.h"

struct process_stat {
    char state; /* 'Z': a zombie */
    int parent;
    int session;
};

/* From /proc/<pid>/stat; false when it has exited. */
bool process_stat_read(pid_t pid, struct process_stat *ret_stat);

/* Real, effective, saved, of the file system: from /proc/<pid>/status, not the owner of its
 * folder, which is root for one that may not be dumped. False when it has exited. */
#define PROCESS_UIDS 4
/* Reads them, as described above. */
bool process_uids(pid_t pid, unsigned ret_uids[PROCESS_UIDS]);
/* Whether one of its uids is `uid`; false for a zombie. */
bool process_has_uid(pid_t pid, uid_t uid);

/* The process at the other end of a task's Unix socket. */

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
