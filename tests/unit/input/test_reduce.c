/* SPDX-License-Identifier: Apache-2.0
 * reduce: folding a dataset into one state. */
#include "tests/unit/input/cmocka_unit.h"

#include <string.h>

#include "tests/unit/input/elements.h"

static int64_t value_of(const cadre_element *element, uint32_t component)
{
    return *(const int64_t *)cadre_tensor_const_data(element->tensors[component]);
}

/* (sum, count) */
static cadre_status add(
    const cadre_element *state, const cadre_element *in, cadre_element *ret_state, void *user)
{
    (void)user;
    ret_state->count = 2;
    CADRE_TRY(cadre_tensor_from_i64(value_of(state, 0) + value_of(in, 0), &ret_state->tensors[0]));
    return cadre_tensor_from_i64(value_of(state, 1) + 1, &ret_state->tensors[1]);
}

static cadre_element zeros(void)
{
    cadre_element state = {.count = 2};
    assert_int_equal(cadre_tensor_from_i64(0, &state.tensors[0]), CADRE_OK);
    assert_int_equal(cadre_tensor_from_i64(0, &state.tensors[1]), CADRE_OK);
    return state;
}

static void sums_and_counts(void **state)
{
    (void)state;
    cadre_element sums = zeros();
    cadre_dataset *data = cadre_dataset_range(0, 5, 1);
    assert_int_equal(cadre_dataset_reduce(data, &sums, add, NULL), CADRE_OK);
    assert_int_equal(value_of(&sums, 0), 10);
    assert_int_equal(value_of(&sums, 1), 5);
    /* It goes on from the state it is given. */
    assert_int_equal(cadre_dataset_reduce(data, &sums, add, NULL), CADRE_OK);
    assert_int_equal(value_of(&sums, 1), 10);
    cadre_dataset_release(data);
    /* Nothing to fold. */
    data = cadre_dataset_range(0, 0, 1);
    assert_int_equal(cadre_dataset_reduce(data, &sums, add, NULL), CADRE_OK);
    assert_int_equal(value_of(&sums, 0), 20);
    cadre_dataset_release(data);
    cadre_element_release(&sums);
}

/* The last state, kept as it is: the same tensors may be given again. */
static cadre_status keep(
    const cadre_element *state, const cadre_element *in, cadre_element *ret_state, void *user)
{
    (void)in;
    (void)user;
    ret_state->count = 1;
    ret_state->tensors[0] = cadre_tensor_retain(state->tensors[0]);
    return CADRE_OK;
}

static void the_same_tensor_may_be_given(void **state)
{
    (void)state;
    cadre_element kept = {.count = 1};
    assert_int_equal(cadre_tensor_from_i64(77, &kept.tensors[0]), CADRE_OK);
    cadre_dataset *data = cadre_dataset_range(0, 5, 1);
    assert_int_equal(cadre_dataset_reduce(data, &kept, keep, NULL), CADRE_OK);
    assert_int_equal(value_of(&kept, 0), 77);
    cadre_element_release(&kept);
    cadre_dataset_release(data);
}

static cadre_status fail_at_three(
    const cadre_element *state, const cadre_element *in, cadre_element *ret_state, void *user)
{
    if (value_of(in, 0) == 3) {
        CADRE_TRY(cadre_tensor_from_i64(1, &ret_state->tensors[0]));
        ret_state->count = 1;
        return CADRE_OUT_OF_RANGE;
    }
    return add(state, in, ret_state, user);
}

static cadre_status give_nothing(
    const cadre_element *state, const cadre_element *in, cadre_element *ret_state, void *user)
{
    (void)state;
    (void)in;
    (void)ret_state;
    (void)user;
    return CADRE_OK;
}

static void expect_refused(
    cadre_dataset *data, cadre_reduce_function function, cadre_status code, const char *part)
{
    cadre_element sums = zeros();
    assert_int_equal(cadre_dataset_reduce(data, &sums, function, NULL), code);
    assert_int_equal(sums.count, 0);
    if (strstr(cadre_error_message(), part) == NULL) {
        fail_msg("%s", cadre_error_message());
    }
    cadre_dataset_release(data);
}

static void failures(void **state)
{
    (void)state;
    expect_refused(cadre_dataset_range(0, 5, 1), fail_at_three, CADRE_UNKNOWN,
        "reduce: the function failed with OUT_OF_RANGE");
    expect_refused(cadre_dataset_range(0, 5, 1), give_nothing, CADRE_INVALID_ARGUMENT,
        "reduce: the function returned 0 tensors");
    expect_refused(cadre_dataset_range(0, 5, 1), NULL, CADRE_INVALID_ARGUMENT, "function is NULL");
    expect_refused(cadre_dataset_range(0, 5, 0), add, CADRE_INVALID_ARGUMENT, "range: step is 0");
    expect_refused(NULL, add, CADRE_RESOURCE_EXHAUSTED, "the dataset is NULL");
    expect_refused(cadre_dataset_repeat(cadre_dataset_range(0, 5, 1), CADRE_REPEAT_FOREVER), add,
        CADRE_INVALID_ARGUMENT, "no end");
    cadre_element with_null = {.count = 1};
    cadre_dataset *data = cadre_dataset_range(0, 5, 1);
    assert_int_equal(cadre_dataset_reduce(data, &with_null, add, NULL), CADRE_INVALID_ARGUMENT);
    assert_int_equal(cadre_dataset_reduce(data, NULL, add, NULL), CADRE_INVALID_ARGUMENT);
    cadre_dataset_release(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_and_counts),
        cmocka_unit_test(the_same_tensor_may_be_given),
        cmocka_unit_test(failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
