/* SPDX-License-Identifier: Apache-2.0
 * The transformation that keeps the elements for which the program's function says so. The ids of
 * the others go with them. */
#include "worker/library/input/node/error_samples.h"
#include "worker/library/input/node/node.h"
#include "worker/library/input/node/user_call.h"

struct filter_dataset {
    cadre_dataset base;
    cadre_filter_function function;
    void *user;
};

static int64_t filter_cardinality(const cadre_dataset *self)
{
    return dataset_cardinality(self->input) == 0 ? 0 : CADRE_CARDINALITY_UNKNOWN;
}

struct filter_iterator {
    cadre_iterator base;
    struct id_list own; /* the ids of one element, where the caller passes no list */
};

static cadre_status filter_next(cadre_iterator *self, cadre_element *ret_element,
    struct id_list *ids, struct cadre_error *error)
{
    const struct filter_dataset *filter = (const struct filter_dataset *)self->data;
    struct filter_iterator *iterator = (struct filter_iterator *)self;
    struct id_list *list = ids != NULL ? ids : &iterator->own;
    iterator->own.count = 0;
    const size_t ids_before = list->count;
    for (;;) {
        bool keep = false;
        CADRE_TRY(iterator_next(self->input, ret_element, list, error));
        ret_element->names = dataset_names(self->data->input);
        user_call_begin();
        cadre_status returned = filter->function(ret_element, &keep, filter->user);
        cadre_status status = user_call_end(returned, "filter", error);
        ret_element->names = NULL;
        if (status == CADRE_OK && keep) {
            return CADRE_OK;
        }
        cadre_element_release(ret_element);
        error_samples(status, list, ids_before, error);
        list->count = ids_before;
        CADRE_TRY(status);
    }
}

static void filter_destroy(cadre_iterator *self)
{
    id_list_clear(&((struct filter_iterator *)self)->own);
}

/* It stands where its input stands. */
static cadre_status filter_save(
    cadre_iterator *self, struct iterator_state_writer *writer, struct cadre_error *error)
{
    (void)self;
    (void)writer;
    (void)error;
    return CADRE_OK;
}

static cadre_status filter_restore(
    cadre_iterator *self, struct iterator_state_reader *reader, struct cadre_error *error)
{
    (void)self;
    (void)reader;
    (void)error;
    return CADRE_OK;
}

static const struct iterator_ops filter_iterator_ops = {
    .next = filter_next,
    .save = filter_save,
    .restore = filter_restore,
    .destroy = filter_destroy,
};

static cadre_status filter_iterate(cadre_dataset *self, const struct pass *pass,
    cadre_iterator **ret_iterator, struct cadre_error *error)
{
    return iterator_new(sizeof(struct filter_iterator), &filter_iterator_ops, self, pass, pass,
        ret_iterator, error);
}

static cadre_dataset *filter_rebuild(const cadre_dataset *self, cadre_dataset *const inputs[])
{
    const struct filter_dataset *filter = (const struct filter_dataset *)self;
    return cadre_dataset_filter(inputs[0], filter->function, filter->user);
}

static const struct dataset_ops filter_ops = {
    .name = "filter",
    .rebuild = filter_rebuild,
    .cardinality = filter_cardinality,
    .iterate = filter_iterate,
    .keeps_elements = true,
};

cadre_dataset *cadre_dataset_filter(cadre_dataset *data, cadre_filter_function function, void *user)
{
    struct cadre_error error = {0};
    if (!dataset_usable(data)) {
        return data;
    }
    if (function == NULL) {
        cadre_error_set(&error, CADRE_INVALID_ARGUMENT, "filter: the function is NULL");
        return dataset_failed(data, &error);
    }
    struct filter_dataset *filter = dataset_new(sizeof *filter, &filter_ops, data);
    if (filter == NULL) {
        return NULL;
    }
    filter->function = function;
    filter->user = user;
    filter->base.indexable = false;
    filter->base.by_index_only = false;
    return &filter->base;
}
