/* SPDX-License-Identifier: Apache-2.0
 * unbatch: rows as elements, in order and by index, and their ids. */
#include "tests/unit/input/cmocka_unit.h"

#include <string.h>

#include "tests/unit/input/elements.h"
#include "worker/library/device/tensor.h"

/* A vector of 1 to the number. */
static cadre_status count_up(const cadre_element *in, cadre_element *ret_out, void *user)
{
    (void)user;
    int64_t count = *(const int64_t *)cadre_tensor_const_data(in->tensors[0]);
    CADRE_TRY(cadre_tensor_create(CADRE_I64, 1, &count, &ret_out->tensors[0]));
    ret_out->count = 1;
    int64_t *values = cadre_tensor_data(ret_out->tensors[0]);
    for (int64_t i = 0; i < count; i++) {
        values[i] = i + 1;
    }
    return CADRE_OK;
}

static cadre_dataset *vectors(int64_t from, int64_t to)
{
    static const cadre_element_spec any = {
        .count = 1, .tensors = {{.dtype = CADRE_I64, .rank = 1, .dims = {CADRE_DIMENSION_ANY}}}};
    return cadre_dataset_map(
        cadre_dataset_range(from, to, 1), count_up, NULL, &(cadre_map_options){.output = &any});
}

static void rows_become_elements(void **state)
{
    (void)state;
    cadre_dataset *data = cadre_dataset_unbatch(vectors(2, 5));
    expect_spec(data, "i64 []");
    assert_false(data->indexable);
    assert_int_equal(cadre_dataset_cardinality(data), CADRE_CARDINALITY_UNKNOWN);
    expect_consistent(data);
    expect_elements(data, "1 2 1 2 3 1 2 3 4");
    /* Elements without rows give none. */
    expect_elements(cadre_dataset_unbatch(vectors(0, 3)), "1 1 2");
    data = cadre_dataset_unbatch(vectors(0, 1));
    expect_consistent(data);
    expect_elements(data, "");
}

static void whole_batches_are_indexable(void **state)
{
    (void)state;
    cadre_dataset *data =
        cadre_dataset_unbatch(cadre_dataset_batch(cadre_dataset_range(0, 14, 1), 4, true));
    assert_true(data->indexable);
    assert_int_equal(cadre_dataset_cardinality(data), 12);
    expect_consistent(data);
    cadre_dataset *again = cadre_dataset_batch(cadre_dataset_retain(data), 5, false);
    expect_consistent(again);
    expect_elements(again, "[0 1 2 3 4] [5 6 7 8 9] [10 11]");
    again = cadre_dataset_shuffle(cadre_dataset_retain(data), CADRE_SHUFFLE_ALL, 3, NULL);
    expect_consistent(again);
    cadre_dataset_release(again);
    expect_elements(data, "0 1 2 3 4 5 6 7 8 9 10 11");
    /* The last one is shorter: rows are not known. */
    data = cadre_dataset_unbatch(cadre_dataset_batch(cadre_dataset_range(0, 6, 1), 4, false));
    assert_false(data->indexable);
    expect_consistent(data);
    expect_elements(data, "0 1 2 3 4 5");
}

static void matrices_and_several_components(void **state)
{
    (void)state;
    cadre_tensor *tensors[2] = {NULL, NULL};
    int64_t numbers[12];
    for (int64_t i = 0; i < 12; i++) {
        numbers[i] = i;
    }
    static const cadre_string words[6] = {
        {"a", 1}, {"b", 1}, {"c", 1}, {"d", 1}, {"e", 1}, {"f", 1}};
    assert_int_equal(
        cadre_tensor_from_data(CADRE_I64, 3, (int64_t[]){2, 3, 2}, numbers, &tensors[0]), CADRE_OK);
    assert_int_equal(
        cadre_tensor_from_data(CADRE_STRING, 2, (int64_t[]){2, 3}, words, &tensors[1]), CADRE_OK);
    cadre_dataset *data = cadre_dataset_unbatch(cadre_dataset_tensor_slices(tensors, 2));
    expect_spec(data, "i64 [2] string []");
    expect_consistent(data);
    /* Each element has one id and three rows: it goes with the first one. */
    struct cadre_error error = {0};
    struct id_list ids = {0};
    struct element_position positions[6] = {{0, 0}, {1, 0}, {2, 0}, {3, 0}, {4, 0}, {5, 0}};
    ASSERT_OK(dataset_ids_at(data, positions, 6, &ids, &error));
    assert_int_equal(ids.count, 2);
    assert_true(ids.ids[0] == 0 && ids.ids[1] == 1);
    id_list_clear(&ids);
    expect_elements(data, "([0 1], a) ([2 3], b) ([4 5], c) ([6 7], d) ([8 9], e) ([10 11], f)");
    cadre_tensor_release(tensors[0]);
    cadre_tensor_release(tensors[1]);
}

static cadre_status different_rows(const cadre_element *in, cadre_element *ret_out, void *user)
{
    (void)user;
    CADRE_TRY(count_up(in, ret_out, NULL));
    ret_out->count = 2;
    return cadre_tensor_create(CADRE_F32, 1, (int64_t[]){2}, &ret_out->tensors[1]);
}

static void what_has_no_rows_is_refused(void **state)
{
    (void)state;
    expect_failure(cadre_dataset_unbatch(cadre_dataset_range(0, 3, 1)), CADRE_INVALID_ARGUMENT,
        "unbatch: component 0 is a scalar");
    expect_failure(cadre_dataset_unbatch(in_order_only(cadre_dataset_range(0, 3, 1))),
        CADRE_INVALID_ARGUMENT, "unbatch: component 0 is a scalar");
    /* Rows agree in the element that is looked at first, and then not. */
    cadre_dataset *data = cadre_dataset_unbatch(
        cadre_dataset_map(cadre_dataset_range(2, 5, 1), different_rows, NULL, NULL));
    assert_string_equal(elements_text(data, &(struct pass){0}, 2), "(1, 0) (2, 0)");
    expect_failure(data, CADRE_INVALID_ARGUMENT, "rows");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_become_elements),
        cmocka_unit_test(whole_batches_are_indexable),
        cmocka_unit_test(matrices_and_several_components),
        cmocka_unit_test(what_has_no_rows_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
