/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/daemon/moving/move_list.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/sha256.h"
#include "coordinator/daemon/base/log_hole.h"

static cadre_status no_memory(struct cadre_error *error)
{
    return cadre_error_set(
        error, CADRE_RESOURCE_EXHAUSTED, "no memory for the list of what is to be copied");
}

/* ---- what a name says ---- */

/* The number at *text, which is behind it then; false: there is none. */
static bool take_number(const char **text, uint64_t *ret_number)
{
    char *end = NULL;
    if (!isdigit((unsigned char)**text)) {
        return false;
    }
    errno = 0;
    *ret_number = strtoull(*text, &end, 10);
    *text = end;
    return errno == 0;
}

static bool take_word(const char **text, const char *word)
{
    size_t length = strlen(word);
    bool same = strncmp(*text, word, length) == 0;
    *text += same ? length : 0;
    return same;
}

static bool read_slot(const char *name, struct move_item *ret_item)
{
    uint64_t number = 0;
    bool good =
        take_number(&name, &number) && number <= UINT32_MAX && (*name == '\0' || *name == '/');
    ret_item->number = (uint32_t)number;
    return good;
}

/* `name` is behind "jobs/<id>/". */
static bool read_job_name(const char *name, struct move_item *ret_item, const char **ret_rest)
{
    *ret_rest = NULL;
    if (take_word(&name, "logs/")) {
        ret_item->kind = MOVE_LOG;
        return read_slot(name, ret_item);
    }
    if (take_word(&name, "files/")) {
        ret_item->kind = MOVE_SETTLED;
        return read_slot(name, ret_item);
    }
    if (take_word(&name, "series")) {
        ret_item->kind = MOVE_SERIES;
        return *name == '\0' || *name == '/';
    }
    ret_item->kind = MOVE_OUTPUT;
    if (!take_word(&name, "outputs/")) {
        ret_item->kind = MOVE_REFERENCE;
        if (!take_word(&name, "references/")) {
            return false;
        }
    }
    *ret_rest = name;
    return *name != '\0';
}

/* *ret_rest: the item's name, in `name`. False: it is nothing that is kept. */
static bool read_name(const char *name, struct move_item *ret_item, const char **ret_rest)
{
    struct sha256 hash;
    *ret_item = (struct move_item){.kind = MOVE_OTHER};
    *ret_rest = name;
    if (take_word(&name, "blobs/")) {
        ret_item->kind = MOVE_CONTENT;
        *ret_rest = name;
        return sha256_parse(name, &hash);
    }
    if (take_word(&name, "jobs/")) {
        return take_number(&name, &ret_item->job.n) && take_word(&name, "/") &&
               read_job_name(name, ret_item, ret_rest);
    }
    size_t length = strlen(name);
    bool is_snapshot =
        strncmp(name, "snapshots/", 10) == 0 && length > 3 && strcmp(name + length - 3, ".db") == 0;
    return is_snapshot || strcmp(name, "cluster") == 0 || strcmp(name, "folder") == 0;
}

/* ---- the list ---- */

static int compare_items(const void *a, const void *b)
{
    const struct move_item *left = a;
    const struct move_item *right = b;
    if (left->kind != right->kind) {
        return left->kind < right->kind ? -1 : 1;
    }
    if (left->job.n != right->job.n) {
        return left->job.n < right->job.n ? -1 : 1;
    }
    if (left->number != right->number) {
        return left->number < right->number ? -1 : 1;
    }
    return left->name != NULL && right->name != NULL ? strcmp(left->name, right->name) : 0;
}

/* Takes a copy of the name. */
static bool add_item(struct move_list *list, const struct move_item *item, const char *name)
{
    if (list->count == list->capacity) {
        size_t capacity = list->capacity > 0 ? 2 * list->capacity : 1024;
        struct move_item *grown = realloc(list->items, capacity * sizeof *grown);
        list->items = grown != NULL ? grown : list->items;
        list->capacity = grown != NULL ? capacity : list->capacity;
    }
    char *own = name != NULL ? strdup(name) : NULL;
    list->short_of_memory = list->count == list->capacity || (name != NULL && own == NULL);
    if (list->short_of_memory) {
        free(own);
        return false;
    }
    list->items[list->count] = *item;
    list->items[list->count++].name = own;
    list->bytes += item->bytes;
    return true;
}

static cadre_status sort_list(struct move_list *list, struct cadre_error *error)
{
    if (list->short_of_memory) {
        return no_memory(error);
    }
    if (list->count > 0) {
        qsort(list->items, list->count, sizeof *list->items, compare_items);
    }
    return CADRE_OK;
}

void move_list_free(struct move_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->items[i].name);
    }
    free(list->items);
    *list = (struct move_list){0};
}

const struct move_item *move_list_find(const struct move_list *list, const struct move_item *item)
{
    return list->count > 0
               ? bsearch(item, list->items, list->count, sizeof *list->items, compare_items)
               : NULL;
}

void move_list_keep(struct move_list *list, enum move_kind kind)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++) {
        if (list->items[i].kind == kind) {
            list->items[kept++] = list->items[i];
        } else {
            list->bytes -= list->items[i].bytes;
            free(list->items[i].name);
        }
    }
    list->count = kept;
}

size_t move_list_count(const struct move_list *list, enum move_kind kind, uint64_t *ret_bytes)
{
    size_t count = 0;
    *ret_bytes = 0;
    for (size_t i = 0; i < list->count; i++) {
        if (list->items[i].kind == kind) {
            count++;
            *ret_bytes += list->items[i].bytes;
        }
    }
    return count;
}

/* ---- of a folder ---- */

struct walk {
    const char *folder;
    struct move_list *list;
};

