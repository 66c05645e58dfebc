/* SPDX-License-Identifier: Apache-2.0
 * The transformation that calls the user's function on each element. */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "cadre/example.h"
#include "common/base/cleanup.h"
#include "worker/library/composite/composite.h"
#include "worker/library/device/tensor.h"
#include "worker/library/input/node/component_names.h"
#include "worker/library/input/node/element_stack.h"
#include "worker/library/input/node/error_samples.h"
#include "worker/library/input/read_ahead/read_ahead.h"
#include "worker/library/input/node/thread_pool.h"
#include "worker/library/input/node/user_call.h"
#include "worker/library/random/mapped_element.h"

struct map_dataset {
    cadre_dataset base;
    cadre_map_function function;
    void *user;
    int32_t parallel; /* as it was given */
    uint32_t threads; /* what that means here */
    bool unordered;
    bool declared;        /* `output` came with the options and is checked on each call */
    pthread_mutex_t lock; /* guards the ones below while they are found and made */
    atomic_bool found;    /* `output`, which never changes then */
    cadre_element_spec output;
    struct thread_pool *pool; /* for reading by index; made when first needed */
};

static void map_destroy(cadre_dataset *self)
{
    struct map_dataset *map = (struct map_dataset *)self;
    thread_pool_free(map->pool);
    pthread_mutex_destroy(&map->lock);
}

/* What was not declared is as it was seen at first, but for sizes. */
static cadre_status check_alike(
    const struct map_dataset *map, const cadre_element *out, struct cadre_error *error)
{
    const cadre_element_spec *seen = &map->output;
    if (out->count != seen->count) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "map: the function returned %" PRIu32 " tensors, and %" PRIu32
            " of the first element; it returns as many of each",
            out->count, seen->count);
    }
    for (uint32_t i = 0; i < out->count; i++) {
        const cadre_tensor *tensor = out->tensors[i];
        const cadre_tensor_spec *spec = &seen->tensors[i];
        if (cadre_tensor_dtype(tensor) != spec->dtype || cadre_tensor_rank(tensor) != spec->rank) {
            char found[TENSOR_SHAPE_TEXT_BYTES];
            char first[TENSOR_SHAPE_TEXT_BYTES];
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "map: output %" PRIu32
                " is %s, and was %s of the first element; it has one type and number of dimensions",
                i,
                tensor_shape_text(cadre_tensor_dtype(tensor), cadre_tensor_rank(tensor),
                    cadre_tensor_dims(tensor), found),
                tensor_shape_text(spec->dtype, spec->rank, spec->dims, first));
        }
        CADRE_TRY(user_call_check_composite(tensor, spec, i, "map", error));
    }
    return CADRE_OK;
}

/* Takes over `in`, which `mapped` describes. */
static cadre_status map_apply(cadre_dataset *self, struct mapped_element *mapped, cadre_element *in,
    cadre_element *ret_element, struct cadre_error *error)
{
    const struct map_dataset *map = (const struct map_dataset *)self;
    cadre_element out = {0};
    mapped->repeated = self->input->repeats;
    struct mapped_element *before = mapped_enter(mapped);
    in->names = dataset_names(self->input);
    user_call_begin();
    cadre_status status = user_call_end(map->function(in, &out, map->user), "map", error);
    out.names = NULL; /* those of the output are declared */
    mapped_enter(before);
    if (status == CADRE_OK) {
        status = user_call_check(&out, map->declared ? &map->output : NULL, "map", error);
    }
    if (status == CADRE_OK && atomic_load_explicit(&map->found, memory_order_acquire)) {
        status = check_alike(map, &out, error);
    }
    cadre_element_release(in);
    if (status != CADRE_OK) {
        user_call_drop(&out);
        return status;
    }
    *ret_element = out;
    return CADRE_OK;
}

/* The element at a position, whose ids are found at the first request: most have none. */
struct element_call {
    struct mapped_element base;
    cadre_dataset *input;
    struct element_position position;
    struct id_list ids;
};

static cadre_status find_ids(struct mapped_element *mapped, struct cadre_error *error)
{
    struct element_call *placed = (struct element_call *)mapped;
    struct element_position position = placed->position;
    CADRE_TRY(dataset_ids_at(placed->input, &position, 1, &placed->ids, error));
    mapped->ids = placed->ids.ids;
    mapped->count = placed->ids.count;
    return CADRE_OK;
}

