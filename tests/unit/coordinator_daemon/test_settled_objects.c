/* SPDX-License-Identifier: Apache-2.0
 * What a file of a job is to be, in a store whose puts have no conditions: the same for all that
 * ask, whatever of coordinators that were replaced arrives late. */
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "coordinator/daemon/contents/settled_objects.h"
#include "tests/lib/test.h"
#include "tests/unit/coordinator_daemon/old_list.h"

static struct objects *objects;
static struct leading leading;
static char *folder;

static int set_up(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    char root[TEST_PATH_BYTES];
    const struct objects_options options = {
        .root = test_path(root, test_temp_dir(), "store"), .deadline_us = CADRE_US_PER_S};
    leading = (struct leading){.until_us = 0};
    assert_ok(objects_open(&options, &objects, &error), &error);
    folder = objects_path(objects, "jobs/1/files/0");
    assert_non_null(folder);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    lists_go_on();
    objects_close(objects);
    free(folder);
    return 0;
}

static cadre_status settle(
    uint64_t term, uint64_t number, const char *bytes, char **ret_text, struct cadre_error *error)
{
    size_t size = 0;
    const struct settled_put put = {
        .folder = folder, .term = term, .number = number, .bytes = bytes, .size = strlen(bytes)};
    *ret_text = NULL;
    return settled_objects_settle(objects, &leading, &put, ret_text, &size, error);
}

static void assert_settled(uint64_t term, uint64_t number, const char *bytes, const char *wanted)
{
    struct cadre_error error = {0};
    CADRE_FREE_AT_EXIT char *text = NULL;
    assert_ok(settle(term, number, bytes, &text, &error), &error);
    assert_string_equal(text, wanted);
}

/* A put that was on its way for long. */
static void arrives(const char *name, const char *bytes)
{
    struct cadre_error error = {0};
    CADRE_FREE_AT_EXIT char *path = storage_join(folder, name);
    assert_ok(objects_put(objects, path, bytes, strlen(bytes), &error), &error);
}

static void the_first_one_counts(void **state)
{
    (void)state;
    assert_settled(3, 7, "first", "first");
    assert_settled(3, 8, "second", "first");
    assert_settled(4, 1, "of the next leader", "first");
}

static void what_arrives_late_does_not(void **state)
{
    (void)state;
    assert_settled(0x10, 7, "it", "it");
    arrives("0000000000000009-00000000000000ff", "of a leader before");
    assert_settled(0x10, 8, "x", "it");
    arrives("0000000000000010-0000000000000006", "of an attempt before");
    assert_settled(0x10, 9, "x", "it");
    assert_settled(0x11, 1, "x", "it"); /* so it is for those that lead later */
}

static void what_arrived_in_time_does(void **state)
{
    (void)state;
    arrives("0000000000000002-0000000000000001", "not answered");
    assert_settled(3, 1, "x", "not answered");
}

/* A list of before: the one that was answered is found by its name. */
static void a_list_may_be_old(void **state)
{
    (void)state;
    lists_stop(objects, folder);
    assert_settled(3, 7, "it", "it");
    assert_settled(4, 1, "of the next leader", "it");
    lists_go_on();
    assert_settled(5, 1, "of a later one", "it");
}

static void what_was_copied_counts(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    char *text = NULL;
    size_t size = 0;
    assert_error(settled_objects_get(objects, folder, &text, &size, &error), CADRE_NOT_FOUND,
        &error, "nothing is settled");
    assert_ok(settled_objects_put_first(objects, folder, "copied", 6, &error), &error);
    assert_settled(1, 1, "x", "copied");
    assert_ok(settled_objects_get(objects, folder, &text, &size, &error), &error);
    assert_string_equal(text, "copied");
    free(text);
}

static void other_objects_are_none(void **state)
{
    (void)state;
    static const char *const names[] = {"0", "zz", "00000000000000ff-1", "F000000000000000-0",
        "000000000000000f-000000000000000F", "ffffffffffffffff-ffffffffffffffff.new",
        "ffffffffffffffff-ffffffffffffffff/below"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        arrives(names[i], "other");
    }
    assert_settled(1, 1, "it", "it");
}

static void one_that_was_replaced_answers_nothing(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    char *text = NULL;
    assert_settled(1, 1, "it", "it");
    leading_set(&leading, 0);
    assert_error(settle(1, 2, "x", &text, &error), CADRE_UNAVAILABLE, &error, "may not lead");
    assert_null(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_first_one_counts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_arrives_late_does_not, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_arrived_in_time_does, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_list_may_be_old, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_was_copied_counts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(other_objects_are_none, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_that_was_replaced_answers_nothing, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("settled objects", tests, NULL, NULL);
}
