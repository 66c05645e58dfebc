/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/daemon/contents/content_looks.h"

#include <pthread.h>

#include "common/base/cleanup.h"
#include "common/base/thread.h"
#include "coordinator/daemon/objects/object_names.h"

#define LOOKERS 8

/* From `first` on each LOOKERS-th. */
struct looker {
    struct objects *objects;
    struct content_look *looks;
    size_t count;
    size_t first;
    pthread_t thread;
    bool has_thread;
    struct cadre_error error;
};

static cadre_status look_at(
    struct objects *objects, struct content_look *look, struct cadre_error *error)
{
    struct storage_object *object = NULL;
    struct cadre_error why = {0};
    CADRE_FREE_AT_EXIT char *path = object_name_of_blob(objects, look->hash.bytes);
    cadre_status status = objects_look(objects, path, &object, &why);
    look->there = status == CADRE_OK;
    if (status == CADRE_OK) {
        look->bytes = storage_info_of(object)->bytes;
        look->added_us = (uint64_t)storage_info_of(object)->modified_us;
        storage_close(object);
    } else if (status != CADRE_NOT_FOUND) {
        *error = why;
        return status;
    }
    return CADRE_OK;
}

static void *look_at_some(void *user)
{
    struct looker *looker = user;
    cadre_status status = CADRE_OK;
    for (size_t i = looker->first; i < looker->count && status == CADRE_OK; i += LOOKERS) {
        status = look_at(looker->objects, &looker->looks[i], &looker->error);
    }
    return NULL;
}

cadre_status content_looks(
    struct objects *objects, struct content_look *looks, size_t count, struct cadre_error *error)
{
    struct looker lookers[LOOKERS];
    cadre_status status = CADRE_OK;
    for (size_t i = 0; i < LOOKERS; i++) {
        lookers[i] =
            (struct looker){.objects = objects, .looks = looks, .count = count, .first = i};
        lookers[i].has_thread = i + 1 < LOOKERS && i < count &&
                                thread_start(&lookers[i].thread, look_at_some, &lookers[i]) == 0;
        if (!lookers[i].has_thread) {
            (void)look_at_some(&lookers[i]);
        }
    }
    for (size_t i = 0; i < LOOKERS; i++) {
        if (lookers[i].has_thread) {
            pthread_join(lookers[i].thread, NULL);
        }
        if (status == CADRE_OK && lookers[i].error.code != CADRE_OK) {
            *error = lookers[i].error;
            status = error->code;
        }
    }
    return status;
}
