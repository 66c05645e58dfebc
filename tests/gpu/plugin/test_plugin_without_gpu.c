/* SPDX-License-Identifier: Apache-2.0
 * The plugin where there is no GPU: it opens, returns the reason, and each call is an error and no
 * crash. Skipped where there is one. */
#include <stdio.h>
#include <string.h>

#include "plugin.h"

static void test_it_says_why(void **state)
{
    (void)state;
    char reason[256];
    memset(reason, 0xff, sizeof reason);
    assert_int_equal(ops->count(reason), 0);
    size_t length = strnlen(reason, sizeof reason);
    assert_true(length > 10 && length < sizeof reason);
    assert_int_not_equal(reason[length - 1], '.');
    assert_non_null(strstr(reason, "CUDA"));
    assert_string_equal(ops->type, "GPU");
    assert_string_equal(ops->name, "cuda");
}

static void test_versions(void **state)
{
    (void)state;
    struct device_driver driver;
    memset(&driver, 0xff, sizeof driver);
    ops->driver(&driver);
    assert_true(strnlen(driver.driver, sizeof driver.driver) < sizeof driver.driver);
    assert_non_null(strstr(driver.runtime, "CUDA 1"));
    assert_true((ops->comm != NULL) == (driver.collectives > 0));
    fprintf(stderr, "driver: %s; runtime: %s; NCCL: %u, %s\n", driver.driver, driver.runtime,
        driver.collectives, driver.collectives_from);
    if (ops->comm != NULL) {
        assert_true(driver.collectives >= 21800);
        assert_non_null(strstr(driver.collectives_from, "nccl"));
        assert_int_equal(driver.collectives_from[0], '/');
    } else {
        assert_non_null(strstr(driver.collectives_from, "NCCL"));
    }
}

static void test_devices_are_errors(void **state)
{
    (void)state;
    struct cadre_error error = {.code = CADRE_OK};
    struct device_info info;
    void *made = &info;
    int local = 0;
    assert_error(ops->describe(0, &info, &error), CADRE_INTERNAL, &error, "GPU 0");
    assert_error(ops->bind(0, &error), CADRE_INTERNAL, &error, "cudaError");
    assert_error(ops->stream_open(0, true, &made, &error), CADRE_INTERNAL, &error, "cudaError");
    assert_null(made);
    made = &info;
    assert_error(ops->event_open(0, &made, &error), CADRE_INTERNAL, &error, "cudaError");
    assert_null(made);
    assert_error(
        ops->memory_get(0, 16, &local, &made, &error), CADRE_INVALID_ARGUMENT, &error, "no stream");
    assert_error(
        ops->copy(&local, &local, 4, &local, &error), CADRE_INVALID_ARGUMENT, &error, "no stream");
    assert_error(
        ops->fill(&local, 0, 4, &local, &error), CADRE_INVALID_ARGUMENT, &error, "no stream");
    assert_error(ops->scale(CADRE_F32, &local, 1, 2, &local, &error), CADRE_INVALID_ARGUMENT,
        &error, "no stream");
    assert_error(
        ops->pack(NULL, 0, NULL, &local, &error), CADRE_INVALID_ARGUMENT, &error, "no stream");
    assert_null(ops->pinned_get(4096));
    ops->pinned_give(NULL, 0);
    ops->memory_give(0, NULL, NULL);
    ops->memory_give(0, &local, &local);
    ops->stream_close(NULL);
    ops->stream_close(&local);
    ops->event_close(NULL);
}

static void test_communicators(void **state)
{
    (void)state;
    if (ops->comm == NULL) {
        skip();
    }
    struct cadre_error error = {.code = CADRE_OK};
    uint8_t first[DEVICE_COMM_ID_BYTES] = {0};
    uint8_t second[DEVICE_COMM_ID_BYTES] = {0};
    uint32_t rank = 0;
    uint32_t device = 0;
    struct device_comm *comm = NULL;
    assert_ok(ops->comm->unique_id(first, &error), &error);
    assert_ok(ops->comm->unique_id(second, &error), &error);
    assert_memory_not_equal(first, second, sizeof first);
    assert_error(ops->comm->post(first, 1, 1, &rank, &device, &comm, &error), CADRE_INTERNAL,
        &error, "cudaError");
    assert_null(comm);
    ops->comm->destroy(NULL);
    ops->comm->abort(NULL);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_says_why),
        cmocka_unit_test(test_versions),
        cmocka_unit_test(test_devices_are_errors),
        cmocka_unit_test(test_communicators),
    };
    plugin_open(argc, argv);
    char reason[256];
    if (ops->count(reason) > 0) {
        test_skip("there is a GPU here");
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
