/* SPDX-License-Identifier: Apache-2.0
 * concatenate: one after the other, ids moved, shapes that differ. */
#include <string.h>

#include "tests/unit/input/cmocka_unit.h"
#include "tests/unit/input/elements.h"
#include "tests/unit/input/reading.h"

static cadre_dataset *range(int64_t start, int64_t stop)
{
    return cadre_dataset_range(start, stop, 1);
}

static cadre_status keep_all(const cadre_element *in, bool *ret_keep, void *user)
{
    (void)in;
    (void)user;
    *ret_keep = true;
    return CADRE_OK;
}

static cadre_status give_empty(const cadre_element *in, cadre_dataset **ret_data, void *user)
{
    (void)in;
    (void)user;
    *ret_data = cadre_dataset_range(0, 2, 1);
    return CADRE_OK;
}

/* Neither its elements nor its samples can be counted. */
static cadre_dataset *uncounted(int64_t count)
{
    return cadre_dataset_flat_map(range(0, count), give_empty, NULL);
}

static void documented_examples(void **state)
{
    (void)state;
    expect_elements(cadre_dataset_concatenate(range(1, 4), range(4, 8)), "1 2 3 4 5 6 7");
    expect_elements(cadre_dataset_concatenate(range(0, 0), range(4, 6)), "4 5");
    expect_elements(cadre_dataset_concatenate(range(4, 6), range(0, 0)), "4 5");
    expect_elements(
        cadre_dataset_batch(cadre_dataset_concatenate(range(0, 3), range(10, 13)), 2, false),
        "[0 1] [2 10] [11 12]");
}

static void expect_cardinality(cadre_dataset *data, int64_t expected)
{
    assert_int_equal(cadre_dataset_cardinality(data), expected);
    cadre_dataset_release(data);
}

static void cardinalities(void **state)
{
    (void)state;
    cadre_dataset *endless = cadre_dataset_repeat(range(0, 2), CADRE_REPEAT_FOREVER);
    expect_cardinality(cadre_dataset_concatenate(range(0, 3), range(0, 5)), 8);
    expect_cardinality(cadre_dataset_concatenate(range(0, 3), cadre_dataset_retain(endless)),
        CADRE_CARDINALITY_INFINITE);
    expect_cardinality(cadre_dataset_concatenate(cadre_dataset_retain(endless), range(0, 3)),
        CADRE_CARDINALITY_INFINITE);
    expect_cardinality(
        cadre_dataset_concatenate(uncounted(2), range(0, 3)), CADRE_CARDINALITY_UNKNOWN);
    expect_failure(cadre_dataset_concatenate(range(0, INT64_MAX), range(0, 1)),
        CADRE_INVALID_ARGUMENT, "more than can be counted");
    cadre_dataset *data = cadre_dataset_take(cadre_dataset_concatenate(endless, range(50, 60)), 5);
    expect_elements(data, "0 1 0 1 0");
}

static void specs(void **state)
{
    (void)state;
    cadre_dataset *data = cadre_dataset_concatenate(
        cadre_dataset_batch(range(0, 4), 2, true), cadre_dataset_batch(range(0, 9), 3, true));
    expect_spec(data, "i64 [?]");
    assert_int_equal(cadre_dataset_cardinality(data), 5);
    expect_consistent(data);
    expect_elements(data, "[0 1] [2 3] [0 1 2] [3 4 5] [6 7 8]");
    cadre_element_spec spec = {0};
    data = cadre_dataset_concatenate(range(0, 4), cadre_dataset_batch(range(0, 9), 3, true));
    assert_int_equal(cadre_dataset_spec(data, &spec), CADRE_INVALID_ARGUMENT);
    assert_non_null(strstr(cadre_error_message(), "component 0 is i64 [] in the first dataset and "
                                                  "i64 [3] in the second"));
    cadre_dataset_release(data);
    cadre_dataset *const both[] = {range(0, 4), range(0, 4)};
    data = cadre_dataset_concatenate(range(0, 4), cadre_dataset_zip(both, 2));
    assert_int_equal(cadre_dataset_spec(data, &spec), CADRE_INVALID_ARGUMENT);
    assert_non_null(strstr(cadre_error_message(), "of 1 components"));
    cadre_dataset_release(data);
}

