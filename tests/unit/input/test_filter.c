/* SPDX-License-Identifier: Apache-2.0
 * filter: what is kept, whose ids, what the program's function says when it fails. */
#include <string.h>

#include "tests/unit/input/cmocka_unit.h"
#include "tests/unit/input/elements.h"
#include "tests/unit/input/reading.h"

static int64_t value_of(const cadre_element *in)
{
    return *(const int64_t *)cadre_tensor_const_data(in->tensors[0]);
}

static cadre_status below(const cadre_element *in, bool *ret_keep, void *user)
{
    *ret_keep = value_of(in) < *(const int64_t *)user;
    return CADRE_OK;
}

static cadre_status is_odd(const cadre_element *in, bool *ret_keep, void *user)
{
    (void)user;
    *ret_keep = value_of(in) % 2 != 0;
    return CADRE_OK;
}

/* Fails at the value in `user`, as its type says. */
struct failing {
    int64_t at;
    cadre_status status;
    const char *message; /* or NULL */
};

static cadre_status fails(const cadre_element *in, bool *ret_keep, void *user)
{
    const struct failing *failing = user;
    *ret_keep = true;
    if (value_of(in) != failing->at) {
        return CADRE_OK;
    }
    if (failing->message != NULL) {
        struct cadre_error error = {0};
        cadre_error_set(&error, failing->status, "%s", failing->message);
        return cadre_error_publish(&error);
    }
    return failing->status;
}

static cadre_dataset *range(int64_t stop)
{
    return cadre_dataset_range(0, stop, 1);
}

static void keeps_what_the_function_says(void **state)
{
    static int64_t three = 3;
    static int64_t none = 0;
    (void)state;
    /* The example of tf.data.Dataset.filter. */
    expect_elements(cadre_dataset_filter(cadre_dataset_range(1, 4, 1), below, &three), "1 2");
    expect_elements(cadre_dataset_filter(range(10), is_odd, NULL), "1 3 5 7 9");
    expect_elements(cadre_dataset_filter(range(10), below, &none), "");
    expect_elements(cadre_dataset_filter(range(0), is_odd, NULL), "");
    expect_elements(
        cadre_dataset_repeat(cadre_dataset_filter(range(4), is_odd, NULL), 2), "1 3 1 3");
    expect_elements(cadre_dataset_batch(cadre_dataset_filter(range(10), is_odd, NULL), 2, false),
        "[1 3] [5 7] [9]");
}

static void is_not_indexable(void **state)
{
    (void)state;
    cadre_dataset *data = cadre_dataset_filter(range(10), is_odd, NULL);
    assert_false(data->indexable);
    assert_int_equal(cadre_dataset_cardinality(data), CADRE_CARDINALITY_UNKNOWN);
    expect_spec(data, "i64 []");
    cadre_dataset_release(data);
    /* What stands on a shuffle of all is read in order. */
    data = cadre_dataset_filter(
        cadre_dataset_shuffle(range(10), CADRE_SHUFFLE_ALL, 1, NULL), is_odd, NULL);
    assert_false(data->by_index_only);
    expect_consistent(data);
    cadre_dataset_release(data);
    expect_failure(cadre_dataset_shuffle(
                       cadre_dataset_filter(range(10), is_odd, NULL), CADRE_SHUFFLE_ALL, 1, NULL),
        CADRE_INVALID_ARGUMENT, "shuffle");
}

static void ids_are_those_of_what_is_kept(void **state)
{
    struct cadre_error error = {0};
    cadre_iterator *iterator = NULL;
    struct id_list ids = {0};
    cadre_element element = {0};
    const struct pass pass = {.epoch = 0};
    (void)state;
    cadre_dataset *data = cadre_dataset_filter(range(7), is_odd, NULL);
    ASSERT_OK(dataset_iterate(data, &pass, &iterator, &error));
    while (iterator_next(iterator, &element, &ids, &error) == CADRE_OK) {
        cadre_element_release(&element);
    }
    assert_int_equal(error.code, CADRE_OUT_OF_RANGE);
    const uint64_t expected[] = {1, 3, 5};
    assert_int_equal(ids.count, 3);
    assert_memory_equal(ids.ids, expected, sizeof expected);
    id_list_clear(&ids);
    cadre_iterator_release(iterator);
    cadre_dataset_release(data);
}

