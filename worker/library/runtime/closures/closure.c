/* SPDX-License-Identifier: Apache-2.0
 * What a closure's function may call: arguments, worker index, cancellation. Called by the program;
 * closure_run.c sets the thread's closure. */
#include "worker/library/runtime/closures/closure.h"

#include "common/pure/assert.h"
#include "worker/library/device/argument.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/strategy/scope.h"

static _Thread_local uint32_t worker_index = UINT32_MAX;
static _Thread_local cadre_closure *current;

void closure_worker_enter(uint32_t index)
{
    CADRE_ASSERT(current == NULL); /* the closure before has ended */
    worker_index = index;
}

void closure_enter(cadre_closure *closure)
{
    CADRE_ASSERT(current == NULL); /* a worker runs one closure at a time */
    CADRE_ASSERT(closure->number != 0);
    CADRE_ASSERT(closure->worker == worker_index);
    current = closure;
}

void closure_leave(cadre_closure *closure)
{
    CADRE_ASSERT(current == closure);
    current = NULL;
}

void closure_inherit(uint32_t index, cadre_closure *closure)
{
    CADRE_ASSERT(closure == NULL || closure->worker == index);
    worker_index = index;
    current = closure;
}

cadre_closure *closure_current(void)
{
    return current;
}

bool closure_is_cancelled(void)
{
    return cadre_closure_cancelled(current);
}

cadre_status cadre_worker_index(uint32_t *ret_index)
{
    struct cadre_error error = {0};
    cadre_status status = argument_require(ret_index, "cadre_worker_index", "ret_index", &error);
    if (status == CADRE_OK && worker_index == UINT32_MAX) {
        status = cadre_error_set(&error, CADRE_FAILED_PRECONDITION,
            "cadre_worker_index was called in a thread that runs nothing for a worker; call it in "
            "a function that is registered for closures, datasets or resources");
    }
    if (status == CADRE_OK) {
        *ret_index = worker_index;
    }
    return api_return(status, &error);
}

/* An argument of the closure that this thread runs. Never reads another closure, which may be
 * freed. */
static cadre_status closure_find(const cadre_closure *closure, const char *function,
    uint32_t argument, const struct closure_argument **ret_argument, struct cadre_error *error)
{
    CADRE_TRY(argument_require(closure, function, "closure", error));
    if (closure != closure_current()) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s was called with a closure that the calling thread does not run; call it in the "
            "closure's own function",
            function);
    }
    if (argument >= closure->argument_count) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s was asked for argument %u, and the closure has %u", function, argument,
            closure->argument_count);
    }
    *ret_argument = &closure->arguments[argument];
    return CADRE_OK;
}

static cadre_status other_kind(const char *function, uint32_t argument,
    const struct closure_argument *is, const char *wanted, struct cadre_error *error)
{
    if (is->object == NULL) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s was asked for %s, and argument %u is a tensor; take it with cadre_closure_tensor",
            function, wanted, argument);
    }
    bool dataset = is->object->kind == REGISTERED_DATASET;
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
        "%s was asked for %s, and argument %u is the %s `%s`; take it with %s", function, wanted,
        argument, registration_kind_name(is->object->kind), is->object->name,
        dataset ? "cadre_closure_next" : "cadre_closure_resource");
}

uint32_t cadre_closure_argument_count(const cadre_closure *closure)
{
    return closure == NULL ? 0 : closure->argument_count;
}

uint64_t cadre_closure_number(const cadre_closure *closure)
{
    return closure == NULL ? 0 : closure->number;
}

bool cadre_closure_cancelled(const cadre_closure *closure)
{
    return closure != NULL && closure->number <= atomic_load(closure->cancelled);
}

cadre_status cadre_closure_tensor(
    cadre_closure *closure, uint32_t argument, cadre_tensor **ret_tensor)
{
    static const char function[] = "cadre_closure_tensor";
    struct cadre_error error = {0};
    const struct closure_argument *found = NULL;
    cadre_status status = argument_require(ret_tensor, function, "ret_tensor", &error);
    if (status == CADRE_OK) {
        *ret_tensor = NULL;
        status = closure_find(closure, function, argument, &found, &error);
    }
    if (status == CADRE_OK && found->tensor == NULL) {
        status = other_kind(function, argument, found, "a tensor", &error);
    }
    if (status == CADRE_OK) {
        *ret_tensor = found->tensor;
    }
    return api_return(status, &error);
}

