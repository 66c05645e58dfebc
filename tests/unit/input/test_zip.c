/* SPDX-License-Identifier: Apache-2.0
 * zip: components side by side, the shortest ends, ids of the first. */
#include <string.h>

#include "tests/unit/input/cmocka_unit.h"
#include "tests/unit/input/elements.h"
#include "tests/unit/input/reading.h"

static cadre_dataset *range(int64_t start, int64_t stop)
{
    return cadre_dataset_range(start, stop, 1);
}

static cadre_dataset *zip2(cadre_dataset *a, cadre_dataset *b)
{
    cadre_dataset *const both[] = {a, b};
    return cadre_dataset_zip(both, 2);
}

static cadre_status keep_all(const cadre_element *in, bool *ret_keep, void *user)
{
    (void)in;
    (void)user;
    *ret_keep = true;
    return CADRE_OK;
}

static cadre_dataset *unknown(cadre_dataset *data)
{
    return cadre_dataset_filter(data, keep_all, NULL);
}

static cadre_status fails_at_3(const cadre_element *in, cadre_element *ret_out, void *user)
{
    (void)user;
    if (*(const int64_t *)cadre_tensor_const_data(in->tensors[0]) == 3) {
        return CADRE_ABORTED;
    }
    return copy_element(in, ret_out, NULL);
}

/* Twice the element's first component. */
static cadre_status twice(const cadre_element *in, cadre_element *ret_out, void *user)
{
    (void)user;
    ret_out->count = 2;
    ret_out->tensors[0] = cadre_tensor_retain(in->tensors[0]);
    ret_out->tensors[1] = cadre_tensor_retain(in->tensors[0]);
    return CADRE_OK;
}

static void documented_examples(void **state)
{
    (void)state;
    /* tf.data.Dataset.zip: a = range(1, 4), b = range(4, 7), c = range(7, 13).batch(2), d =
     * range(13, 15). */
    expect_elements(zip2(range(1, 4), range(4, 7)), "(1, 4) (2, 5) (3, 6)");
    expect_elements(zip2(range(4, 7), range(1, 4)), "(4, 1) (5, 2) (6, 3)");
    cadre_dataset *const three[] = {
        range(1, 4), range(4, 7), cadre_dataset_batch(range(7, 13), 2, false)};
    expect_elements(cadre_dataset_zip(three, 3), "(1, 4, [7 8]) (2, 5, [9 10]) (3, 6, [11 12])");
    expect_elements(zip2(range(1, 4), range(13, 15)), "(1, 13) (2, 14)");
    expect_elements(zip2(range(13, 15), range(1, 4)), "(13, 1) (14, 2)");
    cadre_dataset *const one[] = {range(0, 3)};
    expect_elements(cadre_dataset_zip(one, 1), "0 1 2");
}

static void expect_cardinality(cadre_dataset *data, int64_t expected)
{
    assert_int_equal(cadre_dataset_cardinality(data), expected);
    cadre_dataset_release(data);
}

static void cardinalities(void **state)
{
    (void)state;
    const int64_t forever = CADRE_REPEAT_FOREVER;
    expect_cardinality(zip2(range(0, 3), range(0, 5)), 3);
    expect_cardinality(zip2(range(0, 3), cadre_dataset_repeat(range(0, 5), forever)), 3);
    expect_cardinality(zip2(cadre_dataset_repeat(range(0, 3), forever),
                           cadre_dataset_repeat(range(0, 5), forever)),
        CADRE_CARDINALITY_INFINITE);
    expect_cardinality(zip2(range(0, 3), unknown(range(0, 9))), CADRE_CARDINALITY_UNKNOWN);
    expect_cardinality(zip2(unknown(range(0, 9)), cadre_dataset_repeat(range(0, 5), forever)),
        CADRE_CARDINALITY_UNKNOWN);
    expect_cardinality(zip2(unknown(range(0, 9)), range(0, 0)), 0);
}

static void ends_with_the_shortest(void **state)
{
    (void)state;
    /* Whatever way they are read, and whatever lies behind the end of the shortest. */
    cadre_dataset *failing = cadre_dataset_map(range(0, 9), fails_at_3, NULL, NULL);
    for (size_t count = 1; count < 4; count++) {
        cadre_dataset *const inputs[] = {
            unknown(range(0, (int64_t)count)), cadre_dataset_retain(failing)};
        cadre_dataset *data = cadre_dataset_batch(cadre_dataset_zip(inputs, 2), 8, false);
        expect_elements(data, count == 1   ? "([0], [0])"
                              : count == 2 ? "([0 1], [0 1])"
                                           : "([0 1 2], [0 1 2])");
        cadre_dataset *const others[] = {cadre_dataset_retain(failing), range(0, (int64_t)count)};
        data = cadre_dataset_batch(cadre_dataset_zip(others, 2), 8, false);
        expect_elements(data, count == 1   ? "([0], [0])"
                              : count == 2 ? "([0 1], [0 1])"
                                           : "([0 1 2], [0 1 2])");
    }
    expect_failure(zip2(failing, range(0, 9)), CADRE_ABORTED, "map: the function failed");
    expect_elements(zip2(unknown(range(0, 0)), range(0, 9)), "");
    expect_elements(zip2(range(0, 9), unknown(range(0, 0))), "");
}

