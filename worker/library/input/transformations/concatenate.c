/* SPDX-License-Identifier: Apache-2.0
 * The transformation that gives all of one dataset, then all of another. The second one's ids are
 * moved behind those of the first. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/pure/prng.h"
#include "worker/library/device/tensor.h"
#include "worker/library/input/node/element_stack.h"

/* Where it is not known how many samples the first has, ids of sources and files stay below this;
 * the second's begin at the next free multiple. */
#define UNKNOWN_SAMPLES_BITS 58
#define UNKNOWN_MULTIPLES    (UINT64_C(1) << (64 - UNKNOWN_SAMPLES_BITS))

struct concatenate_iterator {
    cadre_iterator base; /* `input` reads the part at hand */
    bool second;
    bool checked; /* the part at hand, against the other one if that gave anything */
    bool first_known;
    cadre_element_spec first; /* what the first part gave, without sizes */
    bool offset_known;
    uint64_t offset; /* of the second part's ids */
};

static const struct dataset_ops concatenate_ops;

static uint64_t dataset_concatenations(const cadre_dataset *data)
{
    uint64_t count = data->ops == &concatenate_ops ? 1 : 0;
    for (uint32_t i = 0; i < data->input_count; i++) {
        count += dataset_concatenations(data->inputs[i]);
    }
    return count;
}

/* What is added to the second one's ids. The first is prepared where it can be. */
static uint64_t second_offset(const cadre_dataset *self)
{
    const cadre_dataset *first = self->inputs[0];
    uint64_t samples = dataset_samples(first);
    if (samples > 0 || dataset_cardinality(first) == 0) {
        return samples;
    }
    const uint64_t before = dataset_concatenations(first) + 1;
    /* There are no more than 63 multiples; what is behind them is put where nothing else will be.
     */
    return before < UNKNOWN_MULTIPLES ? before << UNKNOWN_SAMPLES_BITS : prng_mix(before);
}

static void move_ids(struct id_list *ids, size_t first, uint64_t offset)
{
    for (size_t i = first; ids != NULL && i < ids->count; i++) {
        ids->ids[i] += offset;
    }
}

static cadre_status concatenate_spec(cadre_dataset *self, const cadre_element_spec inputs[],
    cadre_element_spec *ret_spec, struct cadre_error *error)
{
    (void)self;
    *ret_spec = inputs[0];
    if (inputs[0].count != inputs[1].count) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "concatenate: elements of %" PRIu32
            " components cannot be followed by elements of %" PRIu32,
            inputs[0].count, inputs[1].count);
    }
    for (uint32_t i = 0; i < inputs[0].count; i++) {
        const cadre_tensor_spec *a = &inputs[0].tensors[i];
        const cadre_tensor_spec *b = &inputs[1].tensors[i];
        if (a->dtype != b->dtype || a->rank != b->rank) {
            char first[TENSOR_SHAPE_TEXT_BYTES];
            char second[TENSOR_SHAPE_TEXT_BYTES];
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "concatenate: component %" PRIu32
                " is %s in the first dataset and %s in the second; types and ranks must agree",
                i, tensor_shape_text(a->dtype, a->rank, a->dims, first),
                tensor_shape_text(b->dtype, b->rank, b->dims, second));
        }
        for (uint32_t axis = 0; axis < a->rank; axis++) {
            if (a->dims[axis] != b->dims[axis]) {
                ret_spec->tensors[i].dims[axis] = CADRE_DIMENSION_ANY;
            }
        }
    }
    return CADRE_OK;
}

static int64_t concatenate_cardinality(const cadre_dataset *self)
{
    int64_t first = dataset_cardinality(self->inputs[0]);
    int64_t second = dataset_cardinality(self->inputs[1]);
    int64_t sum = 0;
    if (first == CADRE_CARDINALITY_INFINITE || second == CADRE_CARDINALITY_INFINITE) {
        return CADRE_CARDINALITY_INFINITE;
    }
    if (first < 0 || second < 0 || __builtin_add_overflow(first, second, &sum)) {
        return CADRE_CARDINALITY_UNKNOWN;
    }
    return sum;
}

static uint64_t concatenate_samples(const cadre_dataset *self)
{
    uint64_t first = dataset_samples(self->inputs[0]);
    uint64_t second = dataset_samples(self->inputs[1]);
    bool known = (first > 0 || dataset_cardinality(self->inputs[0]) == 0) &&
                 (second > 0 || dataset_cardinality(self->inputs[1]) == 0);
    return known ? first + second : 0;
}

static int64_t concatenate_batch_size(const cadre_dataset *self);

/* Of a part that is a concatenation itself the spec need not be put together: what is static in it
 * is so in all of its own parts. A long chain would take the square of its length. */
