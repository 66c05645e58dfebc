/* SPDX-License-Identifier: Apache-2.0
 * The index of the contents on the disk, and their removal by a thread; all files of this folder
 * that add, find or remove contents call it. */
#include "coordinator/daemon/contents/contents.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/fault.h"
#include "common/base/files.h"
#include "common/base/log.h"
#include "common/pure/assert.h"
#include "common/rpc/file_work.h"
#include "coordinator/daemon/base/leading.h"
#include "coordinator/daemon/contents/content_table.h"
#include "coordinator/daemon/objects/object_cache.h"
#include "coordinator/daemon/objects/object_names.h"

/* A content may be requested (MissingBlobs) a while before the job that uses it is submitted. */
#define UNUSED_US (3600 * CADRE_US_PER_S)

/* The number of those that a list showed; of others it is higher. */
#define LISTED_NUMBER 1

struct leaving {
    struct sha256 hash;
    bool unless_touched; /* it stays if an upload relies on it */
    bool gone;           /* the thread's result */
};

struct removal_queue {
    struct leaving *items;
    size_t count;
    size_t capacity;
};

/* What a thread lists. */
struct listed_content {
    struct sha256 hash;
    uint64_t bytes;
    uint64_t added_us;
};

struct content_list {
    struct listed_content *items;
    size_t count;
    size_t capacity;
    struct cadre_error error;
};

struct contents {
    const char *folder; /* the daemon's; NULL: they lie in: */
    struct objects *objects;
    struct object_cache *cache; /* with copies */
    struct file_work listing;
    struct content_list list; /* the listing thread's */
    bool loading;
    struct file_work_pool *file_pool;
    const struct leading *leading; /* the daemon's */
    struct content_table table;
    uint64_t bytes;
    uint64_t came;
    uint64_t synced;
    uint64_t removed;
    struct removal_queue next; /* to be removed when the thread is done with: */
    struct removal_queue now;
    struct file_work work;
    struct contents_wait *waits;
};

static bool is_recent(uint64_t then_us)
{
    return then_us + UNUSED_US > clock_wall_us();
}

/* Adds or subtracts the bytes of a content that came or was removed. */
static void count_bytes(struct contents *contents, const struct content *content, bool here)
{
    contents->bytes += here ? content->bytes : -content->bytes;
}

/* ---- the start ---- */

static uint64_t time_us(const struct timespec *time)
{
    return (uint64_t)time->tv_sec * CADRE_US_PER_S + (uint64_t)time->tv_nsec / 1000;
}

static cadre_status no_memory(struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for the index of contents");
}

static cadre_status index_file(
    struct contents *contents, const char *name, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *path = NULL;
    struct sha256 hash;
    struct stat status;
    if (asprintf(&path, "%s/%s", contents->folder, name) < 0) {
        path = NULL;
        return no_memory(error);
    }
    if (!sha256_parse(name, &hash)) {
        return tree_remove(path, error);
    }
    if (lstat(path, &status) != 0 || !S_ISREG(status.st_mode)) {
        return CADRE_OK; /* a request for it gets NOT_FOUND */
    }
    struct content *content = content_table_add(&contents->table, &hash);
    if (content == NULL) {
        return no_memory(error);
    }
    content->state = CONTENT_PRESENT;
    content->bytes = (uint64_t)status.st_size;
    content->touched_us = time_us(&status.st_atim);
    content->added_us = time_us(&status.st_mtim);
    content->number = contents->came;
    count_bytes(contents, content, true);
    return CADRE_OK;
}

cadre_status contents_open(const char *folder_path, struct file_work_pool *file_pool,
    const struct leading *leading, struct contents **ret_contents, struct cadre_error *error)
{
    struct contents *contents = calloc(1, sizeof *contents);
    *ret_contents = contents;
    if (contents == NULL) {
        return no_memory(error);
    }
    contents->folder = folder_path;
    contents->file_pool = file_pool;
    contents->leading = leading;
    contents->came = 1; /* those of before this start may not be synced */
    CADRE_CLEANUP(cadre_cleanup_dir) DIR *folder = opendir(folder_path);
    if (folder == NULL) {
        return cadre_error_errno(error, errno, "the coordinator cannot read %s", folder_path);
    }
    const struct dirent *entry;
    while ((entry = readdir(folder)) != NULL) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            CADRE_TRY(index_file(contents, entry->d_name, error));
        }
    }
    return CADRE_OK;
}

/* ---- the start, with an object store ---- */

