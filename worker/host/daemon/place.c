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
#include "common/base/sha256.h"
#include "worker/host/daemon/cache.h"
#include "worker/host/daemon/daemon.h"
#include "worker/host/daemon/launch.h"
#include "worker/host/daemon/place.h"
#include "worker/host/daemon/task_files.h"

struct placed_file {
    char *name;
    uint8_t sha256[LIMIT_SHA256_BYTES];
    bool executable;
};

struct placement {
    void (*done)(struct task_files *task, const struct placed *placed);
    struct placed placed;
    bool shared; /* the checkpoint is in a folder that all hosts see */
    size_t count;
    struct placed_file files[]; /* the program is the first */
};

/* Everything in the thread reads only what does not change while it runs. */
static cadre_status give(const struct task_files *task, const char *path, struct cadre_error *error)
{
    if (task->user.change && lchown(path, task->user.uid, task->user.gid) != 0) {
        return cadre_error_errno(error, errno, "cannot give %s to the task's user", path);
    }
    return CADRE_OK;
}

#define WRITERS_GONE_US UINT64_C(2000000)
#define WRITERS_POLL_MS 1

/* A task that is spawned while we write has a copy of our descriptor until its exec is done, and
 * until then the kernel takes the file for one that is being written and refuses to run it ("text
 * file busy"). A read lease is granted when nobody writes: once it is, nobody can any more. On a
 * file system without leases, or when it takes too long, the start itself has to tell. */
static void wait_until_unwritten(const char *path)
{
    CADRE_CLOSE_AT_EXIT int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    uint64_t end_us = clock_monotonic_us() + WRITERS_GONE_US;
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
            CADRE_TRY(give(task, path, error));
        } else if (errno != EEXIST) {
            return cadre_error_errno(error, errno, "cannot make folder %s", path);
        }
        *slash = '/';
    }
    return CADRE_OK;
}

static cadre_status place_file(
    struct task_files *task, const char *work, size_t i, struct cadre_error *error)
{
    const struct placed_file *file = &task->placement->files[i];
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
    if (state != CONTENT_WHOLE) {
        task->placement->placed.file = i;
        task->placement->placed.state = state;
    }
    if (status != CADRE_OK) {
        return status;
    }
    if (file->executable) {
        wait_until_unwritten(to);
    }
    return give(task, to, error);
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

/* In a folder that all hosts see, it is said. */
static cadre_status check_shared(const struct task_files *task, struct cadre_error *error)
{
    if (!task->placement->shared || access(task->restore_path, F_OK) == 0) {
        return CADRE_OK;
    }
    return cadre_error_errno(error, errno,
        "the checkpoint %s is not seen from this host; mount the job's checkpoint folder here",
        task->restore_path);
}

static cadre_status place(struct task_files *task, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *work = NULL;
    CADRE_FREE_AT_EXIT char *out = NULL;
    CADRE_FREE_AT_EXIT char *temporary = NULL;
    CADRE_TRY(check_shared(task, error));
    CADRE_TRY(make_folder(task, "work", &work, error));
    CADRE_TRY(make_folder(task, "out", &out, error));
    CADRE_TRY(make_folder(task, "tmp", &temporary, error));
    CADRE_TRY(give(task, temporary, error));
    for (size_t i = 0; i < task->placement->count; i++) {
        CADRE_TRY(place_file(task, work, i, error));
    }
    /* Last: until now no other task of the same user could put a link in our way. */
    CADRE_TRY(give(task, work, error));
    return give(task, out, error);
}

/* What was placed by halves is only in the way of what comes next. */
static void remove_placed(const struct task_files *task)
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
    struct placement *placement = task->placement;
    task->place_status = place(task, &task->place_error);
    if (task->place_status == CADRE_OK) {
        task->place_status = launch_open(
            task, placement->files[0].name, &placement->placed.listener, &task->place_error);
    }
    if (task->place_status != CADRE_OK) {
        remove_placed(task);
    }
}

static void placement_free(struct placement *placement)
{
    if (placement == NULL) {
        return;
    }
    for (size_t i = 0; i < placement->count; i++) {
        free(placement->files[i].name);
    }
    if (placement->placed.listener >= 0) {
        close(placement->placed.listener);
    }
    free(placement);
}

/* What the thread reads of the job, which may be forgotten meanwhile. */
static struct placement *placement_of(const struct task_files *task)
{
    size_t count = task->spec->file_count + 1;
    struct placement *placement = calloc(1, sizeof *placement + count * sizeof placement->files[0]);
    if (placement == NULL) {
        return NULL;
    }
    placement->shared = task->start->restores && task->start->checkpoint.shared;
    placement->placed = (struct placed){.state = CONTENT_WHOLE, .listener = -1};
    for (; placement->count < count; placement->count++) {
        const struct job_file *file = tasks_file(task, placement->count);
        struct placed_file *placed = &placement->files[placement->count];
        placed->name = strdup(file->name);
        placed->executable = file->executable || placement->count == 0;
        memcpy(placed->sha256, file->sha256, sizeof placed->sha256);
        if (placed->name == NULL) {
            placement_free(placement);
            return NULL;
        }
    }
    return placement;
}

static void after_thread(void *user)
{
    struct task_files *task = user;
    struct placement *placement = task->placement;
    struct placed placed = placement->placed;
    void (*done)(struct task_files * task, const struct placed *placed) = placement->done;
    placement->placed.listener = -1;
    placement_free(placement);
    task->placement = NULL;
    done(task, &placed);
}

void place_start(
    struct task_files *task, void (*done)(struct task_files *task, const struct placed *placed))
{
    task->placement = placement_of(task);
    if (task->placement == NULL) {
        tasks_fail(task, "the worker has no memory to place the files of the task");
        return;
    }
    task->placement->done = done;
    task->placing = true;
    file_work_start(&task->files, &task->daemon->works, in_thread, after_thread, task);
}
