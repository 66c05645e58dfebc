/* SPDX-License-Identifier: Apache-2.0
 * Programs and files that jobs had, kept for the next one. The time of access says when a content
 * was last used: it is set here, whatever the file system does by itself. */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/sha256.h"
#include "worker/daemon/content.h"
#include "worker/daemon/daemon.h"

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

static bool add(struct contents *contents, const char *name, const struct stat *status)
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
static bool list(const struct daemon *daemon, struct contents *ret)
{
    CADRE_CLEANUP(cadre_cleanup_dir) DIR *folder = opendir(daemon->blob_dir);
    const struct dirent *entry;
    *ret = (struct contents){0};
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        struct sha256 hash;
        struct stat status;
        if (sha256_parse(entry->d_name, &hash) &&
            fstatat(dirfd(folder), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
            !add(ret, entry->d_name, &status)) {
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

static bool is_of(const struct job_file *file, const struct sha256 *hash)
{
    return memcmp(file->sha256, hash->bytes, SHA256_BYTES) == 0;
}

/* A task that is being prepared needs its files; one that runs has copies. */
static bool is_needed(const struct daemon *daemon, const struct content *content)
{
    struct sha256 hash;
    if (!sha256_parse(content->name, &hash)) {
        return true;
    }
    for (const struct task_files *task = daemon->tasks; task != NULL; task = task->next) {
        bool needed = !task->ready && is_of(&task->spec->program, &hash);
        for (size_t i = 0; !task->ready && !needed && i < task->spec->file_count; i++) {
            needed = is_of(&task->spec->files[i], &hash);
        }
        if (needed) {
            return true;
        }
    }
    return false;
}

static void sum(struct daemon *daemon, const struct contents *contents)
{
    daemon->cache_bytes = 0;
    for (size_t i = 0; i < contents->count; i++) {
        daemon->cache_bytes += contents->items[i].bytes;
    }
}

static void shrink(struct daemon *daemon)
{
    uint64_t limit = daemon->options.cache_limit_bytes;
    struct contents contents;
    if (limit == 0 || daemon->cache_bytes <= limit) {
        return;
    }
    bool listed = list(daemon, &contents);
    if (listed) {
        sum(daemon, &contents); /* whatever else became of them */
    }
    if (listed && contents.count > 0) {
        qsort(contents.items, contents.count, sizeof contents.items[0], by_use);
    }
    for (size_t i = 0; listed && i < contents.count && daemon->cache_bytes > limit; i++) {
        const struct content *content = &contents.items[i];
        CADRE_FREE_AT_EXIT char *path = NULL;
        if (is_needed(daemon, content) ||
            asprintf(&path, "%s/%s", daemon->blob_dir, content->name) < 0) {
            path = NULL;
            continue;
        }
        if (unlink(path) == 0) {
            uint64_t bytes = content->bytes;
            daemon->cache_bytes -= bytes < daemon->cache_bytes ? bytes : daemon->cache_bytes;
            daemon->counts.cache_evicted_bytes += bytes;
            log_event(LOG_LEVEL_DEBUG, "cache", "a content is let go: --cache-limit",
                LOG_STR("sha256", content->name), LOG_U64("bytes", bytes));
        }
    }
    free(contents.items);
}

void cache_used(struct daemon *daemon, const char *path)
{
    const struct timespec times[2] = {{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_OMIT}};
    (void)utimensat(AT_FDCWD, path, times, 0);
    daemon->counts.cache_hits++;
}

void cache_added(struct daemon *daemon, uint64_t bytes, bool was_here)
{
    daemon->cache_bytes += was_here ? 0 : bytes;
    daemon->counts.fetched_bytes += bytes;
    shrink(daemon);
}

void cache_sum(struct daemon *daemon)
{
    struct contents contents;
    if (list(daemon, &contents)) {
        sum(daemon, &contents);
    }
    free(contents.items);
}

void cache_damaged(struct task_files *task, const struct job_file *file, int state)
{
    struct daemon *daemon = task->daemon;
    struct sha256 hash;
    char name[SHA256_HEX_BYTES];
    memcpy(hash.bytes, file->sha256, sizeof hash.bytes);
    sha256_hex(&hash, name);
    if (state == CONTENT_REMOVED) {
        uint64_t bytes = file->size_bytes;
        daemon->cache_bytes -= bytes < daemon->cache_bytes ? bytes : daemon->cache_bytes;
        daemon->counts.cache_damaged++;
    }
    log_event(LOG_LEVEL_ERROR, "cache",
        "a content of this worker's cache was damaged: it is removed, and fetched anew from the "
        "coordinator",
        LOG_U64("job", task->ref.job.n), LOG_U64("slot", task->ref.slot),
        LOG_STR("file", file->name), LOG_STR("sha256", name), LOG_STR("cache", daemon->blob_dir));
}

cadre_status cache_open(struct daemon *daemon, struct cadre_error *error)
{
    struct contents contents;
    bool listed = list(daemon, &contents);
    if (listed) {
        sum(daemon, &contents);
    }
    free(contents.items);
    shrink(daemon);
    return listed ? CADRE_OK
                  : cadre_error_set(
                        error, CADRE_RESOURCE_EXHAUSTED, "no memory to list %s", daemon->blob_dir);
}
