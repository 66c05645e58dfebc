/* SPDX-License-Identifier: Apache-2.0
 * Reading datasets as numbers; see reading.h. */
#include "tests/unit/input/reading.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/input/cmocka_unit.h"

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
        cadre_element_clear(&element);
    }
    if (status != CADRE_OUT_OF_RANGE) {
        fail_msg("%s", cadre_error_message());
    }
    /* The end stays the end. */
    assert_int_equal(cadre_iterator_next(iterator, &element), CADRE_OUT_OF_RANGE);
    cadre_iterator_free(iterator);
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

static void write_batch(struct writer *writer, const struct distributed_batch *batch)
{
    for (uint32_t r = 0; r < batch->replicas; r++) {
        struct numbers numbers = {.count = 0};
        assert_int_equal(batch->elements[r].count, 1);
        assert_int_equal(cadre_tensor_rank(batch->elements[r].tensors[0]), 1);
        numbers_add(&numbers, batch->elements[r].tensors[0]);
        write_text(writer, "[");
        for (size_t i = 0; i < numbers.count; i++) {
            char number[32];
            snprintf(number, sizeof number, "%s%" PRId64, i == 0 ? "" : " ", numbers.values[i]);
            write_text(writer, number);
        }
        write_text(writer, "]");
    }
}

const char *step_text(cadre_dataset *data, uint32_t workers, uint32_t replicas,
    cadre_shard_policy policy, uint64_t epoch, uint64_t step, char *text, size_t text_bytes)
{
    struct writer writer = {.text = text, .bytes = text_bytes};
    struct digest fed = {0};
    struct digest expected = {0};
    uint64_t rows = 0;
    uint64_t global_rows = 0;
    cadre_status claim = CADRE_OK;
    text[0] = '\0';
    for (uint32_t worker = 0; worker < workers; worker++) {
        struct cadre_error error = {0};
        struct distributed_input *input = NULL;
        struct distributed_batch batch = {0};
        const struct distributed_layout layout = {.workers = workers,
            .worker_index = worker,
            .replicas = replicas,
            .policy = policy,
            .name = "test"};
        ASSERT_OK(distributed_input_open(data, &layout, &input, &error));
        cadre_status status = distributed_input_read(input, epoch, step, &batch, &error);
        if (status == CADRE_OUT_OF_RANGE) {
            assert_true(worker == 0 || strcmp(text, "end") == 0);
            distributed_input_close(input);
            snprintf(text, text_bytes, "end");
            continue;
        }
        ASSERT_OK(status);
        assert_string_not_equal(text, "end");
        int64_t steps = distributed_input_steps(input, epoch);
        assert_true(steps < 0 || step < (uint64_t)steps);
        claim = distributed_input_expected_digest(input, epoch, step, &expected, &error);
        digest_merge(&fed, &batch.fed);
        for (uint32_t r = 0; r < replicas; r++) {
            rows += (uint64_t)cadre_tensor_rows(batch.elements[r].tensors[0]);
        }
        assert_true(worker == 0 || batch.global_rows == global_rows);
        global_rows = batch.global_rows;
        write_text(&writer, worker == 0 ? "" : " | ");
        write_batch(&writer, &batch);
        distributed_batch_clear(&batch);
        distributed_input_close(input);
    }
    assert_int_equal(rows, global_rows);
    if (claim == CADRE_OK) {
        assert_true(digest_equal(&fed, &expected));
    } else {
        assert_int_equal(claim, CADRE_UNIMPLEMENTED);
    }
    return text;
}

const char *steps_text(cadre_dataset *data, uint32_t workers, uint32_t replicas,
    cadre_shard_policy policy, char *text, size_t text_bytes)
{
    struct writer writer = {.text = text, .bytes = text_bytes};
    char step[512];
    text[0] = '\0';
    for (uint64_t number = 0; number < 100; number++) {
        step_text(data, workers, replicas, policy, 0, number, step, sizeof step);
        if (strcmp(step, "end") == 0) {
            break;
        }
        write_text(&writer, number == 0 ? "" : " / ");
        write_text(&writer, step);
    }
    cadre_dataset_release(data);
    return text;
}

cadre_dataset *make_sequential(cadre_dataset *data)
{
    return cadre_dataset_shuffle(data, 1, 0);
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