static int64_t part_batch_size(cadre_dataset *part)
{
    cadre_element_spec spec = {0};
    if (part->ops == &concatenate_ops) {
        return concatenate_batch_size(part);
    }
    return dataset_spec(part, &spec, NULL) == CADRE_OK ? dataset_batch_size(part, &spec)
                                                       : CADRE_CARDINALITY_UNKNOWN;
}

static int64_t concatenate_batch_size(const cadre_dataset *self)
{
    const int64_t size = part_batch_size(self->inputs[1]);
    return size != CADRE_CARDINALITY_UNKNOWN && part_batch_size(self->inputs[0]) == size
               ? size
               : CADRE_CARDINALITY_UNKNOWN;
}

/* --- types that differ are not read one after the other --- */

static cadre_status dataset_disagree(struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
        "concatenate: the elements of the second dataset have other types, ranks or components "
        "than those of the first; map one of them to what the other has");
}

/* A part's own part that comes first, which stands for all of it. */
static cadre_dataset *first_of(cadre_dataset *data)
{
    while (data->ops == &concatenate_ops) {
        data = data->inputs[0];
    }
    return data;
}

/* By index the specs are compared. What they fail with comes out where the elements are read. */
static cadre_status concatenate_prepare(cadre_dataset *self, struct cadre_error *error)
{
    cadre_element_spec specs[2] = {{.count = 0}};
    for (uint32_t i = 0; i < 2; i++) {
        if (dataset_spec(first_of(self->inputs[i]), &specs[i], NULL) != CADRE_OK) {
            return CADRE_OK;
        }
    }
    return element_spec_agrees(&specs[0], &specs[1]) ? CADRE_OK : dataset_disagree(error);
}

/* In order the elements are; `stacked`: rows of them. */
static cadre_status check_part(struct concatenate_iterator *iterator, const cadre_element *element,
    bool stacked, struct cadre_error *error)
{
    cadre_element_spec found = {.count = element->count};
    if (iterator->checked) {
        return CADRE_OK;
    }
    for (uint32_t i = 0; i < element->count; i++) {
        found.tensors[i].dtype = cadre_tensor_dtype(element->tensors[i]);
        found.tensors[i].rank = cadre_tensor_rank(element->tensors[i]) - (stacked ? 1 : 0);
        found.tensors[i].composite = tensor_composite(element->tensors[i]);
    }
    iterator->checked = true;
    if (!iterator->second) {
        iterator->first = found;
        iterator->first_known = true;
    }
    return !iterator->first_known || element_spec_agrees(&iterator->first, &found)
               ? CADRE_OK
               : dataset_disagree(error);
}

/* --- by index --- */

/* Which of the two holds the place, which becomes that of its own. */
static cadre_dataset *find_part(
    const cadre_dataset *self, struct element_position *position, uint64_t *ret_offset)
{
    int64_t first = dataset_cardinality(self->inputs[0]);
    *ret_offset = 0;
    if (first < 0 || position->index < (uint64_t)first) {
        return self->inputs[0];
    }
    position->index -= (uint64_t)first;
    *ret_offset = second_offset(self);
    return self->inputs[1];
}

static cadre_status concatenate_at(cadre_dataset *self, struct element_position position,
    cadre_element *ret_element, struct id_list *ids, struct cadre_error *error)
{
    uint64_t offset = 0;
    cadre_dataset *part = find_part(self, &position, &offset);
    size_t before = ids != NULL ? ids->count : 0;
    CADRE_TRY(dataset_at(part, position, ret_element, ids, error));
    move_ids(ids, before, offset);
    return CADRE_OK;
}

/* The length of the run of places from the first on that lie in one part. */
static size_t run_of(
    const cadre_dataset *self, const struct element_position positions[], size_t count)
{
    int64_t first = dataset_cardinality(self->inputs[0]);
    size_t run = 1;
    while (run < count && first >= 0 &&
           (positions[run].index < (uint64_t)first) == (positions[0].index < (uint64_t)first)) {
        run++;
    }
    return first < 0 ? count : run;
}

/* Copies the places of a run into `own`, as those of their part. */
static cadre_dataset *enter_part(const cadre_dataset *self,
    const struct element_position positions[], size_t count, struct element_position own[],
    uint64_t *ret_offset)
{
    cadre_dataset *part = self->inputs[0];
    *ret_offset = 0;
    for (size_t i = 0; i < count; i++) {
        own[i] = positions[i];
        part = find_part(self, &own[i], ret_offset);
    }
    return part;
}

static cadre_status concatenate_ids_at(cadre_dataset *self,
    const struct element_position positions[], size_t count, struct id_list *ids,
    struct cadre_error *error)
{
    struct element_position own[64];
    const size_t limit = sizeof own / sizeof own[0];
    for (size_t run = 0; count > 0; positions += run, count -= run) {
        uint64_t offset = 0;
        size_t before = ids != NULL ? ids->count : 0;
        run = run_of(self, positions, count < limit ? count : limit);
        cadre_dataset *part = enter_part(self, positions, run, own, &offset);
        CADRE_TRY(dataset_ids_at(part, own, run, ids, error));
        move_ids(ids, before, offset);
    }
    return CADRE_OK;
}

