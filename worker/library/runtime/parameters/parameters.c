/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/parameters/parameters.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/device/tensor.h"
#include "worker/library/runtime/border/border.h"
#include "worker/library/runtime/parameters/parameter_views.h"
#include "worker/library/runtime/state/checkpoint_read.h"

static _Atomic(struct parameters *) current;

/* --- all of them --- */

cadre_status parameters_begin(struct crew_state *crew, struct cadre_error *error)
{
    CADRE_ASSERT(crew->parameters == NULL);
    struct parameters *parameters = calloc(1, sizeof *parameters);
    if (parameters == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for parameters");
    }
    parameters->crew = crew;
    pthread_mutex_init(&parameters->lock, NULL);
    crew->parameters = parameters;
    atomic_store(&current, parameters);
    return CADRE_OK;
}

void parameters_end(struct crew_state *crew)
{
    struct parameters *parameters = crew->parameters;
    if (parameters == NULL) {
        return;
    }
    CADRE_ASSERT(parameters->crew == crew);
    atomic_store(&current, NULL);
    for (uint32_t i = 0; i < parameters->count; i++) {
        parameter_free(parameters->list[i]);
    }
    checkpoint_reader_close(parameters->reader);
    pthread_mutex_destroy(&parameters->lock);
    free(parameters->list);
    free(parameters);
    crew->parameters = NULL;
}

cadre_status parameters_require(
    const char *function, struct parameters **ret_parameters, struct cadre_error *error)
{
    *ret_parameters = atomic_load(&current);
    return *ret_parameters != NULL
               ? CADRE_OK
               : cadre_error_set(error, CADRE_FAILED_PRECONDITION,
                     "%s was called where there are no parameter servers; make a strategy with "
                     "cadre_strategy_parameter_server first",
                     function);
}

static bool is_in(struct parameters *parameters, const cadre_parameter *parameter)
{
    bool found = false;
    pthread_mutex_lock(&parameters->lock);
    for (uint32_t i = 0; !found && i < parameters->count; i++) {
        found = parameters->list[i] == parameter;
    }
    pthread_mutex_unlock(&parameters->lock);
    return found;
}

cadre_status parameter_enter(
    const cadre_parameter *parameter, const char *function, struct cadre_error *error)
{
    struct parameters *parameters = atomic_load(&current);
    if (parameter == NULL) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s was given no parameter (NULL); create or find one", function);
    }
    if (parameters == NULL || !is_in(parameters, parameter)) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s was given a parameter that ended with its strategy", function);
    }
    return CADRE_OK;
}

cadre_parameter *parameters_known(struct parameters *parameters, const char *name)
{
    cadre_parameter *found = NULL;
    pthread_mutex_lock(&parameters->lock);
    for (uint32_t i = 0; found == NULL && i < parameters->count; i++) {
        found = strcmp(parameters->list[i]->name, name) == 0 ? parameters->list[i] : NULL;
    }
    pthread_mutex_unlock(&parameters->lock);
    return found;
}

cadre_parameter *parameters_at(struct parameters *parameters, uint32_t i)
{
    pthread_mutex_lock(&parameters->lock);
    cadre_parameter *parameter = i < parameters->count ? parameters->list[i] : NULL;
    pthread_mutex_unlock(&parameters->lock);
    return parameter;
}

static bool make_room(struct parameters *parameters)
{
    CADRE_ASSERT(parameters->count <= parameters->capacity);
    if (parameters->count < parameters->capacity) {
        return true;
    }
    uint32_t capacity = parameters->capacity == 0 ? 16 : parameters->capacity * 2;
    cadre_parameter **grown = realloc(parameters->list, capacity * sizeof(cadre_parameter *));
    if (grown == NULL) {
        return false;
    }
    parameters->list = grown;
    parameters->capacity = capacity;
    return true;
}

cadre_status parameters_add(
    struct parameters *parameters, cadre_parameter **parameter, struct cadre_error *error)
{
    cadre_parameter *added = *parameter;
    CADRE_ASSERT(added->parameters == parameters);
    cadre_parameter *there = NULL;
    pthread_mutex_lock(&parameters->lock);
    for (uint32_t i = 0; there == NULL && i < parameters->count; i++) {
        there = strcmp(parameters->list[i]->name, added->name) == 0 ? parameters->list[i] : NULL;
    }
    bool room = there != NULL || make_room(parameters);
    if (there == NULL && room) {
        parameters->list[parameters->count++] = added;
    }
    pthread_mutex_unlock(&parameters->lock);
    if (there != NULL || !room) {
        parameter_free(added);
        *parameter = there;
    }
    return room ? CADRE_OK
                : cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for %u parameters",
                      parameters->count + 1);
}