static bool add_listed(void *user, const struct storage_entry *entry)
{
    struct content_list *list = user;
    struct sha256 hash;
    const char *slash = strrchr(entry->path, '/');
    if (entry->is_folder || slash == NULL || !sha256_parse(slash + 1, &hash)) {
        return true;
    }
    if (list->count == list->capacity) {
        size_t capacity = list->capacity > 0 ? 2 * list->capacity : 1024;
        struct listed_content *grown = realloc(list->items, capacity * sizeof *grown);
        if (grown == NULL) {
            no_memory(&list->error);
            return false;
        }
        list->items = grown;
        list->capacity = capacity;
    }
    list->items[list->count++] = (struct listed_content){
        .hash = hash, .bytes = entry->info.bytes, .added_us = (uint64_t)entry->info.modified_us};
    return true;
}

static void list_in_thread(void *user)
{
    struct contents *contents = user;
    struct content_list *list = &contents->list;
    CADRE_FREE_AT_EXIT char *folder = objects_path(contents->objects, "blobs");
    bool again = true;
    while (again) {
        list->count = 0;
        list->error = (struct cadre_error){0};
        cadre_status status =
            objects_list(contents->objects, folder, true, add_listed, list, &list->error);
        again = status == CADRE_UNAVAILABLE && objects_wait(contents->objects);
    }
}

static void go_on(struct contents *contents)
{
    struct contents_wait *waits = contents->waits;
    contents->waits = NULL;
    while (waits != NULL) {
        struct contents_wait *next = waits->next;
        waits->go(waits->user);
        waits = next;
    }
}

/* What was uploaded since the listing began is known better. */
static void after_list(void *user)
{
    struct contents *contents = user;
    struct content_list *list = &contents->list;
    for (size_t i = 0; i < list->count; i++) {
        const struct listed_content *listed = &list->items[i];
        struct content *content = content_table_add(&contents->table, &listed->hash);
        if (content == NULL) {
            no_memory(&list->error);
            break;
        }
        if (content->state == CONTENT_NONE || content->state == CONTENT_ABSENT) {
            content->state = CONTENT_PRESENT;
            content->bytes = listed->bytes;
            content->added_us = listed->added_us;
            content->touched_us = clock_wall_us();
            content->number = LISTED_NUMBER;
            count_bytes(contents, content, true);
        }
    }
    if (list->error.code != CADRE_OK && list->error.code != CADRE_CANCELLED) {
        log_event(LOG_LEVEL_ERROR, "files",
            "the contents in the object store are not all known: what is missing is uploaded again",
            LOG_STR("reason", list->error.text));
    }
    free(list->items);
    *list = (struct content_list){0};
    contents->loading = false;
    go_on(contents);
}

cadre_status contents_open_objects(struct objects *objects, struct object_cache *cache,
    struct file_work_pool *file_pool, const struct leading *leading, struct contents **ret_contents,
    struct cadre_error *error)
{
    struct contents *contents = calloc(1, sizeof *contents);
    *ret_contents = contents;
    if (contents == NULL) {
        return no_memory(error);
    }
    contents->objects = objects;
    contents->cache = cache;
    contents->file_pool = file_pool;
    contents->leading = leading;
    contents->loading = true;
    contents->came = LISTED_NUMBER;
    contents->synced = UINT64_MAX; /* what is in the store survives the loss of power here */
    file_work_start(&contents->listing, file_pool, list_in_thread, after_list, contents);
    return CADRE_OK;
}

bool contents_is_loading(const struct contents *contents)
{
    return contents->loading;
}

cadre_status contents_check_loaded(const struct contents *contents, struct cadre_error *error)
{
    return !contents->loading
               ? CADRE_OK
               : cadre_error_set(error, CADRE_UNAVAILABLE,
                     "the coordinator is still listing what is in the object store of --contents: "
                     "try again");
}

void contents_close(struct contents *contents)
{
    if (contents != NULL) {
        content_table_free(&contents->table);
        free(contents->next.items);
        free(contents->now.items);
        free(contents);
    }
}

/* ---- queries ---- */

static struct content *find_present(const struct contents *contents, const struct sha256 *hash)
{
    struct content *content = content_table_find(&contents->table, hash);
    return content != NULL && content->state == CONTENT_PRESENT ? content : NULL;
}

bool contents_find(const struct contents *contents, const struct sha256 *hash, uint64_t *ret_bytes)
{
    const struct content *content = find_present(contents, hash);
    if (content != NULL && ret_bytes != NULL) {
        *ret_bytes = content->bytes;
    }
    return content != NULL;
}

bool contents_is_older(const struct contents *contents, const struct sha256 *hash, uint64_t wall_us)
{
    const struct content *content = find_present(contents, hash);
    return content != NULL && content->added_us < wall_us;
}

cadre_status contents_not_found(const struct sha256 *hash, struct cadre_error *error)
{
    char hex[SHA256_HEX_BYTES];
    sha256_hex(hash, hex);
    return cadre_error_set(error, CADRE_NOT_FOUND,
        "there is no content %s here that a job of this worker needs: what a job needs comes with "
        "its tasks",
        hex);
}

