/* SPDX-License-Identifier: Apache-2.0
 * Makes the group of a task: its name, its folders, its limits. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "worker/host/isolate/cgroup_tree.h"

/* A tenth of a second: the kernel's own default. */
#define CPU_PERIOD_US 100000

/* Fills in the folders of a task's group, without making them. */
static cadre_status cgroup_tree_name(const struct cgroup_tree *tree, struct task_ref task,
    struct task_cgroup *ret_group, struct cadre_error *error)
{
    *ret_group = (struct task_cgroup){.kind = tree->kind};
    for (int i = 0; i < CGROUP_CONTROLLERS; i++) {
        if (tree->folders[i][0] == '\0') {
            continue;
        }
        int size = snprintf(ret_group->folders[i], CGROUP_PATH_BYTES,
            "%s/job-%" PRIu64 "/task-%" PRIu32 ".%" PRIu64, tree->folders[i], task.job.n, task.slot,
            task.incarnation);
        if (size < 0 || size >= CGROUP_PATH_BYTES) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "the cgroup %s has too long a path for a task beneath it", tree->folders[i]);
        }
    }
    return CADRE_OK;
}

/* Makes the job's folder. The keeper of an earlier incarnation of this daemon may just have
 * removed the daemon's folder, when that was empty. */
static int make_job(const struct cgroup_tree *tree, const char *own, const char *job)
{
    for (int tries = 0; tries < 10; tries++) {
        bool has[CGROUP_CONTROLLERS];
        if (mkdir(job, 0755) == 0 || errno == EEXIST) {
            return 0;
        }
        if (errno != ENOENT || (mkdir(own, 0755) != 0 && errno != EEXIST)) {
            break;
        }
        if (tree->kind == CGROUP_V2) {
            (void)cgroup_tree_enable(own, has);
        }
        errno = ENOENT;
    }
    return errno;
}

static cadre_status make_folders(
    const struct cgroup_tree *tree, int which, const char *folder, struct cadre_error *error)
{
    char job[CGROUP_PATH_BYTES];
    snprintf(job, sizeof job, "%.*s", (int)(strrchr(folder, '/') - folder), folder);
    int errnum = make_job(tree, tree->folders[which], job);
    if (errnum != 0) {
        return cadre_error_errno(error, errnum, "cannot make the cgroup %s", job);
    }
    if (tree->kind == CGROUP_V2) { /* controllers that are not enabled in the parent have no
                                    * files */
        bool has[CGROUP_CONTROLLERS];
        (void)cgroup_tree_enable(job, has);
    }
    if (mkdir(folder, 0755) != 0 && errno != EEXIST) {
        return cadre_error_errno(error, errno, "cannot make the cgroup %s", folder);
    }
    return CADRE_OK;
}

static cadre_status cgroup_make_put(
    const char *folder, const char *name, const char *text, struct cadre_error *error)
{
    int errnum = cgroup_file_write(folder, name, text);
    return errnum == 0 ? CADRE_OK
                       : cadre_error_errno(error, errnum,
                             "cannot write %s into %s of the cgroup %s", text, name, folder);
}

static cadre_status limit_memory(const struct cgroup_tree *tree, const struct task_cgroup *group,
    uint64_t bytes, struct cadre_error *error)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRIu64, bytes);
    if (tree->kind == CGROUP_V2) {
        const char *folder = group->folders[0];
        (void)cgroup_file_write(
            folder, "memory.swap.max", "0"); /* a kernel without swap has none */
        (void)cgroup_file_write(folder, "memory.oom.group", "1");
        return cgroup_make_put(folder, "memory.max", text, error);
    }
    const char *folder = group->folders[CGROUP_MEMORY];
    (void)cgroup_file_write(folder, "memory.swappiness", "0");
    CADRE_TRY(cgroup_make_put(folder, "memory.limit_in_bytes", text, error));
    (void)cgroup_file_write(folder, "memory.memsw.limit_in_bytes", text);
    return CADRE_OK;
}

