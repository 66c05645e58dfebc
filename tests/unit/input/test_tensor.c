/* SPDX-License-Identifier: Apache-2.0
 * Tensors: shapes, shared memory, lifetimes, strings, joining, and what is refused. */
#include "tests/unit/input/cmocka_unit.h"

#include <string.h>

#include "worker/library/device/tensor.h"

static void created_tensors_are_zero_and_aligned(void **state)
{
    (void)state;
    for (int dtype = CADRE_F64; dtype <= CADRE_STRING; dtype++) {
        cadre_tensor *tensor = NULL;
        const int64_t dims[] = {3, 5};
        assert_int_equal(cadre_tensor_create((cadre_dtype)dtype, 2, dims, &tensor), CADRE_OK);
        assert_int_equal(cadre_tensor_dtype(tensor), dtype);
        assert_int_equal(cadre_tensor_rank(tensor), 2);
        assert_int_equal(cadre_tensor_dim(tensor, 1), 5);
        assert_int_equal(cadre_tensor_rows(tensor), 3);
        assert_int_equal(cadre_tensor_count(tensor), 15);
        assert_int_equal(cadre_tensor_bytes(tensor), 15 * cadre_dtype_bytes((cadre_dtype)dtype));
        assert_int_equal((uintptr_t)cadre_tensor_data(tensor) % CADRE_TENSOR_ALIGN, 0);
        const char *bytes = cadre_tensor_const_data(tensor);
        for (size_t i = 0; dtype != CADRE_STRING && i < cadre_tensor_bytes(tensor); i++) {
            assert_int_equal(bytes[i], 0);
        }
        cadre_tensor_release(tensor);
    }
    assert_int_equal(cadre_dtype_bytes((cadre_dtype)99), 0);
    assert_string_equal(cadre_dtype_name(CADRE_BF16), "bf16");
}

static void scalars_and_empty_tensors(void **state)
{
    (void)state;
    cadre_tensor *tensor = NULL;
    assert_int_equal(cadre_tensor_from_i64(-7, &tensor), CADRE_OK);
    assert_int_equal(cadre_tensor_rank(tensor), 0);
    assert_int_equal(cadre_tensor_rows(tensor), 1);
    assert_int_equal(*(const int64_t *)cadre_tensor_const_data(tensor), -7);
    cadre_tensor_release(tensor);
    assert_int_equal(cadre_tensor_from_f32(0.5f, &tensor), CADRE_OK);
    assert_true(*(const float *)cadre_tensor_const_data(tensor) == 0.5f);
    cadre_tensor_release(tensor);

    /* Nothing times something huge is still nothing. */
    const int64_t dims[] = {INT64_MAX, 0, INT64_MAX};
    assert_int_equal(cadre_tensor_from_data(CADRE_F32, 3, dims, NULL, &tensor), CADRE_OK);
    assert_int_equal(cadre_tensor_count(tensor), 0);
    assert_non_null(cadre_tensor_data(tensor));
    cadre_tensor_release(tensor);
    cadre_tensor_release(NULL);
    assert_null(cadre_tensor_retain(NULL));
}

struct lent {
    int64_t values[6];
    int given_back;
};

static void give_back(void *data, void *user)
{
    struct lent *lent = user;
    assert_ptr_equal(data, lent->values);
    lent->given_back++;
}

static void memory_of_the_program_comes_back_once(void **state)
{
    (void)state;
    struct lent lent = {.values = {0, 1, 2, 3, 4, 5}};
    const int64_t dims[] = {3, 2};
    cadre_tensor *tensor = NULL;
    cadre_tensor *view = NULL;
    cadre_tensor *copy = NULL;
    assert_int_equal(
        cadre_tensor_over(CADRE_I64, 2, dims, lent.values, give_back, &lent, &tensor), CADRE_OK);
    assert_ptr_equal(cadre_tensor_data(tensor), lent.values);
    assert_int_equal(cadre_tensor_bytes(tensor), sizeof lent.values);
    assert_int_equal(cadre_tensor_view_rows(tensor, 1, 2, &view), CADRE_OK);
    assert_ptr_equal(cadre_tensor_data(view), &lent.values[2]);
    assert_int_equal(cadre_tensor_copy(tensor, &copy), CADRE_OK);
    assert_ptr_not_equal(cadre_tensor_data(copy), lent.values);
    assert_ptr_equal(cadre_tensor_retain(tensor), tensor);
    cadre_tensor_release(tensor);
    cadre_tensor_release(tensor);
    assert_int_equal(lent.given_back, 0); /* the view is left */
    cadre_tensor_release(view);
    assert_int_equal(lent.given_back, 1);
    assert_int_equal(((const int64_t *)cadre_tensor_const_data(copy))[5], 5);
    cadre_tensor_release(copy);
    assert_int_equal(lent.given_back, 1);
    /* No thread waits for it. */
    assert_int_equal(
        cadre_tensor_over(CADRE_I64, 2, dims, lent.values, NULL, NULL, &tensor), CADRE_OK);
    cadre_tensor_release(tensor);
    char *odd = (char *)lent.values + 4;
    assert_int_equal(cadre_tensor_over(CADRE_I64, 0, NULL, odd, give_back, &lent, &tensor),
        CADRE_INVALID_ARGUMENT);
    assert_null(tensor);
    assert_non_null(strstr(cadre_error_message(), "multiple of 8"));
    assert_int_equal(cadre_tensor_over(CADRE_I64, 0, NULL, NULL, give_back, &lent, &tensor),
        CADRE_INVALID_ARGUMENT);
    assert_int_equal(cadre_tensor_over(CADRE_F32, 0, NULL, odd, NULL, NULL, &tensor), CADRE_OK);
    cadre_tensor_release(tensor);
    assert_int_equal(lent.given_back, 1);
}