static void specs_and_bad_inputs(void **state)
{
    cadre_dataset *many[65];
    (void)state;
    cadre_dataset *data = zip2(range(0, 4), cadre_dataset_batch(range(0, 8), 2, true));
    expect_spec(data, "i64 [] i64 [2]");
    cadre_dataset_release(data);
    for (size_t i = 0; i < 65; i++) {
        many[i] = range(0, 4);
    }
    expect_failure(cadre_dataset_zip(many, 65), CADRE_INVALID_ARGUMENT, "more than 64 components");
    for (size_t i = 0; i < 64; i++) {
        many[i] = range(0, 4);
    }
    data = cadre_dataset_zip(many, 64);
    expect_consistent(data);
    cadre_dataset_release(data);
    /* 33 times 2 components: an error of the spec and of reading. */
    for (size_t i = 0; i < 33; i++) {
        many[i] = cadre_dataset_map(range(0, 4), twice, NULL, NULL);
    }
    data = cadre_dataset_zip(many, 33);
    cadre_element_spec spec = {0};
    assert_int_equal(cadre_dataset_spec(data, &spec), CADRE_INVALID_ARGUMENT);
    expect_failure(data, CADRE_INVALID_ARGUMENT, "more than 64 components");
    for (size_t i = 0; i < 33; i++) {
        many[i] = unknown(cadre_dataset_map(range(0, 4), twice, NULL, NULL));
    }
    expect_failure(cadre_dataset_zip(many, 33), CADRE_INVALID_ARGUMENT, "more than 64 components");
    expect_failure(cadre_dataset_zip(NULL, 2), CADRE_INVALID_ARGUMENT, "no dataset");
    expect_failure(cadre_dataset_zip(many, 0), CADRE_INVALID_ARGUMENT, "no dataset");
    expect_failure(zip2(range(0, 3), cadre_dataset_range(0, 3, 0)), CADRE_INVALID_ARGUMENT,
        "range: step is 0");
    assert_null(zip2(range(0, 3), NULL));
    assert_null(zip2(NULL, range(0, 3)));
}

static void is_read_by_index(void **state)
{
    (void)state;
    cadre_dataset *data =
        cadre_dataset_shuffle(zip2(range(0, 9), range(20, 40)), CADRE_SHUFFLE_ALL, 3, NULL);
    assert_true(data->indexable);
    assert_int_equal(dataset_samples(data), 9);
    expect_consistent(data);
    cadre_dataset_release(data);
    /* Batches side by side give rows of both. */
    data = zip2(
        cadre_dataset_batch(range(0, 9), 4, false), cadre_dataset_batch(range(20, 29), 4, false));
    assert_int_equal(dataset_rows(data, (struct element_position){.index = 2}), 1);
    expect_consistent(data);
    cadre_element_spec spec = {0};
    assert_int_equal(cadre_dataset_spec(data, &spec), CADRE_OK);
    assert_int_equal(dataset_batch_size(data, &spec), 4);
    cadre_dataset_release(data);
    /* Of different sizes: no common rows, and no batch size. */
    data = zip2(
        cadre_dataset_batch(range(0, 9), 4, false), cadre_dataset_batch(range(20, 29), 3, false));
    assert_int_equal(dataset_rows(data, (struct element_position){0}), CADRE_CARDINALITY_UNKNOWN);
    expect_consistent(data);
    assert_int_equal(cadre_dataset_spec(data, &spec), CADRE_OK);
    assert_int_equal(dataset_batch_size(data, &spec), CADRE_CARDINALITY_UNKNOWN);
    cadre_dataset_release(data);
}

static void positions_in_order(void **state)
{
    (void)state;
    cadre_dataset *data =
        zip2(cadre_dataset_shuffle(range(0, 11), 4, 5, NULL), unknown(range(20, 40)));
    assert_false(data->indexable);
    expect_consistent(data);
    cadre_dataset_release(data);
    data = zip2(make_sequential(range(0, 7)), cadre_dataset_repeat(range(20, 23), 3));
    assert_int_equal(cadre_dataset_cardinality(data), 7);
    expect_consistent(data);
    cadre_dataset_release(data);
    data = zip2(cadre_dataset_repeat(range(0, 3), 3), make_sequential(range(0, 7)));
    expect_consistent(data);
    cadre_dataset_release(data);
}

/* The same input on both sides is two iterations. */
static void one_dataset_twice(void **state)
{
    (void)state;
    cadre_dataset *data = make_sequential(range(0, 4));
    cadre_dataset *next = cadre_dataset_skip(cadre_dataset_retain(data), 1);
    expect_elements(zip2(data, next), "(0, 1) (1, 2) (2, 3)");
}

/* The first dataset's element that has no others beside it was read, and is no part of a batch. */
static void ids_of_what_is_given(void **state)
{
    (void)state;
    for (int size = 2; size < 6; size++) {
        struct cadre_error error = {0};
        cadre_iterator *iterator = NULL;
        cadre_element element = {0};
        struct id_list ids = {0};
        cadre_dataset *data =
            cadre_dataset_batch(zip2(unknown(range(0, 9)), unknown(range(20, 23))), size, false);
        ASSERT_OK(dataset_iterate(data, &(struct pass){.ordered = true}, &iterator, &error));
        while (iterator_next(iterator, &element, &ids, &error) == CADRE_OK) {
            cadre_element_release(&element);
        }
        assert_int_equal(error.code, CADRE_OUT_OF_RANGE);
        assert_int_equal(ids.count, 3);
        assert_int_equal(ids.ids[2], 2);
        id_list_clear(&ids);
        cadre_iterator_release(iterator);
        expect_consistent(data);
        cadre_dataset_release(data);
    }
    cadre_dataset *data = zip2(unknown(range(0, 9)), unknown(range(20, 23)));
    expect_consistent(data);
    cadre_dataset_release(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(documented_examples),
        cmocka_unit_test(cardinalities),
        cmocka_unit_test(ends_with_the_shortest),
        cmocka_unit_test(specs_and_bad_inputs),
        cmocka_unit_test(is_read_by_index),
        cmocka_unit_test(positions_in_order),
        cmocka_unit_test(one_dataset_twice),
        cmocka_unit_test(ids_of_what_is_given),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
