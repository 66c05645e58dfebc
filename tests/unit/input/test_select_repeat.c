/* SPDX-License-Identifier: Apache-2.0
 * take, skip, shard and repeat: what they give, in order and by index, and where they stand. */
#include "tests/unit/input/cmocka_unit.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/input/elements.h"

static cadre_dataset *numbers(int64_t count, bool sequential)
{
    cadre_dataset *data = cadre_dataset_range(0, count, 1);
    return sequential ? in_order_only(data) : data;
}

static void expect_all(cadre_dataset *data, const char *expected, int64_t cardinality)
{
    int64_t said = cadre_dataset_cardinality(data);
    assert_true(said == cardinality || (said == CADRE_CARDINALITY_UNKNOWN && !data->indexable));
    expect_consistent(data);
    expect_elements(data, expected);
}

static void parts_of_a_dataset(void **state)
{
    (void)state;
    for (int sequential = 0; sequential < 2; sequential++) {
        expect_all(cadre_dataset_take(numbers(10, sequential), 3), "0 1 2", 3);
        expect_all(cadre_dataset_take(numbers(2, sequential), 3), "0 1", 2);
        expect_all(cadre_dataset_take(numbers(10, sequential), 0), "", 0);
        expect_all(cadre_dataset_skip(numbers(10, sequential), 7), "7 8 9", 3);
        expect_all(cadre_dataset_skip(numbers(3, sequential), 7), "", 0);
        expect_all(cadre_dataset_skip(numbers(3, sequential), 0), "0 1 2", 3);
        expect_all(cadre_dataset_shard(numbers(10, sequential), 3, 0), "0 3 6 9", 4);
        expect_all(cadre_dataset_shard(numbers(10, sequential), 3, 2), "2 5 8", 3);
        expect_all(cadre_dataset_shard(numbers(2, sequential), 3, 2), "", 0);
        expect_all(cadre_dataset_take(cadre_dataset_skip(numbers(10, sequential), 4), 2), "4 5", 2);
    }
}

static void repeated(void **state)
{
    (void)state;
    for (int sequential = 0; sequential < 2; sequential++) {
        expect_all(cadre_dataset_repeat(numbers(3, sequential), 2), "0 1 2 0 1 2", 6);
        expect_all(cadre_dataset_repeat(numbers(3, sequential), 0), "", 0);
        expect_all(cadre_dataset_repeat(numbers(0, sequential), CADRE_REPEAT_FOREVER), "", 0);
        expect_all(cadre_dataset_take(
                       cadre_dataset_repeat(numbers(3, sequential), CADRE_REPEAT_FOREVER), 7),
            "0 1 2 0 1 2 0", 7);
    }
    /* Passes are epochs to what is before: the shuffle gives another order each time. */
    cadre_dataset *data = cadre_dataset_repeat(
        cadre_dataset_shuffle(cadre_dataset_range(0, 9, 1), CADRE_SHUFFLE_ALL, 5, NULL), 3);
    expect_consistent(data);
    cadre_dataset_release(data);
}

static cadre_status keep_small(const cadre_element *in, bool *ret_keep, void *user)
{
    (void)user;
    *ret_keep = *(const int64_t *)cadre_tensor_const_data(in->tensors[0]) < 5;
    return CADRE_OK;
}

/* One element of ten, another one each epoch, if it is small. */
static cadre_dataset *sometimes(void)
{
    cadre_dataset *data = cadre_dataset_shuffle(numbers(10, false), CADRE_SHUFFLE_ALL, 1, NULL);
    return cadre_dataset_filter(cadre_dataset_take(data, 1), keep_small, NULL);
}

/* A pass without an element does not end the passes, whose number is known; an endless repeat ends
 * there, as TensorFlow's does. */
