/* SPDX-License-Identifier: Apache-2.0
 * enumerate, assert_cardinality, options: what they add to a dataset and what they say of it. */
#include "tests/unit/input/cmocka_unit.h"

#include "tests/unit/input/elements.h"
#include "worker/library/input/transformations/dataset_options.h"

static void numbers_come_first(void **state)
{
    (void)state;
    cadre_dataset *data = cadre_dataset_enumerate(cadre_dataset_range(1, 4, 1), 5);
    expect_spec(data, "i64 [] i64 []");
    assert_int_equal(cadre_dataset_cardinality(data), 3);
    expect_consistent(data);
    expect_elements(data, "(5, 1) (6, 2) (7, 3)");
    data = cadre_dataset_enumerate(in_order_only(cadre_dataset_range(1, 9, 1)), -1);
    expect_consistent(data);
    expect_elements(data, "(-1, 1) (0, 2) (1, 3) (2, 4) (3, 5) (4, 6) (5, 7) (6, 8)");
    data = cadre_dataset_enumerate(
        cadre_dataset_enumerate(cadre_dataset_batch(cadre_dataset_range(0, 5, 1), 2, false), 0), 8);
    expect_spec(data, "i64 [] i64 [] i64 [?]");
    expect_consistent(data);
    expect_elements(data, "(8, 0, [0 1]) (9, 1, [2 3]) (10, 2, [4])");
    /* The place in the dataset, not in what it is made of. */
    data = cadre_dataset_enumerate(cadre_dataset_skip(cadre_dataset_range(0, 5, 1), 2), 0);
    data = cadre_dataset_skip(data, 1);
    expect_consistent(data);
    expect_elements(data, "(1, 3) (2, 4)");
    /* Beyond the largest number. */
    expect_elements(cadre_dataset_enumerate(cadre_dataset_range(0, 2, 1), INT64_MAX),
        "(9223372036854775807, 0) (-9223372036854775808, 1)");
}

static void too_many_components(void **state)
{
    (void)state;
    cadre_dataset *data = cadre_dataset_range(0, 3, 1);
    for (int i = 1; i < CADRE_ELEMENT_TENSORS_MAX; i++) {
        data = cadre_dataset_enumerate(data, 0);
    }
    expect_consistent(data);
    data = cadre_dataset_enumerate(data, 0);
    cadre_element_spec spec = {0};
    assert_int_equal(cadre_dataset_spec(data, &spec), CADRE_INVALID_ARGUMENT);
    expect_failure(data, CADRE_INVALID_ARGUMENT, "enumerate: the elements have 64 components");
}

static void cardinality_as_asserted(void **state)
{
    (void)state;
    for (int sequential = 0; sequential < 2; sequential++) {
        for (int64_t count = 0; count < 6; count++) {
            cadre_dataset *data = cadre_dataset_range(0, 3, 1);
            data = cadre_dataset_assert_cardinality(sequential ? in_order_only(data) : data, count);
            assert_int_equal(cadre_dataset_cardinality(data), count);
            if (count == 3) {
                expect_consistent(data);
                expect_elements(data, "0 1 2");
            } else {
                expect_failure(data, CADRE_FAILED_PRECONDITION,
                    count < 3 ? "elements were asserted, and there are more"
                              : "elements were asserted, and there are only 3");
            }
        }
    }
    /* In rows too, where the number lies inside of them. */
    expect_failure(cadre_dataset_batch(cadre_dataset_assert_cardinality(
                                           in_order_only(cadre_dataset_range(0, 9, 1)), 7),
                       4, false),
        CADRE_FAILED_PRECONDITION, "7 elements were asserted, and there are more");
    expect_failure(cadre_dataset_assert_cardinality(
                       in_order_only(cadre_dataset_range(0, 3, 1)), CADRE_CARDINALITY_INFINITE),
        CADRE_FAILED_PRECONDITION, "an endless dataset was asserted, and it has 3");
    expect_failure(cadre_dataset_assert_cardinality(cadre_dataset_range(0, 3, 1), -1),
        CADRE_INVALID_ARGUMENT, "assert_cardinality: -1 elements");
}

static void options_of_a_pipeline(void **state)
{
    (void)state;
    cadre_shard_policy policy = CADRE_SHARD_OFF;
    cadre_dataset_options options = {.deterministic = true};
    cadre_dataset *data = cadre_dataset_with_options(cadre_dataset_range(0, 5, 1), &options);
    assert_false(dataset_auto_shard_option(data, &policy));
    options = (cadre_dataset_options){.has_auto_shard = true, .auto_shard = CADRE_SHARD_DATA};
    data = cadre_dataset_with_options(data, &options);
    data = cadre_dataset_batch(data, 2, false);
    assert_true(dataset_auto_shard_option(data, &policy));
    assert_int_equal(policy, CADRE_SHARD_DATA);
    expect_consistent(data);
    options.auto_shard = CADRE_SHARD_OFF;
    data = cadre_dataset_with_options(data, &options);
    assert_true(dataset_auto_shard_option(data, &policy));
    assert_int_equal(policy, CADRE_SHARD_OFF);
    assert_int_equal(cadre_dataset_cardinality(data), 3);
    expect_consistent(data);
    expect_elements(data, "[0 1] [2 3] [4]");
    options.auto_shard = (cadre_shard_policy)7;
    expect_failure(cadre_dataset_with_options(cadre_dataset_range(0, 5, 1), &options),
        CADRE_INVALID_ARGUMENT, "auto_shard 7");
    expect_failure(cadre_dataset_with_options(cadre_dataset_range(0, 5, 1), NULL),
        CADRE_INVALID_ARGUMENT, "with_options");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_come_first),
        cmocka_unit_test(too_many_components),
        cmocka_unit_test(cardinality_as_asserted),
        cmocka_unit_test(options_of_a_pipeline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
