/* SPDX-License-Identifier: Apache-2.0
 * The error of a program's function names the samples that it failed on, for each way of reading.
 */
#include <string.h>

#include "tests/unit/input/cmocka_unit.h"
#include "tests/unit/input/elements.h"
#include "worker/library/input/node/error_samples.h"
#include "worker/library/input/node/sample_id.h"

static const char *message_for(const uint64_t *list, size_t count, size_t first)
{
    static struct cadre_error error;
    uint64_t copy[16] = {0};
    assert_true(count <= 16);
    for (size_t i = 0; i < count; i++) {
        copy[i] = list[i];
    }
    const struct id_list ids = {.ids = copy, .count = count, .capacity = 16};
    cadre_error_set(&error, CADRE_ABORTED, "torn");
    assert_int_equal(error_samples(CADRE_ABORTED, &ids, first, &error), CADRE_ABORTED);
    assert_int_equal(error.code, CADRE_ABORTED);
    return error.text;
}

#define MESSAGE_FOR(first, ...)                                                                    \
    message_for((const uint64_t[]){__VA_ARGS__},                                                   \
        sizeof(const uint64_t[]){__VA_ARGS__} / sizeof(uint64_t), first)

static void samples_in_words(void **state)
{
    (void)state;
    assert_string_equal(MESSAGE_FOR(0, 7), "sample 7 (from 0): torn");
    assert_string_equal(MESSAGE_FOR(0, 7, 8), "samples 7, 8 (from 0): torn");
    assert_string_equal(MESSAGE_FOR(0, 7, 8, 9), "samples 7 to 9 (from 0): torn");
    assert_string_equal(MESSAGE_FOR(1, 3, 9, 2, 4), "samples 9, 2, 4 (from 0): torn");
    assert_string_equal(MESSAGE_FOR(0, 7, 9, 2, 8, 1, 0, 11, 30),
        "samples 7, 9, 2, 8, 1, 0, ... (8 in all) (from 0): torn");
    assert_string_equal(
        MESSAGE_FOR(0, sample_id_of(3, 12)), "sample 12 of input element 3 (from 0): torn");
    /* Nothing known, nothing claimed. */
    assert_string_equal(MESSAGE_FOR(2, 3, 9), "torn");
    assert_string_equal(MESSAGE_FOR(0, sample_id_of(UINT64_C(1) << 50, 1)), "torn");
    assert_int_equal(error_samples(CADRE_OK, NULL, 0, NULL), CADRE_OK);
    assert_int_equal(error_samples(CADRE_ABORTED, NULL, 0, NULL), CADRE_ABORTED);
    /* More than a text holds is cut, not written behind it. */
    const char *long_one = MESSAGE_FOR(0, sample_id_of(200001, 900000000001),
        sample_id_of(200002, 900000000002), sample_id_of(200001, 900000000007),
        sample_id_of(200004, 900000000004), sample_id_of(200005, 900000000009),
        sample_id_of(200006, 900000000006), sample_id_of(200007, 900000000003));
    assert_non_null(strstr(long_one, "samples 900000000001 of input element 200001, "));
    assert_non_null(strstr(long_one, ": torn"));
}

/* Fails where a row is 37. */
static cadre_status no_37(const cadre_element *in, cadre_element *ret_out, void *user)
{
    const int64_t *rows = cadre_tensor_const_data(in->tensors[0]);
    (void)user;
    for (int64_t i = 0; i < cadre_tensor_count(in->tensors[0]); i++) {
        if (rows[i] == 37) {
            return CADRE_DATA_LOSS;
        }
    }
    ret_out->tensors[ret_out->count++] = cadre_tensor_retain(in->tensors[0]);
    return CADRE_OK;
}

static cadre_dataset *numbers(void)
{
    return cadre_dataset_range(0, 100, 1);
}

static cadre_dataset *checked(cadre_dataset *data, int32_t parallel)
{
    return cadre_dataset_map(data, no_37, NULL, &(cadre_map_options){.parallel = parallel});
}

static cadre_status from_7(const cadre_element *in, cadre_dataset **ret_data, void *user)
{
    int64_t value = *(const int64_t *)cadre_tensor_const_data(in->tensors[0]);
    (void)user;
    *ret_data = cadre_dataset_range(7 * value, 7 * value + 7, 1);
    return CADRE_OK;
}

static void a_map_tells_its_samples(void **state)
{
    (void)state;
    for (int32_t parallel = 0; parallel < 3; parallel++) {
        const char *one = "sample 37 (from 0): map: the function failed with DATA_LOSS";
        expect_failure(checked(numbers(), parallel), CADRE_DATA_LOSS, one);
        expect_failure(checked(in_order_only(numbers()), parallel), CADRE_DATA_LOSS, one);
        expect_failure(
            checked(cadre_dataset_shuffle(numbers(), CADRE_SHUFFLE_ALL, 5, NULL), parallel),
            CADRE_DATA_LOSS, one);
        expect_failure(
            cadre_dataset_batch(checked(numbers(), parallel), 100, false), CADRE_DATA_LOSS, one);
        expect_failure(checked(cadre_dataset_batch(numbers(), 8, false), parallel), CADRE_DATA_LOSS,
            "samples 32 to 39 (from 0): map: the function failed with DATA_LOSS");
        expect_failure(checked(cadre_dataset_flat_map(numbers(), from_7, NULL), parallel),
            CADRE_DATA_LOSS, "sample 2 of input element 5 (from 0): map: ");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_in_words),
        cmocka_unit_test(a_map_tells_its_samples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
