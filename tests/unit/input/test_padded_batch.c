/* SPDX-License-Identifier: Apache-2.0
 * padded_batch: the examples of tf.data.Dataset.padded_batch, given shapes, values, strings, more
 * dimensions, by index, and what does not fit. */
#include "tests/unit/input/cmocka_unit.h"

#include <string.h>

#include "tests/unit/input/elements.h"

/* A vector of x times x. */
static cadre_status fill_one(const cadre_element *in, cadre_element *ret_out, void *user)
{
    (void)user;
    int64_t x = *(const int64_t *)cadre_tensor_const_data(in->tensors[0]);
    CADRE_TRY(cadre_tensor_create(CADRE_I64, 1, &x, &ret_out->tensors[0]));
    ret_out->count = 1;
    for (int64_t i = 0; i < x; i++) {
        ((int64_t *)cadre_tensor_data(ret_out->tensors[0]))[i] = x;
    }
    return CADRE_OK;
}

static cadre_dataset *vectors(int64_t from, int64_t to)
{
    static const cadre_element_spec any = {
        .count = 1, .tensors = {{.dtype = CADRE_I64, .rank = 1, .dims = {CADRE_DIMENSION_ANY}}}};
    return cadre_dataset_map(
        cadre_dataset_range(from, to, 1), fill_one, NULL, &(cadre_map_options){.output = &any});
}

static cadre_element_spec vector_of(int64_t size)
{
    return (cadre_element_spec){.count = 1, .tensors = {{.rank = 1, .dims = {size}}}};
}

static void documented_examples(void **state)
{
    (void)state;
    cadre_dataset *data = cadre_dataset_padded_batch(vectors(1, 5), 2, NULL, false);
    expect_spec(data, "i64 [?, ?]");
    assert_int_equal(cadre_dataset_cardinality(data), 2);
    expect_consistent(data);
    expect_elements(data, "[[1 0] [2 2]] [[3 3 3 0] [4 4 4 4]]");

    const cadre_element_spec five = vector_of(5);
    cadre_padded_batch_options options = {.shapes = &five};
    data = cadre_dataset_padded_batch(vectors(1, 5), 2, &options, false);
    expect_spec(data, "i64 [?, 5]");
    expect_consistent(data);
    assert_int_equal(dataset_rows(data, (struct element_position){0}), 2);
    expect_elements(data, "[[1 0 0 0 0] [2 2 0 0 0]] [[3 3 3 0 0] [4 4 4 4 0]]");

    cadre_tensor *minus_one = NULL;
    cadre_tensor *hundred = NULL;
    assert_int_equal(cadre_tensor_from_i64(-1, &minus_one), CADRE_OK);
    assert_int_equal(cadre_tensor_from_i64(100, &hundred), CADRE_OK);
    options.values = (cadre_tensor *[]){minus_one};
    data = cadre_dataset_padded_batch(vectors(1, 5), 2, &options, false);
    expect_consistent(data);
    expect_elements(data, "[[1 -1 -1 -1 -1] [2 2 -1 -1 -1]] [[3 3 3 -1 -1] [4 4 4 4 -1]]");

    cadre_dataset *pair[2] = {vectors(1, 4), vectors(2, 5)};
    const cadre_element_spec shapes = {.count = 2,
        .tensors = {{.rank = 1, .dims = {5}}, {.rank = 1, .dims = {CADRE_DIMENSION_ANY}}}};
    options = (cadre_padded_batch_options){
        .shapes = &shapes, .values = (cadre_tensor *[]){minus_one, hundred}};
    data = cadre_dataset_padded_batch(cadre_dataset_zip(pair, 2), 2, &options, false);
    expect_spec(data, "i64 [?, 5] i64 [?, ?]");
    expect_consistent(data);
    assert_int_equal(dataset_rows(data, (struct element_position){0}), CADRE_CARDINALITY_UNKNOWN);
    expect_elements(data, "([[1 -1 -1 -1 -1] [2 2 -1 -1 -1]], [[2 2 100] [3 3 3]]) "
                          "([[3 3 3 -1 -1]], [[4 4 4 4]])");
    cadre_tensor_release(minus_one);
    cadre_tensor_release(hundred);
}

static void the_last_batch(void **state)
{
    (void)state;
    cadre_dataset *data = cadre_dataset_padded_batch(vectors(1, 4), 2, NULL, true);
    expect_spec(data, "i64 [2, ?]");
    expect_consistent(data);
    expect_elements(data, "[[1 0] [2 2]]");
    data = cadre_dataset_padded_batch(in_order_only(vectors(1, 4)), 2, NULL, false);
    expect_consistent(data);
    expect_elements(data, "[[1 0] [2 2]] [[3 3 3]]");
    expect_elements(cadre_dataset_padded_batch(vectors(1, 2), 2, NULL, true), "");
    expect_elements(cadre_dataset_padded_batch(vectors(0, 2), 2, NULL, true), "[[0] [1]]");
    expect_elements(cadre_dataset_padded_batch(vectors(0, 1), 2, NULL, false), "[[]]");
    /* Scalars have nothing to pad. */
    expect_elements(
        cadre_dataset_padded_batch(cadre_dataset_range(0, 5, 1), 3, NULL, false), "[0 1 2] [3 4]");
}

