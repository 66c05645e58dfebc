/* SPDX-License-Identifier: Apache-2.0
 * Which folder is whose; see object_cache.h. */
#include "worker/host/daemon/objects/object_cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/files.h"
#include "common/base/log.h"

#define LIMIT_MIN   (UINT64_C(64) << 20)
#define DISK_PART   8
#define FOLDERS_MAX 64 /* of one identity */
#define NAME_BYTES  96

/* Of what is given and taken back. */
static pthread_mutex_t folders_lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- a folder for a task ---- */

/* True: the folder is there, and the user's. This process owns those that no job uses. False with
 * *ret_errno 0: another job uses it. */
static bool take_folder(
    int objects_fd, const char *name, const struct isolation_user *user, int *ret_errno)
{
    struct stat about;
    *ret_errno = 0;
    if (!user->change) {
        return true; /* the task makes it, as it is used */
    }
    if ((mkdirat(objects_fd, name, 0700) != 0 && errno != EEXIST) ||
        fstatat(objects_fd, name, &about, AT_SYMLINK_NOFOLLOW) != 0) {
        *ret_errno = errno;
        return false;
    }
    if (about.st_uid == user->uid) {
        return true;
    }
    if (about.st_uid != geteuid()) {
        return false;
    }
    *ret_errno = object_cache_chown(objects_fd, name, user->uid, user->gid);
    return *ret_errno == 0;
}

cadre_status object_cache_give(const struct object_cache *cache, const char *identity,
    const struct isolation_user *user, char **ret_path, struct cadre_error *error)
{
    char name[NAME_BYTES];
    bool given = false;
    *ret_path = NULL;
    if (cache->limit_bytes == 0) {
        return CADRE_OK;
    }
    pthread_mutex_lock(&folders_lock);
    CADRE_CLOSE_AT_EXIT int fd = open(cache->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int failed = fd < 0 ? errno : 0;
    for (unsigned i = 0; i < FOLDERS_MAX && failed == 0 && !given; i++) {
        snprintf(name, sizeof name, i == 0 ? "%.64s" : "%.64s.%u", identity, i);
        given = take_folder(fd, name, user, &failed);
    }
    pthread_mutex_unlock(&folders_lock);
    if (failed != 0) {
        return cadre_error_errno(error, failed, "cannot use %s", cache->folder);
    }
    if (!given || asprintf(ret_path, "%s/%s", cache->folder, name) < 0) {
        *ret_path = NULL;
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "all %d folders of its keys are in use, or there is no memory", FOLDERS_MAX);
    }
    return CADRE_OK;
}

/* One that nothing was written to is removed. What is in it stays as it is: nothing is reached but
 * through the folder. */
void object_cache_take_back(const struct object_cache *cache, uid_t uid)
{
    if (cache->limit_bytes == 0 || uid == geteuid()) {
        return;
    }
    pthread_mutex_lock(&folders_lock);
    CADRE_CLEANUP(cadre_cleanup_dir) DIR *dir = opendir(cache->folder);
    const struct dirent *entry;
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        struct stat about;
        CADRE_CLOSE_AT_EXIT int fd = entry->d_name[0] == '.'
                                         ? -1
                                         : openat(dirfd(dir), entry->d_name,
                                               O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (fd >= 0 && fstat(fd, &about) == 0 && about.st_uid == uid &&
            unlinkat(dirfd(dir), entry->d_name, AT_REMOVEDIR) != 0 &&
            (fchown(fd, geteuid(), getegid()) != 0 || fchmod(fd, 0700) != 0)) {
            log_event(LOG_LEVEL_ERROR, "objects",
                "a folder of objects stays with the uid of a job that ended: remove it",
                LOG_STR("folder", entry->d_name), LOG_U64("uid", uid),
                LOG_STR("reason", strerror(errno)));
        }
    }
    pthread_mutex_unlock(&folders_lock);
}

/* ---- start and end ---- */

static uint64_t choose_limit(const char *state_folder, uint64_t limit)
{
    struct statvfs disk;
    if (statvfs(state_folder, &disk) == 0) {
        uint64_t part = (uint64_t)disk.f_blocks * disk.f_frsize / DISK_PART;
        limit = limit < part ? limit : part;
    }
    return limit < LIMIT_MIN ? 0 : limit;
}

/* Those of jobs that an earlier incarnation of the daemon did not take back, and that do not run
 * any more. */
static void take_all_back(const struct object_cache *cache)
{
    CADRE_CLEANUP(cadre_cleanup_dir) DIR *dir = opendir(cache->folder);
    const struct dirent *entry;
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        struct stat about;
        if (entry->d_name[0] != '.' &&
            fstatat(dirfd(dir), entry->d_name, &about, AT_SYMLINK_NOFOLLOW) == 0) {
            object_cache_take_back(cache, about.st_uid);
        }
    }
}

cadre_status object_cache_open(struct object_cache *cache, const char *state_folder,
    uint64_t limit_bytes, bool takes_over, struct cadre_error *error)
{
    *cache = (struct object_cache){0};
    if (asprintf(&cache->folder, "%s/objects", state_folder) < 0) {
        cache->folder = NULL;
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory to start");
    }
    cache->limit_bytes = choose_limit(state_folder, limit_bytes);
    if (cache->limit_bytes == 0) {
        return tree_remove(cache->folder, error);
    }
    CADRE_TRY(folder_make(cache->folder, 0711, error));
    if (!takes_over) {
        take_all_back(cache);
    }
    cache->bytes = object_cache_trim(cache->folder, cache->limit_bytes);
    return CADRE_OK;
}

void object_cache_close(struct object_cache *cache)
{
    free(cache->folder);
    *cache = (struct object_cache){0};
}
