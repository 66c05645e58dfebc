/* SPDX-License-Identifier: Apache-2.0
 * The folders of a task, made in a thread of the pool because copying a large file takes its time:
 *     <state>/tasks/<job>.<slot>.<incarnation>/{log, socket, keeper, work/, out/, tmp/, restore/}
 * work/ and out/ belong to the task's user; the files in work/ are copies, so that a task cannot
 * change the cache, and each is checked against its hash while it is made. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/pure/object_path.h"
#include "common/base/sha256.h"
#include "worker/host/daemon/cache.h"
#include "worker/host/daemon/daemon.h"
#include "worker/host/daemon/prepare.h"
#include "worker/host/daemon/task_files.h"

struct staged_file {
    char *name;
    uint8_t sha256[LIMIT_SHA256_BYTES];
    bool executable;
};

struct stage_in {
    void (*done)(struct task_files *task, const struct staged *staged);
    struct staged staged;
    bool shared; /* the checkpoint is in a folder that all hosts see */
    size_t count;
    struct staged_file files[]; /* the program is the first */
};

/* The thread reads only what does not change while it runs. */
static cadre_status stage_in_give(
    const struct task_files *task, const char *path, struct cadre_error *error)
{
    if (task->user.change && lchown(path, task->user.uid, task->user.gid) != 0) {
        return cadre_error_errno(error, errno, "cannot give %s to the task's user", path);
    }
    return CADRE_OK;
}

#define WRITERS_CLOSED_US UINT64_C(2000000)
#define WRITERS_POLL_MS   1

/* A task that is spawned while we write has a copy of our descriptor until its exec is done, and
 * until then the kernel refuses to run the file, because it counts as open for writing ("text
 * file busy"). A read lease is granted when no process has it open for writing, and prevents new
 * writers. On a file system without leases, or when it takes too long, the start itself fails
 * with that error. */
static void wait_until_unwritten(const char *path)
{
    CADRE_CLOSE_AT_EXIT int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    uint64_t end_us = clock_monotonic_us() + WRITERS_CLOSED_US;
    while (fd >= 0 && fcntl(fd, F_SETLEASE, F_RDLCK) != 0 && errno == EAGAIN &&
           clock_monotonic_us() < end_us) {
        poll(NULL, 0, WRITERS_POLL_MS);
    }
    if (fd >= 0) {
        fcntl(fd, F_SETLEASE, F_UNLCK);
    }
}

/* The folders between work/ and a file in it, each given to the task's user. */
static cadre_status make_parents(
    const struct task_files *task, const char *work, const char *name, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *path = NULL;
    if (asprintf(&path, "%s/%s", work, name) < 0) {
        path = NULL;
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory to place file %s", name);
    }
    for (char *slash = strchr(path + strlen(work) + 1, '/'); slash != NULL;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(path, 0755) == 0) {
            CADRE_TRY(stage_in_give(task, path, error));
        } else if (errno != EEXIST) {
            return cadre_error_errno(error, errno, "cannot make folder %s", path);
        }
        *slash = '/';
    }
    return CADRE_OK;
}

static cadre_status stage_file(
    struct task_files *task, const char *work, size_t i, struct cadre_error *error)
{
    const struct staged_file *file = &task->stage_in->files[i];
    CADRE_FREE_AT_EXIT char *from = cache_path(task->daemon, file->sha256);
    CADRE_FREE_AT_EXIT char *to = NULL;
    if (from == NULL || asprintf(&to, "%s/%s", work, file->name) < 0) {
        to = NULL;
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory to place file %s", file->name);
    }
    CADRE_TRY(make_parents(task, work, file->name, error));
    enum content_state state;
    cadre_status status = content_copy(from, file->sha256, to, file->executable, &state, error);
    if (state != CONTENT_INTACT) {
        task->stage_in->staged.file = i;
        task->stage_in->staged.state = state;
    }
    if (status != CADRE_OK) {
        return status;
    }
    if (file->executable) {
        wait_until_unwritten(to);
    }
    return stage_in_give(task, to, error);
}

static cadre_status make_folder(
    const struct task_files *task, const char *name, char **ret_path, struct cadre_error *error)
{
    if (asprintf(ret_path, "%s/%s", task->folder, name) < 0) {
        *ret_path = NULL;
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory to make the task's folders");
    }
    return folder_make(*ret_path, 0700, error);
}

