/* SPDX-License-Identifier: Apache-2.0
 * Gives the options and each task to worker/host/isolate: users, control groups and limits. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/pure/object_path.h"
#include "worker/host/daemon/daemon.h"
#include "worker/host/daemon/isolate.h"
#include "worker/host/daemon/task_files.h"

/* 0 and 0: none. */
static cadre_status parse_uids(
    const char *text, uid_t *ret_first, uid_t *ret_last, struct cadre_error *error)
{
    unsigned first = 0;
    unsigned last = 0;
    int end = 0;
    *ret_first = 0;
    *ret_last = 0;
    if (strcmp(text, "none") == 0) {
        return CADRE_OK;
    }
    if (sscanf(text, "%u-%u%n", &first, &last, &end) != 2 || text[end] != '\0' || first == 0) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "--job-uids \"%s\" is no range: write 60928-61183, or none", text);
    }
    *ret_first = first;
    *ret_last = last;
    return CADRE_OK;
}

/* Another daemon of this host has another state directory; one in a container may have another of
 * the same path. */
static cadre_status name_groups(
    const struct daemon *daemon, char name[32], struct cadre_error *error)
{
    const char *folder = daemon->options.state_dir;
    uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */
    struct stat about;
    char text[64];
    if (stat(folder, &about) != 0) {
        return cadre_error_errno(error, errno, "cannot look at %s", folder);
    }
    snprintf(text, sizeof text, "%llu:%llu", (unsigned long long)about.st_dev,
        (unsigned long long)about.st_ino);
    for (const char *at = text; *at != '\0'; at++) {
        hash = (hash ^ (uint8_t)*at) * UINT64_C(1099511628211);
    }
    snprintf(name, 32, "cadre-%016llx", (unsigned long long)hash);
    return CADRE_OK;
}

cadre_status isolate_open(struct daemon *daemon, struct cadre_error *error)
{
    char name[32];
    struct isolation_options options = {.claim_folder = "/run/cadre/uids",
        .task_uid = daemon->uid,
        .task_gid = daemon->gid,
        .name = name,
        .parent = daemon->options.cgroup,
        .ceiling = {.memory_bytes = daemon->options.task_memory_bytes,
            .pids = (uint32_t)daemon->options.task_pids},
        .best_effort = daemon->options.limits == 1};
    CADRE_TRY(name_groups(daemon, name, error));
    CADRE_TRY(parse_uids(daemon->options.job_uids, &options.uid_first, &options.uid_last, error));
    CADRE_TRY(isolation_open(&options, &daemon->isolation, error));
    log_event(LOG_LEVEL_INFO, "isolation", isolation_describe(daemon->isolation), LOG_END);
    return CADRE_OK;
}

/* A folder that other hosts see: its files belong to one user on all hosts. An object store knows
 * no such users. */
static bool is_shared(const struct task_files *task)
{
    const char *folder = task->spec->checkpoint_folder;
    const struct agent_start *start = task->start;
    return !object_path_is(folder) &&
           (folder[0] != '\0' || (start->restores && start->checkpoint.shared &&
                                     !object_path_is(start->checkpoint.path)));
}

cadre_status isolate_enter(struct task_files *task, struct cadre_error *error)
{
    if (task->entered) {
        return CADRE_OK; /* its folder could not be made at the first try */
    }
    CADRE_TRY(isolation_enter_job(
        task->daemon->isolation, task->ref.job, is_shared(task), &task->user, error));
    task->entered = true;
    return CADRE_OK;
}

cadre_status isolate_prepare(
    struct task_files *task, struct task_confinement *ret_confinement, struct cadre_error *error)
{
    const struct job_limits *limits = &task->spec->limits;
    const struct cgroup_limits asked = {.memory_bytes = limits->memory_bytes,
        .cpu_thousandths = limits->cpu_thousandths,
        .pids = limits->pids};
    CADRE_TRY(isolation_prepare_task(
        task->daemon->isolation, task->ref, &task->user, &asked, ret_confinement, error));
    task->group = ret_confinement->group;
    return CADRE_OK;
}

cadre_status isolate_adopt(struct task_files *task, struct cadre_error *error)
{
    char work[4096];
    struct stat about;
    snprintf(work, sizeof work, "%s/work", task->folder);
    if (stat(work, &about) != 0) {
        return cadre_error_errno(error, errno, "cannot find the owner of %s", work);
    }
    CADRE_TRY(isolation_adopt_job(
        task->daemon->isolation, task->ref.job, about.st_uid, &task->user, error));
    task->entered = true;
    return CADRE_OK;
}

void isolate_clear(struct daemon *daemon)
{
    size_t count = 0;
    for (const struct task_files *task = daemon->tasks; task != NULL; task = task->next) {
        count++;
    }
    struct task_ref *kept = calloc(count + 1, sizeof *kept);
    if (kept == NULL) {
        return; /* then some groups stay, because no running task may be killed */
    }
    count = 0;
    for (const struct task_files *task = daemon->tasks; task != NULL; task = task->next) {
        kept[count++] = task->ref;
    }
    isolation_clear_groups(daemon->isolation, kept, count);
    free(kept);
}

bool isolate_leave(struct task_files *task)
{
    if (!task->entered) {
        return false;
    }
    task->entered = false;
    (void)cgroup_remove(&task->group);
    return isolation_leave_job(task->daemon->isolation, task->ref.job, &task->user);
}

enum uid_state isolate_uid_state(struct task_files *task)
{
    struct isolation *isolation = task->daemon->isolation;
    if (isolation_is_clean(isolation, &task->user)) {
        return UID_CLEAN;
    }
    return isolation_begin_empty(isolation, &task->user) ? UID_DIRTY : UID_BEING_EMPTIED;
}

void isolate_empty(const struct task_files *task)
{
    if (task->left) {
        isolation_empty(task->daemon->isolation, task->user.uid);
    } else {
        isolation_claim(task->daemon->isolation, task->user.uid);
    }
    object_cache_take_back(&task->daemon->objects, task->user.uid);
}

/* Of all tasks of the job that has the uid. */
static void change_user(struct task_files *tasks, uid_t before, const struct isolation_user *user)
{
    for (; tasks != NULL; tasks = tasks->next) {
        if (tasks->user.own && tasks->user.uid == before) {
            tasks->user = *user;
        }
    }
}

bool isolate_emptied(struct task_files *task)
{
    const struct isolation_user before = task->user;
    bool had = isolation_emptied(task->daemon->isolation, &task->user);
    change_user(task->daemon->tasks, before.uid, &task->user);
    change_user(task->daemon->removals_waiting, before.uid, &task->user);
    change_user(task->daemon->removals, before.uid, &task->user);
    if (!task->left && (!had || before.uid != task->user.uid)) {
        log_event(LOG_LEVEL_INFO, "isolation",
            "something else on this machine runs under a uid of --job-uids: the job gets another",
            LOG_U64("job", task->ref.job.n), LOG_U64("uid", before.uid));
    }
    return had;
}
