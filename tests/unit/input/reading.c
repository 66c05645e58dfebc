/* SPDX-License-Identifier: Apache-2.0
 * Reading datasets as numbers; see reading.h. */
#include "tests/unit/input/reading.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/input/cmocka_unit.h"
#include "worker/library/composite/composite.h"
#include "worker/library/input/batching/element_slice.h"

void numbers_add(struct numbers *numbers, const cadre_tensor *tensor)
{
    assert_int_equal(cadre_tensor_dtype(tensor), CADRE_I64);
    size_t count = (size_t)cadre_tensor_count(tensor);
    assert_true(count <= NUMBERS_MAX - numbers->count);
    memcpy(numbers->values + numbers->count, cadre_tensor_const_data(tensor), count * 8);
    numbers->count += count;
}

void read_epoch(cadre_dataset *data, uint64_t epoch, struct numbers *ret_numbers)
{
    cadre_iterator *iterator = NULL;
    cadre_element element = {0};
    cadre_status status = cadre_dataset_iterate(data, epoch, &iterator);
    if (status != CADRE_OK) {
        fail_msg("%s", cadre_error_message());
    }
    ret_numbers->count = 0;
    while ((status = cadre_iterator_next(iterator, &element)) == CADRE_OK) {
        numbers_add(ret_numbers, element.tensors[0]);
        cadre_element_release(&element);
    }
    if (status != CADRE_OUT_OF_RANGE) {
        fail_msg("%s", cadre_error_message());
    }
    /* The end stays the end. */
    assert_int_equal(cadre_iterator_next(iterator, &element), CADRE_OUT_OF_RANGE);
    cadre_iterator_release(iterator);
}

struct writer {
    char *text;
    size_t bytes;
    size_t used;
};

static void write_text(struct writer *writer, const char *added)
{
    size_t length = strlen(added);
    assert_true(length < writer->bytes - writer->used);
    memcpy(writer->text + writer->used, added, length + 1);
    writer->used += length;
}

/* Numbers as they are, strings as they are. */
static void write_row(struct writer *writer, const cadre_tensor *tensor, int64_t row)
{
    char number[32];
    if (cadre_tensor_dtype(tensor) == CADRE_STRING) {
        const cadre_string *strings = cadre_tensor_const_data(tensor);
        snprintf(number, sizeof number, "%.*s", (int)strings[row].size, strings[row].bytes);
    } else {
        assert_int_equal(cadre_tensor_dtype(tensor), CADRE_I64);
        const int64_t *values = cadre_tensor_const_data(tensor);
        snprintf(number, sizeof number, "%" PRId64, values[row]);
    }
    write_text(writer, number);
}

/* A row as what it holds: "(1 2)". */
static void write_ragged(struct writer *writer, const cadre_element *element)
{
    assert_int_equal(element->count, 2);
    for (int64_t i = 0; i < element_first_rows(element); i++) {
        cadre_tensor *row = NULL;
        struct cadre_error error = {0};
        ASSERT_OK(ragged_row(element->tensors, i, &row, &error));
        write_text(writer, "(");
        for (int64_t k = 0; k < cadre_tensor_rows(row); k++) {
            write_text(writer, k == 0 ? "" : " ");
            write_row(writer, row, k);
        }
        write_text(writer, ")");
        cadre_tensor_release(row);
    }
}

/* "0,0=1 0,1=2 of 3,4": all values with their two indices, and the dense shape. */
static void write_sparse(struct writer *writer, const cadre_element *element)
{
    assert_int_equal(element->count, 3);
    const int64_t *index = cadre_tensor_const_data(element->tensors[0]);
    const int64_t *shape = cadre_tensor_const_data(element->tensors[2]);
    char text[96];
    assert_int_equal(cadre_tensor_dim(element->tensors[0], 1), 2);
    for (int64_t k = 0; k < cadre_tensor_rows(element->tensors[1]); k++) {
        snprintf(text, sizeof text, "%" PRId64 ",%" PRId64 "=", index[2 * k], index[2 * k + 1]);
        write_text(writer, text);
        write_row(writer, element->tensors[1], k);
        write_text(writer, " ");
    }
    snprintf(text, sizeof text, "of %" PRId64 ",%" PRId64, shape[0], shape[1]);
    write_text(writer, text);
}

static void write_batch(struct writer *writer, const struct distributed_batch *batch)
{
    for (uint32_t r = 0; r < batch->replicas; r++) {
        const cadre_element *element = &batch->elements[r];
        const struct composite composite = composite_of_element(element, 0);
        if (composite.kind != CADRE_COMPOSITE_NONE) {
            write_text(writer, "[");
            (composite.kind == CADRE_COMPOSITE_RAGGED ? write_ragged : write_sparse)(
                writer, element);
            write_text(writer, "]");
            continue;
        }
        assert_int_equal(batch->elements[r].count, 1);
        const cadre_tensor *tensor = batch->elements[r].tensors[0];
        assert_int_equal(cadre_tensor_rank(tensor), 1);
        write_text(writer, "[");
        for (int64_t i = 0; i < cadre_tensor_rows(tensor); i++) {
            write_text(writer, i == 0 ? "" : " ");
            write_row(writer, tensor, i);
        }
        write_text(writer, "]");
    }
}