/* Runs of places in one part are gathered there, and the pieces joined. */
static cadre_status concatenate_gather(cadre_dataset *self,
    const struct element_position positions[], size_t count, cadre_element *ret_element,
    struct id_list *ids, struct cadre_error *error)
{
    CADRE_CLEANUP(element_stack_clear) struct element_stack pieces = {.elements = NULL};
    size_t runs = 0;
    for (size_t i = 0; i < count; i += run_of(self, positions + i, count - i)) {
        runs++;
    }
    CADRE_FREE_AT_EXIT struct element_position *own = calloc(count, sizeof own[0]);
    pieces.elements = calloc(runs, sizeof pieces.elements[0]);
    if (own == NULL || pieces.elements == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "concatenate: no memory to read %zu elements", count);
    }
    for (size_t run = 0; count > 0; positions += run, count -= run) {
        uint64_t offset = 0;
        size_t before = ids != NULL ? ids->count : 0;
        run = run_of(self, positions, count);
        cadre_dataset *part = enter_part(self, positions, run, own, &offset);
        CADRE_TRY(dataset_gather(part, own, run, &pieces.elements[pieces.count], ids, error));
        pieces.count++;
        move_ids(ids, before, offset);
    }
    if (pieces.count == 1) {
        *ret_element = pieces.elements[0];
        pieces.count = 0;
        return CADRE_OK;
    }
    return element_stack_concat(
        &pieces, "concatenate", " of the two datasets cannot be stacked", ret_element, error);
}

static int64_t concatenate_rows(const cadre_dataset *self, struct element_position position)
{
    uint64_t offset = 0;
    cadre_dataset *part = find_part(self, &position, &offset);
    return dataset_rows(part, position);
}

static cadre_status concatenate_at_rows(cadre_dataset *self, struct element_position position,
    int64_t first, int64_t count, cadre_element *ret_element, struct id_list *ids,
    struct cadre_error *error)
{
    uint64_t offset = 0;
    cadre_dataset *part = find_part(self, &position, &offset);
    size_t before = ids != NULL ? ids->count : 0;
    CADRE_TRY(dataset_at_rows(part, position, first, count, ret_element, ids, error));
    move_ids(ids, before, offset);
    return CADRE_OK;
}

/* --- in order --- */

/* Goes on with the second part. */
static cadre_status enter_second(struct concatenate_iterator *iterator, struct cadre_error *error)
{
    cadre_iterator *self = &iterator->base;
    cadre_iterator *second = NULL;
    CADRE_TRY(dataset_iterate(self->data->inputs[1], &self->pass, &second, error));
    cadre_iterator_release(self->input);
    self->input = second;
    iterator->second = true;
    iterator->checked = false;
    return CADRE_OK;
}

/* Moves the ids behind those of the first part, when they are of the second. */
static cadre_status position_ids(struct concatenate_iterator *iterator, struct id_list *ids,
    size_t first, struct cadre_error *error)
{
    cadre_dataset *self = iterator->base.data;
    if (!iterator->second || ids == NULL) {
        return CADRE_OK;
    }
    if (!iterator->offset_known) {
        /* Read by index it would be prepared, and the ids are the same for each way of reading. */
        if (self->inputs[0]->indexable) {
            CADRE_TRY(dataset_prepare(self->inputs[0], error));
        }
        iterator->offset = second_offset(self);
        iterator->offset_known = true;
    }
    move_ids(ids, first, iterator->offset);
    return CADRE_OK;
}

static cadre_status concatenate_next(cadre_iterator *self, cadre_element *ret_element,
    struct id_list *ids, struct cadre_error *error)
{
    struct concatenate_iterator *iterator = (struct concatenate_iterator *)self;
    size_t before = ids != NULL ? ids->count : 0;
    struct cadre_error own = {0};
    cadre_status status = iterator_next(self->input, ret_element, ids, &own);
    if (status == CADRE_OUT_OF_RANGE && !iterator->second) {
        own = (struct cadre_error){0};
        status = enter_second(iterator, &own);
        if (status == CADRE_OK) {
            status = iterator_next(self->input, ret_element, ids, &own);
        }
    }
    status = status == CADRE_OK ? check_part(iterator, ret_element, false, &own) : status;
    status = status == CADRE_OK ? position_ids(iterator, ids, before, &own) : status;
    if (status != CADRE_OK) {
        cadre_element_release(ret_element);
        *error = own;
    }
    return status;
}