/* --- one --- */

cadre_status parameter_new(struct parameters *parameters, const struct parameter_plan *plan,
    cadre_parameter **ret_parameter, struct cadre_error *error)
{
    int64_t count;
    size_t bytes;
    *ret_parameter = NULL;
    CADRE_TRY(tensor_shape_check(plan->dtype, plan->rank, plan->dims, &count, &bytes, error));
    CADRE_ASSERT(plan->shards > 0);
    CADRE_ASSERT(strlen(plan->name) < LIMIT_NAME_BYTES);
    CADRE_ASSERT(plan->rank <= CADRE_RANK_MAX); /* as of each shape */
    cadre_parameter *parameter = calloc(1, sizeof *parameter);
    if (parameter != NULL) {
        parameter->shards = calloc((size_t)plan->shards, sizeof *parameter->shards);
        parameter->views = parameter_views_new(plan->shards);
    }
    if (parameter == NULL || parameter->shards == NULL || parameter->views == NULL) {
        parameter_free(parameter);
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for parameter '%s'", plan->name);
    }
    parameter->parameters = parameters;
    memcpy(parameter->name, plan->name, strlen(plan->name) + 1);
    parameter->dtype = plan->dtype;
    parameter->rank = plan->rank;
    parameter->row_elements = 1;
    for (uint32_t axis = 0; axis < plan->rank; axis++) {
        parameter->dims[axis] = plan->dims[axis];
        parameter->row_elements *= axis == 0 ? 1 : (uint64_t)plan->dims[axis];
    }
    parameter->bytes = bytes;
    parameter->row_bytes = (size_t)parameter->row_elements * cadre_dtype_bytes(plan->dtype);
    parameter->layout = (struct partition_layout){
        .rows = plan->rank == 0 ? 1 : (uint64_t)plan->dims[0], .shards = plan->shards};
    *ret_parameter = parameter;
    return CADRE_OK;
}

void parameter_free(cadre_parameter *parameter)
{
    if (parameter == NULL) {
        return;
    }
    parameter_views_free(parameter->views);
    free(parameter->shards);
    free(parameter);
}

/* --- public --- */

static bool lives(const cadre_parameter *parameter)
{
    return parameter_enter(parameter, "", NULL) == CADRE_OK;
}

const char *cadre_parameter_name(const cadre_parameter *parameter)
{
    return lives(parameter) ? parameter->name : "";
}

cadre_dtype cadre_parameter_dtype(const cadre_parameter *parameter)
{
    return lives(parameter) ? parameter->dtype : CADRE_DTYPE_NONE;
}

uint32_t cadre_parameter_rank(const cadre_parameter *parameter)
{
    return lives(parameter) ? parameter->rank : 0;
}

const int64_t *cadre_parameter_dims(const cadre_parameter *parameter)
{
    return lives(parameter) ? parameter->dims : NULL;
}

uint32_t cadre_parameter_shards(const cadre_parameter *parameter)
{
    return lives(parameter) ? (uint32_t)parameter->layout.shards : 0;
}

size_t cadre_parameter_bytes(const cadre_parameter *parameter)
{
    return lives(parameter) ? parameter->bytes : 0;
}

cadre_status cadre_parameter_shard(const cadre_parameter *parameter, uint32_t shard,
    int64_t *ret_first, int64_t *ret_rows, uint32_t *ret_server)
{
    struct cadre_error error = {0};
    cadre_status status = parameter_enter(parameter, __func__, &error);
    if (status == CADRE_OK && shard >= parameter->layout.shards) {
        status = cadre_error_set(&error, CADRE_OUT_OF_RANGE,
            "parameter '%s' has no shard %u; it has %llu", parameter->name, shard,
            (unsigned long long)parameter->layout.shards);
    }
    if (status == CADRE_OK && ret_first != NULL) {
        *ret_first = (int64_t)partition_first(parameter->layout, shard);
    }
    if (status == CADRE_OK && ret_rows != NULL) {
        *ret_rows = (int64_t)partition_rows(parameter->layout, shard);
    }
    if (status == CADRE_OK && ret_server != NULL) {
        *ret_server = parameter->shards[shard].server;
    }
    return border(status, &error);
}
