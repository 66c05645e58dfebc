/* SPDX-License-Identifier: Apache-2.0
 * The files of object_cache.h. They are written by tasks, whatever their programs do: nothing here
 * follows a link, and each file is looked at by the descriptor by which it is changed. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "worker/host/daemon/objects/object_cache.h"

#define LEFT_EIGHTHS 7

static int open_folder(int at, const char *name)
{
    return openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

/* Takes `fd` over. NULL: it is none. */
static DIR *list_folder(int fd)
{
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (dir == NULL && fd >= 0) {
        close(fd);
    }
    return dir;
}

static const char *next_name(DIR *dir)
{
    const struct dirent *entry = dir != NULL ? readdir(dir) : NULL;
    while (entry != NULL && (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)) {
        entry = readdir(dir);
    }
    return entry != NULL ? entry->d_name : NULL;
}

/* ---- another owner ---- */

static int chown_file(int at, const char *name, uid_t uid, gid_t gid)
{
    struct stat about;
    CADRE_CLOSE_AT_EXIT int fd = openat(at, name, O_PATH | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 || fstat(fd, &about) != 0) {
        return errno == ENOENT ? 0 : errno;
    }
    if (!S_ISREG(about.st_mode) || about.st_nlink != 1) {
        return unlinkat(at, name, S_ISDIR(about.st_mode) ? AT_REMOVEDIR : 0) == 0 ? 0 : errno;
    }
    return about.st_uid == uid || fchownat(fd, "", uid, gid, AT_EMPTY_PATH) == 0 ? 0 : errno;
}

static int chown_object(int at, const char *name, uid_t uid, gid_t gid)
{
    CADRE_CLEANUP(cadre_cleanup_dir) DIR *dir = list_folder(open_folder(at, name));
    if (dir == NULL) {
        return chown_file(at, name, uid, gid);
    }
    int failed = 0;
    for (const char *file = next_name(dir); file != NULL && failed == 0; file = next_name(dir)) {
        failed = chown_file(dirfd(dir), file, uid, gid);
    }
    return failed != 0 ? failed : fchown(dirfd(dir), uid, gid) == 0 ? 0 : errno;
}

int object_cache_chown(int objects_fd, const char *name, uid_t uid, gid_t gid)
{
    CADRE_CLEANUP(cadre_cleanup_dir) DIR *dir = list_folder(open_folder(objects_fd, name));
    if (dir == NULL) {
        return errno;
    }
    int failed = 0;
    for (const char *object = next_name(dir); object != NULL && failed == 0;
         object = next_name(dir)) {
        failed = chown_object(dirfd(dir), object, uid, gid);
    }
    return failed != 0 ? failed : fchown(dirfd(dir), uid, gid) == 0 ? 0 : errno;
}

/* ---- the bound ---- */

struct block {
    struct timespec used;
    uint64_t bytes;
    size_t path; /* where it begins in the texts, below the folder of all */
};

struct blocks {
    struct block *items;
    size_t count;
    size_t room;
    char *texts;
    size_t text_bytes;
    size_t text_room;
    uint64_t bytes;
    bool no_memory; /* what was found serves */
};

static bool grow(void **items, size_t *room, size_t wanted, size_t item_bytes)
{
    size_t more = *room > 0 ? *room : 4096;
    while (more < wanted) {
        more *= 2;
    }
    void *grown = more > *room ? realloc(*items, more * item_bytes) : *items;
    if (grown == NULL) {
        return false;
    }
    *items = grown;
    *room = more;
    return true;
}

static void add_block(struct blocks *blocks, const char *identity, const char *object,
    const char *name, const struct stat *about)
{
    size_t most = strlen(identity) + strlen(object) + strlen(name) + 3;
    void *items = blocks->items;
    void *texts = blocks->texts;
    bool good = grow(&items, &blocks->room, blocks->count + 1, sizeof blocks->items[0]);
    blocks->items = items;
    good = good && grow(&texts, &blocks->text_room, blocks->text_bytes + most, 1);
    blocks->texts = texts;
    blocks->bytes += (uint64_t)about->st_size;
    blocks->no_memory = blocks->no_memory || !good;
    if (good) {
        blocks->items[blocks->count++] = (struct block){
            .used = about->st_mtim, .bytes = (uint64_t)about->st_size, .path = blocks->text_bytes};
        blocks->text_bytes += (size_t)snprintf(blocks->texts + blocks->text_bytes, most, "%s/%s/%s",
                                  identity, object, name) +
                              1;
    }
}

static void find_blocks(struct blocks *blocks, int at, const char *identity, const char *object)
{
    CADRE_CLEANUP(cadre_cleanup_dir) DIR *dir = list_folder(open_folder(at, object));
    bool empty = true;
    for (const char *name = next_name(dir); name != NULL; name = next_name(dir)) {
        struct stat about;
        empty = false;
        if (fstatat(dirfd(dir), name, &about, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(about.st_mode)) {
            add_block(blocks, identity, object, name, &about);
        }
    }
    if (dir != NULL && empty) { /* a task that is about to write there makes it again */
        (void)unlinkat(at, object, AT_REMOVEDIR);
    }
}

static void find_objects(struct blocks *blocks, int at, const char *identity)
{
    CADRE_CLEANUP(cadre_cleanup_dir) DIR *dir = list_folder(open_folder(at, identity));
    for (const char *object = next_name(dir); object != NULL; object = next_name(dir)) {
        find_blocks(blocks, dirfd(dir), identity, object);
    }
}

static int by_use(const void *a, const void *b)
{
    const struct timespec *one = &((const struct block *)a)->used;
    const struct timespec *two = &((const struct block *)b)->used;
    if (one->tv_sec != two->tv_sec) {
        return one->tv_sec < two->tv_sec ? -1 : 1;
    }
    return one->tv_nsec < two->tv_nsec ? -1 : one->tv_nsec > two->tv_nsec;
}

/* Of the path no part is a link: a task may have put one there since it was found. */
static bool remove_block(int at, char *path)
{
    char *object = strchr(path, '/') + 1;
    char *name = strchr(object, '/') + 1;
    object[-1] = '\0';
    name[-1] = '\0';
    CADRE_CLOSE_AT_EXIT int identity_fd = open_folder(at, path);
    CADRE_CLOSE_AT_EXIT int object_fd = identity_fd >= 0 ? open_folder(identity_fd, object) : -1;
    return object_fd >= 0 && unlinkat(object_fd, name, 0) == 0;
}

uint64_t object_cache_trim(const char *objects, uint64_t limit_bytes)
{
    struct blocks blocks = {0};
    CADRE_CLEANUP(cadre_cleanup_dir) DIR *dir = opendir(objects);
    for (const char *name = next_name(dir); name != NULL; name = next_name(dir)) {
        find_objects(&blocks, dirfd(dir), name);
    }
    uint64_t goal = limit_bytes / 8 * LEFT_EIGHTHS;
    if (blocks.bytes > limit_bytes) {
        qsort(blocks.items, blocks.count, sizeof blocks.items[0], by_use);
        for (size_t i = 0; i < blocks.count && blocks.bytes > goal; i++) {
            bool gone = remove_block(dirfd(dir), blocks.texts + blocks.items[i].path);
            blocks.bytes -= gone ? blocks.items[i].bytes : 0;
        }
    }
    free(blocks.items);
    free(blocks.texts);
    return blocks.bytes;
}
