/* SPDX-License-Identifier: Apache-2.0
 * The one object of a daemon that keeps jobs apart: users by uids.c, groups by cgroup_tree.c,
 * and the check of a job's limits against the worker's. Called by worker/host/daemon/isolate.c. */
#include "worker/host/isolate/isolation.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "worker/host/isolate/cgroup_tree.h"
#include "worker/host/isolate/uids.h"

#define CLEAR_WAIT_MS 2000

/* The kernel counts the process that holds the uid with those of the job. */
#define HOLDERS 1

/* Jobs that run as the common user: how many tasks of each are here. */
struct common_job {
    struct common_job *next;
    struct job_id job;
    unsigned tasks;
};

struct isolation {
    struct uids *uids; /* NULL: one user for all */
    bool change_user;
    uid_t task_uid;
    gid_t task_gid;
    struct cgroup_tree tree;
    struct cgroup_limits ceiling;
    bool best_effort;
    struct common_job *common;
    char description[640];
};

/* "memory, pids, cpu": what can be limited. */
static void describe_controllers(const struct cgroup_tree *tree, char *text, size_t text_bytes)
{
    static const char *const names[] = {"memory", "pids", "cpu"};
    size_t size = 0;
    text[0] = '\0';
    for (size_t i = 0; i < 3; i++) {
        if (tree->has[i]) {
            int added =
                snprintf(text + size, text_bytes - size, "%s%s", size > 0 ? ", " : "", names[i]);
            size += added > 0 ? (size_t)added : 0;
        }
    }
}

static void describe_isolation(struct isolation *isolation, const struct isolation_options *options)
{
    const struct cgroup_tree *tree = &isolation->tree;
    char users[160];
    char limits[64];
    if (isolation->uids != NULL) {
        snprintf(users, sizeof users, "each job has a uid of its own, of %u to %u",
            (unsigned)options->uid_first, (unsigned)options->uid_last);
    } else if (isolation->change_user) {
        snprintf(users, sizeof users, "all jobs run as uid %u, and reach each other's processes",
            (unsigned)options->task_uid);
    } else {
        snprintf(users, sizeof users,
            "the worker is not root: all jobs run as its own user, and reach each other's "
            "processes and its own");
    }
    describe_controllers(tree, limits, sizeof limits);
    snprintf(isolation->description, sizeof isolation->description, "%s; %s%s%s%s%s", users,
        tree->kind == CGROUP_NONE ? "no cgroups, so limits of jobs cannot be kept"
        : tree->kind == CGROUP_V2 ? "cgroup v2"
                                  : "cgroup v1",
        limits[0] != '\0' ? ", with limits for " : "", limits, tree->why[0] != '\0' ? ": " : "",
        tree->why);
}

cadre_status isolation_open(const struct isolation_options *options,
    struct isolation **ret_isolation, struct cadre_error *error)
{
    struct isolation *isolation = calloc(1, sizeof *isolation);
    if (isolation == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory to start");
    }
    isolation->change_user = geteuid() == 0;
    isolation->task_uid = options->task_uid;
    isolation->task_gid = options->task_gid;
    isolation->ceiling = options->ceiling;
    isolation->best_effort = options->best_effort;
    if (isolation->change_user && options->uid_first != 0) {
        cadre_status status = uids_open(
            options->uid_first, options->uid_last, options->claim_folder, &isolation->uids, error);
        if (status != CADRE_OK) {
            free(isolation);
            return status;
        }
    }
    cgroup_tree_open(
        &(struct cgroup_tree_options){
            .mounts = options->mounts != NULL ? options->mounts : "/proc/self/mountinfo",
            .membership = options->membership != NULL ? options->membership : "/proc/self/cgroup",
            .name = options->name,
            .parent = options->parent},
        &isolation->tree);
    describe_isolation(isolation, options);
    *ret_isolation = isolation;
    return CADRE_OK;
}

void isolation_close(struct isolation *isolation)
{
    if (isolation == NULL) {
        return;
    }
    struct common_job *next;
    for (struct common_job *at = isolation->common; at != NULL; at = next) {
        next = at->next;
        free(at);
    }
    for (int i = 0; i < CGROUP_CONTROLLERS; i++) {
        if (isolation->tree.folders[i][0] != '\0') {
            (void)rmdir(isolation->tree.folders[i]); /* stays while a task is in it */
        }
    }
    uids_close(isolation->uids);
    free(isolation);
}

const char *isolation_describe(const struct isolation *isolation)
{
    return isolation->description;
}

static struct common_job **find_common(struct isolation *isolation, struct job_id job)
{
    struct common_job **at = &isolation->common;
    while (*at != NULL && (*at)->job.n != job.n) {
        at = &(*at)->next;
    }
    return at;
}

static cadre_status enter_common(
    struct isolation *isolation, struct job_id job, struct cadre_error *error)
{
    struct common_job **at = find_common(isolation, job);
    if (*at == NULL) {
        *at = calloc(1, sizeof **at);
        if (*at == NULL) {
            return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for another job");
        }
        (*at)->job = job;
    }
    (*at)->tasks++;
    return CADRE_OK;
}

cadre_status isolation_enter_job(struct isolation *isolation, struct job_id job, bool shared,
    struct isolation_user *ret_user, struct cadre_error *error)
{
    *ret_user = (struct isolation_user){.change = isolation->change_user,
        .uid = isolation->change_user ? isolation->task_uid : geteuid(),
        .gid = isolation->change_user ? isolation->task_gid : getegid()};
    if (isolation->uids == NULL || shared) {
        return enter_common(isolation, job, error);
    }
    CADRE_TRY(uids_acquire(isolation->uids, job, &ret_user->uid, error));
    ret_user->gid = (gid_t)ret_user->uid;
    ret_user->own = true;
    return CADRE_OK;
}

