/* SPDX-License-Identifier: Apache-2.0
 * What flat_map and interleave share: calls of the function, and what the elements look like. */
#include "worker/library/input/nested/nested.h"

#include <inttypes.h>
#include <stdio.h>

#include "common/pure/assert.h"
#include "worker/library/input/nested/nested_node.h"
#include "worker/library/input/node/user_call.h"

/* Inner datasets that are looked at to tell which dimensions are always the same. */
#define INNER_PROBED 2

void nested_destroy(cadre_dataset *self)
{
    pthread_mutex_destroy(&((struct nested_dataset *)self)->lock);
}

cadre_dataset *nested_new(
    const struct dataset_ops *ops, cadre_dataset *data, const struct nested_settings *settings)
{
    struct nested_dataset *nested = dataset_new(sizeof *nested, ops, data);
    if (nested == NULL) {
        return NULL;
    }
    nested->settings = *settings;
    nested->base.indexable = false;
    nested->base.by_index_only = false;
    pthread_mutex_init(&nested->lock, NULL);
    return &nested->base;
}

bool dataset_is_nested(const cadre_dataset *data)
{
    return data->ops->destroy == nested_destroy;
}

cadre_dataset *dataset_nested_rebuild(
    const cadre_dataset *self, cadre_dataset *names, const struct nested_consumed *consumed)
{
    CADRE_ASSERT(dataset_is_nested(self));
    if (!dataset_usable(names)) {
        return names;
    }
    struct nested_settings settings = ((const struct nested_dataset *)self)->settings;
    settings.consumed = consumed != NULL ? *consumed : (struct nested_consumed){0};
    return nested_new(self->ops, names, &settings);
}

cadre_dataset *nested_rebuild(const cadre_dataset *self, cadre_dataset *const inputs[])
{
    const struct nested_dataset *nested = (const struct nested_dataset *)self;
    return dataset_nested_rebuild(self, inputs[0], &nested->settings.consumed);
}

cadre_status nested_make_inner(const struct nested_dataset *nested, const cadre_element *element,
    uint64_t number, cadre_dataset **ret_data, struct cadre_error *error)
{
    char who[64];
    *ret_data = NULL;
    snprintf(who, sizeof who, "%s: input element %" PRIu64, nested->base.ops->name, number);
    cadre_element in = *element;
    in.names = dataset_names(nested->base.input);
    user_call_begin();
    cadre_status returned = nested->settings.function(&in, ret_data, nested->settings.user);
    cadre_status status = user_call_end(returned, who, error);
    if (status == CADRE_OK) {
        status = dataset_status(*ret_data, error);
        if (status != CADRE_OK) {
            cadre_error_wrap(error, status, "%s: the function made no dataset", who);
        }
    }
    if (status != CADRE_OK) {
        cadre_dataset_release(*ret_data);
        *ret_data = NULL;
    }
    return status;
}

/* --- what the elements look like --- */

/* What the dataset of the next input element holds. */
static cadre_status probe_next(const struct nested_dataset *nested, cadre_iterator *input,
    uint64_t number, cadre_element_spec *ret_spec, struct cadre_error *error)
{
    cadre_element element = {0};
    cadre_dataset *inner = NULL;
    CADRE_TRY(iterator_next(input, &element, NULL, error));
    cadre_status status = nested_make_inner(nested, &element, number, &inner, error);
    cadre_element_release(&element);
    if (status == CADRE_OK) {
        status = dataset_spec(inner, ret_spec, error);
        cadre_dataset_release(inner);
        if (status != CADRE_OK) {
            cadre_error_wrap(
                error, status, "%s: input element %" PRIu64, nested->base.ops->name, number);
        }
    }
    return status;
}

/* The first input element whose dataset tells what it holds: an empty one with a function that is
 * not declared (a file without records) says FAILED_PRECONDITION. *ret_next is the next one's
 * number. The first one's failure stands for all. */