/* Strings and matrices: x is a matrix of x rows and 3 - x columns of its letter. */
static cadre_status letters(const cadre_element *in, cadre_element *ret_out, void *user)
{
    (void)user;
    int64_t x = *(const int64_t *)cadre_tensor_const_data(in->tensors[0]);
    cadre_string words[9];
    for (int64_t i = 0; i < 9; i++) {
        words[i] = (cadre_string){.bytes = x == 1 ? "one" : "two", .size = 3};
    }
    ret_out->count = 1;
    return cadre_tensor_from_data(
        CADRE_STRING, 2, (int64_t[]){x, 3 - x}, words, &ret_out->tensors[0]);
}

static void more_dimensions_and_strings(void **state)
{
    (void)state;
    static const cadre_element_spec any = {
        .count = 1, .tensors = {{.dtype = CADRE_STRING, .rank = 2, .dims = {-1, -1}}}};
    const cadre_map_options output = {.output = &any};
    cadre_dataset *data = cadre_dataset_map(cadre_dataset_range(1, 3, 1), letters, NULL, &output);
    expect_elements(cadre_dataset_padded_batch(cadre_dataset_retain(data), 2, NULL, false),
        "[[[one one] [ ]] [[two ] [two ]]]");
    cadre_tensor *dash = NULL;
    assert_int_equal(
        cadre_tensor_from_data(CADRE_STRING, 0, NULL, &(cadre_string){"-", 1}, &dash), CADRE_OK);
    const cadre_element_spec shape = {
        .count = 1, .tensors = {{.rank = 2, .dims = {CADRE_DIMENSION_ANY, 3}}}};
    const cadre_padded_batch_options options = {
        .shapes = &shape, .values = (cadre_tensor *[]){dash}};
    cadre_dataset *padded = cadre_dataset_padded_batch(data, 2, &options, false);
    expect_consistent(padded);
    expect_elements(padded, "[[[one one -] [- - -]] [[two - -] [two - -]]]");
    cadre_tensor_release(dash);
}

static void what_does_not_fit(void **state)
{
    (void)state;
    const cadre_element_spec three = vector_of(3);
    cadre_padded_batch_options options = {.shapes = &three};
    expect_failure(cadre_dataset_padded_batch(vectors(1, 5), 2, &options, false),
        CADRE_INVALID_ARGUMENT,
        "padded_batch: component 0: element 1 is i64 [4], larger than i64 [3]");
    const cadre_element_spec matrix = {.count = 1, .tensors = {{.rank = 2, .dims = {-1, -1}}}};
    options.shapes = &matrix;
    expect_failure(cadre_dataset_padded_batch(vectors(1, 5), 2, &options, false),
        CADRE_INVALID_ARGUMENT, "component 0 of element 0 has 1 dimensions, and a shape of 2");
    const cadre_element_spec two = {.count = 2, .tensors = {{.rank = 1}, {.rank = 1}}};
    options.shapes = &two;
    expect_failure(cadre_dataset_padded_batch(vectors(1, 5), 2, &options, false),
        CADRE_INVALID_ARGUMENT, "has 1 components, and shapes were given for 2");
    const cadre_element_spec bad = vector_of(-2);
    options.shapes = &bad;
    expect_failure(cadre_dataset_padded_batch(vectors(1, 5), 2, &options, false),
        CADRE_INVALID_ARGUMENT, "is to be -2");
    const cadre_element_spec huge = vector_of(INT64_C(1) << 50);
    options.shapes = &huge;
    expect_failure(cadre_dataset_padded_batch(vectors(1, 5), 2, &options, false),
        CADRE_RESOURCE_EXHAUSTED, "memory cannot hold");
    const cadre_element_spec vast = vector_of(INT64_MAX);
    options.shapes = &vast;
    expect_failure(cadre_dataset_padded_batch(vectors(1, 5), 2, &options, false),
        CADRE_INVALID_ARGUMENT, "more bytes than can be addressed");
    cadre_tensor *real = NULL;
    assert_int_equal(cadre_tensor_from_f32(0.5F, &real), CADRE_OK);
    options = (cadre_padded_batch_options){.values = (cadre_tensor *[]){real}};
    expect_failure(cadre_dataset_padded_batch(vectors(1, 5), 2, &options, false),
        CADRE_INVALID_ARGUMENT, "the value to pad with is f32 []");
    cadre_tensor_release(real);
    expect_failure(cadre_dataset_padded_batch(vectors(1, 5), 0, NULL, false),
        CADRE_INVALID_ARGUMENT, "padded_batch: size 0");
    expect_failure(
        cadre_dataset_padded_batch(
            cadre_dataset_repeat(vectors(1, 5), CADRE_REPEAT_FOREVER), INT64_MAX, NULL, false),
        CADRE_RESOURCE_EXHAUSTED, "do not fit into this machine's memory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(documented_examples),
        cmocka_unit_test(the_last_batch),
        cmocka_unit_test(more_dimensions_and_strings),
        cmocka_unit_test(what_does_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