/* In a job whose checkpoint's folder is on all hosts: checks that this host has it. */
static cadre_status check_shared(const struct task_files *task, struct cadre_error *error)
{
    if (!task->stage_in->shared || object_path_is(task->restore_path) ||
        access(task->restore_path, F_OK) == 0) {
        return CADRE_OK;
    }
    return cadre_error_errno(error, errno,
        "the checkpoint %s is not visible on this host; mount the job's checkpoint folder here",
        task->restore_path);
}

static cadre_status stage_files(struct task_files *task, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *work = NULL;
    CADRE_FREE_AT_EXIT char *out = NULL;
    CADRE_FREE_AT_EXIT char *temporary = NULL;
    CADRE_TRY(check_shared(task, error));
    CADRE_TRY(make_folder(task, "work", &work, error));
    CADRE_TRY(make_folder(task, "out", &out, error));
    CADRE_TRY(make_folder(task, "tmp", &temporary, error));
    CADRE_TRY(stage_in_give(task, temporary, error));
    for (size_t i = 0; i < task->stage_in->count; i++) {
        CADRE_TRY(stage_file(task, work, i, error));
    }
    /* Last: before this no other task of the same user could place a link here. */
    CADRE_TRY(stage_in_give(task, work, error));
    return stage_in_give(task, out, error);
}

/* Removes files of an attempt that failed, which would be in the way of the next one. */
static void remove_staged(const struct task_files *task)
{
    static const char *const names[] = {"work", "out", "restore"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        CADRE_FREE_AT_EXIT char *path = NULL;
        if (asprintf(&path, "%s/%s", task->folder, names[i]) < 0) {
            path = NULL;
        } else {
            (void)tree_remove(path, NULL);
        }
    }
}

static void in_thread(void *user)
{
    struct task_files *task = user;
    struct stage_in *stage_in = task->stage_in;
    task->stage_in_status = stage_files(task, &task->stage_in_error);
    if (task->stage_in_status == CADRE_OK) {
        task->stage_in_status = launch_open(
            task, stage_in->files[0].name, &stage_in->staged.listener, &task->stage_in_error);
    }
    if (task->stage_in_status == CADRE_OK && task->object_folder == NULL) {
        task->object_folder = launch_object_folder(task);
    }
    if (task->stage_in_status != CADRE_OK) {
        remove_staged(task);
    }
}

static void stage_in_free(struct stage_in *stage_in)
{
    if (stage_in == NULL) {
        return;
    }
    for (size_t i = 0; i < stage_in->count; i++) {
        free(stage_in->files[i].name);
    }
    if (stage_in->staged.listener >= 0) {
        close(stage_in->staged.listener);
    }
    free(stage_in);
}

/* A copy of what the thread reads of the job, which may be forgotten meanwhile. */
static struct stage_in *stage_in_of(const struct task_files *task)
{
    size_t count = task->spec->file_count + 1;
    struct stage_in *stage_in = calloc(1, sizeof *stage_in + count * sizeof stage_in->files[0]);
    if (stage_in == NULL) {
        return NULL;
    }
    stage_in->shared = task->start->restores && task->start->checkpoint.shared;
    stage_in->staged = (struct staged){.state = CONTENT_INTACT, .listener = -1};
    for (; stage_in->count < count; stage_in->count++) {
        const struct job_file *file = tasks_file(task, stage_in->count);
        struct staged_file *staged = &stage_in->files[stage_in->count];
        staged->name = strdup(file->name);
        staged->executable = file->executable || stage_in->count == 0;
        memcpy(staged->sha256, file->sha256, sizeof staged->sha256);
        if (staged->name == NULL) {
            stage_in_free(stage_in);
            return NULL;
        }
    }
    return stage_in;
}

static void after_thread(void *user)
{
    struct task_files *task = user;
    struct stage_in *stage_in = task->stage_in;
    struct staged staged = stage_in->staged;
    void (*done)(struct task_files * task, const struct staged *staged) = stage_in->done;
    stage_in->staged.listener = -1;
    stage_in_free(stage_in);
    task->stage_in = NULL;
    done(task, &staged);
}

void stage_in_start(
    struct task_files *task, void (*done)(struct task_files *task, const struct staged *staged))
{
    task->stage_in = stage_in_of(task);
    if (task->stage_in == NULL) {
        tasks_fail_memory(task, "to place the files of the task");
        return;
    }
    task->stage_in->done = done;
    task->staging_in = true;
    file_work_start(&task->files, &task->daemon->file_pool, in_thread, after_thread, task);
}
