/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/closures/worker_things.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/pure/assert.h"
#include "worker/library/input/user_call.h"

static cadre_status make_dataset(
    struct worker_thing *thing, uint32_t replicas, struct cadre_error *error)
{
    CADRE_ASSERT(thing->kind == REGISTERED_DATASET);
    CADRE_ASSERT(thing->iterator == NULL);
    const cadre_input_context context = {
        .num_input_pipelines = 1, .input_pipeline_id = 0, .num_replicas_in_sync = replicas};
    const struct registration *made_of = thing->made_of;
    user_call_begin();
    CADRE_TRY(user_call_end(
        made_of->dataset(&context, &thing->data, made_of->user), "cadre_dataset_register", error));
    if (thing->data == NULL) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "cadre_dataset_register: the function made no dataset; give one reference of a "
            "dataset");
    }
    user_call_begin();
    cadre_status status = cadre_dataset_iterate(thing->data, 0, &thing->iterator);
    return status == CADRE_OK ? CADRE_OK
                              : cadre_error_set(error, status, "%s", cadre_error_message());
}

static cadre_status make_resource(struct worker_thing *thing, struct cadre_error *error)
{
    CADRE_ASSERT(thing->kind == REGISTERED_RESOURCE);
    CADRE_ASSERT(!thing->has_resource);
    const struct registration *made_of = thing->made_of;
    user_call_begin();
    CADRE_TRY(user_call_end(
        made_of->resource(&thing->resource, made_of->user), "cadre_resource_register", error));
    thing->has_resource = true;
    return CADRE_OK;
}

/* The places for things are few, the things lie still. */
static cadre_status add(
    struct worker_things *things, struct worker_thing **ret_thing, struct cadre_error *error)
{
    CADRE_ASSERT(things->count <= things->capacity);
    if (things->count == things->capacity) {
        uint64_t capacity = things->capacity == 0 ? 8 : things->capacity * 2;
        struct worker_thing **more =
            realloc(things->things, (size_t)capacity * sizeof(struct worker_thing *));
        if (more == NULL) {
            return cadre_error_set(
                error, CADRE_RESOURCE_EXHAUSTED, "no memory for a worker's datasets and resources");
        }
        things->things = more;
        things->capacity = capacity;
    }
    *ret_thing = calloc(1, sizeof **ret_thing);
    if (*ret_thing == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for a worker's datasets and resources");
    }
    things->things[things->count++] = *ret_thing;
    return CADRE_OK;
}

cadre_status things_make(struct worker_things *things, uint32_t replicas, uint64_t number,
    uint64_t kind, const char *name, struct cadre_error *error)
{
    struct worker_thing *thing = NULL;
    if (number != things->count + 1 ||
        (kind != REGISTERED_DATASET && kind != REGISTERED_RESOURCE)) {
        return cadre_error_set(error, CADRE_INTERNAL,
            "the chief wants thing %llu of kind %llu made, and there are %llu",
            (unsigned long long)number, (unsigned long long)kind,
            (unsigned long long)things->count);
    }
    CADRE_TRY(add(things, &thing, error));
    thing->kind = (enum registration_kind)kind;
    snprintf(thing->name, sizeof thing->name, "%s", name);
    if (registry_find(thing->kind, name, &thing->made_of, &thing->failed) == CADRE_OK) {
        (void)(thing->kind == REGISTERED_DATASET ? make_dataset(thing, replicas, &thing->failed)
                                                 : make_resource(thing, &thing->failed));
    }
    return CADRE_OK;
}

struct worker_thing *things_find(const struct worker_things *things, uint64_t number)
{
    return number >= 1 && number <= things->count ? things->things[number - 1] : NULL;
}

void things_clear(struct worker_things *things)
{
    while (things->count > 0) {
        struct worker_thing *thing = things->things[--things->count];
        worker_batches_clear(&thing->batches);
        cadre_iterator_release(thing->iterator);
        cadre_dataset_release(thing->data);
        if (thing->has_resource && thing->made_of->release != NULL) {
            thing->made_of->release(thing->resource, thing->made_of->user);
        }
        free(thing);
    }
    free(things->things);
    *things = (struct worker_things){0};
}
