/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/daemon/series/series_objects.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/files.h"
#include "coordinator/daemon/objects/object_names.h"

#define NAME_BYTES 48

/* So many objects behind a snapshot: the next one is a snapshot again. */
#define CHAIN_MAX 64

struct link_name {
    uint64_t term;
    uint64_t number;
    bool is_snapshot;
};

struct link_list {
    struct link_name *items;
    size_t count;
    size_t capacity;
    bool short_of_memory;
};

static cadre_status no_memory(struct cadre_error *error)
{
    return cadre_error_set(
        error, CADRE_RESOURCE_EXHAUSTED, "the coordinator has no memory for values");
}

static char *path_of_link(const struct series_objects *series, const struct link_name *name)
{
    char text[NAME_BYTES];
    snprintf(text, sizeof text, "%016" PRIx64 "-%016" PRIx64 "-%c", name->term, name->number,
        name->is_snapshot ? 's' : 'a');
    return object_name_of_series(series->objects, series->job, text);
}

static bool parse_link(const char *text, struct link_name *ret_name)
{
    struct link_name name = {0};
    char kind = 0;
    char again[NAME_BYTES];
    if (sscanf(text, "%16" SCNx64 "-%16" SCNx64 "-%c", &name.term, &name.number, &kind) != 3) {
        return false;
    }
    snprintf(again, sizeof again, "%016" PRIx64 "-%016" PRIx64 "-%c", name.term, name.number, kind);
    name.is_snapshot = kind == 's';
    *ret_name = name;
    return strcmp(text, again) == 0 && (kind == 's' || kind == 'a');
}

static bool add_link(void *user, const struct storage_entry *entry)
{
    struct link_list *list = user;
    struct link_name name;
    const char *slash = strrchr(entry->path, '/');
    if (entry->is_folder || slash == NULL || !parse_link(slash + 1, &name)) {
        return true;
    }
    if (list->count == list->capacity) {
        size_t capacity = list->capacity > 0 ? 2 * list->capacity : 64;
        struct link_name *grown = realloc(list->items, capacity * sizeof *grown);
        if (grown == NULL) {
            list->short_of_memory = true;
            return false;
        }
        list->items = grown;
        list->capacity = capacity;
    }
    list->items[list->count++] = name;
    return true;
}

static int by_term_and_number(const void *a, const void *b)
{
    const struct link_name *left = a;
    const struct link_name *right = b;
    if (left->term != right->term) {
        return left->term < right->term ? -1 : 1;
    }
    return left->number < right->number ? -1 : left->number > right->number ? 1 : 0;
}

/* In order; the caller frees ret_list->items, also on an error. */
static cadre_status list_links(
    const struct series_objects *series, struct link_list *ret_list, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *folder = object_name_of_series(series->objects, series->job, NULL);
    *ret_list = (struct link_list){0};
    CADRE_TRY(objects_list(series->objects, folder, true, add_link, ret_list, error));
    if (ret_list->short_of_memory) {
        return no_memory(error);
    }
    if (ret_list->count > 0) {
        qsort(ret_list->items, ret_list->count, sizeof *ret_list->items, by_term_and_number);
    }
    return CADRE_OK;
}

/* ---- the newest snapshot, by its name: a store may list it late ---- */

#define NEWEST_NAME  "newest"
#define NEWEST_BYTES 64

static cadre_status put_newest(const struct series_objects *series,
    const struct link_name *snapshot, struct cadre_error *error)
{
    char text[NEWEST_BYTES];
    int length = snprintf(
        text, sizeof text, "%016" PRIx64 " %016" PRIx64 "\n", snapshot->term, snapshot->number);
    CADRE_FREE_AT_EXIT char *path =
        object_name_of_series(series->objects, series->job, NEWEST_NAME);
    return objects_put(series->objects, path, text, (size_t)length, error);
}

/* *ret_is: there is one. */
static cadre_status read_newest(const struct series_objects *series, struct link_name *ret_snapshot,
    bool *ret_is, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *path =
        object_name_of_series(series->objects, series->job, NEWEST_NAME);
    CADRE_FREE_AT_EXIT char *text = NULL;
    struct cadre_error why = {0};
    size_t size = 0;
    *ret_snapshot = (struct link_name){.is_snapshot = true};
    *ret_is = false;
    cadre_status status = objects_get(series->objects, path, NEWEST_BYTES, &text, &size, &why);
    if (status == CADRE_OK) {
        *ret_is = sscanf(text, "%16" SCNx64 " %16" SCNx64, &ret_snapshot->term,
                      &ret_snapshot->number) == 2;
    } else if (status != CADRE_NOT_FOUND) {
        *error = why;
        return status;
    }
    return CADRE_OK;
}

/* ---- reading ---- */

/* The newest snapshot that is listed; false: there is none. */
static bool find_snapshot(const struct link_list *list, struct link_name *ret_snapshot)
{
    size_t at = list->count;
    while (at > 0 && !list->items[at - 1].is_snapshot) {
        at--;
    }
    if (at > 0) {
        *ret_snapshot = list->items[at - 1];
    }
    return at > 0;
}

/* The snapshot and what follows it in its term, each number behind the one before, also what is not
 * listed yet: what is behind a gap was never acknowledged. *ret_last: the last number. */