static void passes_without_elements(void **state)
{
    (void)state;
    char expected[256] = "";
    char endless[256] = "";
    bool empty = false;
    cadre_dataset *data = sometimes();
    for (uint64_t epoch = 0; epoch < 8; epoch++) {
        const char *text = elements_text(data, &(struct pass){.epoch = epoch}, SIZE_MAX);
        const char *between = expected[0] != '\0' && text[0] != '\0' ? " " : "";
        size_t used = strlen(expected);
        snprintf(expected + used, sizeof expected - used, "%s%s", between, text);
        empty = empty || text[0] == '\0';
        if (!empty) {
            memcpy(endless, expected, sizeof endless);
        }
    }
    assert_true(strlen(expected) > strlen(endless));
    cadre_dataset_release(data);
    data = cadre_dataset_repeat(sometimes(), 8);
    expect_consistent(data);
    expect_elements(data, expected);
    expect_elements(cadre_dataset_repeat(sometimes(), CADRE_REPEAT_FOREVER), endless);
}

static void positions_that_do_not_fit(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct iterator_state_writer saved = {0};
    cadre_iterator *iterator = NULL;
    uint64_t skipped = 0;
    cadre_dataset *longer = cadre_dataset_take(numbers(10, true), 5);
    cadre_dataset *shorter = cadre_dataset_take(numbers(10, true), 4);
    cadre_dataset *other = cadre_dataset_skip(numbers(10, true), 4);
    ASSERT_OK(dataset_iterate(longer, &(struct pass){0}, &iterator, &error));
    ASSERT_OK(iterator_skip(iterator, 5, &skipped, &error));
    ASSERT_OK(iterator_save(iterator, &saved, &error));
    cadre_iterator_release(iterator);
    cadre_dataset *const wrong[] = {shorter, other};
    for (size_t i = 0; i < 2; i++) {
        struct iterator_state_reader reader = {.bytes = saved.bytes, .count = saved.count};
        ASSERT_OK(dataset_iterate(wrong[i], &(struct pass){0}, &iterator, &error));
        assert_int_equal(iterator_restore(iterator, &reader, &error), CADRE_INVALID_ARGUMENT);
        cadre_iterator_release(iterator);
    }
    iterator_state_writer_clear(&saved);
    cadre_dataset_release(longer);
    cadre_dataset_release(shorter);
    cadre_dataset_release(other);
}

static void a_mark_cannot_be_read(void **state)
{
    (void)state;
    for (int sequential = 0; sequential < 2; sequential++) {
        cadre_dataset *data = cadre_dataset_shard(numbers(10, sequential), CADRE_SHARD_BY_HINT, 0);
        assert_int_equal(cadre_dataset_status(data), CADRE_OK);
        assert_int_equal(cadre_dataset_cardinality(data), CADRE_CARDINALITY_UNKNOWN);
        expect_spec(data, "i64 []");
        data = cadre_dataset_batch(cadre_dataset_take(data, 4), 2, false);
        expect_failure(
            cadre_dataset_retain(data), CADRE_FAILED_PRECONDITION, "CADRE_SHARD_BY_HINT");
        cadre_dataset_release(data);
    }
    expect_failure(
        cadre_dataset_shard(numbers(5, false), -2, 0), CADRE_INVALID_ARGUMENT, "-2 shards");
    expect_failure(
        cadre_dataset_shard(numbers(5, false), 2, 2), CADRE_INVALID_ARGUMENT, "index 2 of 2");
    expect_failure(cadre_dataset_take(numbers(5, false), -1), CADRE_INVALID_ARGUMENT, "take");
    expect_failure(cadre_dataset_skip(numbers(5, false), -1), CADRE_INVALID_ARGUMENT, "skip");
    expect_failure(cadre_dataset_repeat(numbers(5, false), -2), CADRE_INVALID_ARGUMENT, "repeat");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_of_a_dataset),
        cmocka_unit_test(repeated),
        cmocka_unit_test(passes_without_elements),
        cmocka_unit_test(positions_that_do_not_fit),
        cmocka_unit_test(a_mark_cannot_be_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
