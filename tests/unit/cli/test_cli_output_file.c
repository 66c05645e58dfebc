/* SPDX-License-Identifier: Apache-2.0
 * Files whose names others chose go into the folder, or nowhere. */
#include "tests/lib/test.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "coordinator/cli/output_file.h"

static int root_fd;
static char root[TEST_PATH_BYTES];

static int open_root(void **state)
{
    (void)state;
    snprintf(root, sizeof root, "%s", test_temp_dir());
    root_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return root_fd >= 0 ? 0 : -1;
}

static int close_root(void **state)
{
    (void)state;
    return close(root_fd);
}

static cadre_status put(const char *path, const char *text, bool force, struct cadre_error *error)
{
    struct output_file output_file;
    CADRE_TRY(output_file_open(root_fd, path, force, &output_file, error));
    assert_int_equal(write(output_file.fd, text, strlen(text)), (ssize_t)strlen(text));
    cadre_status status = output_file_commit(&output_file, path, force, error);
    output_file_close(&output_file);
    return status;
}

static void assert_content(const char *path, const char *wanted)
{
    char full[2 * TEST_PATH_BYTES];
    char got[64] = {0};
    snprintf(full, sizeof full, "%s/%s", root, path);
    int fd = open(full, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_true(read(fd, got, sizeof got - 1) >= 0);
    assert_string_equal(got, wanted);
    close(fd);
}

static void files_and_their_folders_are_made(void **state)
{
    (void)state;
    struct cadre_error error;
    assert_ok(put("0/a/b", "one", false, &error), &error);
    assert_content("0/a/b", "one");
    assert_error(put("0/a/b", "two", false, &error), CADRE_ALREADY_EXISTS, &error, "--force");
    assert_content("0/a/b", "one");
    assert_ok(put("0/a/b", "two", true, &error), &error);
    assert_content("0/a/b", "two");
}

static void names_that_lead_elsewhere_are_refused(void **state)
{
    (void)state;
    struct cadre_error error;
    static const char *const names[] = {"../x", "/x", "a/../../x", "", "a//b", "a/.", "x\ny"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        assert_error(put(names[i], "x", true, &error), CADRE_INVALID_ARGUMENT, &error, "name");
    }
}

static void links_are_not_followed(void **state)
{
    (void)state;
    struct cadre_error error;
    char path[2 * TEST_PATH_BYTES];
    const char *outside = test_temp_dir();
    snprintf(path, sizeof path, "%s/out", root);
    assert_int_equal(symlink(outside, path), 0);
    assert_int_not_equal(put("out/x", "x", true, &error), CADRE_OK);
    snprintf(path, sizeof path, "%s/victim", outside);
    test_write(path, "mine");
    assert_int_equal(symlinkat(path, root_fd, "link"), 0);
    assert_error(put("link", "x", false, &error), CADRE_ALREADY_EXISTS, &error, "link");
    assert_ok(put("link", "theirs", true, &error), &error); /* replaces the link itself */
    assert_content("link", "theirs");
    char got[8] = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_int_equal(read(fd, got, sizeof got), 4);
    assert_string_equal(got, "mine");
    close(fd);
}

static int count_entries(const char *path)
{
    DIR *folder = opendir(path);
    assert_non_null(folder);
    int count = 0;
    while (readdir(folder) != NULL) {
        count++;
    }
    closedir(folder);
    return count - 2; /* "." and ".." */
}

static void give_up(const char *path)
{
    struct cadre_error error;
    struct output_file output_file;
    assert_ok(output_file_open(root_fd, path, false, &output_file, &error), &error);
    output_file_close(&output_file);
}

static void folders_of_what_is_not_committed_are_removed(void **state)
{
    (void)state;
    struct cadre_error error;
    char path[2 * TEST_PATH_BYTES];
    give_up("0/a/b/file");
    assert_int_equal(count_entries(root), 0);
    assert_ok(put("0/a/kept", "x", false, &error), &error);
    give_up("0/a/b/c/file");
    give_up("0/a/file");
    snprintf(path, sizeof path, "%s/0/a", root);
    assert_int_equal(count_entries(path), 1);
    assert_int_equal(mkdirat(root_fd, "1", 0755), 0); /* one that was empty before */
    give_up("1/file");
    give_up("1/deeper/file");
    assert_int_equal(count_entries(root), 2);
    snprintf(path, sizeof path, "%s/1", root);
    assert_int_equal(count_entries(path), 0);
}

static void a_folder_that_another_writes_to_stays(void **state)
{
    (void)state;
    struct cadre_error error;
    struct output_file output_file;
    char path[2 * TEST_PATH_BYTES];
    assert_ok(output_file_open(root_fd, "0/a/file", false, &output_file, &error), &error);
    snprintf(path, sizeof path, "%s/0/other", root);
    test_write(path, "theirs");
    output_file_close(&output_file);
    assert_content("0/other", "theirs");
    snprintf(path, sizeof path, "%s/0", root);
    assert_int_equal(count_entries(path), 1);
}

static void the_folder_of_all_goes_when_nothing_came(void **state)
{
    (void)state;
    struct cadre_error error;
    struct output_folder folder;
    struct output_file output_file;
    char path[2 * TEST_PATH_BYTES];
    static const char *const ends[] = {"a", "a/b/c", "a//b/", "a/./b"};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", root, ends[i]);
        assert_ok(output_folder_open(path, &folder, &error), &error);
        assert_int_equal(count_entries(path), 0);
        output_folder_close(&folder);
        output_folder_close(&folder);
        assert_int_equal(count_entries(root), 0);
    }
    snprintf(path, sizeof path, "%s/a/b", root);
    assert_ok(output_folder_open(path, &folder, &error), &error);
    assert_ok(output_file_open(folder.fd, "0/x", false, &output_file, &error), &error);
    assert_ok(output_file_commit(&output_file, "0/x", false, &error), &error);
    output_file_close(&output_file);
    output_folder_close(&folder);
    assert_content("a/b/0/x", "");
    assert_int_equal(mkdirat(root_fd, "empty", 0755), 0); /* it was there: it stays */
    snprintf(path, sizeof path, "%s/empty", root);
    assert_ok(output_folder_open(path, &folder, &error), &error);
    output_folder_close(&folder);
    assert_int_equal(count_entries(path), 0);
}