cadre_status isolation_adopt_job(struct isolation *isolation, struct job_id job, uid_t uid,
    struct isolation_user *ret_user, struct cadre_error *error)
{
    bool own = isolation->uids != NULL && uid != isolation->task_uid;
    if (own) {
        uids_adopt(isolation->uids, job, uid);
    }
    return isolation_enter_job(isolation, job, !own, ret_user, error);
}

bool isolation_leave_job(
    struct isolation *isolation, struct job_id job, const struct isolation_user *user)
{
    struct common_job **at = find_common(isolation, job);
    struct common_job *common = *at;
    uid_t uid;
    bool ours = false;
    if (user->own) { /* tasks of one job may have entered either way */
        if (uids_release(isolation->uids, job, &uid, &ours)) {
            cgroup_tree_remove_job(&isolation->tree, job);
        }
    } else if (common != NULL && --common->tasks == 0) {
        *at = common->next;
        free(common);
        cgroup_tree_remove_job(&isolation->tree, job);
    }
    return ours;
}

bool isolation_is_clean(const struct isolation *isolation, const struct isolation_user *user)
{
    return !user->own || uids_is_clean(isolation->uids, user->uid);
}

bool isolation_begin_empty(struct isolation *isolation, const struct isolation_user *user)
{
    return user->own && uids_begin_empty(isolation->uids, user->uid);
}

void isolation_claim(struct isolation *isolation, uid_t uid)
{
    uids_claim(isolation->uids, uid);
}

void isolation_empty(struct isolation *isolation, uid_t uid)
{
    uids_clear(isolation->uids, uid);
}

bool isolation_emptied(struct isolation *isolation, struct isolation_user *user)
{
    bool had = uids_emptied(isolation->uids, user->uid, &user->uid);
    user->gid = (gid_t)user->uid;
    return had;
}

/* One limit of a job, to be checked against what this worker allows and can enforce. */
struct question {
    const char *option;  /* of the job */
    const char *ceiling; /* of the worker; NULL: it has none */
    uint64_t asked;
    uint64_t most; /* 0: any */
    bool kept;
};

static cadre_status isolation_check(
    const struct isolation *isolation, const struct question *question, struct cadre_error *error)
{
    if (question->asked > 0 && question->most > 0 && question->asked > question->most) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "the job asks for %s %" PRIu64 ", and this worker allows its tasks %" PRIu64
            " (%s): set a lower limit, or change the worker",
            question->option, question->asked, question->most, question->ceiling);
    }
    if (question->asked > 0 && !question->kept && !isolation->best_effort) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "this worker cannot keep the job's %s: %s; submit it without, or start the worker with "
            "--limits best-effort",
            question->option,
            isolation->tree.why[0] != '\0' ? isolation->tree.why : "it has no such cgroup");
    }
    return CADRE_OK;
}

static uint64_t requested_or(uint64_t asked, uint64_t ceiling)
{
    return asked > 0 ? asked : ceiling;
}

cadre_status isolation_prepare_task(struct isolation *isolation, struct task_ref task,
    const struct isolation_user *user, const struct cgroup_limits *asked,
    struct task_confinement *ret_confinement, struct cadre_error *error)
{
    const struct cgroup_tree *tree = &isolation->tree;
    const struct cgroup_limits *most = &isolation->ceiling;
    /* Without a group the kernel counts the processes of the uid: of the job's tasks here. */
    bool counted_by_uid = !tree->has[CGROUP_PIDS] && user->own;
    const struct question questions[] = {{"--memory", "--task-memory", asked->memory_bytes,
                                             most->memory_bytes, tree->has[CGROUP_MEMORY]},
        {"--cpus", NULL, asked->cpu_thousandths, 0, tree->has[CGROUP_CPU]},
        {"--pids", "--task-pids", asked->pids, most->pids,
            tree->has[CGROUP_PIDS] || counted_by_uid}};
    for (size_t i = 0; i < sizeof questions / sizeof questions[0]; i++) {
        CADRE_TRY(isolation_check(isolation, &questions[i], error));
    }
    struct cgroup_limits limits = {
        .memory_bytes = requested_or(asked->memory_bytes, most->memory_bytes),
        .cpu_thousandths = asked->cpu_thousandths,
        .pids = (uint32_t)requested_or(asked->pids, most->pids)};
    *ret_confinement = (struct task_confinement){.change_user = user->change,
        .uid = user->uid,
        .gid = user->gid,
        .umask = user->own ? 077 : 0,
        .processes_max = counted_by_uid ? limits.pids + HOLDERS : 0};
    return cgroup_tree_make(tree, task, &limits, &ret_confinement->group, error);
}

struct clearing {
    struct isolation *isolation;
    const struct task_ref *kept;
    size_t kept_count;
};

static void clear_one(struct task_ref task, const struct task_cgroup *group, void *user)
{
    const struct clearing *clearing = user;
    for (size_t i = 0; i < clearing->kept_count; i++) {
        if (task_ref_equal(clearing->kept[i], task)) {
            return;
        }
    }
    (void)cgroup_kill(group, CLEAR_WAIT_MS);
    (void)cgroup_remove(group);
    cgroup_tree_remove_job(&clearing->isolation->tree, task.job);
}

void isolation_clear_groups(
    struct isolation *isolation, const struct task_ref *kept, size_t kept_count)
{
    struct clearing clearing = {.isolation = isolation, .kept = kept, .kept_count = kept_count};
    cgroup_tree_each(&isolation->tree, clear_one, &clearing);
}
