/* SPDX-License-Identifier: Apache-2.0
 * See disk_cache_space.h. */
#include "worker/library/input/objects/disk_cache_space.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/files.h"
#include "worker/library/input/objects/disk_cache_index.h"
#include "worker/library/input/objects/work_queue.h"

/* See the header: of the limit that is left free, of the room, of the limit. */
#define FREE_PART  8
#define ROOM_PART  8
#define LIMIT_PART 32

/* Of the limit: up to that much there is wide room. */
#define WIDE_PART 2

/* Without a write between them two looks are so far apart. */
#define LOOK_US (5 * CADRE_US_PER_S)

/* Files that are not finished, and older than this, are those of a process that died. */
#define PART_SECONDS 3600

/* Bytes of the disk that are left to others. */
#define FREE_BYTES_MIN ((uint64_t)256 << 20)

struct found_blocks {
    struct disk_block *blocks;
    size_t count;
    size_t room;
    char (*objects)[80]; /* the names of their folders */
    size_t object_count;
    size_t object_room;
    bool failed; /* no memory: what was found serves */
};

static pthread_mutex_t space_lock = PTHREAD_MUTEX_INITIALIZER;
/* Under the lock. */
static char space_folder[4096];
static uint64_t space_limit;
static uint64_t space_written; /* since the folder was looked at */
static uint64_t space_left;    /* that may be written before it is looked at again */
static uint64_t space_taken;   /* when it was looked at */
static bool space_looking;
static uint64_t space_looked_us;

static bool found_blocks_add(struct found_blocks *found, struct disk_block block)
{
    if (found->count == found->room) {
        size_t room = found->room == 0 ? 1024 : 2 * found->room;
        struct disk_block *blocks = realloc(found->blocks, room * sizeof blocks[0]);
        if (blocks == NULL) {
            return false;
        }
        found->blocks = blocks;
        found->room = room;
    }
    found->blocks[found->count++] = block;
    return true;
}

/* `name` has 64 bytes, of a hash. */
static bool found_blocks_add_object(struct found_blocks *found, const char *name)
{
    if (found->object_count == found->object_room) {
        size_t room = found->object_room == 0 ? 64 : 2 * found->object_room;
        void *objects = realloc(found->objects, room * sizeof found->objects[0]);
        if (objects == NULL) {
            return false;
        }
        found->objects = objects;
        found->object_room = room;
    }
    memcpy(found->objects[found->object_count++], name, strlen(name) + 1);
    return true;
}

/* One file in the folder of an object. */
static void look_at_file(struct found_blocks *found, int fd, const char *name)
{
    struct stat facts;
    char *end = NULL;
    if (name[0] == '.' || fstatat(fd, name, &facts, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(facts.st_mode)) {
        return;
    }
    struct disk_block block = {.number = strtoull(name, &end, 10),
        .bytes = (uint64_t)facts.st_size,
        .used_us = (int64_t)facts.st_mtim.tv_sec * 1000000 + facts.st_mtim.tv_nsec / 1000,
        .object = (uint32_t)(found->object_count - 1)};
    if (*end == '\0') {
        found->failed = !found_blocks_add(found, block) || found->failed;
    } else if (strncmp(name, "part-", 5) == 0 && time(NULL) - facts.st_mtim.tv_sec > PART_SECONDS) {
        unlinkat(fd, name, 0);
    }
}

static void look_at_object(struct found_blocks *found, int folder_fd, const char *name)
{
    int fd = strlen(name) == 64
                 ? openat(folder_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)
                 : -1;
    CADRE_CLEANUP(cadre_cleanup_dir) DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (dir == NULL || !found_blocks_add_object(found, name)) {
        if (dir == NULL && fd >= 0) {
            close(fd);
        }
        return;
    }
    size_t before = found->count;
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        look_at_file(found, dirfd(dir), entry->d_name);
    }
    if (found->count == before) {
        unlinkat(folder_fd, name, AT_REMOVEDIR); /* fails where a file is being written in it */
    }
}

static void remove_chosen(const struct found_blocks *found, size_t count, int folder_fd)
{
    for (size_t i = 0; i < count; i++) {
        char path[128];
        const struct disk_block *block = &found->blocks[i];
        snprintf(path, sizeof path, "%s/%" PRIu64, found->objects[block->object], block->number);
        unlinkat(folder_fd, path, 0);
    }
}

uint64_t disk_cache_space_tidy(const char *folder, uint64_t limit)
{
    struct found_blocks found = {0};
    uint64_t bytes = 0;
    CADRE_CLEANUP(cadre_cleanup_dir) DIR *dir = opendir(folder);
    if (dir == NULL) {
        return 0;
    }
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        if (entry->d_name[0] != '.') {
            look_at_object(&found, dirfd(dir), entry->d_name);
        }
    }
    size_t count = disk_cache_choose(found.blocks, found.count, limit, &bytes);
    remove_chosen(&found, count, dirfd(dir));
    free(found.blocks);
    free(found.objects);
    return bytes;
}

static void space_look(struct work *work)
{
    char folder[sizeof space_folder];
    pthread_mutex_lock(&space_lock);
    uint64_t limit = space_limit;
    snprintf(folder, sizeof folder, "%s", space_folder);
    space_taken += space_written; /* until it is counted */
    space_written = 0;
    pthread_mutex_unlock(&space_lock);
    uint64_t free_bytes = UINT64_MAX;
    uint64_t goal = limit - limit / FREE_PART;
    uint64_t bytes = disk_cache_space_tidy(folder, goal);
    (void)disk_free_bytes(folder, &free_bytes);
    uint64_t room = (goal - bytes) / ROOM_PART;
    uint64_t others = free_bytes > FREE_BYTES_MIN ? free_bytes - FREE_BYTES_MIN : 0;
    room = room > limit / LIMIT_PART ? room : limit / LIMIT_PART;
    pthread_mutex_lock(&space_lock);
    space_left = room < others ? room : others;
    space_taken = bytes;
    space_looking = false;
    space_looked_us = clock_monotonic_us();
    pthread_mutex_unlock(&space_lock);
    free(work);
}

/* Under the lock. */
static void begin_look(void)
{
    struct work *work = space_looking ? NULL : calloc(1, sizeof *work);
    if (work != NULL) {
        *work = (struct work){.run = space_look};
        space_looking = work_queue_add(work, WORK_AHEAD);
        if (!space_looking) {
            free(work);
        }
    }
}

void disk_cache_space_begin(const char *folder, uint64_t limit)
{
    pthread_mutex_lock(&space_lock);
    snprintf(space_folder, sizeof space_folder, "%s", folder);
    space_limit = limit;
    space_left = 0; /* until it was looked at */
    space_taken = limit;
    begin_look();
    pthread_mutex_unlock(&space_lock);
}

bool disk_cache_space_is_wide(void)
{
    pthread_mutex_lock(&space_lock);
    bool wide = space_taken + space_written <= space_limit / WIDE_PART;
    pthread_mutex_unlock(&space_lock);
    return wide;
}

bool disk_cache_space_claim(uint64_t bytes)
{
    pthread_mutex_lock(&space_lock);
    bool room = space_written + bytes <= space_left;
    if (room) {
        space_written += bytes;
    }
    bool due = space_written > space_left / 2 ||
               (!room && clock_monotonic_us() - space_looked_us > LOOK_US);
    if (due) {
        begin_look();
    }
    pthread_mutex_unlock(&space_lock);
    return room;
}
