/* SPDX-License-Identifier: Apache-2.0
 * The confinement of a child between fork and exec, so that a task reaches nothing but its own
 * files and processes. */
#ifndef CADRE_WORKER_ISOLATE_CONFINE_H
#define CADRE_WORKER_ISOLATE_CONFINE_H

#include "worker/host/isolate/cgroup.h"

/* A plain value without pointers: it may cross a pipe or an exec. */
struct task_confinement {
    struct task_cgroup group; /* joined first, before the change of users */
    bool change_user;         /* become uid and gid, without supplementary groups */
    uid_t uid;
    gid_t gid;
    mode_t umask;           /* 0: as it is */
    uint64_t processes_max; /* RLIMIT_NPROC, of the uid; 0: as it is */
};

/* Joins the group, sets limits, umask and no_new_privs, gives up an oom_score_adj under 0,
 * becomes the user. Async-signal-safe. False: errno has the reason, and the child must not go
 * on; *ret_step (a constant; may be NULL) names the step that failed, for people. The death
 * signal of the parent is set after this: a change of users clears it. */
bool confine_self(const struct task_confinement *confinement, const char **ret_step);

#endif
