/* SPDX-License-Identifier: Apache-2.0
 * Whether a folder of contents is the one that the coordinators of a cluster share. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/daemon/shared/contents_folder.h"
#include "coordinator/daemon/shared/nonce_file.h"
#include "tests/lib/test.h"

static const struct log_nonce ours = {.high = 1, .low = 0xabc}, theirs = {.high = 1, .low = 2};

static void new_folder(char path[TEST_PATH_BYTES])
{
    test_path(path, test_temp_dir(), "contents.XXXXXX");
    assert_non_null(mkdtemp(path));
}

static void assert_refused(const char *folder, const char *text, const char *why)
{
    struct cadre_error error;
    bool named = false;
    assert_int_equal(
        contents_folder_check(folder, ours, text, &named, &error), CADRE_FAILED_PRECONDITION);
    assert_true(named);
    assert_non_null(strstr(error.text, folder));
    assert_non_null(strstr(error.text, why));
    assert_non_null(strstr(error.text, text + strlen(text) - 33)); /* the line to write */
}

static void one_folder_is_shared(void **state)
{
    (void)state;
    char shared[TEST_PATH_BYTES], other[TEST_PATH_BYTES];
    char text[CONTENTS_FOLDER_TEXT_BYTES], again[CONTENTS_FOLDER_TEXT_BYTES];
    struct cadre_error error;
    struct log_nonce drawn;
    bool named = true;
    new_folder(shared);
    new_folder(other);
    assert_ok(contents_folder_check(shared, ours, "", &named, &error), &error);
    assert_false(named);
    assert_ok(contents_folder_make(shared, ours, text, &error), &error);
    assert_ok(contents_folder_make(shared, ours, again, &error), &error);
    assert_string_equal(text, again);
    assert_ok(contents_folder_check(shared, ours, text, &named, &error), &error);
    assert_true(named);
    assert_refused(other, text, "is missing");
    assert_ok(nonce_file_read(other, NONCE_FILE_FOLDER, &drawn, &error), &error);
    assert_true(drawn.high == 0 && drawn.low == 0); /* nothing is written there */
    assert_ok(contents_folder_make(other, ours, again, &error), &error);
    assert_string_not_equal(text, again);
    assert_refused(other, text, "has another number");
    assert_refused(shared, again, "has another number");
}

/* What an operator writes there, as the sentence says. */
static void a_copy_without_the_file_is_mended(void **state)
{
    (void)state;
    char shared[TEST_PATH_BYTES], copy[TEST_PATH_BYTES], file[TEST_PATH_BYTES];
    char text[CONTENTS_FOLDER_TEXT_BYTES];
    struct cadre_error error;
    bool named = false;
    new_folder(shared);
    new_folder(copy);
    assert_ok(contents_folder_make(shared, ours, text, &error), &error);
    test_path(file, copy, NONCE_FILE_FOLDER);
    FILE *out = fopen(file, "w");
    assert_non_null(out);
    fprintf(out, "%s\n", text + strlen(text) - 33);
    fclose(out);
    assert_ok(contents_folder_check(copy, ours, text, &named, &error), &error);
    assert_true(named);
}

/* The ledger of another cluster is refused elsewhere, with its own sentence. */
static void what_another_cluster_says_does_not_count(void **state)
{
    (void)state;
    char shared[TEST_PATH_BYTES], other[TEST_PATH_BYTES], text[CONTENTS_FOLDER_TEXT_BYTES];
    struct cadre_error error;
    new_folder(shared);
    new_folder(other);
    assert_ok(contents_folder_make(shared, theirs, text, &error), &error);
    const char *const texts[] = {text, "nothing", "1 2 3", ""};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        bool named = true;
        assert_ok(contents_folder_check(other, ours, texts[i], &named, &error), &error);
        assert_false(named);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_folder_is_shared),
        cmocka_unit_test(a_copy_without_the_file_is_mended),
        cmocka_unit_test(what_another_cluster_says_does_not_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
