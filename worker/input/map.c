/* SPDX-License-Identifier: Apache-2.0
 * The transformation that calls the user's function on each element. */
#include <inttypes.h>
#include <pthread.h>

#include "worker/device/argument.h"
#include "worker/device/tensor.h"
#include "worker/input/node.h"

struct map_dataset {
    cadre_dataset base;
    cadre_map_function function;
    void *user;
    bool declared;        /* `output` came with the options and is checked on each call */
    pthread_mutex_t lock; /* guards the two below while they are found */
    bool found;
    cadre_element_spec output;
};

static void map_destroy(cadre_dataset *self)
{
    pthread_mutex_destroy(&((struct map_dataset *)self)->lock);
}

/* Every output is there, and as declared. */
static cadre_status check_output(
    const struct map_dataset *map, const cadre_element *out, struct cadre_error *error)
{
    if (out->count < 1 || out->count > CADRE_ELEMENT_TENSORS_MAX) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "map: the function returned %" PRIu32 " tensors; an element has 1 to %d", out->count,
            CADRE_ELEMENT_TENSORS_MAX);
    }
    for (uint32_t i = 0; i < out->count; i++) {
        if (out->tensors[i] == NULL) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "map: the function left output %" PRIu32 " of %" PRIu32 " NULL", i, out->count);
        }
    }
    if (!map->declared) {
        return CADRE_OK;
    }
    if (out->count != map->output.count) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "map: the function returned %" PRIu32 " tensors and declared %" PRIu32, out->count,
            map->output.count);
    }
    for (uint32_t i = 0; i < out->count; i++) {
        const cadre_tensor_spec *spec = &map->output.tensors[i];
        const int64_t *dims = cadre_tensor_dims(out->tensors[i]);
        bool alike = cadre_tensor_dtype(out->tensors[i]) == spec->dtype &&
                     cadre_tensor_rank(out->tensors[i]) == spec->rank;
        for (uint32_t axis = 0; alike && axis < spec->rank; axis++) {
            alike = spec->dims[axis] == CADRE_DIMENSION_ANY || spec->dims[axis] == dims[axis];
        }
        if (!alike) {
            char found[TENSOR_SHAPE_TEXT_BYTES];
            char declared[TENSOR_SHAPE_TEXT_BYTES];
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "map: output %" PRIu32 " is %s and was declared as %s", i,
                tensor_shape_text(cadre_tensor_dtype(out->tensors[i]),
                    cadre_tensor_rank(out->tensors[i]), dims, found),
                tensor_shape_text(spec->dtype, spec->rank, spec->dims, declared));
        }
    }
    return CADRE_OK;
}

/* Takes over `in`. The message of the user's failing call is found by clearing the thread's last
 * one first. */
static cadre_status apply(const struct map_dataset *map, cadre_element *in,
    cadre_element *ret_element, struct cadre_error *error)
{
    const struct cadre_error none = {0};
    cadre_element out = {0};
    cadre_error_publish(&none);
    cadre_status status = argument_status(map->function(in, &out, map->user));
    if (status != CADRE_OK) {
        const char *message = cadre_error_message();
        const char *shown =
            message[0] != '\0' ? message : "it left no message; say why with cadre_fail";
        /* OUT_OF_RANGE would look like the end of the data. */
        cadre_status code = status == CADRE_OUT_OF_RANGE ? CADRE_UNKNOWN : status;
        status = cadre_error_set(
            error, code, "map: the function failed with %s: %s", cadre_status_name(status), shown);
    } else {
        status = check_output(map, &out, error);
    }
    cadre_element_clear(in);
    if (status != CADRE_OK) {
        out.count = out.count > CADRE_ELEMENT_TENSORS_MAX ? CADRE_ELEMENT_TENSORS_MAX : out.count;
        cadre_element_clear(&out);
        return status;
    }
    *ret_element = out;
    return CADRE_OK;
}

static cadre_status map_at(cadre_dataset *self, struct place place, cadre_element *ret_element,
    struct id_list *ids, struct cadre_error *error)
{
    cadre_element in = {0};
    CADRE_TRY(dataset_at(self->input, place, &in, ids, error));
    return apply((struct map_dataset *)self, &in, ret_element, error);
}

static cadre_status map_ids_at(cadre_dataset *self, const struct place places[], size_t count,
    struct id_list *ids, struct cadre_error *error)
{
    for (size_t i = 0; i < count; i++) {
        struct place place = places[i];
        CADRE_TRY(dataset_ids_at(self->input, &place, 1, ids, error));
    }
    return CADRE_OK;
}

static cadre_status map_next(cadre_iterator *self, cadre_element *ret_element, struct id_list *ids,
    struct cadre_error *error)
{
    cadre_element in = {0};
    CADRE_TRY(iterator_next(self->input, &in, ids, error));
    return apply((struct map_dataset *)self->data, &in, ret_element, error);
}

static const struct iterator_ops map_iterator_ops = {.next = map_next};

static cadre_status map_iterate(cadre_dataset *self, const struct pass *pass,
    cadre_iterator **ret_iterator, struct cadre_error *error)
{
    return iterator_new(
        sizeof(cadre_iterator), &map_iterator_ops, self, pass, pass, ret_iterator, error);
}

