/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/near_miss.h"

#include <string.h>
#include <sys/stat.h>

#include "tests/lib/test.h"

static const char *const names[] = {
    "jobs", "job", "get", "--workers", "--max-restarts", "host-a", "3", "12", NULL};

static void assert_near(const char *word, const char *wanted)
{
    const char *near = near_miss_find(word, names);
    if (wanted == NULL) {
        assert_null(near);
    } else {
        assert_non_null(near);
        assert_string_equal(near, wanted);
    }
}

static void a_change_or_two_is_near(void **state)
{
    (void)state;
    assert_near("jobs", "jobs");
    assert_near("jbos", "jobs");
    assert_near("joob", "job");
    assert_near("gte", "get"); /* neighbours that are exchanged are one change */
    assert_near("egt", "get");
    assert_near("--wrokers", "--workers");
    assert_near("--worker", "--workers");
    assert_near("--MAX-RESTARTS", "--max-restarts");
    assert_near("--max_restart", "--max-restarts");
    assert_near("host-b", "host-a");
    assert_near("132", "12");
}

static void the_rest_is_not(void **state)
{
    (void)state;
    static char large[5000];
    memset(large, 'j', sizeof large - 1);
    assert_near("", NULL);
    assert_near("4", NULL); /* nothing in common */
    assert_near("frobnicate", NULL);
    assert_near("teg", NULL);
    assert_near(large, NULL);
    const char *const too_long[] = {large, NULL};
    assert_null(near_miss_find("jjjj", too_long));
    large[NEAR_MISS_BYTES - 1] = '\0';
    assert_near(large, NULL);
    const char *const longest[] = {large, NULL};
    assert_ptr_equal(near_miss_find("jjjj", longest), large);
}

static void the_beginning_of_a_name_is_near(void **state)
{
    (void)state;
    assert_near("--max", "--max-restarts");
    assert_near("--", NULL);
}

static void the_nearest_one_is_found(void **state)
{
    (void)state;
    struct near_miss search;
    near_miss_begin(&search, "digits");
    near_miss_offer(&search, "digits-train");
    assert_string_equal(search.best, "digits-train");
    near_miss_offer(&search, "dgt");
    assert_string_equal(search.best, "digits-train");
    near_miss_offer(&search, "digest");
    assert_string_equal(search.best, "digest");
    near_miss_offer(&search, "digit");
    near_miss_offer(&search, "digest");
    assert_string_equal(search.best, "digit");
}

static void files_beside_a_path(void **state)
{
    (void)state;
    char path[TEST_PATH_BYTES];
    char near[NEAR_MISS_PATH_BYTES];
    char wanted[TEST_PATH_BYTES];
    const char *folder = test_temp_dir();
    test_path(wanted, folder, "digits");
    test_write(wanted, "x");
    test_path(path, folder, "digist");
    assert_true(near_miss_file(path, false, near));
    assert_string_equal(near, wanted);
    assert_false(near_miss_file(path, true, near)); /* it is not executable */
    assert_int_equal(chmod(wanted, 0755), 0);
    assert_true(near_miss_file(path, true, near));
    test_path(path, folder, "absent/digist");
    assert_false(near_miss_file(path, false, near));
    assert_false(near_miss_file("", false, near));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_change_or_two_is_near),
        cmocka_unit_test(the_rest_is_not), cmocka_unit_test(the_beginning_of_a_name_is_near),
        cmocka_unit_test(the_nearest_one_is_found), cmocka_unit_test(files_beside_a_path)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