static void a_folder_that_cannot_be_made_leaves_nothing(void **state)
{
    (void)state;
    struct cadre_error error;
    struct output_folder folder;
    char path[2 * TEST_PATH_BYTES + 300];
    char name[300];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    snprintf(path, sizeof path, "%s/a/%s", root, name); /* no file system has such a name */
    assert_int_not_equal(output_folder_open(path, &folder, &error), CADRE_OK);
    assert_int_equal(count_entries(root), 0);
    assert_int_equal(folder.fd, -1);
}

static void what_is_not_committed_leaves_nothing(void **state)
{
    (void)state;
    struct cadre_error error;
    struct output_file output_file;
    assert_ok(output_file_open(root_fd, "x", false, &output_file, &error), &error);
    output_file_close(&output_file);
    output_file_close(&output_file);
    assert_int_equal(count_entries(root), 0);
    assert_ok(put("folder/x", "x", false, &error), &error);
    assert_int_not_equal(put("folder", "x", true, &error), CADRE_OK);
    assert_int_not_equal(put("folder/x/y", "x", true, &error), CADRE_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(files_and_their_folders_are_made, open_root, close_root),
        cmocka_unit_test_setup_teardown(
            names_that_lead_elsewhere_are_refused, open_root, close_root),
        cmocka_unit_test_setup_teardown(links_are_not_followed, open_root, close_root),
        cmocka_unit_test_setup_teardown(
            what_is_not_committed_leaves_nothing, open_root, close_root),
        cmocka_unit_test_setup_teardown(
            folders_of_what_is_not_committed_are_removed, open_root, close_root),
        cmocka_unit_test_setup_teardown(
            a_folder_that_another_writes_to_stays, open_root, close_root),
        cmocka_unit_test_setup_teardown(
            the_folder_of_all_goes_when_nothing_came, open_root, close_root),
        cmocka_unit_test_setup_teardown(
            a_folder_that_cannot_be_made_leaves_nothing, open_root, close_root),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
