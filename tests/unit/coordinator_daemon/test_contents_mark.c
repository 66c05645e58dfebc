/* SPDX-License-Identifier: Apache-2.0
 * Which cluster's a folder of contents is. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "coordinator/daemon/shared/contents_mark.h"
#include "tests/lib/test.h"

static const struct log_nonce first = {.high = 1, .low = 0xabc}, second = {.high = 1, .low = 2};

static char *new_folder(void)
{
    static char path[TEST_PATH_BYTES];
    test_path(path, test_temp_dir(), "contents.XXXXXX");
    assert_non_null(mkdtemp(path));
    return path;
}

static void the_first_one_has_it(void **state)
{
    (void)state;
    const char *folder = new_folder();
    struct cadre_error error;
    struct log_nonce marked = first;
    assert_ok(contents_mark_read(folder, &marked, &error), &error);
    assert_true(log_nonce_equal(marked, (struct log_nonce){0}));
    assert_ok(contents_mark_check(folder, first, &error), &error);
    assert_ok(contents_mark_check_alone(folder, &error), &error);
    for (int i = 0; i < 2; i++) {
        assert_ok(contents_mark_take(folder, first, &error), &error);
        assert_ok(contents_mark_read(folder, &marked, &error), &error);
        assert_true(log_nonce_equal(marked, first));
    }
    assert_int_equal(contents_mark_take(folder, second, &error), CADRE_FAILED_PRECONDITION);
    assert_non_null(strstr(error.text, "is the folder of another cluster, "
                                       "00000000000000010000000000000abc"));
    assert_int_equal(contents_mark_check(folder, second, &error), CADRE_FAILED_PRECONDITION);
    assert_int_equal(contents_mark_check_alone(folder, &error), CADRE_FAILED_PRECONDITION);
    assert_ok(contents_mark_check(folder, first, &error), &error);
}

static void a_damaged_mark_is_said(void **state)
{
    (void)state;
    const char *folder = new_folder();
    char path[TEST_PATH_BYTES];
    struct cadre_error error;
    test_path(path, folder, "cluster");
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    assert_int_equal(write(fd, "nothing", 7), 7);
    close(fd);
    assert_int_equal(contents_mark_take(folder, first, &error), CADRE_DATA_LOSS);
    assert_non_null(strstr(error.text, path));
}

static void a_folder_that_is_not_there(void **state)
{
    (void)state;
    struct cadre_error error;
    assert_int_not_equal(contents_mark_take("/nosuch/folder", first, &error), CADRE_OK);
    assert_non_null(strstr(error.text, "/nosuch/folder"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_one_has_it),
        cmocka_unit_test(a_damaged_mark_is_said),
        cmocka_unit_test(a_folder_that_is_not_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
