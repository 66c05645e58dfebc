/* SPDX-License-Identifier: Apache-2.0
 * Takes shuffles off the names of files and puts them back, and selects files by number. Called by
 * auto_shard.c and file_consumption.c, which divide files among workers. */
#include "worker/library/input/sharding/file_names.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/pure/assert.h"
#include "worker/library/input/sharding/file_shares.h"
#include "worker/library/input/node/sample_id.h"

#define NAME_SHOWN 200 /* bytes of a name that people see */

cadre_dataset *file_names_unshuffle(cadre_dataset *names, struct file_names_shuffles *ret_order)
{
    if (names->input_count != 1 || names->ops->rebuild == NULL) {
        return cadre_dataset_retain(names);
    }
    if (strcmp(names->ops->name, "shuffle") == 0 && ret_order->count < FILE_NAMES_SHUFFLES_MAX) {
        ret_order->shuffles[ret_order->count++] = names;
        return file_names_unshuffle(names->input, ret_order);
    }
    cadre_dataset *input = file_names_unshuffle(names->input, ret_order);
    if (input == names->input) {
        cadre_dataset_release(input);
        return cadre_dataset_retain(names);
    }
    return names->ops->rebuild(names, &input);
}

cadre_dataset *file_names_reshuffle(cadre_dataset *names, const struct file_names_shuffles *order)
{
    for (size_t i = order->count; i > 0; i--) {
        names = order->shuffles[i - 1]->ops->rebuild(order->shuffles[i - 1], &names);
    }
    return names;
}

cadre_status file_names_check_fixed(const cadre_dataset *names, struct cadre_error *ret_reason)
{
    static const char *const kept[] = {"map", "named", "with_options", "prefetch", "shard",
        "shuffle", "skip", "take", "with_spec"};
    for (; names->input_count == 1; names = names->input) {
        bool known = false;
        for (size_t i = 0; i < CADRE_COUNT_OF(kept); i++) {
            known = known || strcmp(names->ops->name, kept[i]) == 0;
        }
        if (!known) {
            return cadre_error_set(ret_reason, CADRE_INVALID_ARGUMENT,
                "the names of the files go through %s, so they are no fixed list",
                names->ops->name);
        }
    }
    if (names->input_count > 0 || !names->indexable) {
        return cadre_error_set(ret_reason, CADRE_INVALID_ARGUMENT,
            "the names of the files come from %s, so they are no fixed list", names->ops->name);
    }
    return CADRE_OK;
}

/* The last part of a path, if the element is one; long ones are cut. */
static void write_text(const cadre_element *element, FILE *texts)
{
    const cadre_tensor *name = element->count > 0 ? element->tensors[0] : NULL;
    if (cadre_tensor_dtype(name) == CADRE_STRING && cadre_tensor_count(name) == 1) {
        const cadre_string *path = cadre_tensor_const_data(name);
        size_t first = path->size;
        while (first > 0 && path->bytes[first - 1] != '/' && path->size - first < NAME_SHOWN) {
            first--;
        }
        for (size_t i = first; i < path->size; i++) {
            fputc(path->bytes[i] == '\0' ? '?' : path->bytes[i], texts);
        }
    }
    fputc('\0', texts);
}

cadre_status file_names_read_ids(
    cadre_dataset *names, struct id_list *ids, FILE *texts, struct cadre_error *error)
{
    const struct pass pass = {.epoch = 0, .ordered = true};
    cadre_iterator *iterator = NULL;
    CADRE_TRY(dataset_iterate(names, &pass, &iterator, error));
    cadre_status status = CADRE_OK;
    struct cadre_error own = {0};
    while (status == CADRE_OK) {
        cadre_element element = {0};
        size_t before = ids->count;
        status = iterator_next(iterator, &element, ids, &own);
        if (status == CADRE_OK) {
            write_text(&element, texts);
        }
        cadre_element_release(&element);
        if (status != CADRE_OK) {
            break;
        }
        uint64_t last = ids->count > 0 ? ids->ids[ids->count - 1] : 0;
        bool ascends = ids->count == before + 1 && (before == 0 || ids->ids[before - 1] < last);
        if (!ascends || ids->count > FILE_SHARES_FILES_MAX || last >> SAMPLE_ID_OUTER_BITS != 0) {
            status = cadre_error_set(&own, CADRE_INVALID_ARGUMENT,
                "file %zu of the list has no number of its own below 2^%d", before,
                SAMPLE_ID_OUTER_BITS);
        }
    }
    cadre_iterator_release(iterator);
    if (status != CADRE_OUT_OF_RANGE && error != NULL) {
        *error = own;
    }
    return status == CADRE_OUT_OF_RANGE ? CADRE_OK : status;
}