static cadre_status map_at(cadre_dataset *self, struct element_position position,
    cadre_element *ret_element, struct id_list *ids, struct cadre_error *error)
{
    cadre_element in = {0};
    struct element_call placed = {.base = {.epoch = position.epoch, .find = find_ids},
        .input = self->input,
        .position = position};
    CADRE_TRY(dataset_at(self->input, position, &in, ids, error));
    cadre_status status = map_apply(self, &placed.base, &in, ret_element, error);
    id_list_clear(&placed.ids);
    return error_samples_at(status, self->input, position, error);
}

/* --- several places at a time, by several threads --- */

struct gathering {
    cadre_dataset *map;
    const struct element_position *positions;
    cadre_element *elements;
    _Atomic size_t failed;    /* the smallest number of a place that failed; the count: none */
    pthread_mutex_t lock;     /* guards the error */
    struct cadre_error error; /* of that one */
};

static void keep_failure(struct gathering *gathering, size_t i, const struct cadre_error *error)
{
    pthread_mutex_lock(&gathering->lock);
    if (i < atomic_load(&gathering->failed)) {
        atomic_store(&gathering->failed, i);
        gathering->error = *error;
    }
    pthread_mutex_unlock(&gathering->lock);
}

static void gather_one(void *user, size_t i)
{
    struct gathering *gathering = user;
    if (i > atomic_load(&gathering->failed)) {
        return; /* no caller reads it */
    }
    struct cadre_error error = {0};
    if (map_at(gathering->map, gathering->positions[i], &gathering->elements[i], NULL, &error) !=
        CADRE_OK) {
        keep_failure(gathering, i, &error);
    }
}

static cadre_status need_pool(
    struct map_dataset *map, struct thread_pool **ret_pool, struct cadre_error *error)
{
    cadre_status status = CADRE_OK;
    pthread_mutex_lock(&map->lock);
    if (map->pool == NULL) {
        /* The thread that asks works too. */
        status = thread_pool_create(map->threads - 1, &map->pool, error);
    }
    *ret_pool = map->pool;
    pthread_mutex_unlock(&map->lock);
    return status == CADRE_OK ? CADRE_OK : cadre_error_wrap(error, status, "map");
}

static cadre_status map_gather(cadre_dataset *self, const struct element_position positions[],
    size_t count, cadre_element *ret_element, struct id_list *ids, struct cadre_error *error)
{
    struct map_dataset *map = (struct map_dataset *)self;
    struct thread_pool *pool = NULL;
    CADRE_TRY(need_pool(map, &pool, error));
    CADRE_CLEANUP(element_stack_clear)
    struct element_stack rows = {.elements = calloc(count, sizeof rows.elements[0])};
    if (rows.elements == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "map: no memory for %zu elements", count);
    }
    rows.count = count;
    rows.capacity = count;
    struct gathering gathering = {
        .map = self, .positions = positions, .elements = rows.elements, .failed = count};
    pthread_mutex_init(&gathering.lock, NULL);
    thread_pool_run(pool, count, gather_one, &gathering);
    pthread_mutex_destroy(&gathering.lock);
    if (atomic_load(&gathering.failed) < count) {
        *error = gathering.error;
        return error->code;
    }
    if (ids != NULL) {
        CADRE_TRY(self->ops->ids_at(self, positions, count, ids, error));
    }
    return element_stack_finish(&rows, ret_element, error);
}

static cadre_status map_ids_at(cadre_dataset *self, const struct element_position positions[],
    size_t count, struct id_list *ids, struct cadre_error *error)
{
    for (size_t i = 0; i < count; i++) {
        struct element_position position = positions[i];
        CADRE_TRY(dataset_ids_at(self->input, &position, 1, ids, error));
    }
    return CADRE_OK;
}

/* --- in order --- */

struct map_iterator {
    cadre_iterator base;
    struct id_list own; /* the ids of one element, where the caller passes no list */
};