static cadre_status concatenate_next_rows(cadre_iterator *self, size_t wanted,
    cadre_element *ret_element, size_t *ret_count, struct id_list *ids, struct cadre_error *error)
{
    struct concatenate_iterator *iterator = (struct concatenate_iterator *)self;
    size_t before = ids != NULL ? ids->count : 0;
    struct cadre_error own = {0};
    cadre_status status =
        iterator_next_rows(self->input, wanted, ret_element, ret_count, ids, &own);
    if (status == CADRE_OUT_OF_RANGE && !iterator->second) {
        own = (struct cadre_error){0};
        status = enter_second(iterator, &own);
        if (status == CADRE_OK) {
            status = iterator_next_rows(self->input, wanted, ret_element, ret_count, ids, &own);
        }
    }
    status = status == CADRE_OK ? check_part(iterator, ret_element, true, &own) : status;
    status = status == CADRE_OK ? position_ids(iterator, ids, before, &own) : status;
    if (status != CADRE_OK) {
        cadre_element_release(ret_element);
        *error = own;
    }
    return status;
}

static cadre_status concatenate_skip(
    cadre_iterator *self, uint64_t count, uint64_t *ret_skipped, struct cadre_error *error)
{
    struct concatenate_iterator *iterator = (struct concatenate_iterator *)self;
    CADRE_TRY(iterator_skip(self->input, count, ret_skipped, error));
    if (*ret_skipped < count && !iterator->second) {
        uint64_t more = 0;
        CADRE_TRY(enter_second(iterator, error));
        CADRE_TRY(iterator_skip(self->input, count - *ret_skipped, &more, error));
        *ret_skipped += more;
    }
    return CADRE_OK;
}

static cadre_status concatenate_save(
    cadre_iterator *self, struct iterator_state_writer *writer, struct cadre_error *error)
{
    const struct concatenate_iterator *iterator = (const struct concatenate_iterator *)self;
    CADRE_TRY(iterator_state_write_number(writer, iterator->second, error));
    return iterator_save(self->input, writer, error);
}

static cadre_status concatenate_restore(
    cadre_iterator *self, struct iterator_state_reader *reader, struct cadre_error *error)
{
    struct concatenate_iterator *iterator = (struct concatenate_iterator *)self;
    uint64_t part = 0;
    CADRE_TRY(iterator_state_read_number(reader, &part, error));
    if (part > 1) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "concatenate: the saved position is in part %" PRIu64 " of 2", part);
    }
    if (part == 1) {
        CADRE_TRY(enter_second(iterator, error));
    }
    return iterator_restore(self->input, reader, error);
}

static const struct iterator_ops concatenate_iterator_ops = {
    .next = concatenate_next,
    .next_rows = concatenate_next_rows,
    .skip = concatenate_skip,
    .save = concatenate_save,
    .restore = concatenate_restore,
    .saves_input = true,
};

static cadre_status concatenate_iterate(cadre_dataset *self, const struct pass *pass,
    cadre_iterator **ret_iterator, struct cadre_error *error)
{
    return iterator_new(sizeof(struct concatenate_iterator), &concatenate_iterator_ops, self, pass,
        pass, ret_iterator, error);
}

static cadre_dataset *concatenate_rebuild(const cadre_dataset *self, cadre_dataset *const inputs[])
{
    (void)self;
    return cadre_dataset_concatenate(inputs[0], inputs[1]);
}

static const struct dataset_ops concatenate_ops = {
    .name = "concatenate",
    .rebuild = concatenate_rebuild,
    .spec = concatenate_spec,
    .cardinality = concatenate_cardinality,
    .samples = concatenate_samples,
    .prepare = concatenate_prepare,
    .at = concatenate_at,
    .gather = concatenate_gather,
    .ids_at = concatenate_ids_at,
    .rows = concatenate_rows,
    .at_rows = concatenate_at_rows,
    .iterate = concatenate_iterate,
    .batch_size = concatenate_batch_size,
};

cadre_dataset *cadre_dataset_concatenate(cadre_dataset *data, cadre_dataset *more)
{
    struct cadre_error error = {0};
    cadre_dataset *const inputs[] = {data, more};
    int64_t sum = 0;
    if (dataset_usable(data) && dataset_usable(more)) {
        int64_t first = dataset_cardinality(data);
        int64_t second = dataset_cardinality(more);
        if (first > 0 && second > 0 && __builtin_add_overflow(first, second, &sum)) {
            cadre_error_set(&error, CADRE_INVALID_ARGUMENT,
                "concatenate: %" PRId64 " and %" PRId64
                " elements are more than can be counted; take fewer of one",
                first, second);
            cadre_dataset_release(more);
            return dataset_failed(data, &error);
        }
    }
    return dataset_new_joined(sizeof(cadre_dataset), &concatenate_ops, inputs, 2);
}
