/* SPDX-License-Identifier: Apache-2.0
 * See neighbour_objects.h. */
#include "worker/library/neighbours/neighbour_objects.h"

#include <string.h>

#include "common/base/clock.h"
#include "common/pure/assert.h"

/* So long an object stays open after the last question. */
#define KEPT_US (2 * CADRE_US_PER_S)

void neighbour_objects_init(struct neighbour_objects *objects)
{
    memset(objects, 0, sizeof *objects);
    pthread_mutex_init(&objects->lock, NULL);
}

void neighbour_objects_finish(struct neighbour_objects *objects)
{
    for (size_t i = 0; i < NEIGHBOUR_OBJECTS_MAX; i++) {
        CADRE_ASSERT(objects->objects[i].users == 0);
        object_close(objects->objects[i].object);
    }
    pthread_mutex_destroy(&objects->lock);
}

static struct neighbour_object *find_path(struct neighbour_objects *objects, const char *path)
{
    for (size_t i = 0; i < NEIGHBOUR_OBJECTS_MAX; i++) {
        struct neighbour_object *entry = &objects->objects[i];
        if (entry->object != NULL && strcmp(object_path(entry->object), path) == 0) {
            return entry;
        }
    }
    return NULL;
}

/* Free, or the one without users that was used longest ago, which is then closed; NULL: all are in
 * use. */
static struct neighbour_object *find_room(struct neighbour_objects *objects)
{
    struct neighbour_object *found = NULL;
    for (size_t i = 0; i < NEIGHBOUR_OBJECTS_MAX; i++) {
        struct neighbour_object *entry = &objects->objects[i];
        if (entry->object == NULL) {
            return entry;
        }
        if (entry->users == 0 && (found == NULL || entry->used_us < found->used_us)) {
            found = entry;
        }
    }
    if (found != NULL) {
        object_close(found->object);
        *found = (struct neighbour_object){0};
    }
    return found;
}

cadre_status neighbour_objects_take(struct neighbour_objects *objects, const char *path,
    struct object **ret_object, struct cadre_error *error)
{
    pthread_mutex_lock(&objects->lock);
    struct neighbour_object *entry = find_path(objects, path);
    *ret_object = entry != NULL ? entry->object : NULL;
    if (entry != NULL) {
        entry->users++;
    }
    pthread_mutex_unlock(&objects->lock);
    return entry != NULL ? CADRE_OK : object_open(path, ret_object, error);
}

/* Two threads may have opened it: both have a reference, and one entry is enough. */
void neighbour_objects_give(struct neighbour_objects *objects, struct object *object, bool keep)
{
    struct object *closed = NULL;
    pthread_mutex_lock(&objects->lock);
    struct neighbour_object *entry = find_path(objects, object_path(object));
    if (entry != NULL && entry->object == object && entry->users > 0) {
        entry->users--;
    } else if (keep && entry == NULL && (entry = find_room(objects)) != NULL) {
        entry->object = object;
    } else {
        closed = object;
    }
    if (entry != NULL) {
        entry->used_us = clock_monotonic_us();
    }
    if (!keep && entry != NULL && entry->users == 0 && entry->object == object) {
        object_close(entry->object);
        *entry = (struct neighbour_object){0};
    }
    pthread_mutex_unlock(&objects->lock);
    object_close(closed);
}

bool neighbour_objects_tidy(struct neighbour_objects *objects)
{
    uint64_t now_us = clock_monotonic_us();
    bool left = false;
    pthread_mutex_lock(&objects->lock);
    for (size_t i = 0; i < NEIGHBOUR_OBJECTS_MAX; i++) {
        struct neighbour_object *entry = &objects->objects[i];
        if (entry->object != NULL && entry->users == 0 && now_us - entry->used_us > KEPT_US) {
            object_close(entry->object);
            *entry = (struct neighbour_object){0};
        }
        left = left || entry->object != NULL;
    }
    pthread_mutex_unlock(&objects->lock);
    return left;
}
