/* SPDX-License-Identifier: Apache-2.0
 * The cache of programs and files that jobs had, for the next job. The time of access records
 * when a content was last used: it is set here, whatever the file system does by itself. A
 * thread of the pool lists and removes what exceeds --cache-limit. */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/sha256.h"
#include "worker/host/daemon/cache.h"
#include "worker/host/daemon/daemon.h"
#include "worker/host/daemon/task_files.h"

struct content {
    char name[SHA256_HEX_BYTES];
    struct timespec used;
    uint64_t bytes;
};

struct contents {
    struct content *items;
    size_t count;
    size_t capacity;
};

static bool daemon_cache_add(struct contents *contents, const char *name, const struct stat *status)
{
    if (contents->count == contents->capacity) {
        size_t capacity = contents->capacity > 0 ? contents->capacity * 2 : 64;
        struct content *grown = realloc(contents->items, capacity * sizeof *grown);
        if (grown == NULL) {
            return false;
        }
        contents->items = grown;
        contents->capacity = capacity;
    }
    struct content *item = &contents->items[contents->count++];
    *item = (struct content){.used = status->st_atim, .bytes = (uint64_t)status->st_size};
    memcpy(item->name, name, SHA256_HEX_BYTES);
    return true;
}

/* False: no memory. */
static bool daemon_cache_list(const char *path, struct contents *ret)
{
    CADRE_CLEANUP(cadre_cleanup_dir) DIR *folder = opendir(path);
    const struct dirent *entry;
    *ret = (struct contents){0};
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        struct sha256 hash;
        struct stat status;
        if (sha256_parse(entry->d_name, &hash) &&
            fstatat(dirfd(folder), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
            !daemon_cache_add(ret, entry->d_name, &status)) {
            return false;
        }
    }
    return true;
}

static int by_use(const void *a, const void *b)
{
    const struct timespec *one = &((const struct content *)a)->used;
    const struct timespec *two = &((const struct content *)b)->used;
    if (one->tv_sec != two->tv_sec) {
        return one->tv_sec < two->tv_sec ? -1 : 1;
    }
    return one->tv_nsec < two->tv_nsec ? -1 : one->tv_nsec > two->tv_nsec;
}

static void daemon_cache_sum(struct daemon *daemon, const struct contents *contents)
{
    daemon->cache_bytes = 0;
    for (size_t i = 0; i < contents->count; i++) {
        daemon->cache_bytes += contents->items[i].bytes;
    }
}

/* ---- eviction ---- */

struct cache_shrink {
    struct file_work work;
    struct daemon *daemon;
    char *folder;
    uint64_t limit_bytes;
    struct sha256 *needed; /* by tasks that are being prepared; those that run have copies */
    size_t needed_count;
    uint64_t left_bytes;
    uint64_t evicted_bytes;
    bool listed;
};

static bool is_needed(const struct cache_shrink *shrink, const struct content *content)
{
    struct sha256 hash;
    bool needed = !sha256_parse(content->name, &hash);
    for (size_t i = 0; i < shrink->needed_count && !needed; i++) {
        needed = sha256_equal(&shrink->needed[i], &hash);
    }
    return needed;
}

static void daemon_cache_evict(void *user)
{
    struct cache_shrink *shrink = user;
    struct contents contents;
    shrink->listed = daemon_cache_list(shrink->folder, &contents);
    for (size_t i = 0; i < contents.count; i++) {
        shrink->left_bytes += contents.items[i].bytes; /* also those that could not be removed */
    }
    if (shrink->listed && contents.count > 0) {
        qsort(contents.items, contents.count, sizeof contents.items[0], by_use);
    }
    for (size_t i = 0;
         shrink->listed && i < contents.count && shrink->left_bytes > shrink->limit_bytes; i++) {
        const struct content *content = &contents.items[i];
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", shrink->folder, content->name);
        if (!is_needed(shrink, content) && unlink(path) == 0) {
            shrink->left_bytes -= content->bytes;
            shrink->evicted_bytes += content->bytes;
        }
    }
    free(contents.items);
}

static void shrink_free(struct cache_shrink *shrink)
{
    free(shrink->needed);
    free(shrink->folder);
    free(shrink);
}

static void daemon_cache_shrink(struct daemon *daemon);

static void after_evict(void *user)
{
    struct cache_shrink *done = user;
    struct daemon *daemon = done->daemon;
    daemon->cache_evicting = false;
    if (done->listed) {
        daemon->cache_bytes = done->left_bytes;
        daemon->counts.cache_evicted_bytes += done->evicted_bytes;
    }
    if (done->evicted_bytes > 0) {
        log_event(LOG_LEVEL_DEBUG, "cache", "contents are removed: --cache-limit",
            LOG_U64("bytes", done->evicted_bytes));
    }
    shrink_free(done);
    if (daemon->cache_evict_again) {
        daemon_cache_shrink(daemon);
    }
}