static cadre_status limit_cpu(const struct cgroup_tree *tree, const struct task_cgroup *group,
    uint32_t thousandths, struct cadre_error *error)
{
    char text[64];
    uint64_t quota_us = (uint64_t)thousandths * CPU_PERIOD_US / 1000;
    if (tree->kind == CGROUP_V2) {
        snprintf(text, sizeof text, "%" PRIu64 " %d", quota_us, CPU_PERIOD_US);
        return cgroup_make_put(group->folders[0], "cpu.max", text, error);
    }
    const char *folder = group->folders[CGROUP_CPU];
    (void)cgroup_file_write_number(folder, "cpu.cfs_period_us", CPU_PERIOD_US);
    snprintf(text, sizeof text, "%" PRIu64, quota_us);
    return cgroup_make_put(folder, "cpu.cfs_quota_us", text, error);
}

static cadre_status limit_pids(const struct cgroup_tree *tree, const struct task_cgroup *group,
    uint32_t pids, struct cadre_error *error)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRIu32, pids);
    return cgroup_make_put(
        group->folders[tree->kind == CGROUP_V2 ? 0 : CGROUP_PIDS], "pids.max", text, error);
}

cadre_status cgroup_tree_make(const struct cgroup_tree *tree, struct task_ref task,
    const struct cgroup_limits *limits, struct task_cgroup *ret_group, struct cadre_error *error)
{
    cadre_status status = cgroup_tree_name(tree, task, ret_group, error);
    for (int i = 0; i < CGROUP_CONTROLLERS && status == CADRE_OK; i++) {
        if (ret_group->folders[i][0] != '\0') {
            status = make_folders(tree, i, ret_group->folders[i], error);
        }
    }
    if (status == CADRE_OK && limits->memory_bytes > 0 && tree->has[CGROUP_MEMORY]) {
        status = limit_memory(tree, ret_group, limits->memory_bytes, error);
    }
    if (status == CADRE_OK && limits->cpu_thousandths > 0 && tree->has[CGROUP_CPU]) {
        status = limit_cpu(tree, ret_group, limits->cpu_thousandths, error);
    }
    if (status == CADRE_OK && limits->pids > 0 && tree->has[CGROUP_PIDS]) {
        status = limit_pids(tree, ret_group, limits->pids, error);
    }
    if (status != CADRE_OK) {
        cgroup_remove(ret_group);
        *ret_group = (struct task_cgroup){0};
    }
    return status;
}

void cgroup_tree_remove_job(const struct cgroup_tree *tree, struct job_id job)
{
    char folder[CGROUP_PATH_BYTES + sizeof "/job-" + 20]; /* digits of a job */
    for (int i = 0; i < CGROUP_CONTROLLERS; i++) {
        if (tree->folders[i][0] != '\0') {
            snprintf(folder, sizeof folder, "%s/job-%" PRIu64, tree->folders[i], job.n);
            (void)rmdir(folder);
        }
    }
}

struct each {
    const struct cgroup_tree *tree;
    void (*visit)(struct task_ref task, const struct task_cgroup *group, void *user);
    void *user;
};

static void each_task(const struct each *each, const char *folder, const char *job)
{
    char path[CGROUP_FILE_BYTES];
    snprintf(path, sizeof path, "%s/%.64s", folder, job);
    CADRE_CLEANUP(cadre_cleanup_dir) DIR *entries = opendir(path);
    const struct dirent *entry;
    struct task_ref task = {0};
    struct task_cgroup group;
    if (sscanf(job, "job-%" SCNu64, &task.job.n) != 1) {
        return;
    }
    while (entries != NULL && (entry = readdir(entries)) != NULL) {
        if (sscanf(entry->d_name, "task-%" SCNu32 ".%" SCNu64, &task.slot, &task.incarnation) ==
                2 &&
            cgroup_tree_name(each->tree, task, &group, NULL) == CADRE_OK) {
            each->visit(task, &group, each->user);
        }
    }
}

void cgroup_tree_each(const struct cgroup_tree *tree,
    void (*visit)(struct task_ref task, const struct task_cgroup *group, void *user), void *user)
{
    struct each each = {.tree = tree, .visit = visit, .user = user};
    for (int i = 0; i < CGROUP_CONTROLLERS; i++) {
        CADRE_CLEANUP(cadre_cleanup_dir)
        DIR *entries = tree->folders[i][0] != '\0' ? opendir(tree->folders[i]) : NULL;
        const struct dirent *entry;
        while (entries != NULL && (entry = readdir(entries)) != NULL) {
            if (strncmp(entry->d_name, "job-", 4) == 0) {
                each_task(&each, tree->folders[i], entry->d_name);
            }
        }
    }
}