cadre_status cadre_closure_resource(cadre_closure *closure, uint32_t argument, void **ret_resource)
{
    static const char function[] = "cadre_closure_resource";
    struct cadre_error error = {0};
    const struct closure_argument *found = NULL;
    cadre_status status = argument_require(ret_resource, function, "ret_resource", &error);
    if (status == CADRE_OK) {
        *ret_resource = NULL;
        status = closure_find(closure, function, argument, &found, &error);
    }
    if (status == CADRE_OK &&
        (found->object == NULL || found->object->kind != REGISTERED_RESOURCE)) {
        status = other_kind(function, argument, found, "a resource", &error);
    }
    if (status == CADRE_OK) {
        *ret_resource = found->object->resource;
    }
    return api_return(status, &error);
}

static cadre_status refuse_other_way(const struct worker_object *object, const char *function,
    const char *other, struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
        "%s was called for the dataset `%s`, which closures have read with %s before; read it in "
        "one way, or have two made of it (cadre_create_per_worker_dataset)",
        function, object->name, other);
}

/* The dataset in argument `argument`, for functions that take its next element. Refused in other
 * threads of replicas, which would take elements in no fixed order. */
static cadre_status find_dataset(const cadre_closure *closure, const char *function,
    uint32_t argument, struct worker_object **ret_worker_object, struct cadre_error *error)
{
    const struct closure_argument *found = NULL;
    CADRE_TRY(context_require_cross(function, error));
    CADRE_TRY(closure_find(closure, function, argument, &found, error));
    if (found->object == NULL || found->object->kind != REGISTERED_DATASET) {
        return other_kind(function, argument, found, "a dataset", error);
    }
    *ret_worker_object = found->object;
    return CADRE_OK;
}

/* The caller owns the components. */
static cadre_status closure_next(struct worker_object *object, cadre_tensor *ret_components[],
    uint32_t capacity, uint32_t *ret_count, struct cadre_error *error)
{
    cadre_element element = {0};
    if (object->batches.input != NULL) {
        return refuse_other_way(object, "cadre_closure_next", "cadre_closure_batch", error);
    }
    object->iterated = true;
    cadre_status status = cadre_iterator_next(object->iterator, &element);
    if (status != CADRE_OK) {
        return cadre_error_set(
            error, status, "dataset `%s`: %s", object->name, cadre_error_message());
    }
    if (element.count > capacity) {
        cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "an element of the dataset `%s` has %u components, and there is room for %u; this "
            "element is skipped",
            object->name, element.count, capacity);
        cadre_element_release(&element);
        return error->code;
    }
    for (uint32_t i = 0; i < element.count; i++) {
        ret_components[i] = element.tensors[i];
    }
    *ret_count = element.count;
    return CADRE_OK;
}

cadre_status cadre_closure_next(cadre_closure *closure, uint32_t argument,
    cadre_tensor *ret_components[], uint32_t capacity, uint32_t *ret_count)
{
    static const char function[] = "cadre_closure_next";
    struct cadre_error error = {0};
    struct worker_object *object = NULL;
    uint32_t count = 0;
    cadre_status status = argument_require(ret_components, function, "ret_components", &error);
    if (status == CADRE_OK) {
        status = find_dataset(closure, function, argument, &object, &error);
    }
    if (status == CADRE_OK) {
        status = closure_next(object, ret_components, capacity, &count, &error);
    }
    if (ret_count != NULL) {
        *ret_count = count;
    }
    return api_return(status, &error);
}

cadre_status cadre_closure_batch(cadre_closure *closure, uint32_t argument, cadre_feed consumption,
    cadre_per_replica **ret_batch)
{
    static const char function[] = "cadre_closure_batch";
    struct cadre_error error = {0};
    struct worker_object *object = NULL;
    cadre_status status = argument_require(ret_batch, function, "ret_batch", &error);
    if (status == CADRE_OK) {
        *ret_batch = NULL;
        status = find_dataset(closure, function, argument, &object, &error);
    }
    if (status == CADRE_OK && object->iterated) {
        status = refuse_other_way(object, function, "cadre_closure_next", &error);
    }
    if (status == CADRE_OK) {
        status = worker_batches_next(&object->batches, object->data, object->name, consumption,
            cadre_strategy_local_replicas(scope_worker()), ret_batch, &error);
    }
    return api_return(status, &error);
}