/* Of ids [first, count) of a list. */
static cadre_status apply_to(cadre_dataset *self, uint64_t epoch, const struct id_list *ids,
    size_t first, cadre_element *in, cadre_element *ret_element, struct cadre_error *error)
{
    struct mapped_element mapped = {
        .epoch = epoch,
        .ids = ids->count > first ? ids->ids + first : NULL,
        .count = ids->count - first,
    };
    return error_samples(map_apply(self, &mapped, in, ret_element, error), ids, first, error);
}

/* For a thread of read_ahead, which adds the samples to an error itself. */
static cadre_status map_work(cadre_dataset *self, uint64_t epoch, const struct id_list *ids,
    cadre_element *in, cadre_element *ret_element, struct cadre_error *error)
{
    struct mapped_element mapped = {.epoch = epoch, .ids = ids->ids, .count = ids->count};
    return map_apply(self, &mapped, in, ret_element, error);
}

static cadre_status map_next(cadre_iterator *self, cadre_element *ret_element, struct id_list *ids,
    struct cadre_error *error)
{
    struct map_iterator *iterator = (struct map_iterator *)self;
    struct id_list *list = ids != NULL ? ids : &iterator->own;
    cadre_element in = {0};
    iterator->own.count = 0;
    size_t before = list->count;
    CADRE_TRY(iterator_next(self->input, &in, list, error));
    return apply_to(self->data, self->pass.epoch, list, before, &in, ret_element, error);
}

static void map_iterator_destroy(cadre_iterator *self)
{
    id_list_clear(&((struct map_iterator *)self)->own);
}

static cadre_status map_skip(
    cadre_iterator *self, uint64_t count, uint64_t *ret_skipped, struct cadre_error *error)
{
    return iterator_skip(self->input, count, ret_skipped, error);
}

static const struct iterator_ops map_iterator_ops = {
    .next = map_next,
    .skip = map_skip,
    .destroy = map_iterator_destroy,
    .save = iterator_save_nothing,
    .restore = iterator_restore_nothing,
};

static cadre_status map_iterate(cadre_dataset *self, const struct pass *pass,
    cadre_iterator **ret_iterator, struct cadre_error *error)
{
    const struct map_dataset *map = (const struct map_dataset *)self;
    if (map->threads > 1) {
        const struct read_ahead_options rule = {
            .threads = map->threads,
            .limit = 2 * (uint64_t)map->threads,
            .unordered = map->unordered && !pass->ordered,
            .work = map_work,
        };
        return read_ahead_iterate(self, pass, &rule, ret_iterator, error);
    }
    return iterator_new(
        sizeof(struct map_iterator), &map_iterator_ops, self, pass, pass, ret_iterator, error);
}

/* What the function makes of the next element. */
static cadre_status probe_next(struct map_dataset *map, cadre_iterator *iterator,
    cadre_element_spec *ret_spec, struct cadre_error *error)
{
    cadre_element in = {0};
    cadre_element out = {0};
    struct id_list ids = {0};
    cadre_status status = iterator_next(iterator, &in, &ids, error);
    if (status == CADRE_OK) {
        status = apply_to(&map->base, 0, &ids, 0, &in, &out, error);
    }
    id_list_clear(&ids);
    CADRE_TRY(status);
    element_spec_of(&out, ret_spec);
    cadre_element_release(&out);
    return CADRE_OK;
}

/* Calls the function for the first two elements to see what it makes, and in what they differ. An
 * error of the second is returned when it is read. */
static cadre_status map_probe(
    struct map_dataset *map, const cadre_element_spec *input, struct cadre_error *error)
{
    cadre_iterator *iterator = NULL;
    cadre_element_spec second = {0};
    CADRE_TRY(dataset_iterate(map->base.input, &(struct pass){.ordered = true}, &iterator, error));
    cadre_status status = probe_next(map, iterator, &map->output, error);
    if (status == CADRE_OK && probe_next(map, iterator, &second, NULL) == CADRE_OK) {
        element_spec_widen(&map->output, &second);
    }
    cadre_iterator_release(iterator);
    if (status == CADRE_OUT_OF_RANGE) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "map: the input is empty, so what the function makes cannot be seen; give "
            "cadre_map_options.output");
    }
    CADRE_TRY(status);
    /* A batch of another size will come: the first dimension is as unknown as the input's. */
    bool any_rows = element_spec_rows(input) == CADRE_DIMENSION_ANY && input->count > 0 &&
                    input->tensors[0].rank > 0;
    struct composite at = {.count = 0};
    for (uint32_t i = 0; i < map->output.count; i += at.count) {
        at = composite_of_spec(&map->output, i);
        composite_spec_set_rows(&map->output, &at,
            any_rows ? CADRE_DIMENSION_ANY : composite_spec_rows(&map->output, &at));
    }
    atomic_store_explicit(&map->found, true, memory_order_release);
    return CADRE_OK;
}

