/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/daemon/objects/object_cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/files.h"
#include "coordinator/daemon/objects/object_names.h"

/* A content that a thread fetches; others that need it wait. */
struct fetching {
    struct fetching *next;
    uint8_t sha256[SHA256_BYTES];
};

struct object_cache {
    struct objects *objects;
    const char *folder;
    uint64_t limit_bytes;
    pthread_mutex_t mutex; /* of what follows */
    pthread_cond_t fetched;
    struct fetching *fetching;
    uint64_t bytes; /* of all copies, about */
    uint64_t last;  /* the number of the newest fetch */
    bool trimming;
};

/* A copy, while some are chosen to go. */
struct copy {
    struct timespec used;
    uint64_t bytes;
    char hex[SHA256_HEX_BYTES];
};

static cadre_status no_memory(struct cadre_error *error)
{
    return cadre_error_set(
        error, CADRE_RESOURCE_EXHAUSTED, "the coordinator has no memory for a content");
}

/* ---- how much there is ---- */

static int by_use(const void *a, const void *b)
{
    const struct copy *left = a;
    const struct copy *right = b;
    if (left->used.tv_sec != right->used.tv_sec) {
        return left->used.tv_sec < right->used.tv_sec ? -1 : 1;
    }
    return left->used.tv_nsec < right->used.tv_nsec   ? -1
           : left->used.tv_nsec > right->used.tv_nsec ? 1
                                                      : 0;
}

static bool add_copy(struct copy **copies, size_t *count, size_t *capacity, const struct copy *copy)
{
    if (*count == *capacity) {
        size_t more = *capacity > 0 ? 2 * *capacity : 256;
        struct copy *grown = realloc(*copies, more * sizeof *grown);
        if (grown == NULL) {
            return false;
        }
        *copies = grown;
        *capacity = more;
    }
    (*copies)[(*count)++] = *copy;
    return true;
}

/* All copies, the one that was used longest ago first; `clean`: other files are removed. The
 * caller frees *ret_copies. Returns their bytes. */
static uint64_t list_copies(
    const struct object_cache *cache, bool clean, struct copy **ret_copies, size_t *ret_count)
{
    CADRE_CLEANUP(cadre_cleanup_dir) DIR *folder = opendir(cache->folder);
    const struct dirent *entry;
    size_t capacity = 0;
    uint64_t bytes = 0;
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        struct sha256 hash;
        struct stat facts;
        bool is_copy = sha256_parse(entry->d_name, &hash);
        if (!is_copy && clean && entry->d_name[0] != '.') {
            (void)unlinkat(dirfd(folder), entry->d_name, 0);
        }
        if (!is_copy || fstatat(dirfd(folder), entry->d_name, &facts, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(facts.st_mode)) {
            continue;
        }
        struct copy copy = {.used = facts.st_atim, .bytes = (uint64_t)facts.st_size};
        sha256_hex(&hash, copy.hex);
        bytes += copy.bytes;
        if (!add_copy(ret_copies, ret_count, &capacity, &copy)) {
            break;
        }
    }
    if (*ret_count > 0) {
        qsort(*ret_copies, *ret_count, sizeof **ret_copies, by_use);
    }
    return bytes;
}

/* Removes what was used longest ago, down to seven eighths of the limit. What was used last stays,
 * also where it is larger than that: others of its readers would fetch it again. */
static void trim(struct object_cache *cache)
{
    CADRE_FREE_AT_EXIT struct copy *copies = NULL;
    size_t count = 0;
    uint64_t bytes = list_copies(cache, false, &copies, &count);
    uint64_t goal = cache->limit_bytes - cache->limit_bytes / 8;
    for (size_t i = 0; i + 1 < count && bytes > goal; i++) {
        CADRE_FREE_AT_EXIT char *path = NULL;
        if (asprintf(&path, "%s/%s", cache->folder, copies[i].hex) < 0) {
            path = NULL;
        } else if (unlink(path) == 0) {
            bytes -= copies[i].bytes;
        }
    }
    pthread_mutex_lock(&cache->mutex);
    cache->bytes = bytes;
    cache->trimming = false;
    pthread_mutex_unlock(&cache->mutex);
}

void object_cache_came(struct object_cache *cache, uint64_t bytes)
{
    pthread_mutex_lock(&cache->mutex);
    cache->bytes += bytes;
    bool trims = cache->bytes > cache->limit_bytes && !cache->trimming;
    cache->trimming = cache->trimming || trims;
    pthread_mutex_unlock(&cache->mutex);
    if (trims) {
        trim(cache);
    }
}

cadre_status object_cache_open(struct objects *objects, const char *folder, uint64_t limit_bytes,
    struct object_cache **ret_cache, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT struct copy *copies = NULL;
    size_t count = 0;
    struct object_cache *cache = calloc(1, sizeof *cache);
    if (cache == NULL) {
        return no_memory(error);
    }
    cache->objects = objects;
    cache->folder = folder;
    cache->limit_bytes = limit_bytes;
    pthread_mutex_init(&cache->mutex, NULL);
    pthread_cond_init(&cache->fetched, NULL);
    cache->bytes = list_copies(cache, true, &copies, &count);
    *ret_cache = cache;
    return CADRE_OK;
}

void object_cache_close(struct object_cache *cache)
{
    if (cache != NULL) {
        pthread_cond_destroy(&cache->fetched);
        pthread_mutex_destroy(&cache->mutex);
        free(cache);
    }
}

/* ---- fetching ---- */

static struct fetching **find_fetching(
    struct object_cache *cache, const uint8_t sha256[SHA256_BYTES])
{
    struct fetching **at = &cache->fetching;
    while (*at != NULL && memcmp((*at)->sha256, sha256, SHA256_BYTES) != 0) {
        at = &(*at)->next;
    }
    return at;
}