/* A task that is prepared from now on may not find a content that was here: it is fetched again. */
static bool note_needed(struct cache_shrink *shrink)
{
    size_t count = 0;
    for (struct task_files *task = shrink->daemon->tasks; task != NULL; task = task->next) {
        count += task->ready ? 0 : task->spec->file_count + 1;
    }
    shrink->needed = calloc(count + 1, sizeof *shrink->needed);
    if (shrink->needed == NULL) {
        return false;
    }
    for (struct task_files *task = shrink->daemon->tasks; task != NULL; task = task->next) {
        for (size_t i = 0; !task->ready && i <= task->spec->file_count; i++) {
            memcpy(shrink->needed[shrink->needed_count++].bytes, tasks_file(task, i)->sha256,
                SHA256_BYTES);
        }
    }
    return true;
}

/* NULL: nothing exceeds the limit, or there is no memory; the next content that comes tries
 * again. */
static struct cache_shrink *daemon_cache_begin(struct daemon *daemon)
{
    uint64_t limit = daemon->options.cache_limit_bytes;
    if (limit == 0 || daemon->cache_bytes <= limit) {
        return NULL;
    }
    struct cache_shrink *begun = calloc(1, sizeof *begun);
    if (begun == NULL) {
        return NULL;
    }
    *begun = (struct cache_shrink){
        .daemon = daemon, .folder = strdup(daemon->blob_dir), .limit_bytes = limit};
    if (begun->folder == NULL || !note_needed(begun)) {
        shrink_free(begun);
        return NULL;
    }
    return begun;
}

static void daemon_cache_shrink(struct daemon *daemon)
{
    daemon->cache_evict_again = daemon->cache_evicting;
    struct cache_shrink *begun = daemon->cache_evicting ? NULL : daemon_cache_begin(daemon);
    if (begun != NULL) {
        daemon->cache_evicting = true;
        file_work_start(&begun->work, &daemon->file_pool, daemon_cache_evict, after_evict, begun);
    }
}

char *cache_path(const struct daemon *daemon, const uint8_t sha256[LIMIT_SHA256_BYTES])
{
    return sha256_path(daemon->blob_dir, sha256);
}

void cache_used(const char *path)
{
    const struct timespec times[2] = {{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_OMIT}};
    (void)utimensat(AT_FDCWD, path, times, 0);
}

void cache_added(struct daemon *daemon, uint64_t bytes, bool was_here)
{
    daemon->cache_bytes += was_here ? 0 : bytes;
    daemon->counts.fetched_bytes += bytes;
    daemon_cache_shrink(daemon);
}

void cache_removed(struct daemon *daemon, uint64_t bytes)
{
    daemon->cache_bytes -= bytes < daemon->cache_bytes ? bytes : daemon->cache_bytes;
    daemon->counts.cache_damaged++;
}

void cache_damaged(struct task_files *task, const struct job_file *file, enum content_state state)
{
    struct daemon *daemon = task->daemon;
    struct sha256 hash;
    char name[SHA256_HEX_BYTES];
    memcpy(hash.bytes, file->sha256, sizeof hash.bytes);
    sha256_hex(&hash, name);
    if (state == CONTENT_REMOVED) {
        cache_removed(daemon, file->size_bytes);
    }
    log_event(LOG_LEVEL_ERROR, "cache",
        "a content of this worker's cache was damaged: it is removed, and fetched again from the "
        "coordinator",
        LOG_U64("job", task->ref.job.n), LOG_U64("slot", task->ref.slot),
        LOG_STR("file", file->name), LOG_STR("sha256", name), LOG_STR("cache", daemon->blob_dir));
}

cadre_status cache_open(struct daemon *daemon, struct cadre_error *error)
{
    struct contents contents;
    bool listed = daemon_cache_list(daemon->blob_dir, &contents);
    if (listed) {
        daemon_cache_sum(daemon, &contents);
    }
    free(contents.items);
    struct cache_shrink *begun = daemon_cache_begin(daemon);
    if (begun != NULL) { /* the loop does not run yet, so this may block */
        daemon_cache_evict(begun);
        after_evict(begun);
    }
    return listed ? CADRE_OK
                  : cadre_error_set(
                        error, CADRE_RESOURCE_EXHAUSTED, "no memory to list %s", daemon->blob_dir);
}