static void views_share_and_outlive(void **state)
{
    (void)state;
    const int32_t values[] = {0, 1, 2, 3, 4, 5, 6, 7};
    const int64_t dims[] = {4, 2};
    cadre_tensor *tensor = NULL;
    cadre_tensor *view = NULL;
    cadre_tensor *inner = NULL;
    assert_int_equal(cadre_tensor_from_data(CADRE_I32, 2, dims, values, &tensor), CADRE_OK);
    assert_int_equal(cadre_tensor_view_rows(tensor, 1, 3, &view), CADRE_OK);
    assert_ptr_equal(cadre_tensor_data(view), (int32_t *)cadre_tensor_data(tensor) + 2);
    assert_int_equal(cadre_tensor_view_rows(view, 2, 1, &inner), CADRE_OK);
    cadre_tensor_release(tensor);
    cadre_tensor_release(view);
    assert_int_equal(((const int32_t *)cadre_tensor_const_data(inner))[1], 7);
    cadre_tensor *copy = NULL;
    assert_int_equal(cadre_tensor_copy(inner, &copy), CADRE_OK);
    cadre_tensor_release(inner);
    assert_int_equal(((const int32_t *)cadre_tensor_const_data(copy))[0], 6);
    cadre_tensor *none = NULL;
    assert_int_equal(cadre_tensor_view_rows(copy, 1, 0, &none), CADRE_OK);
    assert_int_equal(cadre_tensor_rows(none), 0);
    cadre_tensor_release(none);
    assert_int_equal(cadre_tensor_view_rows(copy, 1, 1, &none), CADRE_OUT_OF_RANGE);
    assert_null(none);
    assert_int_equal(cadre_tensor_view_rows(copy, 0, INT64_MAX, &none), CADRE_OUT_OF_RANGE);
    assert_int_equal(cadre_tensor_view_rows(copy, -1, 1, &none), CADRE_OUT_OF_RANGE);
    cadre_tensor_release(copy);
}

