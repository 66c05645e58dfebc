/* SPDX-License-Identifier: Apache-2.0
 * Tensors as text. The expected texts were printed by numpy and TensorFlow: in their documents, and
 * in those of tf.distribute. */
#include "tests/unit/input/cmocka_unit.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cadre/status.h"
#include "worker/library/device/tensor_text.h"

static cadre_tensor *tensor_of(
    cadre_dtype dtype, uint32_t rank, const int64_t *dims, const void *values)
{
    cadre_tensor *tensor = NULL;
    assert_int_equal(cadre_tensor_from_data(dtype, rank, dims, values, &tensor), CADRE_OK);
    return tensor;
}

/* Takes the tensor. */
static void check_form(cadre_tensor *tensor, enum tensor_form form, const char *wanted)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *to = open_memstream(&text, &bytes);
    assert_non_null(to);
    struct cadre_error error = {0};
    assert_int_equal(tensor_text(tensor, form, to, &error), CADRE_OK);
    assert_int_equal(fclose(to), 0);
    assert_string_equal(text, wanted);
    free(text);
    cadre_tensor_release(tensor);
}

#define VECTOR(dtype, type, ...)                                                                   \
    tensor_of((dtype), 1,                                                                          \
        (const int64_t[]){(int64_t)(sizeof((const type[]){__VA_ARGS__}) / sizeof(type))},          \
        (const type[]){__VA_ARGS__})
#define F32(...) VECTOR(CADRE_F32, float, __VA_ARGS__)
#define F64(...) VECTOR(CADRE_F64, double, __VA_ARGS__)

static void floats_are_shortest_and_in_columns(void **state)
{
    (void)state;
    check_form(F32(1, 2), TENSOR_FORM_STR, "cadre_tensor([1. 2.], shape=(2,), dtype=float32)");
    check_form(
        F32(0.40325633f), TENSOR_FORM_STR, "cadre_tensor([0.40325633], shape=(1,), dtype=float32)");
    check_form(F32(1, 0.5f), TENSOR_FORM_STR, "cadre_tensor([1.  0.5], shape=(2,), dtype=float32)");
    check_form(F32(1, -1), TENSOR_FORM_STR, "cadre_tensor([ 1. -1.], shape=(2,), dtype=float32)");
    check_form(F32(NAN, 1, INFINITY), TENSOR_FORM_STR,
        "cadre_tensor([nan  1. inf], shape=(3,), dtype=float32)");
    check_form(
        F32(-INFINITY, 1), TENSOR_FORM_STR, "cadre_tensor([-inf   1.], shape=(2,), dtype=float32)");
    check_form(F64(0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75, 2), TENSOR_FORM_STR,
        "cadre_tensor([0.   0.25 0.5  0.75 1.   1.25 1.5  1.75 2.  ], shape=(9,), dtype=float64)");
    check_form(F64(10 * sin(20), 10 * sin(30), 10 * sin(40), 10 * sin(50)), TENSOR_FORM_REPR,
        "<cadre_tensor: shape=(4,), dtype=float64, "
        "numpy=array([ 9.12945251, -9.88031624,  7.4511316 , -2.62374854])>");
}

static void great_ranges_have_exponents(void **state)
{
    (void)state;
    check_form(
        F32(1e-5f, 1), TENSOR_FORM_STR, "cadre_tensor([1.e-05 1.e+00], shape=(2,), dtype=float32)");
    check_form(F64(1.5e10, -1), TENSOR_FORM_STR,
        "cadre_tensor([ 1.5e+10 -1.0e+00], shape=(2,), dtype=float64)");
    check_form(F64(1e8), TENSOR_FORM_STR, "cadre_tensor([1.e+08], shape=(1,), dtype=float64)");
    check_form(
        F64(12345678), TENSOR_FORM_STR, "cadre_tensor([12345678.], shape=(1,), dtype=float64)");
    check_form(
        F32(33554432), TENSOR_FORM_STR, "cadre_tensor([33554432.], shape=(1,), dtype=float32)");
    check_form(F64(1e10, NAN), TENSOR_FORM_STR,
        "cadre_tensor([1.e+10    nan], shape=(2,), dtype=float64)");
    const double empty[] = {
        3.73603959e-262, 6.02658058e-154, 6.55490914e-260, 5.30498948e-313, 3.14673309e-307, 1};
    check_form(tensor_of(CADRE_F64, 2, (const int64_t[]){2, 3}, empty), TENSOR_FORM_REPR,
        "<cadre_tensor: shape=(2, 3), dtype=float64, numpy=\n"
        "array([[3.73603959e-262, 6.02658058e-154, 6.55490914e-260],\n"
        "       [5.30498948e-313, 3.14673309e-307, 1.00000000e+000]])>");
}