uint64_t contents_bytes(const struct contents *contents)
{
    return contents->bytes;
}

bool contents_touch(struct contents *contents, const struct sha256 *hash, uint64_t *ret_number)
{
    struct content *content = find_present(contents, hash);
    if (content != NULL) {
        content->touched_us = clock_wall_us();
        *ret_number = content->number;
    }
    return content != NULL;
}

bool contents_is_certain(const struct contents *contents, const struct sha256 *hash)
{
    const struct content *content = find_present(contents, hash);
    return content != NULL && (contents->objects == NULL || content->number > LISTED_NUMBER);
}

/* ---- removals ---- */

static void contents_forget(struct contents *contents, struct content *content)
{
    content->state = CONTENT_ABSENT;
    if (content->uploads == 0) {
        content_table_remove(&contents->table, content);
    }
}

void contents_file_lost(struct contents *contents, const struct sha256 *hash, uint64_t number)
{
    struct content *content = find_present(contents, hash);
    if (content != NULL && content->number == number) {
        count_bytes(contents, content, false);
        contents_forget(contents, content);
    }
}

struct content_look contents_begin_look(const struct contents *contents, const struct sha256 *hash)
{
    return (struct content_look){.hash = *hash, .removed = contents->removed};
}

void contents_note_look(struct contents *contents, const struct content_look *look)
{
    const struct content *known = content_table_find(&contents->table, &look->hash);
    bool is_here = known != NULL && known->state == CONTENT_PRESENT;
    bool is_certain = is_here && known->number > LISTED_NUMBER;
    bool was_removed = !is_here && contents->removed != look->removed; /* this one, maybe */
    if (!look->there) {
        contents_file_lost(contents, &look->hash, LISTED_NUMBER);
        return;
    }
    struct content *content =
        is_certain || was_removed ? NULL : content_table_add(&contents->table, &look->hash);
    if (content == NULL || content->state == CONTENT_REMOVING) {
        return; /* without memory it counts as not here, as before */
    }
    if (is_here) {
        count_bytes(contents, content, false);
    }
    content->state = CONTENT_PRESENT;
    content->bytes = look->bytes;
    content->added_us = look->added_us;
    content->touched_us = clock_wall_us();
    content->number = ++contents->came;
    count_bytes(contents, content, true);
}

static bool contents_push(
    struct removal_queue *removal_queue, const struct sha256 *hash, bool unless_touched)
{
    if (removal_queue->count == removal_queue->capacity) {
        size_t capacity = removal_queue->capacity > 0 ? removal_queue->capacity * 2 : 64;
        struct leaving *grown = realloc(removal_queue->items, capacity * sizeof *grown);
        if (grown == NULL) {
            return false;
        }
        removal_queue->items = grown;
        removal_queue->capacity = capacity;
    }
    removal_queue->items[removal_queue->count++] =
        (struct leaving){.hash = *hash, .unless_touched = unless_touched};
    return true;
}

/* Whether another coordinator reported lately to an upload that the content is here: the time is in
 * the file (file_store.c), and not in this index. */
static bool is_touched_elsewhere(const struct contents *contents, const char *path)
{
    struct stat status;
    return leading_is_shared(contents->leading) && lstat(path, &status) == 0 &&
           is_recent(time_us(&status.st_atim));
}

static bool remove_object(struct contents *contents, const struct leaving *leaving)
{
    struct cadre_error error = {0};
    CADRE_FREE_AT_EXIT char *path = object_name_of_blob(contents->objects, leaving->hash.bytes);
    if (!leading_holds(contents->leading) ||
        objects_remove(contents->objects, path, &error) != CADRE_OK) {
        return false;
    }
    object_cache_drop(contents->cache, leaving->hash.bytes);
    return true;
}

static void remove_in_thread(void *user)
{
    struct contents *contents = user;
    for (size_t i = 0; i < contents->now.count; i++) {
        struct leaving *leaving = &contents->now.items[i];
        if (contents->objects != NULL) {
            leaving->gone = remove_object(contents, leaving);
            continue;
        }
        CADRE_FREE_AT_EXIT char *path = sha256_path(contents->folder, leaving->hash.bytes);
        bool stays = path == NULL ||
                     (leaving->unless_touched && is_touched_elsewhere(contents, path)) ||
                     !leading_holds(contents->leading);
        leaving->gone = !stays && (unlink(path) == 0 || errno == ENOENT);
    }
}

static void after_remove(void *user);