/* What all workers together have of a step. */
struct part {
    uint32_t present;
    uint64_t rows;
    uint64_t global_rows;
    struct digest consumed;
};

/* One worker's part of a step; false where it has none. */
static bool write_part(struct writer *writer, struct distributed_input *input, uint64_t epoch,
    uint64_t step, struct part *part)
{
    struct cadre_error error = {0};
    struct distributed_batch batch = {0};
    cadre_status status = distributed_input_read(input, epoch, step, &batch, &error);
    if (status == CADRE_OUT_OF_RANGE) {
        assert_false(distributed_input_agrees(input));
        return false;
    }
    ASSERT_OK(status);
    int64_t steps = distributed_input_steps(input, epoch);
    assert_true(steps < 0 || batch.present == 0 || step < (uint64_t)steps);
    part->present += batch.present;
    digest_merge(&part->consumed, &batch.consumed);
    uint64_t rows = 0;
    for (uint32_t r = 0; r < batch.replicas; r++) {
        rows += (uint64_t)element_first_rows(&batch.elements[r]);
    }
    assert_int_equal(batch.own_rows, rows);
    part->rows += rows;
    if (!distributed_input_agrees(input)) {
        part->global_rows = batch.global_rows;
    }
    write_batch(writer, &batch);
    distributed_batch_clear(&batch);
    return true;
}

const char *step_text_of(cadre_dataset *data, const struct distributed_layout *layout,
    uint64_t epoch, uint64_t step, char *text, size_t text_bytes)
{
    struct writer writer = {.text = text, .bytes = text_bytes};
    struct part part = {0};
    struct digest expected = {0};
    bool agrees = false;
    uint32_t without = 0;
    cadre_status claim = CADRE_OK;
    text[0] = '\0';
    for (uint32_t worker = 0; worker < layout->workers; worker++) {
        struct cadre_error error = {0};
        struct distributed_input *input = NULL;
        struct distributed_layout own = *layout;
        own.worker_index = worker;
        ASSERT_OK(distributed_input_open(data, &own, &input, &error));
        agrees = distributed_input_agrees(input);
        write_text(&writer, worker == 0 ? "" : " | ");
        if (write_part(&writer, input, epoch, step, &part)) {
            claim = distributed_input_expected_digest(input, epoch, step, &expected, &error);
        } else {
            without++;
        }
        distributed_input_close(input);
    }
    if (part.present == 0) {
        assert_true(agrees || without == layout->workers);
        snprintf(text, text_bytes, "end");
        return text;
    }
    assert_int_equal(without, 0);
    assert_true(agrees || part.rows == part.global_rows);
    if (claim == CADRE_OK) {
        assert_true(digest_equal(&part.consumed, &expected));
    } else {
        assert_int_equal(claim, CADRE_UNIMPLEMENTED);
    }
    return text;
}

const char *step_text(cadre_dataset *data, uint32_t workers, uint32_t replicas,
    cadre_shard_policy policy, uint64_t epoch, uint64_t step, char *text, size_t text_bytes)
{
    const struct distributed_layout layout = {
        .workers = workers, .replicas = replicas, .policy = policy, .name = "test"};
    return step_text_of(data, &layout, epoch, step, text, text_bytes);
}

const char *steps_text_of(
    cadre_dataset *data, const struct distributed_layout *layout, char *text, size_t text_bytes)
{
    struct writer writer = {.text = text, .bytes = text_bytes};
    char step[1024];
    text[0] = '\0';
    for (uint64_t number = 0; number < 100; number++) {
        step_text_of(data, layout, 0, number, step, sizeof step);
        if (strcmp(step, "end") == 0) {
            break;
        }
        write_text(&writer, number == 0 ? "" : " / ");
        write_text(&writer, step);
    }
    cadre_dataset_release(data);
    return text;
}

const char *steps_text(cadre_dataset *data, uint32_t workers, uint32_t replicas,
    cadre_shard_policy policy, char *text, size_t text_bytes)
{
    const struct distributed_layout layout = {
        .workers = workers, .replicas = replicas, .policy = policy, .name = "test"};
    return steps_text_of(data, &layout, text, text_bytes);
}

cadre_dataset *make_sequential(cadre_dataset *data)
{
    return cadre_dataset_shuffle(data, 1, 0, NULL);
}

cadre_status copy_element(const cadre_element *in, cadre_element *ret_out, void *user)
{
    (void)user;
    *ret_out = *in;
    for (uint32_t i = 0; i < in->count; i++) {
        cadre_tensor_retain(in->tensors[i]);
    }
    return CADRE_OK;
}