static cadre_status fetch_chain(const struct series_objects *series,
    const struct link_name *snapshot, int fd, uint64_t *ret_last, struct cadre_error *error)
{
    struct link_name name = *snapshot;
    cadre_status status = CADRE_OK;
    while (status == CADRE_OK) {
        struct cadre_error why = {0};
        CADRE_FREE_AT_EXIT char *path = path_of_link(series, &name);
        status = objects_fetch(series->objects, path, fd, &why);
        if (status == CADRE_OK) {
            *ret_last = name.number++;
            name.is_snapshot = false;
        } else if (status != CADRE_NOT_FOUND || name.is_snapshot) {
            *error = why;
            return status;
        }
    }
    return CADRE_OK;
}

static cadre_status fetch_from(const struct series_objects *series, const char *path,
    const struct link_name *snapshot, uint64_t *ret_last, struct cadre_error *error)
{
    (void)unlink(path);
    CADRE_CLOSE_AT_EXIT int fd = file_open_made(path);
    if (fd < 0) {
        return cadre_error_errno(error, errno, "the coordinator cannot write %s", path);
    }
    return fetch_chain(series, snapshot, fd, ret_last, error);
}

/* From the newer one of two snapshots; one that is not there any more was replaced by the other. */
static cadre_status fetch_newest(const struct series_objects *series, const char *path,
    const struct link_list *list, struct link_name *ret_last, struct cadre_error *error)
{
    struct link_name listed = {0};
    struct link_name named = {0};
    bool is_named = false;
    struct cadre_error why = {0};
    bool is_listed = find_snapshot(list, &listed);
    *ret_last = (struct link_name){0};
    CADRE_TRY(read_newest(series, &named, &is_named, error));
    if (!is_named && !is_listed) {
        (void)unlink(path);
        return CADRE_OK;
    }
    bool from_named = is_named && (!is_listed || by_term_and_number(&named, &listed) >= 0);
    *ret_last = from_named ? named : listed;
    cadre_status status = fetch_from(series, path, ret_last, &ret_last->number, &why);
    if (status == CADRE_NOT_FOUND && is_named && is_listed) {
        *ret_last = from_named ? listed : named;
        why = (struct cadre_error){0};
        status = fetch_from(series, path, ret_last, &ret_last->number, &why);
    }
    if (status == CADRE_NOT_FOUND) {
        return cadre_error_set(error, CADRE_UNAVAILABLE,
            "what the program of job %" PRIu64
            " reported is listed in the object store, and not there: it is looked for again",
            series->job.n);
    }
    if (status != CADRE_OK) {
        *error = why;
    }
    return status;
}

cadre_status series_objects_fetch(
    struct series_objects *series, const char *path, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT struct link_name *items = NULL;
    struct link_list list = {0};
    struct link_name last;
    if (series->objects == NULL || series->is_fetched) {
        return CADRE_OK;
    }
    cadre_status status = list_links(series, &list, error);
    items = list.items;
    CADRE_TRY(status);
    CADRE_TRY(fetch_newest(series, path, &list, &last, error));
    const struct link_name *newest = list.count > 0 ? &list.items[list.count - 1] : &last;
    newest = by_term_and_number(newest, &last) > 0 ? newest : &last;
    if (newest->term == series->term && newest->number >= series->number) {
        series->number = newest->number + 1; /* its own, of before it had dropped them */
    }
    series->snapshot_due = true;
    series->is_fetched = true;
    return CADRE_OK;
}

/* ---- writing ---- */

/* What a snapshot of this coordinator replaces. */
static void remove_older(const struct series_objects *series, uint64_t number)
{
    CADRE_FREE_AT_EXIT struct link_name *items = NULL;
    struct link_list list;
    struct cadre_error error = {0};
    cadre_status status = list_links(series, &list, &error);
    items = list.items;
    const struct link_name own = {.term = series->term, .number = number};
    for (size_t i = 0; status == CADRE_OK && i < list.count; i++) {
        if (by_term_and_number(&list.items[i], &own) < 0 && leading_holds(series->leading)) {
            CADRE_FREE_AT_EXIT char *path = path_of_link(series, &list.items[i]);
            status = objects_remove(series->objects, path, &error); /* else a later one does */
        }
    }
}

cadre_status series_objects_put(struct series_objects *series, bool is_snapshot,
    const uint8_t *bytes, size_t size, struct cadre_error *error)
{
    if (series->objects == NULL) {
        return CADRE_OK;
    }
    const struct link_name name = {
        .term = series->term, .number = series->number++, .is_snapshot = is_snapshot};
    CADRE_FREE_AT_EXIT char *path = path_of_link(series, &name);
    series->snapshot_due = true;
    CADRE_TRY(objects_put(series->objects, path, bytes, size, error));
    if (is_snapshot && leading_holds(series->leading)) {
        CADRE_TRY(put_newest(series, &name, error));
    }
    if (!leading_holds(series->leading)) {
        return cadre_error_set(
            error, CADRE_UNAVAILABLE, "this coordinator does not know whether it leads still");
    }
    series->snapshot_due = name.number % CHAIN_MAX == CHAIN_MAX - 1;
    if (is_snapshot) {
        remove_older(series, name.number);
    }
    return CADRE_OK;
}