static cadre_dataset *map_rebuild(const cadre_dataset *self, cadre_dataset *const inputs[])
{
    const struct map_dataset *map = (const struct map_dataset *)self;
    const cadre_map_options options = {.output = map->declared ? &map->output : NULL};
    return cadre_dataset_map(inputs[0], map->function, map->user, &options);
}

/* Calls the function for the first element to see what it makes. */
static cadre_status probe(
    struct map_dataset *map, const cadre_element_spec *input, struct cadre_error *error)
{
    cadre_iterator *iterator = NULL;
    cadre_element in = {0};
    cadre_element out = {0};
    CADRE_TRY(dataset_iterate(map->base.input, &(struct pass){.ordered = true}, &iterator, error));
    cadre_status status = iterator_next(iterator, &in, NULL, error);
    cadre_iterator_free(iterator);
    if (status == CADRE_OUT_OF_RANGE) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "map: the input is empty, so what the function makes cannot be seen; give "
            "cadre_map_options.output");
    }
    CADRE_TRY(status);
    CADRE_TRY(apply(map, &in, &out, error));
    /* A batch of another size will come: the first dimension is as unknown as the input's. */
    bool any_rows = element_spec_rows(input) == CADRE_DIMENSION_ANY && input->count > 0 &&
                    input->tensors[0].rank > 0;
    map->output.count = out.count;
    for (uint32_t i = 0; i < out.count; i++) {
        cadre_tensor_spec *spec = &map->output.tensors[i];
        spec->dtype = cadre_tensor_dtype(out.tensors[i]);
        spec->rank = cadre_tensor_rank(out.tensors[i]);
        for (uint32_t axis = 0; axis < spec->rank; axis++) {
            spec->dims[axis] = cadre_tensor_dim(out.tensors[i], axis);
        }
        if (any_rows && spec->rank > 0) {
            spec->dims[0] = CADRE_DIMENSION_ANY;
        }
    }
    cadre_element_clear(&out);
    map->found = true;
    return CADRE_OK;
}

static cadre_status map_spec(cadre_dataset *self, const cadre_element_spec inputs[],
    cadre_element_spec *ret_spec, struct cadre_error *error)
{
    struct map_dataset *map = (struct map_dataset *)self;
    if (map->declared) {
        *ret_spec = map->output;
        return CADRE_OK;
    }
    pthread_mutex_lock(&map->lock);
    cadre_status status = map->found ? CADRE_OK : probe(map, &inputs[0], error);
    *ret_spec = map->output;
    pthread_mutex_unlock(&map->lock);
    return status;
}

static const struct dataset_ops map_ops = {
    .name = "map",
    .rebuild = map_rebuild,
    .destroy = map_destroy,
    .spec = map_spec,
    .at = map_at,
    .ids_at = map_ids_at,
    .iterate = map_iterate,
};

/* A declared spec names real types, and shapes of known or unknown sizes. */
static cadre_status check_declared(const cadre_element_spec *output, struct cadre_error *error)
{
    if (output->count < 1 || output->count > CADRE_ELEMENT_TENSORS_MAX) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "map: %" PRIu32 " outputs declared; an element has 1 to %d", output->count,
            CADRE_ELEMENT_TENSORS_MAX);
    }
    for (uint32_t i = 0; i < output->count; i++) {
        const cadre_tensor_spec *spec = &output->tensors[i];
        if (cadre_dtype_bytes(spec->dtype) == 0 || spec->rank > CADRE_RANK_MAX) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "map: output %" PRIu32 " is declared with type %d and rank %" PRIu32
                ", which no tensor has",
                i, (int)spec->dtype, spec->rank);
        }
        for (uint32_t axis = 0; axis < spec->rank; axis++) {
            if (spec->dims[axis] < CADRE_DIMENSION_ANY) {
                return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                    "map: dimension %" PRIu32 " of output %" PRIu32 " is declared as %" PRId64,
                    axis, i, spec->dims[axis]);
            }
        }
    }
    return CADRE_OK;
}

cadre_dataset *cadre_dataset_map(
    cadre_dataset *data, cadre_map_function function, void *user, const cadre_map_options *options)
{
    struct cadre_error error = {0};
    if (!dataset_usable(data)) {
        return data;
    }
    if (function == NULL) {
        cadre_error_set(&error, CADRE_INVALID_ARGUMENT, "map: the function is NULL");
        return dataset_failed(data, &error);
    }
    const cadre_element_spec *output = options != NULL ? options->output : NULL;
    if (output != NULL && check_declared(output, &error) != CADRE_OK) {
        return dataset_failed(data, &error);
    }
    struct map_dataset *map = dataset_new(sizeof *map, &map_ops, data);
    if (map == NULL) {
        return NULL;
    }
    map->function = function;
    map->user = user;
    map->declared = output != NULL;
    map->output = output != NULL ? *output : (cadre_element_spec){0};
    pthread_mutex_init(&map->lock, NULL);
    return &map->base;
}