static bool add_file(
    const struct walk *walk, const char *path, const char *name, const struct stat *status)
{
    struct move_item item;
    const char *rest = NULL;
    if (!read_name(name, &item, &rest)) {
        return true;
    }
    bool is_link = S_ISLNK(status->st_mode);
    if (is_link != (item.kind == MOVE_OUTPUT && is_link) ||
        (!is_link && !S_ISREG(status->st_mode))) {
        return true;
    }
    item.kind = is_link ? MOVE_REFERENCE : item.kind;
    item.bytes = is_link ? 0 : (uint64_t)status->st_size;
    item.changed_us = (uint64_t)status->st_ctim.tv_sec * CADRE_US_PER_S +
                      (uint64_t)status->st_ctim.tv_nsec / 1000;
    if (item.kind == MOVE_LOG) {
        const struct log_hole hole = log_hole_read(path);
        item.bytes -= log_hole_bytes(&hole) < item.bytes ? log_hole_bytes(&hole) : item.bytes;
    }
    return add_item(walk->list, &item, rest);
}

/* A file, or all files beneath it. */
static cadre_status walk_name(const struct walk *walk, const char *name, struct cadre_error *error)
{
    struct stat status;
    CADRE_FREE_AT_EXIT char *path = NULL;
    if (asprintf(&path, "%s/%s", walk->folder, name) < 0) {
        path = NULL;
        return no_memory(error);
    }
    if (lstat(path, &status) != 0) {
        return errno == ENOENT ? CADRE_OK : cadre_error_errno(error, errno, "cannot read %s", path);
    }
    if (!S_ISDIR(status.st_mode)) {
        return add_file(walk, path, name, &status) ? CADRE_OK : no_memory(error);
    }
    CADRE_CLEANUP(cadre_cleanup_dir) DIR *folder = opendir(path);
    const struct dirent *entry;
    if (folder == NULL) {
        return errno == ENOENT ? CADRE_OK : cadre_error_errno(error, errno, "cannot read %s", path);
    }
    while ((entry = readdir(folder)) != NULL) {
        CADRE_FREE_AT_EXIT char *beneath = NULL;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) {
            continue;
        }
        if (asprintf(&beneath, "%s/%s", name, entry->d_name) < 0) {
            beneath = NULL;
            return no_memory(error);
        }
        CADRE_TRY(walk_name(walk, beneath, error));
    }
    return CADRE_OK;
}

cadre_status move_list_folder(
    const char *folder, struct move_list *ret_list, struct cadre_error *error)
{
    static const char *const names[] = {"blobs", "jobs", "snapshots", "cluster", "folder"};
    const struct walk walk = {.folder = folder, .list = ret_list};
    *ret_list = (struct move_list){0};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        CADRE_TRY(walk_name(&walk, names[i], error));
    }
    return sort_list(ret_list, error);
}

/* ---- of a store ---- */

struct store_walk {
    const char *root;
    struct move_list *list;
    uint64_t *forgotten; /* jobs that are being removed */
    size_t forgotten_count;
};

static bool add_forgotten(struct store_walk *walk, const char *number)
{
    uint64_t *grown =
        realloc(walk->forgotten, (walk->forgotten_count + 1) * sizeof *walk->forgotten);
    walk->list->short_of_memory = grown == NULL;
    walk->forgotten = grown != NULL ? grown : walk->forgotten;
    if (grown != NULL) {
        grown[walk->forgotten_count++] = strtoull(number, NULL, 10);
    }
    return grown != NULL;
}

/* Objects of one thing follow one another. */
static bool add_object(void *user, const struct storage_entry *entry)
{
    struct store_walk *walk = user;
    struct move_list *list = walk->list;
    const char *name = objects_name_beneath(walk->root, entry->path);
    const char *rest = NULL;
    struct move_item item;
    if (strncmp(name, "forgotten/", 10) == 0) {
        return add_forgotten(walk, name + 10);
    }
    if (entry->is_folder || !read_name(name, &item, &rest)) {
        return true;
    }
    item.bytes = entry->info.bytes;
    item.changed_us = (uint64_t)entry->info.modified_us;
    struct move_item *last = list->count > 0 ? &list->items[list->count - 1] : NULL;
    bool is_whole = item.kind != MOVE_LOG && item.kind != MOVE_SERIES && item.kind != MOVE_SETTLED;
    if (!is_whole && last != NULL && compare_items(last, &item) == 0) {
        last->bytes += item.bytes;
        list->bytes += item.bytes;
        return true;
    }
    return add_item(list, &item, rest);
}

static bool is_forgotten(const struct store_walk *walk, const struct move_item *item)
{
    bool found = false;
    for (size_t i = 0; i < walk->forgotten_count && item->job.n != 0; i++) {
        found = found || walk->forgotten[i] == item->job.n;
    }
    return found;
}

static void leave_out_forgotten(struct store_walk *walk)
{
    struct move_list *list = walk->list;
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++) {
        if (is_forgotten(walk, &list->items[i])) {
            list->bytes -= list->items[i].bytes;
            free(list->items[i].name);
        } else {
            list->items[kept++] = list->items[i];
        }
    }
    list->count = kept;
}

cadre_status move_list_store(
    struct objects *objects, struct move_list *ret_list, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *root = objects_path(objects, "%s", "");
    struct store_walk walk = {.root = root, .list = ret_list};
    *ret_list = (struct move_list){0};
    cadre_status status = objects_list(objects, root, true, add_object, &walk, error);
    leave_out_forgotten(&walk);
    free(walk.forgotten);
    return status == CADRE_OK ? sort_list(ret_list, error) : status;
}
