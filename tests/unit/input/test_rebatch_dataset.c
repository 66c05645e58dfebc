/* SPDX-License-Identifier: Apache-2.0
 * Both rebatchers as transformations: the cases of the semantics, static shapes, ids that go with
 * their rows, positions. */
#include "tests/unit/input/cmocka_unit.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/input/elements.h"
#include "tests/unit/input/inner_datasets.h"
#include "tests/unit/input/reading.h"
#include "worker/library/input/batching/rebatch_dataset.h"

/* Both consume `data`. */
static void spec_is(cadre_dataset *data, const char *expected)
{
    expect_spec(data, expected);
    cadre_dataset_release(data);
}

static void consistent(cadre_dataset *data)
{
    expect_consistent(data);
    cadre_dataset_release(data);
}

static cadre_dataset *batched(int64_t count, int64_t size, bool drop_remainder)
{
    return cadre_dataset_batch(range(0, count), size, drop_remainder);
}

#define SIZES(data, drop, ...)                                                                     \
    dataset_rebatch_sizes(data, (const int64_t[]){__VA_ARGS__},                                    \
        sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t), drop)

static void sizes_rule(void **state)
{
    (void)state;
    const struct {
        int64_t count;
        int64_t sizes[5];
        size_t size_count;
        bool drop;
        const char *elements;
    } cases[] = {
        {5, {2, 2}, 2, false, "[0 1] [2 3] [4]"},
        {5, {2, 2}, 2, true, "[0 1] [2 3]"},
        {8, {1, 1, 1, 1, 0}, 5, false, "[0] [1] [2] [3] [] [4] [5] [6] [7] []"},
        {7, {3, 1}, 2, false, "[0 1 2] [3] [4 5 6]"},
        {5, {2, 0}, 2, false, "[0 1] [] [2 3] [] [4] []"},
        {5, {2, 0}, 2, true, "[0 1] [] [2 3] []"},
        {4, {0, 0, 3}, 3, false, "[] [] [0 1 2] [] [] [3] [] []"},
        {4, {0, 0, 3}, 3, true, "[] [] [0 1 2] [] []"},
        {0, {0, 2}, 2, false, "[]"},
        {0, {2}, 1, false, ""},
        {3, {7}, 1, false, "[0 1 2]"},
        {3, {7}, 1, true, ""},
        {9, {3, 3}, 2, false, "[0 1 2] [3 4 5] [6 7 8]"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (int64_t batch = 1; batch < 10; batch++) {
            for (int sequential = 0; sequential < 2; sequential++) {
                cadre_dataset *data = batched(cases[i].count, batch, false);
                data = sequential ? in_order_only(data) : data;
                data =
                    dataset_rebatch_sizes(data, cases[i].sizes, cases[i].size_count, cases[i].drop);
                expect_elements(data, cases[i].elements);
            }
        }
    }
}

static void split_rule(void **state)
{
    (void)state;
    const struct {
        int64_t count;
        int64_t batch;
        uint64_t pieces;
        const char *elements;
    } cases[] = {
        {10, 4, 2, "[0 1] [2 3] [4 5] [6 7] [8] [9]"},
        {7, 7, 3, "[0 1 2] [3 4 5] [6]"},
        {7, 7, 4, "[0 1] [2 3] [4 5] [6]"},
        {5, 5, 4, "[0 1] [2 3] [4] []"},
        {1, 5, 3, "[0] [] []"},
        {9, 6, 2, "[0 1 2] [3 4 5] [6 7] [8]"},
        {4, 4, 1, "[0 1 2 3]"},
        {0, 4, 3, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (int sequential = 0; sequential < 2; sequential++) {
            cadre_dataset *data = batched(cases[i].count, cases[i].batch, false);
            data = sequential ? in_order_only(data) : data;
            expect_elements(dataset_rebatch_split(data, cases[i].pieces), cases[i].elements);
        }
    }
}

static void static_shapes(void **state)
{
    (void)state;
    spec_is(SIZES(batched(8, 4, true), false, 2, 2), "i64 [2]");
    spec_is(SIZES(batched(8, 4, false), false, 2, 2), "i64 [?]");
    spec_is(SIZES(batched(8, 4, false), true, 2, 2), "i64 [2]");
    spec_is(SIZES(batched(8, 4, true), false, 3, 3), "i64 [?]");
    spec_is(SIZES(batched(8, 4, true), true, 3), "i64 [3]");
    spec_is(SIZES(batched(8, 4, true), true, 3, 1), "i64 [?]");
    spec_is(SIZES(batched(8, 4, true), false, 0, 2), "i64 [?]");
    spec_is(dataset_rebatch_split(batched(8, 4, true), 2), "i64 [2]");
    spec_is(dataset_rebatch_split(batched(8, 4, true), 3), "i64 [?]");
    spec_is(dataset_rebatch_split(batched(8, 4, false), 2), "i64 [?]");
}

static void refusals(void **state)
{
    (void)state;
    const int64_t sizes[] = {2, -1};
    const int64_t zeros[] = {0, 0};
    const int64_t huge[] = {INT64_MAX, 1};
    cadre_dataset *split = dataset_rebatch_split(range(0, 1024), 4);
    assert_int_equal(cadre_dataset_status(split), CADRE_INVALID_ARGUMENT); /* when it is built */
    expect_failure(split, CADRE_INVALID_ARGUMENT, "call cadre_dataset_batch first");
    expect_failure(SIZES(range(0, 9), false, 2), CADRE_INVALID_ARGUMENT, "scalar");
    expect_failure(dataset_rebatch_split(batched(4, 2, false), 0), CADRE_INVALID_ARGUMENT, "0 p");
    expect_failure(dataset_rebatch_sizes(batched(4, 2, false), sizes, 2, false),
        CADRE_INVALID_ARGUMENT, "size 1 of 2 is -1");
    expect_failure(dataset_rebatch_sizes(batched(4, 2, false), zeros, 2, false),
        CADRE_INVALID_ARGUMENT, "without a row");
    expect_failure(dataset_rebatch_sizes(batched(4, 2, false), sizes, 0, false),
        CADRE_INVALID_ARGUMENT, "0 sizes");
    expect_failure(dataset_rebatch_sizes(batched(4, 2, false), huge, 2, false),
        CADRE_INVALID_ARGUMENT, "2^63");
    assert_null(dataset_rebatch_split(NULL, 2));
    cadre_dataset *const uneven[] = {
        cadre_dataset_batch(range(0, 12), 4, true), cadre_dataset_batch(range(0, 12), 3, true)};
    cadre_dataset *zipped = cadre_dataset_zip(uneven, 2);
    expect_failure(SIZES(cadre_dataset_retain(zipped), false, 2), CADRE_INVALID_ARGUMENT,
        "has 3 rows and the first has 4");
    /* The split rule cuts each component on its own. */
    expect_elements(dataset_rebatch_split(zipped, 2),
        "([0 1], [0 1]) ([2 3], [2]) ([4 5], [3 4]) ([6 7], [5]) ([8 9], [6 7]) ([10 11], [8])");
}

static void positions_and_ids(void **state)
{
    (void)state;
    for (int sequential = 0; sequential < 2; sequential++) {
        for (int64_t batch = 2; batch < 6; batch += 3) {
            cadre_dataset *data = batched(23, batch, false);
            data = sequential ? in_order_only(data) : data;
            consistent(dataset_rebatch_split(cadre_dataset_retain(data), 3));
            consistent(SIZES(cadre_dataset_retain(data), false, 3, 1, 0, 4));
            consistent(SIZES(data, true, 2, 0));
        }
    }
    consistent(SIZES(
        cadre_dataset_repeat(batched(5, 3, false), 3), false, 2, 2)); /* short ones in the middle */
    consistent(dataset_rebatch_split(
        cadre_dataset_shuffle(batched(13, 3, false), CADRE_SHUFFLE_ALL, 2, NULL), 2));
    consistent(dataset_rebatch_split(
        cadre_dataset_map(batched(13, 3, false), copy_element, NULL, NULL), 2));
}

/* Indexable where the rows of batches are known, with the number of pieces. */
static void by_index(void **state)
{
    (void)state;
    cadre_dataset *data = cadre_dataset_prefetch(SIZES(batched(10, 4, false), false, 2, 1), 1);
    assert_true(data->indexable);
    assert_int_equal(cadre_dataset_cardinality(data), 7);
    cadre_dataset_release(data);
    data = dataset_rebatch_split(batched(10, 4, false), 3);
    assert_true(data->indexable);
    assert_int_equal(cadre_dataset_cardinality(data), 9);
    cadre_dataset_release(data);
    data = SIZES(cadre_dataset_repeat(batched(10, 4, false), 2), false, 2, 1);
    assert_false(data->indexable);
    assert_int_equal(cadre_dataset_cardinality(data), CADRE_CARDINALITY_UNKNOWN);
    cadre_dataset_release(data);
    data = SIZES(cadre_dataset_repeat(batched(10, 4, true), CADRE_REPEAT_FOREVER), false, 2, 1);
    assert_int_equal(cadre_dataset_cardinality(data), CADRE_CARDINALITY_INFINITE);
    cadre_dataset_release(data);
}

/* The lists that distribution makes, through the transformation: any worker of many. */
static void lists_of_many_workers(void **state)
{
    (void)state;
    for (uint64_t worker = 0; worker < 500; worker += 499) {
        const struct size_list list = size_list_make(750, 500, 1, worker);
        struct numbers numbers;
        cadre_dataset *data = dataset_rebatch_list(batched(3000, 750, false), &list, false);
        assert_int_equal(cadre_dataset_cardinality(data), 2000);
        read_epoch(data, 0, &numbers);
        assert_int_equal(numbers.count, 3000);
        for (size_t i = 0; i < numbers.count; i++) {
            assert_int_equal(numbers.values[i], i);
        }
        cadre_dataset_release(data);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_rule),
        cmocka_unit_test(split_rule),
        cmocka_unit_test(static_shapes),
        cmocka_unit_test(refusals),
        cmocka_unit_test(positions_and_ids),
        cmocka_unit_test(by_index),
        cmocka_unit_test(lists_of_many_workers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
