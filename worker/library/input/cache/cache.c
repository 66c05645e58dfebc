/* SPDX-License-Identifier: Apache-2.0
 * The transformation that keeps the elements at hand. What is before it is always read as epoch 0,
 * so that what is kept does not depend on who reads it first, or when: a worker that joins in epoch
 * 5 keeps the same elements as one that was there from the start. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "worker/library/device/tensor.h"
#include "worker/library/input/cache/cache_store.h"
#include "worker/library/input/node/element_stack.h"

struct cache_dataset {
    cadre_dataset base;
    char *path; /* NULL: in memory */
    struct cache_store *store;
};

enum cache_mode {
    CACHE_NOT_BEGUN,
    CACHE_READS,  /* the store, which is complete */
    CACHE_FILLS,  /* the store from the input */
    CACHE_THROUGH /* the input alone */
};

struct cache_iterator {
    cadre_iterator base; /* `input` from when it is read */
    enum cache_mode mode;
    uint64_t next;  /* number of the next element */
    uint64_t count; /* of the store, when it is read */
    struct cache_writer *writer;
    struct id_list ids;
};

static void cache_destroy(cadre_dataset *self)
{
    struct cache_dataset *cache = (struct cache_dataset *)self;
    cache->store->ops->destroy(cache->store);
    free(cache->path);
}

static struct cache_store *store_of(const cadre_dataset *self)
{
    return ((const struct cache_dataset *)self)->store;
}

/* --- by index --- */

static cadre_status read_and_keep(cadre_dataset *self, uint64_t index, cadre_element *ret_element,
    struct id_list *ids, struct cadre_error *error)
{
    struct cache_store *store = store_of(self);
    struct id_list own = {0};
    uint64_t count = (uint64_t)dataset_cardinality(self);
    cadre_status status = dataset_at(
        self->input, (struct element_position){.index = index}, ret_element, &own, error);
    if (status == CADRE_OK) {
        status = store->ops->put(store, index, count, ret_element, &own, error);
        status = status == CADRE_OK ? id_list_add_range(ids, &own, 0, own.count, error) : status;
    }
    if (status != CADRE_OK) {
        cadre_element_release(ret_element);
    }
    id_list_clear(&own);
    return status;
}

/* An endless dataset is never complete, so nothing of it is kept. */
static bool is_endless(const cadre_dataset *self)
{
    return dataset_cardinality(self) < 0;
}

static cadre_status cache_at(cadre_dataset *self, struct element_position position,
    cadre_element *ret_element, struct id_list *ids, struct cadre_error *error)
{
    struct cache_store *store = store_of(self);
    bool found = false;
    if (is_endless(self)) {
        return dataset_at(self->input, (struct element_position){.index = position.index},
            ret_element, ids, error);
    }
    CADRE_TRY(store->ops->find(store, position.index, &found, ret_element, ids, error));
    return found ? CADRE_OK : read_and_keep(self, position.index, ret_element, ids, error);
}

static cadre_status positions_of_input(const struct element_position positions[], size_t count,
    struct element_position **ret_places, struct cadre_error *error)
{
    *ret_places = calloc(count + 1, sizeof positions[0]);
    if (*ret_places == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "cache: no memory for %zu places", count);
    }
    for (size_t i = 0; i < count; i++) {
        (*ret_places)[i].index = positions[i].index;
    }
    return CADRE_OK;
}

static cadre_status cache_ids_at(cadre_dataset *self, const struct element_position positions[],
    size_t count, struct id_list *ids, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT struct element_position *of_input = NULL;
    CADRE_TRY(positions_of_input(positions, count, &of_input, error));
    return dataset_ids_at(self->input, of_input, count, ids, error);
}

/* Row `row` of what was gathered from the input becomes an element and is kept. */
static cadre_status keep_row(cadre_dataset *self, const cadre_element *rows, int64_t row,
    uint64_t index, cadre_element *ret_element, struct cadre_error *error)
{
    struct cache_store *store = store_of(self);
    struct id_list ids = {0};
    struct element_position position = {.index = index};
    cadre_status status = CADRE_OK;
    for (uint32_t i = 0; status == CADRE_OK && i < rows->count; i++) {
        status = tensor_view_row(rows->tensors[i], row, &ret_element->tensors[i], error);
        ret_element->count += status == CADRE_OK;
    }
    status = status == CADRE_OK ? dataset_ids_at(self->input, &position, 1, &ids, error) : status;
    if (status == CADRE_OK) {
        uint64_t count = (uint64_t)dataset_cardinality(self);
        status = store->ops->put(store, index, count, ret_element, &ids, error);
    }
    id_list_clear(&ids);
    return status;
}