static void remove_next(struct contents *contents)
{
    if (contents->work.running || contents->next.count == 0) {
        return;
    }
    struct removal_queue done = contents->now;
    contents->now = contents->next;
    contents->next = done;
    contents->next.count = 0;
    file_work_start(&contents->work, contents->file_pool, remove_in_thread, after_remove, contents);
}

/* A content that could not be removed is PRESENT again: the next collection finds it. */
static void after_remove(void *user)
{
    struct contents *contents = user;
    for (size_t i = 0; i < contents->now.count; i++) {
        const struct leaving *leaving = &contents->now.items[i];
        struct content *content = content_table_find(&contents->table, &leaving->hash);
        CADRE_ASSERT(content != NULL && content->state == CONTENT_REMOVING);
        if (leaving->gone) {
            contents->removed++;
            contents_forget(contents, content);
        } else {
            content->state = CONTENT_PRESENT;
            count_bytes(contents, content, true);
        }
    }
    remove_next(contents);
    go_on(contents);
}

static void start_removing(struct contents *contents, struct content *content, bool unless_touched)
{
    if (contents_push(&contents->next, &content->hash,
            unless_touched)) { /* else the next collection finds it */
        content->state = CONTENT_REMOVING;
        count_bytes(contents, content, false);
        remove_next(contents);
    }
}

void contents_remove(struct contents *contents, const struct sha256 *hash, bool unless_touched)
{
    struct content *content = find_present(contents, hash);
    if (content != NULL && content->uploads == 0 &&
        !(unless_touched && is_recent(content->touched_us))) {
        start_removing(contents, content, unless_touched);
    }
}

/* The file of one that is being uploaded is about to be replaced. */
void contents_remove_damaged(struct contents *contents, const struct sha256 *hash)
{
    struct content *content = find_present(contents, hash);
    if (content != NULL && content->uploads > 0) {
        count_bytes(contents, content, false);
        contents_forget(contents, content);
    } else if (content != NULL) {
        start_removing(contents, content, false);
    }
}

void contents_collect_garbage(struct contents *contents,
    bool (*is_referenced)(
        const struct content_references *content_references, const struct sha256 *hash),
    const struct content_references *content_references)
{
    for (size_t i = 0; i < contents->table.capacity && !contents->loading; i++) {
        struct content *content = &contents->table.entries[i];
        if (content->state == CONTENT_PRESENT && content->uploads == 0 &&
            !is_recent(content->touched_us) && !is_recent(content->added_us) &&
            !is_referenced(content_references, &content->hash)) {
            start_removing(contents, content, true);
        }
    }
}

/* ---- uploads ---- */

bool contents_is_removing(const struct contents *contents, const struct sha256 *hash)
{
    const struct content *content = content_table_find(&contents->table, hash);
    return content != NULL && content->state == CONTENT_REMOVING;
}

void contents_wait(struct contents *contents, struct contents_wait *wait)
{
    wait->next = contents->waits;
    contents->waits = wait;
}

cadre_status contents_upload_begin(
    struct contents *contents, const struct sha256 *hash, struct cadre_error *error)
{
    CADRE_ASSERT(!contents_is_removing(contents, hash));
    struct content *content = content_table_add(&contents->table, hash);
    if (content == NULL) {
        return no_memory(error);
    }
    content->uploads++;
    return CADRE_OK;
}

void contents_upload_end(
    struct contents *contents, const struct sha256 *hash, bool came, uint64_t bytes)
{
    struct content *content = content_table_find(&contents->table, hash);
    CADRE_ASSERT(content != NULL && content->uploads > 0);
    content->uploads--;
    if (came) {
        if (content->state == CONTENT_PRESENT) {
            count_bytes(contents, content, false);
        }
        content->state = CONTENT_PRESENT;
        content->bytes = bytes;
        content->added_us = clock_wall_us();
        content->number = ++contents->came;
        count_bytes(contents, content, true);
    } else if (content->state == CONTENT_ABSENT) {
        contents_forget(contents, content);
    }
}

/* ---- names on the disk ---- */

cadre_status contents_sync(const char *folder, struct cadre_error *error)
{
    CADRE_CLOSE_AT_EXIT int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool refused = fd >= 0 && fault_point("contents.sync");
    if (fd < 0 || refused || fsync(fd) != 0) {
        return cadre_error_errno(
            error, refused ? EIO : errno, "the coordinator cannot sync the files in %s", folder);
    }
    return CADRE_OK;
}

uint64_t contents_added_count(const struct contents *contents)
{
    return contents->came;
}

void contents_note_synced(struct contents *contents, uint64_t came)
{
    contents->synced = contents->synced > came ? contents->synced : came;
}

bool contents_is_synced(const struct contents *contents, const struct sha256 *hash)
{
    const struct content *content = find_present(contents, hash);
    return content != NULL && content->number <= contents->synced;
}
