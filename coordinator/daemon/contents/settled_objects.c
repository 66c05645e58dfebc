/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/daemon/contents/settled_objects.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"

#define NAME_BYTES 34 /* as text, in the order of term and number */

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

static cadre_status look_or_put(struct objects *objects, const struct settled_put *put,
    char **ret_settled, size_t *ret_size, struct cadre_error *error)
{
    char name[NAME_BYTES] = "";
    CADRE_TRY(objects_list(objects, put->folder, true, keep_highest, name, error));
    if (name[0] == '\0') {
        make_name(put->term, put->number, name);
        CADRE_FREE_AT_EXIT char *own = storage_join(put->folder, name);
        CADRE_TRY(objects_put(objects, own, put->bytes, put->size, error));
    }
    CADRE_FREE_AT_EXIT char *path = storage_join(put->folder, name);
    return objects_get(objects, path, SETTLED_BYTES, ret_settled, ret_size, error);
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