static cadre_status declared_spec(cadre_dataset *self, const cadre_element_spec inputs[],
    cadre_element_spec *ret_spec, struct cadre_error *error)
{
    (void)inputs;
    (void)error;
    *ret_spec = ((const struct map_dataset *)self)->output;
    return CADRE_OK;
}

static cadre_status found_spec(cadre_dataset *self, const cadre_element_spec inputs[],
    cadre_element_spec *ret_spec, struct cadre_error *error)
{
    struct map_dataset *map = (struct map_dataset *)self;
    pthread_mutex_lock(&map->lock);
    cadre_status status = map->found ? CADRE_OK : map_probe(map, &inputs[0], error);
    *ret_spec = map->output;
    pthread_mutex_unlock(&map->lock);
    return status;
}

static cadre_dataset *map_rebuild(const cadre_dataset *self, cadre_dataset *const inputs[])
{
    const struct map_dataset *map = (const struct map_dataset *)self;
    const cadre_map_options options = {
        .output = map->declared ? &map->output : NULL,
        .parallel = map->parallel,
        .unordered = map->unordered,
    };
    return cadre_dataset_map(inputs[0], map->function, map->user, &options);
}

/* Parsing examples leaves a batch what it is; of other functions it is unknown (semantics 1.4). */
static int64_t map_batch_size(const cadre_dataset *self)
{
    cadre_element_spec spec = {0};
    if (((const struct map_dataset *)self)->function != cadre_example_map ||
        dataset_spec(self->input, &spec, NULL) != CADRE_OK) {
        return CADRE_CARDINALITY_UNKNOWN;
    }
    return dataset_batch_size(self->input, &spec);
}

#define MAP_OPS                                                                                    \
    .name = "map", .rebuild = map_rebuild, .destroy = map_destroy, .at = map_at,                   \
    .ids_at = map_ids_at, .iterate = map_iterate, .batch_size = map_batch_size

#define DECLARED .spec = declared_spec, .spec_alone = true
#define FOUND    .spec = found_spec

/* By what is declared, and by the threads. */
static const struct dataset_ops map_ops[2][2] = {
    {{MAP_OPS, FOUND}, {MAP_OPS, FOUND, .gather = map_gather}},
    {{MAP_OPS, DECLARED}, {MAP_OPS, DECLARED, .gather = map_gather}},
};

/* A declared spec names real types, and shapes of known or unknown sizes. */
static cadre_status check_declared(
    const cadre_element_spec *output, const char *const **ret_names, struct cadre_error *error)
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
    CADRE_TRY(composite_spec_check(output, "map: output", error));
    return output->names == NULL
               ? CADRE_OK
               : component_names_intern(output->names, output->count, "map", ret_names, error);
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
    const cadre_map_options given = options != NULL ? *options : (cadre_map_options){0};
    const char *const *names = NULL;
    uint32_t threads = 1;
    if (thread_pool_parallel(given.parallel, "map", &threads, &error) != CADRE_OK ||
        (given.output != NULL && check_declared(given.output, &names, &error) != CADRE_OK)) {
        return dataset_failed(data, &error);
    }
    struct map_dataset *map =
        dataset_new(sizeof *map, &map_ops[given.output != NULL][threads > 1], data);
    if (map == NULL) {
        return NULL;
    }
    map->function = function;
    map->user = user;
    map->parallel = given.parallel;
    map->threads = threads;
    map->unordered = given.unordered;
    map->declared = given.output != NULL;
    map->output = given.output != NULL ? *given.output : (cadre_element_spec){0};
    map->output.names = names;
    map->base.has_names = map->base.has_names || names != NULL;
    map->base.works_ahead = map->base.works_ahead || threads > 1;
    pthread_mutex_init(&map->lock, NULL);
    return &map->base;
}