static void bad_inputs(void **state)
{
    (void)state;
    assert_null(cadre_dataset_concatenate(NULL, range(0, 3)));
    assert_null(cadre_dataset_concatenate(range(0, 3), NULL));
    expect_failure(cadre_dataset_concatenate(range(0, 3), cadre_dataset_range(0, 3, 0)),
        CADRE_INVALID_ARGUMENT, "range: step is 0");
    expect_failure(cadre_dataset_concatenate(cadre_dataset_range(0, 3, 0), range(0, 3)),
        CADRE_INVALID_ARGUMENT, "range: step is 0");
}

static cadre_dataset *words(void)
{
    const cadre_string values[2] = {{.bytes = "a", .size = 1}, {.bytes = "b", .size = 1}};
    const int64_t dims[1] = {2};
    cadre_tensor *tensor = NULL;
    assert_int_equal(cadre_tensor_from_data(CADRE_STRING, 1, dims, values, &tensor), CADRE_OK);
    cadre_dataset *data = cadre_dataset_tensor_slices(&tensor, 1);
    cadre_tensor_release(tensor);
    return data;
}

/* Also where the spec is not read. */
static void types_that_differ_are_not_read(void **state)
{
    (void)state;
    for (int in_order = 0; in_order < 2; in_order++) {
        cadre_dataset *others[3] = {words(), cadre_dataset_batch(range(0, 4), 2, false),
            cadre_dataset_enumerate(range(0, 4), 0)};
        for (int i = 0; i < 3; i++) {
            cadre_dataset *first = in_order != 0 ? in_order_only(range(0, 3)) : range(0, 3);
            cadre_dataset *data = cadre_dataset_concatenate(first, others[i]);
            expect_failure(cadre_dataset_retain(data), CADRE_INVALID_ARGUMENT, "concatenate");
            data = cadre_dataset_take(cadre_dataset_filter(data, keep_all, NULL), 4);
            expect_failure(data, CADRE_INVALID_ARGUMENT, "concatenate");
        }
    }
    /* Of nothing no type is known, and none is in the way. */
    expect_elements(cadre_dataset_concatenate(in_order_only(range(0, 0)), words()), "a b");
}

static void expect_ids(cadre_dataset *data, const uint64_t expected[], size_t count)
{
    struct cadre_error error = {0};
    cadre_iterator *iterator = NULL;
    struct id_list ids = {0};
    cadre_element element = {0};
    ASSERT_OK(dataset_iterate(data, &(struct pass){0}, &iterator, &error));
    while (iterator_next(iterator, &element, &ids, &error) == CADRE_OK) {
        cadre_element_release(&element);
    }
    assert_int_equal(error.code, CADRE_OUT_OF_RANGE);
    assert_int_equal(ids.count, count);
    assert_memory_equal(ids.ids, expected, count * sizeof expected[0]);
    id_list_clear(&ids);
    cadre_iterator_release(iterator);
    cadre_dataset_release(data);
}

static void ids_do_not_meet(void **state)
{
    (void)state;
    cadre_dataset *data =
        cadre_dataset_concatenate(cadre_dataset_take(range(0, 9), 2), range(0, 3));
    assert_int_equal(dataset_samples(data), 12);
    const uint64_t counted[] = {0, 1, 9, 10, 11};
    expect_ids(cadre_dataset_retain(data), counted, 5);
    expect_ids(make_sequential(data), counted, 5);
    /* Three whose samples cannot be counted, joined from either side. */
    const uint64_t b = UINT64_C(1) << 58;
    const uint64_t uncountable[] = {0, 1, b, b + 1, 2 * b, 2 * b + 1};
    data = cadre_dataset_concatenate(
        cadre_dataset_concatenate(uncounted(1), uncounted(1)), uncounted(1));
    assert_int_equal(dataset_samples(data), 0);
    expect_ids(data, uncountable, 6);
    expect_ids(cadre_dataset_concatenate(
                   uncounted(1), cadre_dataset_concatenate(uncounted(1), uncounted(1))),
        uncountable, 6);
}

