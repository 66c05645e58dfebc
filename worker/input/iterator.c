/* SPDX-License-Identifier: Apache-2.0
 * Reading a dataset in order: by index where it is indexable, else through the nodes' own
 * iterators. */
#include <stdlib.h>

#include "common/pure/assert.h"
#include "worker/device/argument.h"
#include "worker/input/node.h"

struct index_iterator {
    cadre_iterator base;
    struct place next;
};

cadre_status iterator_end(struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_OUT_OF_RANGE, "the dataset has no more elements");
}

static cadre_status index_next(cadre_iterator *self, cadre_element *ret_element,
    struct id_list *ids, struct cadre_error *error)
{
    struct index_iterator *iterator = (struct index_iterator *)self;
    int64_t cardinality = self->data->cardinality;
    if (cardinality >= 0 && iterator->next.index >= (uint64_t)cardinality) {
        return iterator_end(error);
    }
    CADRE_TRY(dataset_at(self->data, iterator->next, ret_element, ids, error));
    iterator->next.index++;
    return CADRE_OK;
}

static const struct iterator_ops index_ops = {.next = index_next};

cadre_status iterator_new(size_t bytes, const struct iterator_ops *ops, cadre_dataset *self,
    const uint64_t *input_epoch, cadre_iterator **ret_iterator, struct cadre_error *error)
{
    CADRE_ASSERT(bytes >= sizeof(cadre_iterator));
    *ret_iterator = NULL;
    cadre_iterator *iterator = calloc(1, bytes);
    if (iterator == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for an iterator");
    }
    iterator->ops = ops;
    iterator->data = cadre_dataset_retain(self);
    if (input_epoch != NULL) {
        cadre_status status = dataset_iterate(self->input, *input_epoch, &iterator->input, error);
        if (status != CADRE_OK) {
            cadre_iterator_free(iterator);
            return status;
        }
    }
    *ret_iterator = iterator;
    return CADRE_OK;
}

cadre_status dataset_iterate(
    cadre_dataset *data, uint64_t epoch, cadre_iterator **ret_iterator, struct cadre_error *error)
{
    *ret_iterator = NULL;
    CADRE_TRY(dataset_status(data, error));
    if (data->indexable) {
        CADRE_TRY(iterator_new(
            sizeof(struct index_iterator), &index_ops, data, NULL, ret_iterator, error));
        ((struct index_iterator *)*ret_iterator)->next = (struct place){.epoch = epoch};
        return CADRE_OK;
    }
    while (data->ops->iterate == NULL) {
        CADRE_ASSERT(data->ops->keeps_elements);
        data = data->input;
    }
    return data->ops->iterate(data, epoch, ret_iterator, error);
}

cadre_status iterator_next(cadre_iterator *iterator, cadre_element *ret_element,
    struct id_list *ids, struct cadre_error *error)
{
    *ret_element = (cadre_element){0};
    if (iterator->stopped.code == CADRE_OK) {
        struct cadre_error own = {0};
        cadre_status status = iterator->ops->next(iterator, ret_element, ids, &own);
        if (status == CADRE_OK) {
            return CADRE_OK;
        }
        CADRE_ASSERT(own.code == status);
        iterator->stopped = own;
    }
    if (error != NULL) {
        *error = iterator->stopped;
    }
    return iterator->stopped.code;
}

cadre_status cadre_dataset_iterate(
    cadre_dataset *data, uint64_t epoch, cadre_iterator **ret_iterator)
{
    struct cadre_error error = {0};
    cadre_status status = argument_require(ret_iterator, __func__, "ret_iterator", &error);
    if (status == CADRE_OK) {
        status = dataset_iterate(data, epoch, ret_iterator, &error);
    }
    return status == CADRE_OK ? CADRE_OK : cadre_error_publish(&error);
}

cadre_status cadre_iterator_next(cadre_iterator *iterator, cadre_element *ret_element)
{
    struct cadre_error error = {0};
    cadre_status status = argument_require(ret_element, __func__, "ret_element", &error);
    if (status == CADRE_OK) {
        *ret_element = (cadre_element){0};
        status = argument_require(iterator, __func__, "iterator", &error);
    }
    if (status == CADRE_OK) {
        status = iterator_next(iterator, ret_element, NULL, &error);
    }
    return status == CADRE_OK ? CADRE_OK : cadre_error_publish(&error);
}

void cadre_iterator_free(cadre_iterator *iterator)
{
    while (iterator != NULL) {
        cadre_iterator *input = iterator->input;
        if (iterator->ops->destroy != NULL) {
            iterator->ops->destroy(iterator);
        }
        cadre_dataset_release(iterator->data);
        free(iterator);
        iterator = input;
    }
}