/* True: this thread is to fetch it. False: another one did meanwhile, or could not. */
static bool begin_fetch(struct object_cache *cache, struct fetching *own, uint64_t *ret_number)
{
    bool waited = false;
    pthread_mutex_lock(&cache->mutex);
    while (*find_fetching(cache, own->sha256) != NULL) {
        waited = true;
        pthread_cond_wait(&cache->fetched, &cache->mutex);
    }
    if (!waited) {
        own->next = cache->fetching;
        cache->fetching = own;
        *ret_number = ++cache->last;
    }
    pthread_mutex_unlock(&cache->mutex);
    return !waited;
}

static void end_fetch(struct object_cache *cache, const struct fetching *own)
{
    pthread_mutex_lock(&cache->mutex);
    *find_fetching(cache, own->sha256) = own->next;
    pthread_cond_broadcast(&cache->fetched);
    pthread_mutex_unlock(&cache->mutex);
}

static cadre_status check_fetched(
    int fd, const struct fetching *own, uint64_t *ret_bytes, struct cadre_error *error)
{
    struct sha256 made;
    if (lseek(fd, 0, SEEK_SET) != 0) {
        return cadre_error_errno(error, errno, "cannot read a content that was fetched");
    }
    CADRE_TRY(sha256_of_fd(fd, &made, ret_bytes, error));
    if (memcmp(made.bytes, own->sha256, SHA256_BYTES) != 0) {
        return cadre_error_set(
            error, CADRE_DATA_LOSS, "its content in the object store does not have its hash");
    }
    return CADRE_OK;
}

/* When it is used: the kernel keeps no such time on every mount. */
static void note_use(int fd)
{
    const struct timespec times[2] = {{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_OMIT}};
    (void)futimens(fd, times);
}

/* The copy is open for who fetched it, whatever becomes of its name. */
static cadre_status fetch_to(struct object_cache *cache, const struct fetching *own,
    const char *temporary, const char *path, int *ret_fd, uint64_t *ret_bytes,
    struct cadre_error *error)
{
    uint64_t bytes = 0;
    CADRE_FREE_AT_EXIT char *object = object_name_of_blob(cache->objects, own->sha256);
    CADRE_CLOSE_AT_EXIT int fd =
        open(temporary, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        return cadre_error_errno(error, errno, "the coordinator cannot write %s", temporary);
    }
    CADRE_TRY(objects_fetch(cache->objects, object, fd, error));
    CADRE_TRY(check_fetched(fd, own, &bytes, error));
    note_use(fd);
    if (lseek(fd, 0, SEEK_SET) != 0 || rename(temporary, path) != 0) {
        return cadre_error_errno(error, errno, "the coordinator cannot write %s", path);
    }
    object_cache_came(cache, bytes);
    if (ret_bytes != NULL) {
        *ret_bytes = bytes;
    }
    *ret_fd = fd;
    fd = -1;
    return CADRE_OK;
}

/* *ret_fd stays as it is where another thread fetched it. */
static cadre_status fetch(struct object_cache *cache, const uint8_t sha256[SHA256_BYTES],
    const char *path, int *ret_fd, uint64_t *ret_bytes, struct cadre_error *error)
{
    struct fetching own;
    uint64_t number = 0;
    CADRE_FREE_AT_EXIT char *temporary = NULL;
    memcpy(own.sha256, sha256, SHA256_BYTES);
    if (!begin_fetch(cache, &own, &number)) {
        return CADRE_OK;
    }
    cadre_status status = CADRE_OK;
    if (asprintf(&temporary, "%s/fetch-%" PRIu64, cache->folder, number) < 0) {
        temporary = NULL;
        status = no_memory(error);
    } else {
        status = fetch_to(cache, &own, temporary, path, ret_fd, ret_bytes, error);
        if (status != CADRE_OK) {
            (void)unlink(temporary);
        }
    }
    end_fetch(cache, &own);
    return status;
}

cadre_status object_cache_read(struct object_cache *cache, const char *folder,
    const uint8_t sha256[SHA256_BYTES], int *ret_fd, uint64_t *ret_bytes, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *path = sha256_path(folder, sha256);
    struct cadre_error why = {0};
    if (path == NULL) {
        return no_memory(error);
    }
    cadre_status status = file_open_regular(path, ret_fd, ret_bytes, &why);
    /* A copy that was fetched may be removed before it is opened, or another thread's fetch fail.
     */
    for (unsigned i = 0; cache != NULL && status == CADRE_NOT_FOUND && i < 3; i++) {
        *ret_fd = -1;
        CADRE_TRY(fetch(cache, sha256, path, ret_fd, ret_bytes, error));
        status = *ret_fd >= 0 ? CADRE_OK : file_open_regular(path, ret_fd, ret_bytes, &why);
    }
    if (status == CADRE_OK && cache != NULL) {
        note_use(*ret_fd);
    } else if (status == CADRE_NOT_FOUND && cache != NULL) {
        return cadre_error_set(error, CADRE_UNAVAILABLE,
            "a content that was fetched from the object store was removed at once: try again");
    } else if (status != CADRE_OK && error != NULL) {
        *error = why;
    }
    return status;
}

void object_cache_drop(struct object_cache *cache, const uint8_t sha256[SHA256_BYTES])
{
    CADRE_FREE_AT_EXIT char *path = sha256_path(cache->folder, sha256);
    struct stat facts;
    if (path == NULL || stat(path, &facts) != 0 || unlink(path) != 0) {
        return;
    }
    pthread_mutex_lock(&cache->mutex);
    cache->bytes -= cache->bytes < (uint64_t)facts.st_size ? cache->bytes : (uint64_t)facts.st_size;
    pthread_mutex_unlock(&cache->mutex);
}
