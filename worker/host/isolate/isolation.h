/* SPDX-License-Identifier: Apache-2.0
 * Keeps the jobs of a host apart: a uid for each job that runs here, a control group with the
 * limits for each task. One object per daemon, used from its loop's thread only; the process
 * that starts a task needs only the values that it returns. */
#ifndef CADRE_WORKER_ISOLATE_ISOLATION_H
#define CADRE_WORKER_ISOLATE_ISOLATION_H

#include <stddef.h>

#include "common/model/ids.h"
#include "common/model/job.h"
#include "worker/host/isolate/confine.h"

struct isolation;

struct isolation_options {
    /* Tasks get uids of this range, a job at a time, each its own group of the same number; 0 and
     * 0: all tasks run as task_uid and task_gid. Not used unless the daemon is root. */
    uid_t uid_first;
    uid_t uid_last;
    const char *claim_folder; /* where daemons of this host lock the uids that they hold */
    uid_t task_uid;
    gid_t task_gid;
    const char *name;   /* of this daemon's groups, unique on the host: [a-z0-9-] */
    const char *parent; /* a cgroup below which groups are made, "/cadre" say; NULL: the daemon's
                           own, which must be delegated to it */
    const char *mounts; /* NULL: /proc/self/mountinfo; a test's file */
    const char *membership;       /* NULL: /proc/self/cgroup */
    struct cgroup_limits ceiling; /* of each task, but for CPUs: given to one that names none, and
                                    no job may have more; 0: none */
    bool best_effort;             /* a limit that cannot be enforced is left out */
};

/* INVALID_ARGUMENT: the range is wrong, or a uid of it is a user of this host. A host without
 * groups is no error: see isolation_describe. */
cadre_status isolation_open(const struct isolation_options *options,
    struct isolation **ret_isolation, struct cadre_error *error);
/* Frees it; tasks and groups stay. NULL is fine. */
void isolation_close(struct isolation *isolation);

/* One or two sentences for the log of a start: how tasks are kept apart here, and what is
 * missing. */
const char *isolation_describe(const struct isolation *isolation);

/* The user that the tasks of a job run as. */
struct isolation_user {
    bool change; /* false: as the daemon's own user */
    bool own;    /* no other job has it */
    uid_t uid;
    gid_t gid;
};

/* Gives a user to a job for as long as a task of it is here, from before its first file is made;
 * the same user until the last of them has left. `shared`: the job's files are in a folder that
 * other hosts see, and so have to belong to one user on all hosts: its tasks run as task_uid.
 * RESOURCE_EXHAUSTED: no uid is free. Every success is matched by one isolation_leave_job. */
cadre_status isolation_enter_job(struct isolation *isolation, struct job_id job, bool shared,
    struct isolation_user *ret_user, struct cadre_error *error);
/* The same for a job whose task runs already under this uid. */
cadre_status isolation_adopt_job(struct isolation *isolation, struct job_id job, uid_t uid,
    struct isolation_user *ret_user, struct cadre_error *error);
/* For a task that entered as `user`. After the last task of a job its group is removed. True:
 * isolation_empty of its uid, which is the job's own, is due, then isolation_emptied: before
 * that no other job gets the uid. */
bool isolation_leave_job(
    struct isolation *isolation, struct job_id job, const struct isolation_user *user);

/* Whether what earlier jobs left under the user's uid is removed: no task of the job may make
 * anything before. */
bool isolation_is_clean(const struct isolation *isolation, const struct isolation_user *user);
/* When it is not clean: true for the first caller, which then does isolation_claim and
 * isolation_emptied. */
bool isolation_begin_empty(struct isolation *isolation, const struct isolation_user *user);

/* Before a job: holds the uid, so that no other daemon of this kernel takes it, whatever folders
 * and namespaces they share or not, and removes what is left in /tmp, /dev/shm and in System V
 * memory. In any thread; may take long. */
void isolation_claim(struct isolation *isolation, uid_t uid);
/* After a job: ends what this daemon started under the uid, then removes the same, unless
 * something else runs under it. In any thread; may take long. */
void isolation_empty(struct isolation *isolation, uid_t uid);
/* The end of isolation_claim or isolation_empty, in the loop's thread. When something else ran
 * under the uid, *user is another one, for all tasks of the job here, and is not clean. False:
 * no other is free; it is as before the claim. */
bool isolation_emptied(struct isolation *isolation, struct isolation_user *user);

/* Before a task is started, its job entered: makes its group, and fills in what the child does.
 * FAILED_PRECONDITION: a limit of the job cannot be enforced here, or is over this worker's. */
cadre_status isolation_prepare_task(struct isolation *isolation, struct task_ref task,
    const struct isolation_user *user, const struct cgroup_limits *asked,
    struct task_confinement *ret_confinement, struct cadre_error *error);

/* Kills and removes the groups of this daemon's name that are of none of the `kept` tasks: those
 * of an earlier incarnation. */
void isolation_clear_groups(
    struct isolation *isolation, const struct task_ref *kept, size_t kept_count);

#endif
