/* SPDX-License-Identifier: Apache-2.0
 * Examples become elements, one by one or a batch at a time. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/fault.h"
#include "worker/library/composite/composite.h"
#include "worker/library/device/argument.h"
#include "worker/library/device/tensor.h"
#include "worker/library/input/examples/example_buffer.h"

/* --- one --- */

/* `owner` holds the bytes, or is NULL. */
static cadre_status parse_feature(const struct wanted_feature *wanted,
    const struct example_feature *found, struct example_bytes example, cadre_tensor *owner,
    cadre_tensor **ret_tensor, struct cadre_error *error)
{
    struct example_buffer cells = {0};
    int64_t dims[CADRE_RANK_MAX];
    cadre_status status = CADRE_OK;
    if (wanted->kind == CADRE_FEATURE_FIXED) {
        status = example_buffer_create(&cells, wanted, wanted->rank, wanted->dims, error);
        if (status == CADRE_OK) {
            status = example_buffer_set_fixed(&cells, 0, wanted, found, example, error);
        }
    } else {
        CADRE_TRY(example_list_length(wanted, found, example, &dims[0], error));
        memcpy(dims + 1, wanted->dims, wanted->rank * sizeof dims[0]);
        status = example_buffer_create(&cells, wanted, wanted->rank + 1, dims, error);
        if (status == CADRE_OK) {
            status =
                example_buffer_set_list(&cells, 0, wanted, found, example, dims[0], dims[0], error);
        }
    }
    if (status == CADRE_OK) {
        status = example_buffer_finish(&cells, owner, example.size, ret_tensor, error);
    }
    example_buffer_clear(&cells);
    return status;
}

/* Puts the values, whose reference it takes over, behind `element` as sparse ones: so many of each
 * of `count` examples; `batch`: the examples are rows of it. */
static cadre_status add_sparse(cadre_tensor *values, const int64_t lengths[], int64_t count,
    bool batch, cadre_element *element, struct cadre_error *error)
{
    const uint32_t rank = batch ? 2 : 1;
    const int64_t dims[] = {cadre_tensor_rows(values), rank};
    int64_t shape[] = {count, 0};
    cadre_tensor **to = element->tensors + element->count;
    to[0] = NULL;
    to[1] = values;
    to[2] = NULL;
    element->count += 3;
    CADRE_TRY(tensor_create_unset(CADRE_I64, 2, dims, &to[0], error));
    int64_t *index = cadre_tensor_data(to[0]);
    for (int64_t row = 0; row < count; row++) {
        for (int64_t i = 0; i < lengths[row]; i++) {
            index[0] = row;
            index[rank - 1] = i;
            index += rank;
        }
        shape[1] = lengths[row] > shape[1] ? lengths[row] : shape[1];
    }
    return sparse_shape_of(batch ? shape : shape + 1, rank, &to[2], error);
}

static cadre_status parse_one(const cadre_example_parser *parser, struct example_bytes example,
    cadre_tensor *owner, cadre_element *ret_element, struct cadre_error *error)
{
    struct example_feature found[CADRE_ELEMENT_TENSORS_MAX];
    CADRE_TRY(example_check_components(parser, false, error));
    CADRE_TRY(example_find(parser, example.bytes, example.size, found, error));
    for (uint32_t i = 0; i < parser->count; i++) {
        cadre_tensor *values = NULL;
        cadre_status status =
            parse_feature(&parser->wanted[i], &found[i], example, owner, &values, error);
        if (status == CADRE_OK && parser->wanted[i].kind == CADRE_FEATURE_SPARSE) {
            const int64_t length = cadre_tensor_rows(values);
            status = add_sparse(values, &length, 1, false, ret_element, error);
        } else if (status == CADRE_OK) {
            ret_element->tensors[ret_element->count++] = values;
        }
        if (status != CADRE_OK) {
            cadre_element_release(ret_element);
            return status;
        }
    }
    return CADRE_OK;
}

/* --- a batch --- */

/* One feature of all examples. */
struct column {
    const struct wanted_feature *wanted;
    struct example_buffer cells;
    struct example_feature *found; /* all but FIXED: in each example; malloc'ed */
    int64_t *lengths;              /* of these: how many values; malloc'ed */
};

struct batch {
    cadre_tensor *owner;
    const cadre_string *examples;
    int64_t count;
    size_t bytes; /* of all examples */
    uint32_t column_count;
    struct column columns[CADRE_ELEMENT_TENSORS_MAX];
};

static void batch_clear(struct batch *batch)
{
    for (uint32_t i = 0; i < batch->column_count; i++) {
        example_buffer_clear(&batch->columns[i].cells);
        free(batch->columns[i].found);
        free(batch->columns[i].lengths);
    }
}

