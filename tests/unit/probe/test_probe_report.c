/* SPDX-License-Identifier: Apache-2.0
 * What a child prints is believed nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/test.h"
#include "worker/host/probe/child.h"

static struct host_gpus gpus;
static struct cadre_error error;

static cadre_status read_text(const char *text)
{
    return report_read(text, strlen(text), &gpus, &error);
}

static void a_report_is_read(void **state)
{
    (void)state;
    assert_ok(
        read_text("{\"devices\": [{\"name\": \"NVIDIA H200\", \"uuid\": \"GPU-1\", \"bus\": "
                  "\"0000:65:00.0\", \"memory_bytes\": 150754820096, \"compute_major\": 9, "
                  "\"compute_minor\": 1, \"more\": []}, {\"name\": \"b\"}], \"driver\": \"d\", "
                  "\"runtime\": \"r\", \"nccl\": 22809, \"reason\": \"\", \"unused\": 7}"),
        &error);
    assert_int_equal(gpus.count, 2);
    assert_int_equal(gpus.usable, 2);
    assert_string_equal(gpus.devices[0].name, "NVIDIA H200");
    assert_string_equal(gpus.devices[0].uuid, "GPU-1");
    assert_string_equal(gpus.devices[0].bus, "0000:65:00.0");
    assert_int_equal(gpus.devices[0].memory_bytes, UINT64_C(150754820096));
    assert_int_equal(gpus.devices[0].compute_major, 9);
    assert_int_equal(gpus.devices[0].compute_minor, 1);
    assert_string_equal(gpus.devices[1].uuid, "");
    assert_int_equal(gpus.devices[1].memory_bytes, 0);
    assert_string_equal(gpus.driver, "d");
    assert_string_equal(gpus.runtime, "r");
    assert_int_equal(gpus.nccl, 22809);
    assert_string_equal(gpus.reason, "");
}

static void none_has_a_reason(void **state)
{
    (void)state;
    assert_ok(read_text("{\"devices\": [], \"reason\": \"no driver\"}"), &error);
    assert_int_equal(gpus.usable, 0);
    assert_string_equal(gpus.reason, "no driver");
    assert_ok(read_text("{\"devices\": []}"), &error);
    assert_string_equal(gpus.reason, "the host has none");
}

static void texts_are_made_fit(void **state)
{
    (void)state;
    char text[4096];
    char name[2000];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    snprintf(text, sizeof text,
        "{\"devices\": [{\"name\": \"%s\", \"bus\": \"a\\u001bb\\nc\"}], \"driver\": 5}", name);
    assert_ok(read_text(text), &error);
    assert_int_equal(strlen(gpus.devices[0].name), LIMIT_NAME_BYTES - 1);
    assert_string_equal(gpus.devices[0].bus, "a?b?c");
    assert_string_equal(gpus.driver, "");
}

static void what_is_wrong_is_reported(void **state)
{
    (void)state;
    static const char *const wrong[][2] = {{"", "nothing"}, {"{", "cannot be read"},
        {"[]", "it is no object"}, {"{}", "no list of devices"},
        {"{\"devices\": {}}", "no list of devices"},
        {"{\"devices\": [1]}", "a device is no object"},
        {"{\"devices\": [{}]}", "a device has no name"},
        {"{\"devices\": [{\"name\": \"\"}]}", "a device has no name"},
        {"{\"devices\": [{\"name\": \"a\", \"uuid\": \"GPU-1,GPU-2\"}]}", "a comma"},
        {"{\"devices\": [{\"name\": \"a\", \"memory_bytes\": -1}]}", "a number of a device"},
        {"{\"devices\": [{\"name\": \"a\", \"memory_bytes\": 1.5}]}", "a number of a device"},
        {"{\"devices\": [{\"name\": \"a\", \"compute_major\": 4294967296}]}", "a number of a"},
        {"{\"devices\": [], \"nccl\": \"2\"}", "NCCL"},
        {"{\"devices\": [], \"devices\": []}", "duplicate"},
        {"{\"devices\": []} and more", "end of file"},
        {"{\"devices\": [{\"name\": \"a\\u0000b\"}]}", "cannot be read"}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_error(read_text(wrong[i][0]), CADRE_INVALID_ARGUMENT, &error, wrong[i][1]);
    }
}

static void there_is_a_limit(void **state)
{
    (void)state;
    char text[4096] = "{\"devices\": [";
    size_t used = strlen(text);
    for (int i = 0; i <= LIMIT_GPUS_PER_WORKER; i++) {
        used += (size_t)snprintf(
            text + used, sizeof text - used, "%s{\"name\": \"a\"}", i > 0 ? ", " : "");
        if (i == LIMIT_GPUS_PER_WORKER - 1) {
            snprintf(text + used, sizeof text - used, "]}");
            assert_ok(read_text(text), &error);
            assert_int_equal(gpus.usable, LIMIT_GPUS_PER_WORKER);
        }
    }
    snprintf(text + used, sizeof text - used, "]}");
    assert_error(read_text(text), CADRE_INVALID_ARGUMENT, &error, "more than 64");
}

/* Cut anywhere it is refused, never misread. */
static void half_a_report_is_none(void **state)
{
    (void)state;
    static const char text[] =
        "{\"devices\": [{\"name\": \"a\", \"memory_bytes\": 17}], \"nccl\": 1}";
    for (size_t size = 0; size + 1 < sizeof text - 1; size++) {
        char *bytes = malloc(size + 1); /* of its own, so that a sanitizer reports an access
                                         * behind it */
        memcpy(bytes, text, size);
        assert_int_equal(report_read(bytes, size, &gpus, &error), CADRE_INVALID_ARGUMENT);
        free(bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_report_is_read),
        cmocka_unit_test(none_has_a_reason), cmocka_unit_test(texts_are_made_fit),
        cmocka_unit_test(what_is_wrong_is_reported), cmocka_unit_test(there_is_a_limit),
        cmocka_unit_test(half_a_report_is_none)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