/* Reads those of the places together that are not kept yet. */
static cadre_status read_missing(cadre_dataset *self, const struct element_position positions[],
    struct element_stack *rows, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT struct element_position *missing = NULL;
    cadre_element gathered = {0};
    size_t count = 0;
    int64_t row = 0;
    cadre_status status = CADRE_OK;
    CADRE_TRY(positions_of_input(positions, rows->count, &missing, error));
    for (size_t i = 0; i < rows->count; i++) {
        if (rows->elements[i].count == 0) {
            missing[count++] = (struct element_position){.index = positions[i].index};
        }
    }
    if (count == 0) {
        return CADRE_OK;
    }
    CADRE_TRY(dataset_gather(self->input, missing, count, &gathered, NULL, error));
    for (size_t i = 0; status == CADRE_OK && i < rows->count; i++) {
        if (rows->elements[i].count == 0) {
            status =
                keep_row(self, &gathered, row++, positions[i].index, &rows->elements[i], error);
        }
    }
    cadre_element_release(&gathered);
    return status;
}

static cadre_status cache_gather(cadre_dataset *self, const struct element_position positions[],
    size_t count, cadre_element *ret_element, struct id_list *ids, struct cadre_error *error)
{
    struct cache_store *store = store_of(self);
    if (is_endless(self)) {
        CADRE_FREE_AT_EXIT struct element_position *of_input = NULL;
        CADRE_TRY(positions_of_input(positions, count, &of_input, error));
        return dataset_gather(self->input, of_input, count, ret_element, ids, error);
    }
    CADRE_CLEANUP(element_stack_clear)
    struct element_stack rows = {.elements = calloc(count, sizeof rows.elements[0])};
    if (rows.elements == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "cache: no memory for %zu elements", count);
    }
    rows.count = count;
    rows.capacity = count;
    for (size_t i = 0; i < count; i++) {
        bool found = false;
        CADRE_TRY(
            store->ops->find(store, positions[i].index, &found, &rows.elements[i], NULL, error));
    }
    CADRE_TRY(read_missing(self, positions, &rows, error));
    if (ids != NULL) {
        CADRE_TRY(cache_ids_at(self, positions, count, ids, error));
    }
    return element_stack_finish(&rows, ret_element, error);
}

/* --- in order --- */

static cadre_status begin_input(struct cache_iterator *iterator, struct cadre_error *error)
{
    cadre_iterator *self = &iterator->base;
    const struct pass pass = {.ordered = self->pass.ordered};
    return dataset_iterate(self->data->input, &pass, &self->input, error);
}

/* Finds out where the elements come from. */
static cadre_status dataset_begin(struct cache_iterator *iterator, struct cadre_error *error)
{
    struct cache_store *store = store_of(iterator->base.data);
    bool complete = false;
    if (iterator->mode != CACHE_NOT_BEGUN) {
        return CADRE_OK;
    }
    CADRE_TRY(store->ops->look(store, &complete, &iterator->count, error));
    if (!complete && dataset_cardinality(iterator->base.data) != CADRE_CARDINALITY_INFINITE) {
        CADRE_TRY(store->ops->begin(store, &iterator->writer, error));
        if (iterator->writer == NULL) { /* another iterator may just have finished it */
            CADRE_TRY(store->ops->look(store, &complete, &iterator->count, error));
        }
    }
    if (complete) {
        iterator->mode = CACHE_READS;
        return CADRE_OK;
    }
    CADRE_TRY(begin_input(iterator, error));
    iterator->mode = iterator->writer != NULL ? CACHE_FILLS : CACHE_THROUGH;
    return CADRE_OK;
}

static void dataset_abandon(struct cache_iterator *iterator)
{
    if (iterator->writer != NULL) {
        store_of(iterator->base.data)->ops->abandon(iterator->writer);
        iterator->writer = NULL;
    }
}

