/* SPDX-License-Identifier: Apache-2.0
 * Datasets, where they come from, and what is made of them: cadre/dataset.h, cadre/sources.h,
 * cadre/transformations.h. */
#include <stdio.h>
#include <string.h>

#include "documents.h"

/* --- a dataset itself --- */

/* A transformation takes a reference of its input: retain it to use it a second time. */
static void a_dataset_is_a_value(void **state)
{
    (void)state;
    cadre_dataset *numbers = cadre_dataset_range(0, 4, 1);
    assert_elements(cadre_dataset_batch(cadre_dataset_retain(numbers), 2, false), "[0 1] [2 3]");
    assert_elements(numbers, "0 1 2 3");
}

/* The types and shapes of its elements are known before it is read. */
static void a_dataset_has_a_spec(void **state)
{
    (void)state;
    cadre_element_spec spec;
    cadre_dataset *data = cadre_dataset_batch(cadre_dataset_range(0, 5, 1), 2, false);
    OK(cadre_dataset_spec(data, &spec));
    assert_int_equal(spec.count, 1);
    assert_int_equal(spec.tensors[0].dtype, CADRE_I64);
    assert_int_equal(spec.tensors[0].rank, 1);
    assert_int_equal(spec.tensors[0].dims[0], CADRE_DIMENSION_ANY); /* the last batch has one row */
    assert_int_equal(cadre_dataset_cardinality(data), 3);
    cadre_dataset_release(data);
}

/* A component may have a name, which goes with it through the dataset. */
static void components_have_names(void **state)
{
    (void)state;
    static const char *const names[] = {"image", "label"};
    cadre_tensor *tensors[] = {floats(0.5, 1.5), integers(3, 4)};
    cadre_tensor *label;
    cadre_iterator *iterator;
    cadre_element element;
    cadre_dataset *data = cadre_dataset_named(cadre_dataset_tensor_slices(tensors, 2), names, 2);
    OK(cadre_dataset_iterate(data, 0, &iterator));
    OK(cadre_iterator_next(iterator, &element));
    OK(cadre_element_named(&element, "label", &label));
    assert_tensor(label, "3");
    REFUSED(cadre_element_named(&element, "size", &label), CADRE_NOT_FOUND, "image");
    cadre_element_release(&element);
    cadre_iterator_release(iterator);
    cadre_dataset_release(data);
    cadre_tensor_release(tensors[0]);
    cadre_tensor_release(tensors[1]);
}

/* Building a chain never fails: its first error is kept, and found where it is asked for. */
static void errors_are_kept(void **state)
{
    (void)state;
    cadre_dataset *data = cadre_dataset_take(cadre_dataset_range(0, 4, 0), 2);
    assert_int_equal(cadre_dataset_status(data), CADRE_INVALID_ARGUMENT);
    cadre_dataset_release(data);
    data = cadre_dataset_take(cadre_dataset_range(0, 4, 1), 2);
    OK(cadre_dataset_status(data));
    cadre_dataset_release(data);
}

/* --- sources --- */

/* The lines of text files, one after the other. */
static void lines_of_files(void **state)
{
    (void)state;
    char path[TEST_PATH_BYTES];
    test_write(test_path(path, test_temp_dir(), "words.txt"), "one\ntwo\r\nthree");
    const char *const paths[] = {path};
    assert_elements(cadre_dataset_text_lines(paths, 1, NULL), "one two three");
}

