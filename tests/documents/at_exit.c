/* SPDX-License-Identifier: Apache-2.0
 * What is given back by itself where a scope is left: cadre/at_exit.h, with CADRE_TRY. */
#include "documents.h"

/* Of memory that the program lends, so that it is seen when a tensor is gone. */
static void count(void *data, void *user)
{
    (void)data;
    ++*(int *)user;
}

static cadre_tensor *lent(int *given_back)
{
    static float number;
    cadre_tensor *tensor;
    OK(cadre_tensor_over(CADRE_F32, 0, NULL, &number, count, given_back, &tensor));
    return tensor;
}

/* Two tensors, and a call that may fail in between: both are released on either way out, but for
 * what the function hands to its caller. */
static cadre_status make(cadre_status in_between, int *given_back, cadre_tensor **ret_tensor)
{
    CADRE_RELEASE_AT_EXIT(tensor) result = lent(given_back);
    CADRE_RELEASE_ELEMENT_AT_EXIT cadre_element scratch = {
        .count = 1, .tensors = {lent(given_back)}};
    CADRE_TRY(in_between);
    assert_int_equal(scratch.count, 1);
    *ret_tensor = result;
    result = NULL; /* taken out: it is the caller's now */
    return CADRE_OK;
}

static void scopes_give_back(void **state)
{
    (void)state;
    int given_back = 0;
    cadre_tensor *tensor = NULL;
    assert_int_equal(make(CADRE_ABORTED, &given_back, &tensor), CADRE_ABORTED);
    assert_int_equal(given_back, 2);
    assert_null(tensor);
    assert_int_equal(make(CADRE_OK, &given_back, &tensor), CADRE_OK);
    assert_int_equal(given_back, 3);
    cadre_tensor_release(tensor);
    assert_int_equal(given_back, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(scopes_give_back)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
