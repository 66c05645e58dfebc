/* SPDX-License-Identifier: Apache-2.0
 * A worker's own datasets and resources, by the numbers that the chief gave them. */
#ifndef CADRE_RUNTIME_CLOSURES_WORKER_OBJECTS_H
#define CADRE_RUNTIME_CLOSURES_WORKER_OBJECTS_H

#include <stdbool.h>
#include <stdint.h>

#include "cadre/dataset.h"
#include "common/base/error.h"
#include "worker/library/runtime/closures/closure_registry.h"
#include "worker/library/runtime/closures/worker_batches.h"

/* One dataset or resource; `failed` has why it could not be made. */
struct worker_object {
    enum registration_kind kind;
    char name[LIMIT_NAME_BYTES];
    const struct registration *made_of; /* NULL: no such entry is registered */
    struct cadre_error failed;
    cadre_dataset *data;
    cadre_iterator *iterator;
    bool iterated; /* its elements were taken by the iterator */
    struct worker_batches batches;
    bool has_resource;
    void *resource;
};

/* Object `number` is objects[number - 1]: the chief sends them in order. */
struct worker_objects {
    struct worker_object **objects;
    uint64_t count;
    uint64_t capacity;
};

/* Calls the program's function; that of a dataset receives `replicas`. Its failure is kept in the
 * object and is no error here. INTERNAL: a number or kind that no chief sends, or no memory. */
cadre_status worker_objects_make(struct worker_objects *objects, uint32_t replicas, uint64_t number,
    uint64_t kind, const char *name, struct cadre_error *error);
/* NULL: there is none of this number. */
struct worker_object *worker_objects_find(const struct worker_objects *objects, uint64_t number);
/* Releases all objects. */
void worker_objects_clear(struct worker_objects *objects);

#endif