static void scalars_are_as_python_writes_numbers(void **state)
{
    (void)state;
    const struct {
        double value;
        const char *text;
    } rows[] = {{0, "0.0"}, {1, "1.0"}, {0.1, "0.1"}, {-2.5, "-2.5"}, {1e-4, "0.0001"},
        {1e-5, "1e-05"}, {1.5e-5, "1.5e-05"}, {1e15, "1000000000000000.0"}, {1e16, "1e+16"},
        {-0.0, "-0.0"}, {1.0 / 3, "0.3333333333333333"}, {5e-324, "5e-324"},
        {1.7976931348623157e308, "1.7976931348623157e+308"}, {NAN, "nan"}, {-INFINITY, "-inf"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char wanted[128];
        snprintf(wanted, sizeof wanted, "cadre_tensor(%s, shape=(), dtype=float64)", rows[i].text);
        check_form(tensor_of(CADRE_F64, 0, NULL, &rows[i].value), TENSOR_FORM_STR, wanted);
    }
    const float f32 = 123456790528.0f;
    check_form(tensor_of(CADRE_F32, 0, NULL, &f32), TENSOR_FORM_STR,
        "cadre_tensor(123456790000.0, shape=(), dtype=float32)");
    const uint16_t half = 0x2e66; /* 0.1 */
    check_form(tensor_of(CADRE_F16, 0, NULL, &half), TENSOR_FORM_STR,
        "cadre_tensor(0.1, shape=(), dtype=float16)");
    const uint16_t brain = 0x3dcd; /* 0.1 */
    check_form(tensor_of(CADRE_BF16, 0, NULL, &brain), TENSOR_FORM_STR,
        "cadre_tensor(0.1, shape=(), dtype=bfloat16)");
    const bool truth = true;
    check_form(tensor_of(CADRE_BOOL, 0, NULL, &truth), TENSOR_FORM_REPR,
        "<cadre_tensor: shape=(), dtype=bool, numpy=True>");
    const int8_t least = -128;
    check_form(tensor_of(CADRE_I8, 0, NULL, &least), TENSOR_FORM_MEMBERS,
        "shape=() dtype=int8, numpy=-128");
}

static void other_types(void **state)
{
    (void)state;
    check_form(VECTOR(CADRE_BOOL, bool, true, true, false), TENSOR_FORM_REPR,
        "<cadre_tensor: shape=(3,), dtype=bool, numpy=array([ True,  True, False])>");
    check_form(VECTOR(CADRE_I32, int32_t, 1, -10), TENSOR_FORM_REPR,
        "<cadre_tensor: shape=(2,), dtype=int32, numpy=array([  1, -10], dtype=int32)>");
    check_form(VECTOR(CADRE_U32, uint32_t, UINT32_MAX), TENSOR_FORM_STR,
        "cadre_tensor([4294967295], shape=(1,), dtype=uint32)");
    check_form(VECTOR(CADRE_U16, uint16_t, 50256, 1), TENSOR_FORM_REPR,
        "<cadre_tensor: shape=(2,), dtype=uint16, numpy=array([50256,     1], dtype=uint16)>");
    check_form(VECTOR(CADRE_U8, uint8_t, 7, 255), TENSOR_FORM_STR,
        "cadre_tensor([  7 255], shape=(2,), dtype=uint8)");
    const cadre_string strings[] = {{"a", 1}, {"it's\n\x01\\", 7}, {"'\"", 2}, {"", 0}};
    check_form(tensor_of(CADRE_STRING, 1, (const int64_t[]){4}, strings), TENSOR_FORM_STR,
        "cadre_tensor([b'a' b\"it's\\n\\x01\\\\\" b'\\'\"' b''], shape=(4,), dtype=string)");
    check_form(tensor_of(CADRE_STRING, 1, (const int64_t[]){1}, strings), TENSOR_FORM_REPR,
        "<cadre_tensor: shape=(1,), dtype=string, numpy=array([b'a'], dtype=object)>");
    check_form(tensor_of(CADRE_F32, 2, (const int64_t[]){0, 3}, NULL), TENSOR_FORM_STR,
        "cadre_tensor([], shape=(0, 3), dtype=float32)");
    check_form(tensor_of(CADRE_F32, 2, (const int64_t[]){0, 3}, NULL), TENSOR_FORM_REPR,
        "<cadre_tensor: shape=(0, 3), dtype=float32, numpy=array([], shape=(0, 3), "
        "dtype=float32)>");
}

static cadre_tensor *counting(uint32_t rank, const int64_t *dims)
{
    cadre_tensor *tensor = NULL;
    assert_int_equal(cadre_tensor_create(CADRE_I64, rank, dims, &tensor), CADRE_OK);
    for (int64_t i = 0; i < cadre_tensor_count(tensor); i++) {
        ((int64_t *)cadre_tensor_data(tensor))[i] = i;
    }
    return tensor;
}

static void lines_and_summaries(void **state)
{
    (void)state;
    const float ones[] = {0.7f, 0.7f, 0.7f, 0.7f};
    check_form(tensor_of(CADRE_F32, 2, (const int64_t[]){4, 1}, ones), TENSOR_FORM_STR,
        "cadre_tensor(\n[[0.7]\n [0.7]\n [0.7]\n [0.7]], shape=(4, 1), dtype=float32)");
    check_form(tensor_of(CADRE_F32, 2, (const int64_t[]){2, 1}, ones), TENSOR_FORM_REPR,
        "<cadre_tensor: shape=(2, 1), dtype=float32, numpy=\narray([[0.7],\n       [0.7]], "
        "dtype=float32)>");
    check_form(counting(3, (const int64_t[]){2, 3, 4}), TENSOR_FORM_STR,
        "cadre_tensor(\n[[[ 0  1  2  3]\n  [ 4  5  6  7]\n  [ 8  9 10 11]]\n\n"
        " [[12 13 14 15]\n  [16 17 18 19]\n  [20 21 22 23]]], shape=(2, 3, 4), dtype=int64)");
    check_form(counting(1, (const int64_t[]){30}), TENSOR_FORM_STR,
        "cadre_tensor(\n[ 0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15 16 17 18 19 20 21 22 23\n"
        " 24 25 26 27 28 29], shape=(30,), dtype=int64)");
    check_form(counting(1, (const int64_t[]){10000}), TENSOR_FORM_STR,
        "cadre_tensor([   0    1    2 ... 9997 9998 9999], shape=(10000,), dtype=int64)");
    check_form(counting(2, (const int64_t[]){100, 100}), TENSOR_FORM_STR,
        "cadre_tensor(\n[[   0    1    2 ...   97   98   99]\n [ 100  101  102 ...  197  198  "
        "199]\n"
        " [ 200  201  202 ...  297  298  299]\n ...\n [9700 9701 9702 ... 9797 9798 9799]\n"
        " [9800 9801 9802 ... 9897 9898 9899]\n [9900 9901 9902 ... 9997 9998 9999]], "
        "shape=(100, 100), dtype=int64)");
    /* The type moves to a line of its own where it does not fit. */
    check_form(F32(1.125f, 1.125f, 1.125f, 1.125f, 1.125f, 1.125f, 1.125f, 1.125f),
        TENSOR_FORM_REPR,
        "<cadre_tensor: shape=(8,), dtype=float32, numpy=\n"
        "array([1.125, 1.125, 1.125, 1.125, 1.125, 1.125, 1.125, 1.125],\n"
        "      dtype=float32)>");
}

static void printing_tells_of_failures(void **state)
{
    (void)state;
    cadre_tensor *tensor = F32(1);
    assert_int_equal(cadre_tensor_print(NULL, stdout), CADRE_INVALID_ARGUMENT);
    assert_int_equal(cadre_tensor_print(tensor, NULL), CADRE_INVALID_ARGUMENT);
    FILE *full = fopen("/dev/full", "w");
    assert_non_null(full);
    setvbuf(full, NULL, _IONBF, 0);
    assert_int_equal(cadre_tensor_print(tensor, full), CADRE_RESOURCE_EXHAUSTED);
    assert_non_null(strstr(cadre_error_message(), "could not be written"));
    fclose(full);
    char text[128] = "";
    FILE *to = fmemopen(text, sizeof text, "w");
    assert_int_equal(cadre_tensor_print(tensor, to), CADRE_OK);
    fclose(to);
    assert_string_equal(text, "cadre_tensor([1.], shape=(1,), dtype=float32)\n");
    cadre_tensor_release(tensor);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(floats_are_shortest_and_in_columns),
        cmocka_unit_test(great_ranges_have_exponents),
        cmocka_unit_test(scalars_are_as_python_writes_numbers),
        cmocka_unit_test(other_types),
        cmocka_unit_test(lines_and_summaries),
        cmocka_unit_test(printing_tells_of_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