static struct example_bytes example_at(const struct batch *batch, int64_t row)
{
    return (struct example_bytes){
        .bytes = batch->examples[row].bytes, .size = batch->examples[row].size};
}

static cadre_status open_column(
    const struct batch *batch, struct column *column, struct cadre_error *error)
{
    const struct wanted_feature *wanted = column->wanted;
    if (wanted->kind == CADRE_FEATURE_FIXED) {
        int64_t dims[CADRE_RANK_MAX] = {batch->count};
        memcpy(dims + 1, wanted->dims, wanted->rank * sizeof dims[0]);
        return example_buffer_create(&column->cells, wanted, wanted->rank + 1, dims, error);
    }
    const size_t count = (size_t)batch->count + 1;
    column->found = fault_point("input.example") ? NULL : calloc(count, sizeof column->found[0]);
    column->lengths = calloc(count, sizeof column->lengths[0]);
    if (column->found == NULL || column->lengths == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "feature \"%s\": no memory for a batch of %" PRId64, wanted->name, batch->count);
    }
    return CADRE_OK;
}

/* Takes what can be taken before the other examples are known. */
static cadre_status read_row(
    const cadre_example_parser *parser, struct batch *batch, int64_t row, struct cadre_error *error)
{
    struct example_feature found[CADRE_ELEMENT_TENSORS_MAX];
    struct example_bytes example = example_at(batch, row);
    CADRE_TRY(example_find(parser, example.bytes, example.size, found, error));
    for (uint32_t i = 0; i < batch->column_count; i++) {
        struct column *column = &batch->columns[i];
        const struct wanted_feature *wanted = column->wanted;
        if (wanted->kind == CADRE_FEATURE_FIXED) {
            CADRE_TRY(example_buffer_set_fixed(
                &column->cells, row * wanted->count, wanted, &found[i], example, error));
            continue;
        }
        column->found[row] = found[i];
        CADRE_TRY(example_list_length(wanted, &found[i], example, &column->lengths[row], error));
    }
    return CADRE_OK;
}

/* The values of a feature that is not FIXED, once all lengths are known. */
static cadre_status read_lists(
    const struct batch *batch, struct column *column, struct cadre_error *error)
{
    const struct wanted_feature *wanted = column->wanted;
    const int64_t *lengths = column->lengths;
    bool padded = wanted->kind == CADRE_FEATURE_SEQUENCE;
    int64_t total = 0;
    int64_t longest = 0;
    for (int64_t row = 0; row < batch->count; row++) {
        total += lengths[row];
        longest = lengths[row] > longest ? lengths[row] : longest;
    }
    int64_t dims[CADRE_RANK_MAX] = {padded ? batch->count : total, longest};
    memcpy(dims + 2, wanted->dims, wanted->rank * sizeof dims[0]);
    uint32_t rank = padded ? wanted->rank + 2 : 1;
    cadre_status status = example_buffer_create(&column->cells, wanted, rank, dims, error);
    int64_t first = 0;
    for (int64_t row = 0; status == CADRE_OK && row < batch->count; row++) {
        int64_t length = padded ? longest : lengths[row];
        status = example_buffer_set_list(&column->cells, first, wanted, &column->found[row],
            example_at(batch, row), lengths[row], length, error);
        first += length * wanted->count;
    }
    return status;
}

static cadre_status finish_column(const struct batch *batch, struct column *column,
    cadre_element *ret_element, struct cadre_error *error)
{
    bool fixed = column->wanted->kind == CADRE_FEATURE_FIXED;
    if (!fixed) {
        CADRE_TRY(read_lists(batch, column, error));
    }
    cadre_tensor *values = NULL;
    CADRE_TRY(example_buffer_finish(&column->cells, batch->owner, batch->bytes, &values, error));
    if (column->wanted->kind == CADRE_FEATURE_SPARSE) {
        return add_sparse(values, column->lengths, batch->count, true, ret_element, error);
    }
    ret_element->tensors[ret_element->count++] = values;
    if (column->wanted->kind == CADRE_FEATURE_VARYING) {
        CADRE_TRY(ragged_splits_of(
            column->lengths, batch->count, &ret_element->tensors[ret_element->count], error));
        ret_element->count++;
    }
    return CADRE_OK;
}

