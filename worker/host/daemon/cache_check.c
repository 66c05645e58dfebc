/* SPDX-License-Identifier: Apache-2.0
 * While a job runs here, the contents that it took from the cache are hashed again every
 * --cache-check, so that a failing disk is found before the job's next task starts from it. The
 * tasks that run have copies of their own, which were checked when they were made. One content
 * after the other, in pieces, with three times as long a pause after each: a quarter of a core
 * and of the disk's throughput at most. */
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "worker/host/daemon/cache.h"
#include "worker/host/daemon/daemon.h"
#include "worker/host/daemon/fetch.h"
#include "worker/host/daemon/task_files.h"
#include "common/rpc/file_work.h"

#define CHECK_PIECE_BYTES (UINT64_C(16) * 1024 * 1024)
#define PAUSE_PER_US      3

struct cache_check {
    struct daemon *daemon;
    uv_timer_t timer;
    struct file_work work;
    struct task_ref *tasks; /* their files are checked in turn */
    size_t task_count;
    size_t next_task;
    size_t next_file;
    uint8_t sha256[LIMIT_SHA256_BYTES]; /* of the content in hand */
    uint64_t size_bytes;
    struct content_check *content;
    enum content_state state;
    bool more;
    uint64_t took_us;
};

static void cache_check_look(struct cache_check *check);

static void on_timer(uv_timer_t *timer)
{
    cache_check_look(timer->data);
}

static void next_check_us(struct cache_check *check, uint64_t us)
{
    uv_timer_start(&check->timer, on_timer, (us + CADRE_US_PER_MS - 1) / CADRE_US_PER_MS, 0);
}

static bool is_checkable(const struct task_files *task)
{
    return task->ready && !task->failed && !task->collecting;
}

/* Whether an earlier task of this round has the file too. */
static bool was_checked(const struct cache_check *check, const uint8_t *sha256)
{
    for (size_t i = 0; i <= check->next_task; i++) {
        const struct task_files *task = tasks_find(check->daemon, check->tasks[i]);
        size_t files = task == NULL ? 0 : task->spec->file_count + 1;
        files = i == check->next_task && check->next_file < files ? check->next_file : files;
        for (size_t file = 0; file < files; file++) {
            if (memcmp(tasks_file(task, file)->sha256, sha256, SHA256_BYTES) == 0) {
                return true;
            }
        }
    }
    return false;
}

/* The next file to be checked; NULL: the round is over. */
static const struct job_file *next_file(struct cache_check *check)
{
    for (; check->next_task < check->task_count; check->next_task++, check->next_file = 0) {
        const struct task_files *task = tasks_find(check->daemon, check->tasks[check->next_task]);
        while (task != NULL && is_checkable(task) && check->next_file <= task->spec->file_count) {
            const struct job_file *file = tasks_file(task, check->next_file);
            bool on_retry = was_checked(check, file->sha256);
            check->next_file++;
            if (!on_retry) {
                return file;
            }
        }
    }
    return NULL;
}

static void begin_round(struct cache_check *check)
{
    size_t count = 0;
    for (struct task_files *task = check->daemon->tasks; task != NULL; task = task->next) {
        count++;
    }
    check->tasks = calloc(count + 1, sizeof *check->tasks);
    check->task_count = 0;
    check->next_task = 0;
    check->next_file = 0;
    for (struct task_files *task = check->daemon->tasks; check->tasks != NULL && task != NULL;
         task = task->next) {
        check->tasks[check->task_count++] = task->ref;
    }
}

static void end_round(struct cache_check *check)
{
    free(check->tasks);
    check->tasks = NULL;
    check->task_count = 0;
    next_check_us(check, check->daemon->options.cache_check_us);
}

static void in_thread(void *user)
{
    struct cache_check *check = user;
    uint64_t begin_us = clock_monotonic_us();
    check->more = content_check_piece(check->content, CHECK_PIECE_BYTES, &check->state);
    check->took_us = clock_monotonic_us() - begin_us;
}

/* A task that runs and has the content among its files, so that it may fetch it. */
static struct task_files *find_user_of(struct cache_check *check, const struct job_file **ret_file)
{
    for (struct task_files *task = check->daemon->tasks; task != NULL; task = task->next) {
        for (size_t i = 0; is_checkable(task) && i <= task->spec->file_count; i++) {
            *ret_file = tasks_file(task, i);
            if (memcmp((*ret_file)->sha256, check->sha256, SHA256_BYTES) == 0) {
                return task;
            }
        }
    }
    return NULL;
}

static void after_thread(void *user)
{
    struct cache_check *check = user;
    if (!check->more) {
        const struct job_file *file = NULL;
        struct task_files *taker = find_user_of(check, &file);
        content_check_close(check->content);
        check->content = NULL;
        if (taker != NULL && check->state >= CONTENT_DAMAGED) {
            cache_damaged(taker, file, check->state);
            fetch_renew(taker, file);
        } else if (check->state == CONTENT_REMOVED) {
            cache_removed(check->daemon, check->size_bytes); /* no task has it among its files
                                                              * any more */
        }
    }
    next_check_us(check, check->took_us * PAUSE_PER_US);
}

static bool open_next(struct cache_check *check)
{
    const struct job_file *file = next_file(check);
    if (file == NULL) {
        return false;
    }
    memcpy(check->sha256, file->sha256, sizeof check->sha256);
    check->size_bytes = file->size_bytes;
    CADRE_FREE_AT_EXIT char *path = cache_path(check->daemon, file->sha256);
    check->content = path != NULL ? content_check_open(path, file->sha256) : NULL;
    return check->content != NULL; /* without memory the next round checks it */
}

static void cache_check_look(struct cache_check *check)
{
    if (check->content == NULL && check->tasks == NULL) {
        begin_round(check);
    }
    if (check->content == NULL && (check->tasks == NULL || !open_next(check))) {
        end_round(check);
        return;
    }
    file_work_start(&check->work, &check->daemon->file_pool, in_thread, after_thread, check);
}

cadre_status cache_check_open(struct daemon *daemon, struct cadre_error *error)
{
    struct cache_check *check = calloc(1, sizeof *check);
    if (check == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory to start");
    }
    check->daemon = daemon;
    daemon->cache_check = check;
    uv_timer_init(rpc_loop_uv(daemon->loop), &check->timer);
    check->timer.data = check;
    end_round(check);
    return CADRE_OK;
}

static void free_check(uv_handle_t *handle)
{
    struct cache_check *check = handle->data;
    content_check_close(check->content);
    free(check->tasks);
    free(check);
}

void cache_check_close(struct daemon *daemon)
{
    if (daemon->cache_check != NULL) {
        uv_close((uv_handle_t *)&daemon->cache_check->timer, free_check);
        daemon->cache_check = NULL;
    }
}
