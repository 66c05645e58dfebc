/* SPDX-License-Identifier: Apache-2.0
 * What is given back where a scope is left. */
#include <string.h>

#include "training.h"

static int given_back;

static void count(void *data, void *user)
{
    (void)data;
    (void)user;
    given_back++;
}

static float numbers[2];

static cadre_tensor *lent(void)
{
    const int64_t two = 2;
    cadre_tensor *tensor;
    CADRE_CHECK(cadre_tensor_over(CADRE_F32, 1, &two, numbers, count, NULL, &tensor));
    return tensor;
}

static cadre_status leave_by_try(cadre_status early, cadre_tensor **ret_kept)
{
    CADRE_RELEASE_AT_EXIT(tensor) kept = lent();
    CADRE_RELEASE_AT_EXIT(tensor) given = lent();
    CADRE_RELEASE_AT_EXIT(tensor) none = NULL;
    CADRE_TRY(early);
    (void)none;
    (void)given;
    *ret_kept = kept;
    kept = NULL;
    return CADRE_OK;
}

static void tensors_are_released_on_every_way_out(void **state)
{
    (void)state;
    cadre_tensor *kept = NULL;
    given_back = 0;
    assert_int_equal(leave_by_try(CADRE_ABORTED, &kept), CADRE_ABORTED);
    assert_int_equal(given_back, 2);
    assert_null(kept);
    assert_int_equal(leave_by_try(CADRE_OK, &kept), CADRE_OK);
    assert_int_equal(given_back, 3);
    cadre_tensor_release(kept);
    assert_int_equal(given_back, 4);
}

static void all_that_has_references_too(void **state)
{
    (void)state;
    given_back = 0;
    {
        CADRE_RELEASE_AT_EXIT(strategy) strategy = training_strategy(1);
        CADRE_RELEASE_AT_EXIT(tensor) tensor = lent();
        CADRE_RELEASE_AT_EXIT(metric) metric = NULL;
        assert_public_ok(cadre_metric_create(strategy, CADRE_METRIC_SUM, "sum", NULL, &metric));
        CADRE_RELEASE_AT_EXIT(per_replica) value = NULL;
        assert_public_ok(cadre_values_from_tensors(strategy, &tensor, 1, &value));
        CADRE_RELEASE_AT_EXIT(dataset) data = cadre_dataset_tensors(&tensor, 1);
        CADRE_RELEASE_AT_EXIT(iterator) iterator = NULL;
        assert_public_ok(cadre_dataset_iterate(data, 0, &iterator));
        CADRE_RELEASE_ELEMENT_AT_EXIT cadre_element element = {0};
        assert_public_ok(cadre_iterator_next(iterator, &element));
        assert_int_equal(element.count, 1);
        assert_int_equal(given_back, 0);
    }
    assert_int_equal(given_back, 1);
    assert_false(cadre_has_strategy());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_are_released_on_every_way_out),
        cmocka_unit_test(all_that_has_references_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
