/* SPDX-License-Identifier: Apache-2.0
 * Rows of unequal length, and values that name their places: cadre/composite.h. In batches, which
 * replicas share: deploy/examples/tour/words.c. */
#include "documents.h"

/* Three rows: two values, none, one. Row splits say where each begins. A copy of them is marked, so
 * that the two together are one ragged value. */
static void a_ragged_value_has_rows(void **state)
{
    (void)state;
    cadre_tensor *values = integers(1, 2, 3);
    cadre_tensor *given = integers(0, 2, 2, 3);
    cadre_tensor *row_splits;
    cadre_tensor *result;
    OK(cadre_ragged_from_row_splits(values, given, &row_splits));
    OK(cadre_ragged_row(values, row_splits, 0, &result));
    assert_given(result, "[1 2]");
    OK(cadre_ragged_to_dense(values, row_splits, CADRE_DIMENSION_ANY, NULL, &result));
    assert_given(result, "[[1 2] [0 0] [3 0]]"); /* as wide as the longest row, filled up */
    cadre_tensor_release(row_splits);
    cadre_tensor_release(given);
    given = integers(0, 2, 1, 3); /* the second row would end before it begins */
    REFUSED(
        cadre_ragged_from_row_splits(values, given, &row_splits), CADRE_INVALID_ARGUMENT, "row");
    assert_null(row_splits);
    cadre_tensor_release(given);
    cadre_tensor_release(values);
}

/* Two values in two rows of three, each with its index. */
static void a_sparse_value_has_indices(void **state)
{
    (void)state;
    cadre_tensor *indices = rows(2, integers(0, 1, 1, 2));
    cadre_tensor *values = floats(5, 7);
    cadre_tensor *shape = integers(2, 3);
    cadre_tensor *dense_shape;
    cadre_tensor *result;
    OK(cadre_sparse_from_indices(indices, values, shape, &dense_shape));
    OK(cadre_sparse_to_dense(indices, values, dense_shape, NULL, &result));
    assert_given(result, "[[0 5 0] [0 0 7]]");
    cadre_tensor_release(dense_shape);
    cadre_tensor_release(shape);
    cadre_tensor_release(values);
    cadre_tensor_release(indices);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ragged_value_has_rows),
        cmocka_unit_test(a_sparse_value_has_indices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