/* Also of more parts than there are multiples of where the ids of one part end. */
static void ids_of_many_parts_do_not_meet(void **state)
{
    enum { PARTS = 150, ALL = 2 * PARTS };
    struct cadre_error error = {0};
    struct id_list ids = {0};
    cadre_iterator *iterator = NULL;
    cadre_element element = {0};
    cadre_dataset *data = uncounted(1);
    (void)state;
    for (int i = 1; i < PARTS; i++) {
        data = cadre_dataset_concatenate(data, uncounted(1));
    }
    ASSERT_OK(dataset_iterate(data, &(struct pass){.ordered = true}, &iterator, &error));
    while (iterator_next(iterator, &element, &ids, &error) == CADRE_OK) {
        cadre_element_release(&element);
    }
    assert_int_equal(ids.count, ALL);
    for (size_t i = 0; i < ids.count; i++) {
        for (size_t k = 0; k < i; k++) {
            assert_true(ids.ids[i] != ids.ids[k]);
        }
    }
    id_list_clear(&ids);
    cadre_iterator_release(iterator);
    cadre_dataset_release(data);
}

static void batch_sizes_must_agree(void **state)
{
    (void)state;
    cadre_element_spec spec = {0};
    for (int64_t size = 2; size < 4; size++) {
        cadre_dataset *data = cadre_dataset_concatenate(cadre_dataset_batch(range(0, 4), 2, false),
            cadre_dataset_batch(range(0, 9), size, false));
        assert_int_equal(cadre_dataset_spec(data, &spec), CADRE_OK);
        assert_int_equal(
            dataset_batch_size(data, &spec), size == 2 ? 2 : CADRE_CARDINALITY_UNKNOWN);
        cadre_dataset_release(data);
    }
}

/* Nothing takes the square of their number. */
static void many_in_a_row(void **state)
{
    (void)state;
    cadre_element_spec spec = {0};
    cadre_dataset *data = cadre_dataset_batch(range(0, 10), 4, false);
    for (int64_t i = 1; i < DATASET_DEPTH_MAX - 1; i++) {
        data = cadre_dataset_concatenate(data, cadre_dataset_batch(range(0, 10), 4, false));
    }
    assert_int_equal(cadre_dataset_spec(data, &spec), CADRE_OK);
    assert_int_equal(dataset_batch_size(data, &spec), 4);
    assert_int_equal(cadre_dataset_cardinality(data), 3 * (DATASET_DEPTH_MAX - 1));
    data = cadre_dataset_concatenate(data, cadre_dataset_batch(range(0, 10), 3, false));
    assert_int_equal(cadre_dataset_spec(data, &spec), CADRE_OK);
    assert_int_equal(dataset_batch_size(data, &spec), CADRE_CARDINALITY_UNKNOWN);
    cadre_dataset_release(data);
}

static void any_way_of_reading(void **state)
{
    (void)state;
    cadre_dataset *data = cadre_dataset_concatenate(range(0, 5), range(10, 14));
    assert_true(data->indexable);
    expect_consistent(data);
    /* A shuffle mixes places of both. */
    data = cadre_dataset_shuffle(data, CADRE_SHUFFLE_ALL, 11, NULL);
    expect_consistent(data);
    data = cadre_dataset_batch(data, 4, false);
    expect_consistent(data);
    cadre_dataset_release(data);
    data = cadre_dataset_concatenate(
        cadre_dataset_batch(range(0, 5), 2, false), cadre_dataset_batch(range(10, 14), 3, false));
    expect_consistent(data);
    cadre_dataset_release(data);
    data = cadre_dataset_concatenate(cadre_dataset_shuffle(range(0, 5), 3, 1, NULL),
        cadre_dataset_filter(range(10, 14), keep_all, NULL));
    assert_false(data->indexable);
    expect_consistent(data);
    cadre_dataset_release(data);
    data = cadre_dataset_concatenate(cadre_dataset_concatenate(uncounted(1), range(0, 0)),
        cadre_dataset_repeat(uncounted(2), 2));
    expect_consistent(data);
    cadre_dataset_release(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(documented_examples),
        cmocka_unit_test(cardinalities),
        cmocka_unit_test(specs),
        cmocka_unit_test(bad_inputs),
        cmocka_unit_test(types_that_differ_are_not_read),
        cmocka_unit_test(ids_do_not_meet),
        cmocka_unit_test(ids_of_many_parts_do_not_meet),
        cmocka_unit_test(batch_sizes_must_agree),
        cmocka_unit_test(many_in_a_row),
        cmocka_unit_test(any_way_of_reading),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