static void bad_shapes_are_refused(void **state)
{
    (void)state;
    const int64_t negative[] = {2, -1};
    const int64_t overflow[] = {INT64_MAX, 2};
    const int64_t large[] = {INT64_MAX / 4};
    const int64_t nine[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    cadre_tensor *tensor = NULL;
    assert_int_equal(cadre_tensor_create(CADRE_F32, 2, negative, &tensor), CADRE_INVALID_ARGUMENT);
    assert_string_equal(cadre_error_message(), "dimension 1 is -1; sizes are 0 or more");
    assert_int_equal(cadre_tensor_create(CADRE_F32, 2, overflow, &tensor), CADRE_INVALID_ARGUMENT);
    assert_int_equal(cadre_tensor_create(CADRE_F64, 1, large, &tensor), CADRE_INVALID_ARGUMENT);
    assert_int_equal(cadre_tensor_create(CADRE_F32, 9, nine, &tensor), CADRE_INVALID_ARGUMENT);
    assert_int_equal(
        cadre_tensor_create(CADRE_DTYPE_NONE, 0, NULL, &tensor), CADRE_INVALID_ARGUMENT);
    assert_int_equal(
        cadre_tensor_create((cadre_dtype)-3, 0, NULL, &tensor), CADRE_INVALID_ARGUMENT);
    assert_int_equal(cadre_tensor_create(CADRE_F32, 1, NULL, &tensor), CADRE_INVALID_ARGUMENT);
    assert_int_equal(
        cadre_tensor_from_data(CADRE_F32, 1, nine, NULL, &tensor), CADRE_INVALID_ARGUMENT);
    assert_null(tensor);
}

static void strings_are_copied(void **state)
{
    (void)state;
    char text[] = "one";
    const cadre_string words[] = {
        {.bytes = text, .size = 3}, {.bytes = NULL, .size = 0}, {.bytes = "a\0b", .size = 3}};
    const int64_t dims[] = {3};
    struct cadre_error error = {0};
    cadre_tensor *tensor = NULL;
    ASSERT_OK(tensor_from_data(CADRE_STRING, 1, dims, words, &tensor, &error));
    memset(text, 'x', 3);
    cadre_tensor *row = NULL;
    cadre_tensor *tail = NULL;
    ASSERT_OK(tensor_view_row(tensor, 0, &row, &error));
    ASSERT_OK(tensor_view_rows(tensor, 1, 2, &tail, &error));
    cadre_tensor_release(tensor);
    assert_memory_equal(((const cadre_string *)cadre_tensor_const_data(row))->bytes, "one", 3);

    cadre_tensor *const parts[] = {tail, tail};
    cadre_tensor *joined = NULL;
    ASSERT_OK(tensor_concat_rows(parts, 2, &joined, &error));
    cadre_tensor_release(tail);
    cadre_tensor_release(row);
    const cadre_string *all = cadre_tensor_const_data(joined);
    assert_int_equal(all[2].size, 0);
    assert_int_equal(all[3].size, 3);
    assert_memory_equal(all[3].bytes, "a\0b", 3);
    cadre_tensor_release(joined);

    const cadre_string bad = {.bytes = NULL, .size = 1};
    assert_int_equal(
        tensor_from_data(CADRE_STRING, 0, NULL, &bad, &tensor, &error), CADRE_INVALID_ARGUMENT);
    const cadre_string huge = {.bytes = "", .size = SIZE_MAX};
    assert_int_equal(
        tensor_from_data(CADRE_STRING, 0, NULL, &huge, &tensor, &error), CADRE_INVALID_ARGUMENT);
}

static void joining(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    const float values[] = {1, 2, 3, 4, 5, 6};
    const int64_t two[] = {2};
    const int64_t three[] = {3};
    cadre_tensor *a = NULL;
    cadre_tensor *b = NULL;
    cadre_tensor *c = NULL;
    cadre_tensor *result = NULL;
    ASSERT_OK(tensor_from_data(CADRE_F32, 1, two, values, &a, &error));
    ASSERT_OK(tensor_from_data(CADRE_F32, 1, two, values + 2, &b, &error));
    ASSERT_OK(tensor_from_data(CADRE_F32, 1, three, values + 3, &c, &error));
    cadre_tensor *const alike[] = {a, b};
    cadre_tensor *const unlike[] = {a, b, c};
    ASSERT_OK(tensor_stack(alike, 2, &result, &error));
    assert_int_equal(cadre_tensor_rank(result), 2);
    assert_true(((const float *)cadre_tensor_const_data(result))[3] == 4);
    cadre_tensor_release(result);
    assert_int_equal(tensor_stack(unlike, 3, &result, &error), CADRE_INVALID_ARGUMENT);
    assert_string_equal(
        error.text, "part 2 is f32 [3] and part 0 is f32 [2]; only equal shapes can be joined");
    ASSERT_OK(tensor_concat_rows(unlike, 3, &result, &error));
    assert_int_equal(cadre_tensor_rows(result), 7);
    assert_true(((const float *)cadre_tensor_const_data(result))[6] == 6);
    cadre_tensor_release(result);
    cadre_tensor_release(a);
    cadre_tensor_release(b);
    cadre_tensor_release(c);
}

static void nulls_are_named_and_have_no_size(void **state)
{
    (void)state;
    cadre_tensor *tensor = NULL;
    assert_int_equal(cadre_tensor_create(CADRE_F32, 0, NULL, NULL), CADRE_INVALID_ARGUMENT);
    assert_non_null(strstr(cadre_error_message(), "'ret_tensor'"));
    assert_int_equal(cadre_tensor_from_f32(1, NULL), CADRE_INVALID_ARGUMENT);
    assert_int_equal(cadre_tensor_copy(NULL, &tensor), CADRE_INVALID_ARGUMENT);
    assert_int_equal(cadre_tensor_view_rows(NULL, 0, 0, &tensor), CADRE_INVALID_ARGUMENT);
    assert_null(tensor);
    assert_int_equal(cadre_tensor_dtype(NULL), CADRE_DTYPE_NONE);
    assert_int_equal(cadre_tensor_rank(NULL), 0);
    assert_null(cadre_tensor_dims(NULL));
    assert_int_equal(cadre_tensor_dim(NULL, 0), 0);
    assert_int_equal(cadre_tensor_rows(NULL), 0);
    assert_int_equal(cadre_tensor_count(NULL), 0);
    assert_int_equal(cadre_tensor_bytes(NULL), 0);
    assert_null(cadre_tensor_data(NULL));
    assert_null(cadre_tensor_const_data(NULL));
    assert_int_equal(cadre_tensor_from_f32(1, &tensor), CADRE_OK);
    assert_int_equal(cadre_tensor_dim(tensor, 0), 0);
    cadre_tensor_release(tensor);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(created_tensors_are_zero_and_aligned),
        cmocka_unit_test(scalars_and_empty_tensors),
        cmocka_unit_test(memory_of_the_program_comes_back_once),
        cmocka_unit_test(views_share_and_outlive),
        cmocka_unit_test(bad_shapes_are_refused),
        cmocka_unit_test(strings_are_copied),
        cmocka_unit_test(joining),
        cmocka_unit_test(nulls_are_named_and_have_no_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
