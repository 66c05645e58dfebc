/* SPDX-License-Identifier: Apache-2.0
 * See worker_objects.h. Called by closure_worker.c and closure_run.c. */
#include "worker/library/runtime/closures/worker_objects.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/pure/assert.h"
#include "worker/library/input/node/user_call.h"

static cadre_status make_dataset(
    struct worker_object *object, uint32_t replicas, struct cadre_error *error)
{
    CADRE_ASSERT(object->kind == REGISTERED_DATASET);
    CADRE_ASSERT(object->iterator == NULL);
    const cadre_input_context context = {
        .num_input_pipelines = 1, .input_pipeline_id = 0, .num_replicas_in_sync = replicas};
    const struct registration *made_of = object->made_of;
    user_call_begin();
    CADRE_TRY(user_call_end(
        made_of->dataset(&context, &object->data, made_of->user), "cadre_dataset_register", error));
    if (object->data == NULL) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "cadre_dataset_register: the function made no dataset; give one reference of a "
            "dataset");
    }
    user_call_begin();
    cadre_status status = cadre_dataset_iterate(object->data, 0, &object->iterator);
    return status == CADRE_OK ? CADRE_OK
                              : cadre_error_set(error, status, "%s", cadre_error_message());
}

static cadre_status make_resource(struct worker_object *object, struct cadre_error *error)
{
    CADRE_ASSERT(object->kind == REGISTERED_RESOURCE);
    CADRE_ASSERT(!object->has_resource);
    const struct registration *made_of = object->made_of;
    user_call_begin();
    CADRE_TRY(user_call_end(
        made_of->resource(&object->resource, made_of->user), "cadre_resource_register", error));
    object->has_resource = true;
    return CADRE_OK;
}

/* The array grows; the objects do not move. */
static cadre_status worker_objects_add(struct worker_objects *objects,
    struct worker_object **ret_worker_object, struct cadre_error *error)
{
    CADRE_ASSERT(objects->count <= objects->capacity);
    if (objects->count == objects->capacity) {
        uint64_t capacity = objects->capacity == 0 ? 8 : objects->capacity * 2;
        struct worker_object **more =
            realloc(objects->objects, (size_t)capacity * sizeof(struct worker_object *));
        if (more == NULL) {
            return cadre_error_set(
                error, CADRE_RESOURCE_EXHAUSTED, "no memory for a worker's datasets and resources");
        }
        objects->objects = more;
        objects->capacity = capacity;
    }
    *ret_worker_object = calloc(1, sizeof **ret_worker_object);
    if (*ret_worker_object == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for a worker's datasets and resources");
    }
    objects->objects[objects->count++] = *ret_worker_object;
    return CADRE_OK;
}

cadre_status worker_objects_make(struct worker_objects *objects, uint32_t replicas, uint64_t number,
    uint64_t kind, const char *name, struct cadre_error *error)
{
    struct worker_object *object = NULL;
    if (number != objects->count + 1 ||
        (kind != REGISTERED_DATASET && kind != REGISTERED_RESOURCE)) {
        return cadre_error_set(error, CADRE_INTERNAL,
            "the chief sent object %llu of kind %llu to make, and there are %llu",
            (unsigned long long)number, (unsigned long long)kind,
            (unsigned long long)objects->count);
    }
    CADRE_TRY(worker_objects_add(objects, &object, error));
    object->kind = (enum registration_kind)kind;
    snprintf(object->name, sizeof object->name, "%s", name);
    if (closure_registry_find(object->kind, name, &object->made_of, &object->failed) == CADRE_OK) {
        (void)(object->kind == REGISTERED_DATASET ? make_dataset(object, replicas, &object->failed)
                                                  : make_resource(object, &object->failed));
    }
    return CADRE_OK;
}

struct worker_object *worker_objects_find(const struct worker_objects *objects, uint64_t number)
{
    return number >= 1 && number <= objects->count ? objects->objects[number - 1] : NULL;
}

void worker_objects_clear(struct worker_objects *objects)
{
    while (objects->count > 0) {
        struct worker_object *object = objects->objects[--objects->count];
        worker_batches_clear(&object->batches);
        cadre_iterator_release(object->iterator);
        cadre_dataset_release(object->data);
        if (object->has_resource && object->made_of->release != NULL) {
            object->made_of->release(object->resource, object->made_of->user);
        }
        free(object);
    }
    free(objects->objects);
    *objects = (struct worker_objects){0};
}
