/* SPDX-License-Identifier: Apache-2.0
 * Map functions with options: which component they change, in datasets and batches, and what they
 * refuse. What they compute: tests/conformance/cases/preprocessing.json. */
#include "tests/unit/runtime/training.h"

#include <math.h>

static cadre_dataset *pairs(void)
{
    const int64_t dims[2] = {4, 2};
    const int64_t rows = 4;
    cadre_tensor *parts[2];
    assert_public_ok(cadre_tensor_from_data(
        CADRE_U8, 2, dims, (uint8_t[]){0, 255, 51, 102, 153, 204, 255, 0}, &parts[0]));
    assert_public_ok(
        cadre_tensor_from_data(CADRE_I32, 1, &rows, (int32_t[]){2, 0, 1, 2}, &parts[1]));
    cadre_dataset *data = cadre_dataset_tensor_slices(parts, 2);
    cadre_tensor_release(parts[0]);
    cadre_tensor_release(parts[1]);
    return data;
}

/* Rows and labels: one of the maps for each, before or behind the batch. */
static void components_are_changed_in_rows_and_batches(void **state)
{
    (void)state;
    static cadre_rescaling_options scale = {.scale = 1.0 / 255};
    static cadre_category_encoding_options labels = {
        .component = 1, .num_tokens = 3, .mode = CADRE_ENCODE_ONE_HOT};
    static const float wanted[8] = {0, 1, 0.2F, 0.4F, 0.6F, 0.8F, 1, 0};
    static const float vectors[12] = {0, 0, 1, 1, 0, 0, 0, 1, 0, 0, 0, 1};
    for (int behind = 0; behind < 2; behind++) {
        cadre_dataset *data = behind ? cadre_dataset_batch(pairs(), 3, false) : pairs();
        data = cadre_dataset_map(data, cadre_rescaling_map, &scale, NULL);
        data = cadre_dataset_map(data, cadre_category_encoding_map, &labels, NULL);
        data = behind ? data : cadre_dataset_batch(data, 3, false);
        cadre_iterator *iterator;
        assert_public_ok(cadre_dataset_iterate(data, 0, &iterator));
        for (int64_t first = 0; first < 4; first += 3) {
            int64_t rows = first == 0 ? 3 : 1;
            cadre_element element;
            assert_public_ok(cadre_iterator_next(iterator, &element));
            assert_int_equal(element.count, 2);
            assert_int_equal(cadre_tensor_dtype(element.tensors[0]), CADRE_F32);
            assert_int_equal(cadre_tensor_count(element.tensors[0]), rows * 2);
            const float *values = cadre_tensor_const_data(element.tensors[0]);
            for (int64_t i = 0; i < rows * 2; i++) {
                assert_true(fabsf(values[i] - wanted[first * 2 + i]) < 1e-6F);
            }
            /* A batch of one label stays a batch. */
            assert_int_equal(cadre_tensor_rank(element.tensors[1]), 2);
            assert_int_equal(cadre_tensor_dim(element.tensors[1], 0), rows);
            training_assert_f32(element.tensors[1], (size_t)rows * 3, vectors + first * 3);
            cadre_element_release(&element);
        }
        cadre_iterator_release(iterator);
        cadre_dataset_release(data);
    }
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    cadre_tensor *text;
    cadre_tensor *number;
    const cadre_string word = {"w", 1};
    assert_public_ok(cadre_tensor_from_data(CADRE_STRING, 0, NULL, &word, &text));
    assert_public_ok(cadre_tensor_from_i64(5, &number));
    const cadre_element texts = {.count = 1, .tensors[0] = text};
    const cadre_element numbers = {.count = 1, .tensors[0] = number};
    cadre_element out;
    cadre_rescaling_options scale = {.scale = INFINITY};
    assert_public_error(
        cadre_rescaling_map(&numbers, &out, &scale), CADRE_INVALID_ARGUMENT, "two finite numbers");
    scale = (cadre_rescaling_options){.scale = 2};
    assert_public_error(
        cadre_rescaling_map(&texts, &out, &scale), CADRE_INVALID_ARGUMENT, "numbers are rescaled");
    scale.component = 1;
    assert_public_error(cadre_rescaling_map(&numbers, &out, &scale), CADRE_INVALID_ARGUMENT,
        "an element of 1 components, and changes component 1");
    assert_public_error(
        cadre_rescaling_map(&numbers, &out, NULL), CADRE_INVALID_ARGUMENT, "argument 'user'");
    assert_public_error(
        cadre_rescaling_map(NULL, &out, &scale), CADRE_INVALID_ARGUMENT, "argument 'in'");
    assert_public_error(
        cadre_rescaling_map(&numbers, NULL, &scale), CADRE_INVALID_ARGUMENT, "argument 'ret_out'");
    cadre_category_encoding_options encoding = {.num_tokens = 5};
    assert_public_error(cadre_category_encoding_map(&numbers, &out, &encoding),
        CADRE_INVALID_ARGUMENT, "5 is no category: they are 0 to 4");
    assert_int_equal(out.count, 0);
    assert_public_error(cadre_category_encoding_map(&texts, &out, &encoding),
        CADRE_INVALID_ARGUMENT, "categories are integers");
    encoding.mode = (cadre_encoding_mode)3;
    assert_public_error(
        cadre_category_encoding_map(&numbers, &out, &encoding), CADRE_INVALID_ARGUMENT, "mode 3");
    encoding = (cadre_category_encoding_options){0};
    assert_public_error(cadre_category_encoding_map(&numbers, &out, &encoding),
        CADRE_INVALID_ARGUMENT, "num_tokens is 0");
    cadre_tensor_release(text);
    cadre_tensor_release(number);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(components_are_changed_in_rows_and_batches),
        cmocka_unit_test(what_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
