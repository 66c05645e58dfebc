/* SPDX-License-Identifier: Apache-2.0
 * The transformation that gives each element where it comes first. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "worker/library/device/tensor.h"
#include "worker/library/input/node/node.h"
#include "worker/library/input/transformations/unique_set.h"

struct unique_iterator {
    cadre_iterator base;
    struct unique_set seen;
};

static bool can_be_compared(cadre_dtype dtype)
{
    return dtype == CADRE_I64 || dtype == CADRE_I32 || dtype == CADRE_I16 || dtype == CADRE_I8 ||
           dtype == CADRE_U32 || dtype == CADRE_U16 || dtype == CADRE_U8 || dtype == CADRE_STRING;
}

static cadre_status unique_check(uint32_t count, cadre_dtype dtype, struct cadre_error *error)
{
    if (count == 1 && can_be_compared(dtype)) {
        return CADRE_OK;
    }
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
        "unique: elements of %" PRIu32 " components, the first of them %s; it can tell apart "
        "elements of one component of an integer type or of strings",
        count, cadre_dtype_name(dtype));
}

static cadre_status unique_spec(cadre_dataset *self, const cadre_element_spec inputs[],
    cadre_element_spec *ret_spec, struct cadre_error *error)
{
    (void)self;
    *ret_spec = inputs[0];
    return unique_check(inputs[0].count, inputs[0].tensors[0].dtype, error);
}

static int64_t unique_cardinality(const cadre_dataset *self)
{
    return dataset_cardinality(self->input) == 0 ? 0 : CADRE_CARDINALITY_UNKNOWN;
}

/* What tells an element from others: its shape and values; of strings also their lengths. */
struct key {
    uint8_t *bytes;
    size_t count;
};

static void key_clear(struct key *key)
{
    free(key->bytes);
}

static cadre_status make_key(
    const cadre_tensor *tensor, struct key *ret_key, struct cadre_error *error)
{
    const bool strings = cadre_tensor_dtype(tensor) == CADRE_STRING;
    const cadre_string *string = strings ? cadre_tensor_const_data(tensor) : NULL;
    const uint32_t rank = cadre_tensor_rank(tensor);
    const int64_t elements = cadre_tensor_count(tensor);
    size_t bytes = rank * sizeof(int64_t) + (strings ? 0 : cadre_tensor_bytes(tensor));
    for (int64_t i = 0; i < elements && strings; i++) {
        bytes += sizeof string[i].size + string[i].size;
    }
    uint8_t *to = malloc(bytes > 0 ? bytes : 1);
    if (to == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "unique: no memory for %zu bytes", bytes);
    }
    *ret_key = (struct key){to, bytes};
    if (rank > 0) {
        memcpy(to, cadre_tensor_dims(tensor), rank * sizeof(int64_t));
        to += rank * sizeof(int64_t);
    }
    if (!strings && cadre_tensor_bytes(tensor) > 0) {
        memcpy(to, cadre_tensor_const_data(tensor), cadre_tensor_bytes(tensor));
    }
    for (int64_t i = 0; i < elements && strings; i++) {
        memcpy(to, &string[i].size, sizeof string[i].size);
        to += sizeof string[i].size;
        if (string[i].size > 0) {
            memcpy(to, string[i].bytes, string[i].size);
            to += string[i].size;
        }
    }
    return CADRE_OK;
}

static cadre_status unique_see(struct unique_iterator *iterator, const cadre_element *element,
    bool *ret_new, struct cadre_error *error)
{
    const cadre_tensor *tensor = element->tensors[0];
    const cadre_dtype dtype = cadre_tensor_dtype(tensor);
    CADRE_TRY(unique_check(element->count, dtype, error));
    if (dtype != CADRE_STRING && cadre_tensor_rank(tensor) == 0) {
        return unique_set_add(&iterator->seen, cadre_tensor_const_data(tensor),
            cadre_tensor_bytes(tensor), ret_new, error);
    }
    CADRE_CLEANUP(key_clear) struct key key = {.bytes = NULL};
    CADRE_TRY(make_key(tensor, &key, error));
    return unique_set_add(&iterator->seen, key.bytes, key.count, ret_new, error);
}

static cadre_status unique_next(cadre_iterator *self, cadre_element *ret_element,
    struct id_list *ids, struct cadre_error *error)
{
    const size_t ids_before = ids != NULL ? ids->count : 0;
    for (;;) {
        bool is_new = false;
        CADRE_TRY(iterator_next(self->input, ret_element, ids, error));
        cadre_status status =
            unique_see((struct unique_iterator *)self, ret_element, &is_new, error);
        if (status == CADRE_OK && is_new) {
            return CADRE_OK;
        }
        cadre_element_release(ret_element);
        if (ids != NULL) {
            ids->count = ids_before;
        }
        CADRE_TRY(status);
    }
}

static cadre_status unique_save(
    cadre_iterator *self, struct iterator_state_writer *writer, struct cadre_error *error)
{
    const struct unique_set *seen = &((const struct unique_iterator *)self)->seen;
    CADRE_TRY(iterator_state_write_number(writer, seen->count, error));
    for (size_t i = 0; i < seen->count; i++) {
        const struct unique_key *key = &seen->keys[i];
        CADRE_TRY(iterator_state_write_bytes(writer, seen->bytes + key->at, key->count, error));
    }
    return CADRE_OK;
}

static cadre_status unique_restore(
    cadre_iterator *self, struct iterator_state_reader *reader, struct cadre_error *error)
{
    struct unique_set *seen = &((struct unique_iterator *)self)->seen;
    uint64_t count = 0;
    CADRE_TRY(iterator_state_read_number(reader, &count, error));
    for (uint64_t i = 0; i < count; i++) {
        const void *bytes = NULL;
        size_t length = 0;
        bool is_new = false;
        CADRE_TRY(iterator_state_read_bytes(reader, &bytes, &length, error));
        CADRE_TRY(unique_set_add(seen, bytes, length, &is_new, error));
        if (!is_new) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "unique: element %" PRIu64 " of %" PRIu64 " that were saved is there twice", i,
                count);
        }
    }
    return CADRE_OK;
}

static void unique_iterator_destroy(cadre_iterator *self)
{
    unique_set_clear(&((struct unique_iterator *)self)->seen);
}

static const struct iterator_ops unique_iterator_ops = {
    .next = unique_next,
    .save = unique_save,
    .restore = unique_restore,
    .destroy = unique_iterator_destroy,
};

static cadre_status unique_iterate(cadre_dataset *self, const struct pass *pass,
    cadre_iterator **ret_iterator, struct cadre_error *error)
{
    return iterator_new(sizeof(struct unique_iterator), &unique_iterator_ops, self, pass, pass,
        ret_iterator, error);
}

static cadre_dataset *unique_rebuild(const cadre_dataset *self, cadre_dataset *const inputs[])
{
    (void)self;
    return cadre_dataset_unique(inputs[0]);
}

static const struct dataset_ops unique_ops = {
    .name = "unique",
    .rebuild = unique_rebuild,
    .spec = unique_spec,
    .cardinality = unique_cardinality,
    .iterate = unique_iterate,
};

cadre_dataset *cadre_dataset_unique(cadre_dataset *data)
{
    if (!dataset_usable(data)) {
        return data;
    }
    cadre_dataset *unique = dataset_new(sizeof *unique, &unique_ops, data);
    if (unique != NULL) {
        unique->indexable = false;
        unique->by_index_only = false;
    }
    return unique;
}