/* The input's next element, into the store too; its end completes the store. */
static cadre_status dataset_fill(
    struct cache_iterator *iterator, cadre_element *ret_element, struct cadre_error *error)
{
    const struct cache_store_ops *ops = store_of(iterator->base.data)->ops;
    iterator->ids.count = 0;
    cadre_status status = iterator_next(iterator->base.input, ret_element, &iterator->ids, error);
    if (status == CADRE_OUT_OF_RANGE) {
        struct cache_writer *writer = iterator->writer;
        iterator->writer = NULL;
        CADRE_TRY(ops->commit(writer, error));
        return iterator_end(error);
    }
    if (status == CADRE_OK) {
        status = ops->add(iterator->writer, ret_element, &iterator->ids, error);
    }
    if (status != CADRE_OK) {
        cadre_element_release(ret_element);
        dataset_abandon(iterator);
    }
    return status;
}

static cadre_status find_next(struct cache_iterator *iterator, cadre_element *ret_element,
    struct id_list *ids, struct cadre_error *error)
{
    struct cache_store *store = store_of(iterator->base.data);
    bool found = false;
    if (iterator->next >= iterator->count) {
        return iterator_end(error);
    }
    CADRE_TRY(store->ops->find(store, iterator->next, &found, ret_element, ids, error));
    if (!found) {
        return cadre_error_set(error, CADRE_INTERNAL,
            "cache: element %" PRIu64 " of %" PRIu64 " is not in the store", iterator->next,
            iterator->count);
    }
    return CADRE_OK;
}

static cadre_status cache_next(cadre_iterator *self, cadre_element *ret_element,
    struct id_list *ids, struct cadre_error *error)
{
    struct cache_iterator *iterator = (struct cache_iterator *)self;
    cadre_status status = dataset_begin(iterator, error);
    if (status == CADRE_OK && iterator->mode == CACHE_READS) {
        status = find_next(iterator, ret_element, ids, error);
    } else if (status == CADRE_OK && iterator->mode == CACHE_THROUGH) {
        status = iterator_next(self->input, ret_element, ids, error);
    } else if (status == CADRE_OK) {
        status = dataset_fill(iterator, ret_element, error);
        if (status == CADRE_OK) {
            status = id_list_add_range(ids, &iterator->ids, 0, iterator->ids.count, error);
        }
    }
    iterator->next += status == CADRE_OK;
    if (status != CADRE_OK) {
        cadre_element_release(ret_element);
    }
    return status;
}

/* A store that is being filled needs the elements all the same. */
static cadre_status cache_skip(
    cadre_iterator *self, uint64_t count, uint64_t *ret_skipped, struct cadre_error *error)
{
    struct cache_iterator *iterator = (struct cache_iterator *)self;
    CADRE_TRY(dataset_begin(iterator, error));
    if (iterator->mode == CACHE_READS) {
        uint64_t left = iterator->count - iterator->next;
        *ret_skipped = count < left ? count : left;
    } else if (iterator->mode == CACHE_THROUGH) {
        CADRE_TRY(iterator_skip(self->input, count, ret_skipped, error));
    }
    iterator->next += *ret_skipped;
    while (iterator->mode == CACHE_FILLS && *ret_skipped < count) {
        cadre_element passed = {0};
        cadre_status status = dataset_fill(iterator, &passed, error);
        if (status == CADRE_OUT_OF_RANGE) {
            /* The store is complete now, and this iterator at its end. */
            iterator->mode = CACHE_READS;
            iterator->count = iterator->next;
            return CADRE_OK;
        }
        CADRE_TRY(status);
        cadre_element_release(&passed);
        ++*ret_skipped;
        iterator->next++;
    }
    return CADRE_OK;
}

/* --- where it stands --- */

enum saved_as {
    SAVED_BEGINNING,
    SAVED_OF_STORE, /* the number of the next element */
    SAVED_OF_INPUT  /* that, and where the input stands */
};

static cadre_status cache_save(
    cadre_iterator *self, struct iterator_state_writer *writer, struct cadre_error *error)
{
    const struct cache_iterator *iterator = (const struct cache_iterator *)self;
    enum saved_as as = iterator->mode == CACHE_NOT_BEGUN ? SAVED_BEGINNING
                       : iterator->mode == CACHE_READS   ? SAVED_OF_STORE
                                                         : SAVED_OF_INPUT;
    CADRE_TRY(iterator_state_write_number(writer, as, error));
    CADRE_TRY(iterator_state_write_number(writer, iterator->next, error));
    return as == SAVED_OF_INPUT ? iterator_save(self->input, writer, error) : CADRE_OK;
}

