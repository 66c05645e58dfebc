/* SPDX-License-Identifier: Apache-2.0
 * unique: the first of each, of integers and strings; its memory. */
#include <string.h>

#include "common/base/fault.h"
#include "common/pure/prng.h"
#include "tests/unit/input/cmocka_unit.h"
#include "tests/unit/input/elements.h"
#include "worker/library/input/transformations/unique_set.h"

static cadre_dataset *slices(
    cadre_dtype dtype, uint32_t rank, const int64_t *dims, const void *data)
{
    cadre_tensor *tensor = NULL;
    assert_int_equal(cadre_tensor_from_data(dtype, rank, dims, data, &tensor), CADRE_OK);
    cadre_dataset *slices = cadre_dataset_tensor_slices(&tensor, 1);
    cadre_tensor_release(tensor);
    return slices;
}

static cadre_dataset *integers(void)
{
    static const int64_t values[] = {1, 37, 2, 37, 2, 1};
    return slices(CADRE_I64, 1, (const int64_t[]){6}, values);
}

static void documented_example(void **state)
{
    (void)state;
    expect_elements(cadre_dataset_unique(integers()), "1 37 2");
    expect_elements(cadre_dataset_repeat(cadre_dataset_unique(integers()), 2), "1 37 2 1 37 2");
    expect_elements(cadre_dataset_unique(cadre_dataset_repeat(integers(), 2)), "1 37 2");
    expect_elements(cadre_dataset_unique(cadre_dataset_range(0, 0, 1)), "");
}

static void types_and_shapes(void **state)
{
    static const int32_t small[] = {5, -5, 5};
    static const uint8_t bytes[] = {0, 255, 0};
    static const cadre_string words[] = {
        {"ab", 2}, {"a", 1}, {"", 0}, {"ab", 2}, {"", 0}, {"b", 1}, {"a", 1}};
    static const cadre_string pairs[] = {
        {"ab", 2}, {"c", 1}, {"a", 1}, {"bc", 2}, {"ab", 2}, {"c", 1}};
    static const int64_t rows[] = {1, 2, 2, 1, 1, 2};
    (void)state;
    expect_elements(
        cadre_dataset_unique(slices(CADRE_I32, 1, (const int64_t[]){3}, small)), "5 -5");
    expect_elements(
        cadre_dataset_unique(slices(CADRE_U8, 1, (const int64_t[]){3}, bytes)), "0 255");
    expect_elements(
        cadre_dataset_unique(slices(CADRE_STRING, 1, (const int64_t[]){7}, words)), "ab a  b");
    expect_elements(
        cadre_dataset_unique(slices(CADRE_I64, 2, (const int64_t[]){3, 2}, rows)), "[1 2] [2 1]");
    expect_elements(cadre_dataset_unique(slices(CADRE_STRING, 2, (const int64_t[]){3, 2}, pairs)),
        "[ab c] [a bc]");
    /* Of different shapes: the same values are not the same element. */
    static const int64_t zeros[] = {0, 0, 0};
    expect_elements(cadre_dataset_unique(cadre_dataset_batch(
                        slices(CADRE_I64, 1, (const int64_t[]){3}, zeros), 2, false)),
        "[0 0] [0]");
}

static void what_cannot_be_compared(void **state)
{
    static const float reals[] = {1, 2, 1};
    (void)state;
    cadre_dataset *data = cadre_dataset_unique(slices(CADRE_F32, 1, (const int64_t[]){3}, reals));
    cadre_element_spec spec = {0};
    assert_int_equal(cadre_dataset_spec(data, &spec), CADRE_INVALID_ARGUMENT);
    expect_failure(data, CADRE_INVALID_ARGUMENT,
        "unique: elements of 1 components, the first of "
        "them f32");
    cadre_dataset *const both[] = {integers(), integers()};
    expect_failure(cadre_dataset_unique(cadre_dataset_zip(both, 2)), CADRE_INVALID_ARGUMENT,
        "unique: elements of 2 components");
    expect_failure(cadre_dataset_unique(cadre_dataset_range(0, 5, 0)), CADRE_INVALID_ARGUMENT,
        "range: step is 0");
    assert_null(cadre_dataset_unique(NULL));
}

static void positions(void **state)
{
    static const cadre_string words[] = {
        {"ab", 2}, {"a", 1}, {"", 0}, {"ab", 2}, {"", 0}, {"b", 1}, {"a", 1}};
    (void)state;
    cadre_dataset *data = cadre_dataset_unique(
        cadre_dataset_shuffle(cadre_dataset_repeat(integers(), 3), CADRE_SHUFFLE_ALL, 5, NULL));
    assert_false(data->indexable);
    assert_int_equal(cadre_dataset_cardinality(data), CADRE_CARDINALITY_UNKNOWN);
    expect_consistent(data);
    cadre_dataset_release(data);
    data = cadre_dataset_unique(slices(CADRE_STRING, 1, (const int64_t[]){7}, words));
    expect_consistent(data);
    cadre_dataset_release(data);
}

static void many_in_the_set(void **state)
{
    struct unique_set set = {.count = 0};
    struct cadre_error error = {0};
    struct prng prng = {3};
    size_t different = 0;
    (void)state;
    bool *seen = calloc(30000, sizeof seen[0]);
    assert_non_null(seen);
    for (int i = 0; i < 100000; i++) {
        uint64_t number = prng_uniform(&prng, 30000);
        char text[40];
        size_t length = sizeof number + (size_t)(number % (sizeof text - sizeof number));
        bool is_new = false;
        memset(text, (int)(number % 7), sizeof text);
        memcpy(text, &number, sizeof number);
        ASSERT_OK(unique_set_add(&set, text, length, &is_new, &error));
        assert_int_equal(is_new, !seen[number]);
        different += seen[number] ? 0 : 1;
        seen[number] = true;
        assert_int_equal(set.count, different);
    }
    free(seen);
    unique_set_clear(&set);
    unique_set_clear(&set);
}

static void memory_that_ends(void **state)
{
    (void)state;
    fault_arm("unique.memory", 3);
    cadre_dataset *data = cadre_dataset_unique(cadre_dataset_range(0, 9, 1));
    expect_failure(data, CADRE_RESOURCE_EXHAUSTED, "unique: 2 different elements take ");
    assert_true(fault_disarm());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(documented_example),
        cmocka_unit_test(types_and_shapes),
        cmocka_unit_test(what_cannot_be_compared),
        cmocka_unit_test(positions),
        cmocka_unit_test(many_in_the_set),
        cmocka_unit_test(memory_that_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
