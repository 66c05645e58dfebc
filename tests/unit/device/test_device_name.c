/* SPDX-License-Identifier: Apache-2.0
 * Names of devices, taken apart and made canonical. */
#include <string.h>

#include "tests/lib/test.h"
#include "worker/library/device/local_device.h"

static void assert_canonical(const char *name, const char *fallback, const char *expected)
{
    char text[CADRE_DEVICE_NAME_BYTES];
    if (cadre_device_canonical(name, fallback, text) != CADRE_OK) {
        fail_msg("'%s': %s", name, cadre_error_message());
    }
    assert_string_equal(text, expected);
}

/* device_name/with_default, and more. */
static void what_is_missing_is_filled_in(void **state)
{
    (void)state;
    assert_canonical(
        "/job:worker/task:1/cpu:0", "/gpu:0", "/job:worker/replica:0/task:1/device:CPU:0");
    assert_canonical("/job:worker/task:1", "/gpu:0", "/job:worker/replica:0/task:1/device:GPU:0");
    assert_canonical("/cpu:0", "/job:worker", "/job:worker/replica:0/task:0/device:CPU:0");
    assert_canonical("", NULL, "/job:localhost/replica:0/task:0/device:CPU:0");
    assert_canonical("GPU:3", NULL, "/job:localhost/replica:0/task:0/device:GPU:3");
    assert_canonical("/device:gpu:1", "/job:chief/replica:2/task:5/cpu:9",
        "/job:chief/replica:2/task:5/device:GPU:1");
    assert_canonical("cpu", "GPU:4", "/job:localhost/replica:0/task:0/device:CPU:4");
    assert_canonical("/device:GPU:*", NULL, "/job:localhost/replica:0/task:0/device:GPU:0");
    assert_canonical("//task:7//", "", "/job:localhost/replica:0/task:7/device:CPU:0");
    assert_canonical("/job:worker/replica:0/task:1/device:CPU:0", "/job:ps/task:3/gpu:2",
        "/job:worker/replica:0/task:1/device:CPU:0");
}

static void names_are_taken_apart(void **state)
{
    (void)state;
    cadre_device_spec spec;
    assert_int_equal(cadre_device_parse("/job:w_1/task:12/device:xla_gpu:3", &spec), CADRE_OK);
    assert_string_equal(spec.job, "w_1");
    assert_int_equal(spec.replica, -1);
    assert_int_equal(spec.task, 12);
    assert_string_equal(spec.type, "XLA_GPU");
    assert_int_equal(spec.index, 3);
    assert_int_equal(cadre_device_parse("", &spec), CADRE_OK);
    assert_string_equal(spec.job, "");
    assert_string_equal(spec.type, "");
    assert_int_equal(spec.index, -1);
}

static void other_names_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"/job:", "/job:a-b", "/job:worker/job:worker", "/task:x",
        "/task:-1", "/task:1234567890", "/replica:", "/device:CPU", "/device:CPU:0:1", "CPU:0:1",
        "CPU:", "7:0", "/cpu:0/gpu:0", "/cpu:0/cpu:0", "/task:1:2", "/device::0", ":", "CPU:0 ",
        "/job:a123456789012345678901234567890123456789012345678901234567890123"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        cadre_device_spec spec = {.task = 5};
        char text[CADRE_DEVICE_NAME_BYTES] = "x";
        if (cadre_device_parse(bad[i], &spec) != CADRE_INVALID_ARGUMENT) {
            fail_msg("'%s' was taken", bad[i]);
        }
        assert_int_equal(spec.task, -1);
        assert_int_equal(cadre_device_canonical("", bad[i], text), CADRE_INVALID_ARGUMENT);
        assert_string_equal(text, "");
    }
    cadre_device_spec spec;
    char text[CADRE_DEVICE_NAME_BYTES];
    assert_int_equal(cadre_device_parse(NULL, &spec), CADRE_INVALID_ARGUMENT);
    assert_int_equal(cadre_device_parse("CPU:0", NULL), CADRE_INVALID_ARGUMENT);
    assert_int_equal(cadre_device_canonical(NULL, NULL, text), CADRE_INVALID_ARGUMENT);
    assert_int_equal(cadre_device_canonical("", NULL, NULL), CADRE_INVALID_ARGUMENT);
}

/* The longest that fits. */
static void long_names_fit(void **state)
{
    (void)state;
    char text[CADRE_DEVICE_NAME_BYTES];
    assert_int_equal(cadre_device_canonical(
                         "/job:a12345678901234567890123456789012345678901234567890123456789012"
                         "/replica:999999999/task:999999999/"
                         "device:a123456789012345678901234567890:999999999",
                         NULL, text),
        CADRE_OK);
    assert_true(strlen(text) < CADRE_DEVICE_NAME_BYTES);
    assert_non_null(strstr(text, "A123456789012345678901234567890:999999999"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_missing_is_filled_in),
        cmocka_unit_test(names_are_taken_apart),
        cmocka_unit_test(other_names_are_refused),
        cmocka_unit_test(long_names_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