/* Of a store: read it, or, where it is not there any more, fill it again up to there. */
static cadre_status restore_of_store(
    struct cache_iterator *iterator, uint64_t next, struct cadre_error *error)
{
    uint64_t skipped = 0;
    if (dataset_cardinality(iterator->base.data) == CADRE_CARDINALITY_INFINITE) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "cache: the saved position is in a store, and this dataset has no end; it is of "
            "another pipeline");
    }
    CADRE_TRY(cache_skip(&iterator->base, next, &skipped, error));
    if (skipped < next) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "cache: the saved position is element %" PRIu64 " of %" PRIu64, next, skipped);
    }
    return CADRE_OK;
}

static cadre_status cache_restore(
    cadre_iterator *self, struct iterator_state_reader *reader, struct cadre_error *error)
{
    struct cache_iterator *iterator = (struct cache_iterator *)self;
    uint64_t as = 0;
    uint64_t next = 0;
    CADRE_TRY(iterator_state_read_number(reader, &as, error));
    CADRE_TRY(iterator_state_read_number(reader, &next, error));
    if (as == SAVED_BEGINNING) {
        return CADRE_OK;
    }
    if (as == SAVED_OF_STORE) {
        return restore_of_store(iterator, next, error);
    }
    /* The elements before it are not here: this iteration completes no store. */
    CADRE_TRY(begin_input(iterator, error));
    iterator->mode = CACHE_THROUGH;
    iterator->next = next;
    return iterator_restore(self->input, reader, error);
}

static void cache_iterator_destroy(cadre_iterator *self)
{
    struct cache_iterator *iterator = (struct cache_iterator *)self;
    dataset_abandon(iterator);
    id_list_clear(&iterator->ids);
}

static const struct iterator_ops cache_iterator_ops = {
    .next = cache_next,
    .skip = cache_skip,
    .save = cache_save,
    .restore = cache_restore,
    .saves_input = true,
    .destroy = cache_iterator_destroy,
};

static cadre_status cache_iterate(cadre_dataset *self, const struct pass *pass,
    cadre_iterator **ret_iterator, struct cadre_error *error)
{
    return iterator_new(
        sizeof(struct cache_iterator), &cache_iterator_ops, self, pass, NULL, ret_iterator, error);
}

/* --- what it is --- */

static cadre_dataset *cache_rebuild(const cadre_dataset *self, cadre_dataset *const inputs[])
{
    return cadre_dataset_cache(inputs[0], ((const struct cache_dataset *)self)->path);
}

static void cache_describe(const cadre_dataset *self, struct description *text)
{
    description_add(
        text, "%s", ((const struct cache_dataset *)self)->path != NULL ? "in files" : "in memory");
}

static const struct dataset_ops cache_ops = {
    .name = "cache",
    .destroy = cache_destroy,
    .rebuild = cache_rebuild,
    .describe = cache_describe,
    .at = cache_at,
    .gather = cache_gather,
    .ids_at = cache_ids_at,
    .iterate = cache_iterate,
    .keeps_elements = true,
};

cadre_dataset *cadre_dataset_cache(cadre_dataset *data, const char *path)
{
    if (!dataset_usable(data)) {
        return data;
    }
    if (path != NULL && path[0] == '\0') {
        struct cadre_error error = {0};
        cadre_error_set(&error, CADRE_INVALID_ARGUMENT,
            "cache: the path is empty; give how the names of its files begin, or NULL for memory");
        return dataset_failed(data, &error);
    }
    char *copy = path != NULL ? strdup(path) : NULL;
    struct cache_store *store = path == NULL   ? cache_memory_new()
                                : copy != NULL ? cache_files_new(path, data)
                                               : NULL;
    if (store == NULL) {
        free(copy);
        cadre_dataset_release(data);
        return NULL;
    }
    struct cache_dataset *cache = dataset_new(sizeof *cache, &cache_ops, data);
    if (cache == NULL) {
        store->ops->destroy(store);
        free(copy);
        return NULL;
    }
    cache->path = copy;
    cache->store = store;
    return &cache->base;
}