/* The rows of an array that numpy saved. */
static void rows_of_numpy(void **state)
{
    (void)state;
    static const char header[] =
        "\x93NUMPY\x01\x00\x76\x00{'descr': '<i4', 'fortran_order': False, "
        "'shape': (3, 2), }";
    static const int32_t values[] = {1, 2, 3, 4, 5, 6};
    char bytes[128];
    char path[TEST_PATH_BYTES];
    memset(bytes, ' ', sizeof bytes);
    memcpy(bytes, header, sizeof header - 1);
    bytes[sizeof bytes - 1] = '\n';
    FILE *file = fopen(test_path(path, test_temp_dir(), "array.npy"), "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, sizeof bytes, file), sizeof bytes);
    assert_int_equal(fwrite(values, sizeof(int32_t), 6, file), 6);
    fclose(file);
    assert_elements(cadre_dataset_npy(path), "[1 2] [3 4] [5 6]");
}

/* --- fewer and more elements --- */

static void the_first_ones_and_the_rest(void **state)
{
    (void)state;
    assert_elements(cadre_dataset_take(cadre_dataset_range(0, 5, 1), 2), "0 1");
    assert_elements(cadre_dataset_skip(cadre_dataset_range(0, 5, 1), 2), "2 3 4");
}

static void one_dataset_behind_another(void **state)
{
    (void)state;
    assert_elements(
        cadre_dataset_concatenate(cadre_dataset_range(0, 2, 1), cadre_dataset_range(7, 9, 1)),
        "0 1 7 8");
}

static void several_datasets_side_by_side(void **state)
{
    (void)state;
    cadre_dataset *both[] = {cadre_dataset_range(0, 9, 1), cadre_dataset_range(5, 7, 1)};
    assert_elements(cadre_dataset_zip(both, 2), "0,5 1,6"); /* as long as the shortest */
}

static cadre_status is_even(const cadre_element *in, bool *ret_keep, void *user)
{
    (void)user;
    *ret_keep = *(const int64_t *)cadre_tensor_const_data(in->tensors[0]) % 2 == 0;
    return CADRE_OK;
}

/* A function of the program says which elements are kept. */
static void elements_are_chosen(void **state)
{
    (void)state;
    assert_elements(cadre_dataset_filter(cadre_dataset_range(0, 6, 1), is_even, NULL), "0 2 4");
}

static void each_element_once(void **state)
{
    (void)state;
    cadre_tensor *tokens = strings("b", "a", "b", "c", "a");
    assert_elements(cadre_dataset_unique(cadre_dataset_tensor_slices(&tokens, 1)), "b a c");
    cadre_tensor_release(tokens);
}

/* --- batches --- */

static cadre_status count_up(const cadre_element *in, cadre_element *ret_out, void *user)
{
    (void)user;
    int64_t length = *(const int64_t *)cadre_tensor_const_data(in->tensors[0]);
    CADRE_TRY(cadre_tensor_create(CADRE_I64, 1, &length, &ret_out->tensors[0]));
    ret_out->count = 1;
    int64_t *values = cadre_tensor_data(ret_out->tensors[0]);
    for (int64_t i = 0; i < length; i++) {
        values[i] = i + 1;
    }
    return CADRE_OK;
}

/* Elements of different lengths are filled up to the longest of their batch. */
static void batches_are_padded(void **state)
{
    (void)state;
    cadre_element_spec any = {
        .count = 1, .tensors[0] = {.dtype = CADRE_I64, .rank = 1, .dims = {CADRE_DIMENSION_ANY}}};
    const cadre_map_options options = {.output = &any};
    cadre_dataset *data = cadre_dataset_map(cadre_dataset_range(1, 4, 1), count_up, NULL, &options);
    assert_elements(cadre_dataset_padded_batch(data, 2, NULL, false), "[[1 0] [1 2]] [[1 2 3]]");
}

/* Or they are kept as they are, with an index for each number: [1] and [1 2] in a batch, then
 * [1 2 3]. The last component is the shape that the rows would have. */
static void rows_of_unequal_length_become_sparse(void **state)
{
    (void)state;
    cadre_element_spec any = {
        .count = 1, .tensors[0] = {.dtype = CADRE_I64, .rank = 1, .dims = {CADRE_DIMENSION_ANY}}};
    const cadre_map_options options = {.output = &any};
    cadre_dataset *data = cadre_dataset_map(cadre_dataset_range(1, 4, 1), count_up, NULL, &options);
    assert_elements(cadre_dataset_sparse_batch(data, 2, &any.tensors[0], false),
        "[[0 0] [1 0] [1 1]],[1 1 2],[2 2] [[0 0] [0 1] [0 2]],[1 2 3],[1 3]");
}

/* And taken apart again. */
static void batches_are_taken_apart(void **state)
{
    (void)state;
    cadre_dataset *data = cadre_dataset_batch(cadre_dataset_range(0, 3, 1), 2, false);
    assert_elements(cadre_dataset_unbatch(data), "0 1 2");
}

/* --- how it is read --- */

static cadre_status count_calls(const cadre_element *in, cadre_element *ret_out, void *user)
{
    ++*(int *)user;
    ret_out->tensors[0] = cadre_tensor_retain(in->tensors[0]);
    ret_out->count = 1;
    return CADRE_OK;
}

/* What was read once is kept: what is before the cache is not done again. */
static void elements_are_kept(void **state)
{
    (void)state;
    int calls = 0;
    const cadre_element_spec scalar = {.count = 1, .tensors[0] = {.dtype = CADRE_I64}};
    const cadre_map_options options = {.output = &scalar};
    cadre_dataset *data =
        cadre_dataset_map(cadre_dataset_range(0, 3, 1), count_calls, &calls, &options);
    data = cadre_dataset_cache(data, NULL);
    assert_elements(cadre_dataset_retain(data), "0 1 2");
    assert_int_equal(calls, 3);
    assert_elements(data, "0 1 2");
    assert_int_equal(calls, 3);
}

/* How many elements there are is said where it cannot be known, and checked when it is read. */
static void a_number_of_elements_is_reported(void **state)
{
    (void)state;
    cadre_dataset *data = cadre_dataset_filter(cadre_dataset_range(0, 6, 1), is_even, NULL);
    assert_int_equal(cadre_dataset_cardinality(data), CADRE_CARDINALITY_UNKNOWN);
    data = cadre_dataset_assert_cardinality(data, 3);
    assert_int_equal(cadre_dataset_cardinality(data), 3);
    assert_elements(data, "0 2 4");
}

static cadre_status add(
    const cadre_element *state, const cadre_element *in, cadre_element *ret_state, void *user)
{
    (void)user;
    ret_state->count = 1;
    return cadre_tensor_from_i64(*(const int64_t *)cadre_tensor_const_data(state->tensors[0]) +
                                     *(const int64_t *)cadre_tensor_const_data(in->tensors[0]),
        &ret_state->tensors[0]);
}

/* All elements are folded into one. */
static void a_dataset_is_folded(void **state)
{
    (void)state;
    cadre_element sum = {.count = 1};
    cadre_dataset *data = cadre_dataset_range(1, 5, 1);
    OK(cadre_tensor_from_i64(0, &sum.tensors[0]));
    OK(cadre_dataset_reduce(data, &sum, add, NULL));
    assert_tensor(sum.tensors[0], "10");
    cadre_element_release(&sum);
    cadre_dataset_release(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_dataset_is_a_value),
        cmocka_unit_test(a_dataset_has_a_spec),
        cmocka_unit_test(components_have_names),
        cmocka_unit_test(errors_are_kept),
        cmocka_unit_test(lines_of_files),
        cmocka_unit_test(rows_of_numpy),
        cmocka_unit_test(the_first_ones_and_the_rest),
        cmocka_unit_test(one_dataset_behind_another),
        cmocka_unit_test(several_datasets_side_by_side),
        cmocka_unit_test(elements_are_chosen),
        cmocka_unit_test(each_element_once),
        cmocka_unit_test(batches_are_padded),
        cmocka_unit_test(rows_of_unequal_length_become_sparse),
        cmocka_unit_test(batches_are_taken_apart),
        cmocka_unit_test(elements_are_kept),
        cmocka_unit_test(a_number_of_elements_is_reported),
        cmocka_unit_test(a_dataset_is_folded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
