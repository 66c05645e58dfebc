/* SPDX-License-Identifier: Apache-2.0
 * Objects that are open because other tasks ask for their bytes: each stays open for a moment, so
 * that it is not looked up again for the next question, and no longer, so that another state of it
 * is found. Any thread. */
#ifndef CADRE_WORKER_NEIGHBOURS_NEIGHBOUR_OBJECTS_H
#define CADRE_WORKER_NEIGHBOURS_NEIGHBOUR_OBJECTS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "worker/library/input/objects/object.h"

#define NEIGHBOUR_OBJECTS_MAX 64

struct neighbour_object {
    struct object *object; /* NULL: free */
    uint32_t users;
    uint64_t used_us;
};

struct neighbour_objects {
    pthread_mutex_t lock;
    struct neighbour_object objects[NEIGHBOUR_OBJECTS_MAX];
};

void neighbour_objects_init(struct neighbour_objects *objects);
/* No object may be lent. */
void neighbour_objects_finish(struct neighbour_objects *objects);

/* The object of that path, open until it is given back. The errors of object_open. */
cadre_status neighbour_objects_take(struct neighbour_objects *objects, const char *path,
    struct object **ret_object, struct cadre_error *error);
/* `keep`: it may be asked for again. */
void neighbour_objects_give(struct neighbour_objects *objects, struct object *object, bool keep);

/* Closes those that were not asked for lately. Whether some are left. */
bool neighbour_objects_tidy(struct neighbour_objects *objects);

#endif
