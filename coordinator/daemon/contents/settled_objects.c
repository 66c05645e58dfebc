/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/daemon/contents/settled_objects.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"

#define NAME_BYTES 34 /* as text, in the order of term and number */
#define NEWEST     "newest"

static cadre_status no_memory(struct cadre_error *error)
{
    return cadre_error_set(
        error, CADRE_RESOURCE_EXHAUSTED, "no memory for what a job's file is to be");
}

static void make_name(uint64_t term, uint64_t number, char name[NAME_BYTES])
{
    snprintf(name, NAME_BYTES, "%016" PRIx64 "-%016" PRIx64, term, number);
}

static bool is_name(const char *text)
{
    uint64_t term = 0;
    uint64_t number = 0;
    char again[NAME_BYTES];
    if (sscanf(text, "%16" SCNx64 "-%16" SCNx64, &term, &number) != 2) {
        return false;
    }
    make_name(term, number, again);
    return strcmp(text, again) == 0;
}

static bool keep_highest(void *user, const struct storage_entry *entry)
{
    char *highest = user; /* NAME_BYTES; "": none */
    const char *slash = strrchr(entry->path, '/');
    if (!entry->is_folder && slash != NULL && is_name(slash + 1) &&
        strcmp(slash + 1, highest) > 0) {
        memcpy(highest, slash + 1, NAME_BYTES);
    }
    return true;
}

/* The name that <folder>/newest has; "": none. */
static cadre_status read_newest(
    struct objects *objects, const char *folder, char name[NAME_BYTES], struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *path = storage_join(folder, NEWEST);
    CADRE_FREE_AT_EXIT char *text = NULL;
    size_t size = 0;
    struct cadre_error missing = {0};
    name[0] = '\0';
    if (path == NULL) {
        return no_memory(error);
    }
    cadre_status status = objects_get(objects, path, NAME_BYTES, &text, &size, &missing);
    if (status == CADRE_NOT_FOUND) {
        return CADRE_OK;
    }
    if (status != CADRE_OK) {
        *error = missing;
        return status;
    }
    if (size == NAME_BYTES - 1 && is_name(text)) {
        memcpy(name, text, NAME_BYTES);
    }
    return CADRE_OK;
}

static cadre_status put_beneath(struct objects *objects, const char *folder, const char *name,
    const void *bytes, size_t size, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *path = storage_join(folder, name);
    return path != NULL ? objects_put(objects, path, bytes, size, error) : no_memory(error);
}

/* The highest name, of those that are listed and the one that is named the newest; "": none.
 * *ret_newest is the latter. */
static cadre_status find_highest(struct objects *objects, const char *folder,
    char highest[NAME_BYTES], char newest[NAME_BYTES], struct cadre_error *error)
{
    highest[0] = '\0';
    CADRE_TRY(objects_list(objects, folder, true, keep_highest, highest, error));
    CADRE_TRY(read_newest(objects, folder, newest, error));
    if (strcmp(newest, highest) > 0) {
        memcpy(highest, newest, NAME_BYTES);
    }
    return CADRE_OK;
}

static cadre_status get_beneath(struct objects *objects, const char *folder, const char *name,
    char **ret_settled, size_t *ret_size, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *path = storage_join(folder, name);
    return path != NULL ? objects_get(objects, path, SETTLED_BYTES, ret_settled, ret_size, error)
                        : no_memory(error);
}

static cadre_status look_or_put(struct objects *objects, const struct settled_put *put,
    char **ret_settled, size_t *ret_size, struct cadre_error *error)
{
    char name[NAME_BYTES];
    char newest[NAME_BYTES];
    CADRE_TRY(find_highest(objects, put->folder, name, newest, error));
    if (name[0] == '\0') {
        make_name(put->term, put->number, name);
        CADRE_TRY(put_beneath(objects, put->folder, name, put->bytes, put->size, error));
    }
    if (strcmp(newest, name) != 0) {
        CADRE_TRY(put_beneath(objects, put->folder, NEWEST, name, strlen(name), error));
    }
    return get_beneath(objects, put->folder, name, ret_settled, ret_size, error);
}

cadre_status settled_objects_get(struct objects *objects, const char *folder, char **ret_settled,
    size_t *ret_size, struct cadre_error *error)
{
    char name[NAME_BYTES];
    char newest[NAME_BYTES];
    CADRE_TRY(find_highest(objects, folder, name, newest, error));
    return name[0] != '\0'
               ? get_beneath(objects, folder, name, ret_settled, ret_size, error)
               : cadre_error_set(error, CADRE_NOT_FOUND, "nothing is settled in %s", folder);
}

cadre_status settled_objects_put_first(struct objects *objects, const char *folder,
    const void *bytes, size_t size, struct cadre_error *error)
{
    char name[NAME_BYTES];
    make_name(0, 0, name);
    CADRE_TRY(put_beneath(objects, folder, name, bytes, size, error));
    return put_beneath(objects, folder, NEWEST, name, strlen(name), error);
}

cadre_status settled_objects_settle(struct objects *objects, const struct leading *leading,
    const struct settled_put *put, char **ret_settled, size_t *ret_size, struct cadre_error *error)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    cadre_status status = look_or_put(objects, put, ret_settled, ret_size, error);
    pthread_mutex_unlock(&lock);
    if (status == CADRE_OK && !leading_holds(leading)) {
        free(*ret_settled);
        *ret_settled = NULL;
        return cadre_error_set(error, CADRE_UNAVAILABLE,
            "this coordinator may not lead any more: ask the one that does");
    }
    return status;
}