static cadre_status read_batch(const cadre_example_parser *parser, struct batch *batch,
    cadre_element *ret_element, struct cadre_error *error)
{
    for (uint32_t i = 0; i < parser->count; i++) {
        batch->columns[i] = (struct column){.wanted = &parser->wanted[i]};
        batch->column_count++;
        CADRE_TRY(open_column(batch, &batch->columns[i], error));
    }
    for (int64_t row = 0; row < batch->count; row++) {
        cadre_status status = read_row(parser, batch, row, error);
        if (status != CADRE_OK) {
            return cadre_error_wrap(error, status,
                "example %" PRId64 " of a batch of %" PRId64 " (from 0)", row, batch->count);
        }
        batch->bytes += batch->examples[row].size;
    }
    for (uint32_t i = 0; i < batch->column_count; i++) {
        CADRE_TRY(finish_column(batch, &batch->columns[i], ret_element, error));
    }
    return CADRE_OK;
}

static cadre_status parse_batch(const cadre_example_parser *parser, cadre_tensor *examples,
    cadre_element *ret_element, struct cadre_error *error)
{
    CADRE_TRY(example_check_components(parser, true, error));
    struct batch batch = {.owner = examples,
        .examples = cadre_tensor_const_data(examples),
        .count = cadre_tensor_rows(examples)};
    cadre_status status = read_batch(parser, &batch, ret_element, error);
    batch_clear(&batch);
    if (status != CADRE_OK) {
        cadre_element_release(ret_element);
    }
    return status;
}

/* --- the public face --- */

/* By the rank of the tensor one or a batch. */
static cadre_status parse_tensor(const cadre_example_parser *parser, cadre_tensor *examples,
    bool batch_only, cadre_element *ret_element, struct cadre_error *error)
{
    uint32_t rank = cadre_tensor_rank(examples);
    if (cadre_tensor_dtype(examples) != CADRE_STRING || rank > 1 || (rank == 0 && batch_only)) {
        char shape[TENSOR_SHAPE_TEXT_BYTES];
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT, "examples are %s, and here is %s",
            batch_only ? "string [?]" : "string [] or [?]",
            tensor_shape_text(
                cadre_tensor_dtype(examples), rank, cadre_tensor_dims(examples), shape));
    }
    if (rank == 1) {
        return parse_batch(parser, examples, ret_element, error);
    }
    const cadre_string *text = cadre_tensor_const_data(examples);
    struct example_bytes example = {.bytes = text->bytes, .size = text->size};
    cadre_status status = parse_one(parser, example, examples, ret_element, error);
    return status == CADRE_OK ? CADRE_OK : cadre_error_wrap(error, status, "an example");
}

static cadre_status check_arguments(const cadre_example_parser *parser, const void *input,
    cadre_element *ret_element, const char *function, const char *input_name,
    struct cadre_error *error)
{
    CADRE_TRY(argument_require(ret_element, function, "ret_element", error));
    *ret_element = (cadre_element){0};
    CADRE_TRY(argument_require(parser, function, "parser", error));
    return argument_require(input, function, input_name, error);
}

cadre_status cadre_example_parse(
    const cadre_example_parser *parser, const void *bytes, size_t size, cadre_element *ret_element)
{
    struct cadre_error error = {0};
    const struct example_bytes example = {.bytes = bytes, .size = size};
    const void *input = size == 0 ? "" : bytes;
    cadre_status status = check_arguments(parser, input, ret_element, __func__, "bytes", &error);
    if (status == CADRE_OK) {
        status = parse_one(parser, example, NULL, ret_element, &error);
    }
    return status == CADRE_OK ? CADRE_OK : cadre_error_publish(&error);
}

cadre_status cadre_example_parse_batch(
    const cadre_example_parser *parser, cadre_tensor *examples, cadre_element *ret_element)
{
    struct cadre_error error = {0};
    cadre_status status =
        check_arguments(parser, examples, ret_element, __func__, "examples", &error);
    if (status == CADRE_OK) {
        status = parse_tensor(parser, examples, true, ret_element, &error);
    }
    return status == CADRE_OK ? CADRE_OK : cadre_error_publish(&error);
}

cadre_status cadre_example_map(const cadre_element *in, cadre_element *ret_out, void *parser)
{
    struct cadre_error error = {0};
    cadre_status status = check_arguments(parser, in, ret_out, __func__, "in", &error);
    if (status == CADRE_OK && in->count != 1) {
        status = cadre_error_set(&error, CADRE_INVALID_ARGUMENT,
            "examples are elements of one component, and this one has %" PRIu32
            "; parse before zipping",
            in->count);
    }
    if (status == CADRE_OK) {
        status = parse_tensor(parser, in->tensors[0], false, ret_out, &error);
    }
    return status == CADRE_OK ? CADRE_OK : cadre_error_publish(&error);
}
