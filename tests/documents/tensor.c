/* SPDX-License-Identifier: Apache-2.0
 * Tensors: cadre/tensor.h. */
#include "documents.h"

/* A type has a size and a name; what is no type has neither. */
static void types_have_sizes(void **state)
{
    (void)state;
    assert_int_equal(cadre_dtype_bytes(CADRE_F32), 4);
    assert_int_equal(cadre_dtype_bytes(CADRE_U16), 2);
    assert_int_equal(cadre_dtype_bytes(CADRE_DTYPE_NONE), 0);
    assert_string_equal(cadre_dtype_name(CADRE_BF16), "bf16");
}

/* The shape of a tensor is as many sizes as its rank says, and it is on a device. */
static void a_tensor_has_a_shape_and_a_device(void **state)
{
    (void)state;
    cadre_tensor *tensor = rows(3, floats(1, 2, 3, 4, 5, 6));
    assert_int_equal(cadre_tensor_rank(tensor), 2);
    assert_int_equal(cadre_tensor_dims(tensor)[0], 2);
    assert_int_equal(cadre_tensor_dims(tensor)[1], 3);
    assert_int_equal(cadre_tensor_bytes(tensor), 6 * sizeof(float));
    assert_string_equal(
        cadre_tensor_device(tensor), "/job:localhost/replica:0/task:0/device:CPU:0");
    cadre_tensor_release(tensor);
}

static void count_release(void *data, void *user)
{
    ((float *)data)[0] = -1;
    ++*(int *)user;
}

/* Memory of the program becomes a tensor without a copy. It is given back once, when the last
 * reference goes: that of a view counts. */
static void memory_of_the_program_is_lent(void **state)
{
    (void)state;
    static _Alignas(CADRE_TENSOR_ALIGN) float memory[4] = {1, 2, 3, 4};
    const int64_t dims[] = {4};
    int given_back = 0;
    cadre_tensor *tensor;
    cadre_tensor *view;
    OK(cadre_tensor_over(CADRE_F32, 1, dims, memory, count_release, &given_back, &tensor));
    assert_ptr_equal(cadre_tensor_data(tensor), memory);
    OK(cadre_tensor_view_rows(tensor, 2, 2, &view));
    cadre_tensor_release(tensor);
    assert_tensor(view, "[3 4]");
    assert_int_equal(given_back, 0);
    cadre_tensor_release(view);
    assert_int_equal(given_back, 1);
    assert_true(memory[0] == -1);
}

/* Printed, a tensor looks as TensorFlow's documents show it. */
static void tensors_are_printed(void **state)
{
    (void)state;
    cadre_tensor *tensor = floats(1, 0.5);
    assert_printed(
        cadre_tensor_print(tensor, file), "cadre_tensor([1.  0.5], shape=(2,), dtype=float32)\n");
    cadre_tensor_release(tensor);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types_have_sizes),
        cmocka_unit_test(a_tensor_has_a_shape_and_a_device),
        cmocka_unit_test(memory_of_the_program_is_lent),
        cmocka_unit_test(tensors_are_printed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