/* --- some of them --- */

struct picked_dataset {
    cadre_dataset base;
    uint64_t *numbers;
    size_t count;
};

struct picked_iterator {
    cadre_iterator base;
    size_t given;
};

static const struct picked_dataset *picked_of(const cadre_dataset *self)
{
    return (const struct picked_dataset *)self;
}

static void picked_destroy(cadre_dataset *self)
{
    free(((struct picked_dataset *)self)->numbers);
}

static void picked_locate(
    const cadre_dataset *self, struct element_position positions[], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        positions[i].index = picked_of(self)->numbers[positions[i].index];
    }
}

static int64_t picked_cardinality(const cadre_dataset *self)
{
    return (int64_t)picked_of(self)->count;
}

static cadre_status picked_next(cadre_iterator *self, cadre_element *ret_element,
    struct id_list *ids, struct cadre_error *error)
{
    struct picked_iterator *iterator = (struct picked_iterator *)self;
    const struct picked_dataset *picked = picked_of(self->data);
    if (iterator->given == picked->count) {
        return iterator_end(error);
    }
    uint64_t from = iterator->given == 0 ? 0 : picked->numbers[iterator->given - 1] + 1;
    uint64_t skipped = 0;
    CADRE_TRY(iterator_skip(self->input, picked->numbers[iterator->given] - from, &skipped, error));
    CADRE_TRY(iterator_next(self->input, ret_element, ids, error));
    iterator->given++;
    return CADRE_OK;
}

static cadre_status picked_save(
    cadre_iterator *self, struct iterator_state_writer *writer, struct cadre_error *error)
{
    return iterator_state_write_number(writer, ((struct picked_iterator *)self)->given, error);
}

static cadre_status picked_restore(
    cadre_iterator *self, struct iterator_state_reader *reader, struct cadre_error *error)
{
    uint64_t given = 0;
    CADRE_TRY(iterator_state_read_number(reader, &given, error));
    if (given > picked_of(self->data)->count) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the saved position is file %" PRIu64 " of %zu", given, picked_of(self->data)->count);
    }
    ((struct picked_iterator *)self)->given = (size_t)given;
    return CADRE_OK;
}

static const struct iterator_ops picked_iterator_ops = {
    .next = picked_next,
    .save = picked_save,
    .restore = picked_restore,
};

static cadre_status picked_iterate(cadre_dataset *self, const struct pass *pass,
    cadre_iterator **ret_iterator, struct cadre_error *error)
{
    return iterator_new(sizeof(struct picked_iterator), &picked_iterator_ops, self, pass, pass,
        ret_iterator, error);
}

static cadre_dataset *picked_rebuild(const cadre_dataset *self, cadre_dataset *const inputs[])
{
    return file_names_select(inputs[0], picked_of(self)->numbers, picked_of(self)->count);
}

static void picked_describe(const cadre_dataset *self, struct description *text)
{
    description_add(text, "%zu of them", picked_of(self)->count);
}

static const struct dataset_ops picked_ops = {
    .name = "picked",
    .destroy = picked_destroy,
    .rebuild = picked_rebuild,
    .describe = picked_describe,
    .cardinality = picked_cardinality,
    .locate = picked_locate,
    .iterate = picked_iterate,
    .keeps_elements = true,
};

cadre_dataset *file_names_select(cadre_dataset *names, const uint64_t numbers[], size_t count)
{
    if (!dataset_usable(names)) {
        return names;
    }
    uint64_t *own = malloc((count > 0 ? count : 1) * sizeof own[0]);
    struct picked_dataset *picked =
        own == NULL ? NULL : dataset_new(sizeof *picked, &picked_ops, names);
    if (picked == NULL) {
        free(own);
        if (own == NULL) {
            cadre_dataset_release(names);
        }
        return NULL;
    }
    if (count > 0) {
        memcpy(own, numbers, count * sizeof own[0]);
    }
    picked->numbers = own;
    picked->count = count;
    return &picked->base;
}