static void failing_functions_are_reported(void **state)
{
    static struct failing named = {3, CADRE_NOT_FOUND, "no label for 3"};
    static struct failing silent = {0, CADRE_ABORTED, NULL};
    static struct failing ends = {2, CADRE_OUT_OF_RANGE, NULL};
    static struct failing unheard = {2, (cadre_status)-1, NULL};
    (void)state;
    expect_failure(cadre_dataset_filter(range(5), fails, &named), CADRE_NOT_FOUND,
        "sample 3 (from 0): filter: the function failed with NOT_FOUND: no label for 3");
    expect_failure(cadre_dataset_filter(range(5), fails, &silent), CADRE_ABORTED,
        "filter: the function failed with ABORTED: it left no message; say why with cadre_fail");
    expect_failure(cadre_dataset_filter(range(5), fails, &ends), CADRE_UNKNOWN,
        "filter: the function failed with OUT_OF_RANGE");
    expect_failure(cadre_dataset_filter(range(5), fails, &unheard), CADRE_UNKNOWN, "filter:");
    expect_failure(cadre_dataset_filter(range(5), NULL, NULL), CADRE_INVALID_ARGUMENT,
        "filter: the function is NULL");
    expect_failure(cadre_dataset_filter(cadre_dataset_range(0, 5, 0), is_odd, NULL),
        CADRE_INVALID_ARGUMENT, "range: step is 0");
    assert_null(cadre_dataset_filter(NULL, is_odd, NULL));
}

/* What came before the failure is given, and the failure stays. */
static void failures_stay(void **state)
{
    static struct failing failing = {2, CADRE_DATA_LOSS, "torn"};
    cadre_iterator *iterator = NULL;
    cadre_element element = {0};
    (void)state;
    cadre_dataset *data = cadre_dataset_filter(range(5), fails, &failing);
    assert_int_equal(cadre_dataset_iterate(data, 0, &iterator), CADRE_OK);
    cadre_dataset_release(data);
    for (int64_t i = 0; i < 2; i++) {
        assert_int_equal(cadre_iterator_next(iterator, &element), CADRE_OK);
        assert_int_equal(value_of(&element), i);
        cadre_element_release(&element);
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(cadre_iterator_next(iterator, &element), CADRE_DATA_LOSS);
        assert_non_null(strstr(cadre_error_message(), "torn"));
    }
    cadre_iterator_release(iterator);
}

static void positions_and_epochs(void **state)
{
    static int64_t five = 5;
    (void)state;
    cadre_dataset *data = cadre_dataset_filter(
        cadre_dataset_shuffle(range(12), CADRE_SHUFFLE_ALL, 7, NULL), below, &five);
    expect_consistent(data);
    assert_string_not_equal(elements_text(data, &(struct pass){.epoch = 0}, SIZE_MAX),
        elements_text(data, &(struct pass){.epoch = 1}, SIZE_MAX));
    cadre_dataset_release(data);
    data = cadre_dataset_filter(
        cadre_dataset_shuffle(cadre_dataset_repeat(range(6), 2), 4, 7, NULL), is_odd, NULL);
    expect_consistent(data);
    cadre_dataset_release(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_what_the_function_says),
        cmocka_unit_test(is_not_indexable),
        cmocka_unit_test(ids_are_those_of_what_is_kept),
        cmocka_unit_test(failing_functions_are_reported),
        cmocka_unit_test(failures_stay),
        cmocka_unit_test(positions_and_epochs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