static cadre_status probe_first(const struct nested_dataset *nested, cadre_iterator *input,
    cadre_element_spec *ret_spec, uint64_t *ret_next, struct cadre_error *error)
{
    struct cadre_error first = {0};
    cadre_status status = probe_next(nested, input, 0, ret_spec, &first);
    *ret_next = 1;
    for (cadre_status next = status; next == CADRE_FAILED_PRECONDITION; ++*ret_next) {
        next = probe_next(nested, input, *ret_next, ret_spec, NULL);
        status = next == CADRE_OK ? CADRE_OK : status;
    }
    if (status != CADRE_OK && error != NULL) {
        *error = first;
    }
    return status;
}

/* Calls the function for the first input elements. Only the first one must be valid: an error of
 * another one is returned when it is read. */
static cadre_status nested_probe(struct nested_dataset *nested, struct cadre_error *error)
{
    const struct pass pass = {.epoch = 0, .ordered = true};
    cadre_iterator *input = NULL;
    uint64_t number = 0;
    CADRE_TRY(dataset_iterate(nested->base.input, &pass, &input, error));
    cadre_status status = probe_first(nested, input, &nested->output, &number, error);
    for (uint64_t probed = 1; probed < INNER_PROBED && status == CADRE_OK; probed++, number++) {
        cadre_element_spec other = {0};
        if (probe_next(nested, input, number, &other, NULL) != CADRE_OK) {
            break;
        }
        element_spec_widen(&nested->output, &other);
    }
    cadre_iterator_release(input);
    if (status == CADRE_OUT_OF_RANGE) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s: the input is empty, so what the function makes cannot be seen",
            nested->base.ops->name);
    }
    nested->found = status == CADRE_OK;
    return status;
}

cadre_status nested_spec(cadre_dataset *self, const cadre_element_spec inputs[],
    cadre_element_spec *ret_spec, struct cadre_error *error)
{
    struct nested_dataset *nested = (struct nested_dataset *)self;
    (void)inputs;
    pthread_mutex_lock(&nested->lock);
    cadre_status status = nested->found ? CADRE_OK : nested_probe(nested, error);
    *ret_spec = nested->output;
    pthread_mutex_unlock(&nested->lock);
    return status;
}

int64_t nested_cardinality(const cadre_dataset *self)
{
    return dataset_cardinality(self->input) == 0 ? 0 : CADRE_CARDINALITY_UNKNOWN;
}

uint64_t nested_samples(const cadre_dataset *self)
{
    (void)self;
    return 0;
}

/* --- distribution --- */

static bool reads_files(const cadre_dataset *data)
{
    bool reads = data->ops->reads_files;
    for (uint32_t i = 0; i < data->input_count && !reads; i++) {
        reads = reads_files(data->inputs[i]);
    }
    return reads;
}

cadre_status nested_opens_names(cadre_dataset *self, bool *ret_opens, struct cadre_error *error)
{
    const struct pass pass = {.epoch = 0, .ordered = true};
    cadre_element_spec spec = {0};
    cadre_iterator *input = NULL;
    cadre_element element = {0};
    cadre_dataset *inner = NULL;
    *ret_opens = false;
    CADRE_TRY(dataset_spec(self->input, &spec, error));
    if (spec.count != 1 || spec.tensors[0].dtype != CADRE_STRING || spec.tensors[0].rank != 0) {
        return CADRE_OK;
    }
    CADRE_TRY(dataset_iterate(self->input, &pass, &input, error));
    struct cadre_error own = {0};
    cadre_status status = iterator_next(input, &element, NULL, &own);
    cadre_iterator_release(input);
    if (status == CADRE_OUT_OF_RANGE) {
        return CADRE_OK;
    }
    if (status == CADRE_OK) {
        status = nested_make_inner((struct nested_dataset *)self, &element, 0, &inner, &own);
        cadre_element_release(&element);
    }
    if (status != CADRE_OK) {
        if (error != NULL) {
            *error = own;
        }
        return status;
    }
    *ret_opens = reads_files(inner);
    cadre_dataset_release(inner);
    return CADRE_OK;
}
