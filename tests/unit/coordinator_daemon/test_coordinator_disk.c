/* SPDX-License-Identifier: Apache-2.0
 * The room on the disk, as far as is known: a thread looks, and what was granted since is taken off
 * what it saw. */
#include <stdlib.h>
#include <string.h>

#include "coordinator/daemon/base/disk.h"
#include "tests/lib/test.h"

#define MIB ((uint64_t)1024 * 1024)

static struct daemon stand;

bool engine_held(const struct engine *engine, struct cadre_error *ret_reason)
{
    (void)engine;
    (void)ret_reason;
    return false;
}

static int set_up(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    stand = (struct daemon){.options = {.disk_reserve_bytes = 40 * MIB}};
    stand.options.state_dir = strdup(test_temp_dir());
    assert_non_null(stand.options.state_dir);
    assert_ok(rpc_loop_open(&stand.loop, &error), &error);
    stand.file_pool.loop = stand.loop;
    disk_open(&stand);
    uv_timer_stop(&stand.disk.timer);              /* no look but those that are asked for */
    assert_true(stand.disk.free_bytes > 40 * MIB); /* or the tests cannot run here */
    return 0;
}

static void settle(void)
{
    file_work_pool_wait(&stand.file_pool);
}

static int tear_down(void **state)
{
    (void)state;
    disk_close(&stand);
    settle();
    rpc_loop_close(stand.loop);
    free(stand.options.state_dir);
    return 0;
}

static void what_was_granted_is_taken_off(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    stand.disk.free_bytes = 100 * MIB;
    assert_ok(disk_check(&stand, 50 * MIB, &error), &error);
    assert_int_equal(stand.file_pool.count, 0);
    assert_error(disk_check(&stand, 20 * MIB, &error), CADRE_RESOURCE_EXHAUSTED, &error,
        "only 50 MiB are free");
    assert_ok(disk_check(&stand, 10 * MIB, &error), &error);
    assert_error(
        disk_check(&stand, 1, &error), CADRE_RESOURCE_EXHAUSTED, &error, "only 40 MiB are free");
}

/* It was written before the probe or after it. */
static void a_refusal_has_a_thread_look_again(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    stand.disk.free_bytes = 100 * MIB;
    assert_ok(disk_check(&stand, 30 * MIB, &error), &error);
    assert_error(
        disk_check(&stand, 60 * MIB, &error), CADRE_RESOURCE_EXHAUSTED, &error, "are free");
    assert_int_equal(stand.file_pool.count, 1);
    assert_ok(disk_check(&stand, 5 * MIB, &error), &error);
    assert_error(
        disk_check(&stand, 60 * MIB, &error), CADRE_RESOURCE_EXHAUSTED, &error, "are free");
    assert_int_equal(stand.file_pool.count, 1); /* one look is enough */
    assert_int_equal(stand.disk.free_bytes, 100 * MIB);
    settle();
    assert_int_not_equal(stand.disk.free_bytes, 100 * MIB);
    assert_int_equal(stand.disk.granted_bytes, 5 * MIB);
    assert_false(stand.disk.low);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_was_granted_is_taken_off), TEST(a_refusal_has_a_thread_look_again)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
