/* SPDX-License-Identifier: Apache-2.0
 * The newest whole checkpoint of a folder, out of files that are damaged in each way that files can
 * be. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/files.h"
#include "common/base/sha256.h"
#include "common/checkpoint/choose.h"
#include "tests/lib/test.h"

static const char *folder; /* of the test that runs */

#define BLOCK_BYTES 8
#define FILE_BYTES  (2 * BLOCK_BYTES)

static void write_file(const char *name, const void *bytes, size_t size)
{
    char path[TEST_PATH_BYTES];
    struct cadre_error error = {0};
    test_path(path, folder, name);
    assert_ok(file_write_atomic(path, bytes, size, 0644, &error), &error);
}

static void hash_of(const char *bytes, size_t size, char ret_hex[SHA256_HEX_BYTES])
{
    struct sha256 hash;
    assert_int_equal(sha256_of(bytes, size, &hash, NULL), CADRE_OK);
    sha256_hex(&hash, ret_hex);
}

/* Tensors of two blocks, and their manifest with `position`. */
static void write_checkpoint_of(unsigned step, unsigned position)
{
    char name[64];
    char bytes[FILE_BYTES + 16];
    char text[1024];
    char hashes[3][SHA256_HEX_BYTES];
    snprintf(bytes, sizeof bytes, "block 0 of %04u.", step);
    hash_of(bytes, FILE_BYTES, hashes[0]);
    hash_of(bytes, BLOCK_BYTES, hashes[1]);
    hash_of(bytes + BLOCK_BYTES, BLOCK_BYTES, hashes[2]);
    int length = snprintf(text, sizeof text,
        "{\"format\": \"cadre-checkpoint\", \"version\": 1, \"position\": %u,"
        " \"file\": {\"name\": \"checkpoint-%u.safetensors\", \"bytes\": 16, \"sha256\": \"%s\"},"
        " \"blocks\": [{\"offset\": 0, \"bytes\": 8, \"sha256\": \"%s\"},"
        " {\"offset\": 8, \"bytes\": 8, \"sha256\": \"%s\"}]}",
        position, step, hashes[0], hashes[1], hashes[2]);
    snprintf(name, sizeof name, "checkpoint-%u.safetensors", step);
    write_file(name, bytes, FILE_BYTES);
    snprintf(name, sizeof name, "checkpoint-%u.json", step);
    write_file(name, text, (size_t)length);
}

static void flip(const char *name, off_t at)
{
    char path[TEST_PATH_BYTES];
    char byte;
    CADRE_CLOSE_AT_EXIT int fd = open(test_path(path, folder, name), O_RDWR | O_CLOEXEC);
    assert_int_equal(pread(fd, &byte, 1, at), 1);
    byte ^= 1;
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
}

static void drop(const char *name)
{
    char path[TEST_PATH_BYTES];
    assert_int_equal(unlink(test_path(path, folder, name)), 0);
}

static int make_folder(void **state)
{
    (void)state;
    folder = test_temp_dir();
    return 0;
}

/* Those of the steps 9, 20 and 100 are whole. */
static void three(void)
{
    write_checkpoint_of(9, 9);
    write_checkpoint_of(20, 20);
    write_checkpoint_of(100, 100);
}

static void assert_chosen(unsigned step, const char *note)
{
    struct checkpoint_choice choice;
    struct cadre_error error = {0};
    char expected[LIMIT_TEXT_BYTES] = "";
    char path[TEST_PATH_BYTES];
    char name[64];
    assert_ok(checkpoint_choose(folder, &choice, &error), &error);
    snprintf(name, sizeof name, "checkpoint-%u.json", step);
    assert_string_equal(choice.path, test_path(path, folder, name));
    assert_int_equal(choice.position, step);
    if (note[0] != '\0') {
        snprintf(expected, sizeof expected, "the checkpoint of step 100 in %s is damaged (%s",
            folder, note);
    }
    assert_string_equal(choice.note, expected);
    checkpoint_choice_free(&choice);
}

static void the_newest_is_taken(void **state)
{
    (void)state;
    three();
    write_file("checkpoint-200.json.bak", "mine", 4);
    write_file("checkpoint-0300.json", "mine", 4);
    assert_chosen(100, "");
}

static void a_block_is_damaged(void **state)
{
    (void)state;
    three();
    flip("checkpoint-100.safetensors", 11);
    assert_chosen(20, "block 2 of 2 of checkpoint-100.safetensors does not have its hash): that of "
                      "step 20 is taken");
}

static void a_file_is_truncated(void **state)
{
    (void)state;
    three();
    write_file("checkpoint-100.safetensors", "block 0 ", 8);
    assert_chosen(20, "checkpoint-100.safetensors has 8 bytes, not the 16 of its manifest): that "
                      "of step 20 is taken");
}

static void a_file_has_grown(void **state)
{
    (void)state;
    three();
    write_file("checkpoint-100.safetensors", "block 0 of 0100. and more", 25);
    assert_chosen(20, "checkpoint-100.safetensors has 25 bytes, not the 16 of its manifest): that "
                      "of step 20 is taken");
}

/* Whether it is whole is not known: an older one would undo steps for nothing. */
static void a_file_that_cannot_be_read_is_not_damaged(void **state)
{
    (void)state;
    char path[TEST_PATH_BYTES];
    struct checkpoint_choice choice;
    struct cadre_error error = {0};
    three();
    drop("checkpoint-100.safetensors");
    assert_int_equal(mkdir(test_path(path, folder, "checkpoint-100.safetensors"), 0755), 0);
    cadre_status status = checkpoint_choose(folder, &choice, &error);
    assert_true(status != CADRE_OK && status != CADRE_DATA_LOSS);
    assert_non_null(strstr(error.text, "the checkpoint of step 100 in "));
    assert_int_equal(rmdir(path), 0);
}

static void a_file_is_missing(void **state)
{
    (void)state;
    three();
    drop("checkpoint-100.json");
    assert_chosen(20, "checkpoint-100.json is missing): that of step 20 is taken");
    three();
    drop("checkpoint-100.safetensors");
    assert_chosen(20, "checkpoint-100.safetensors is missing): that of step 20 is taken");
}

static void a_manifest_is_damaged(void **state)
{
    (void)state;
    three();
    flip("checkpoint-100.json", 0);
    struct checkpoint_choice choice;
    struct cadre_error error = {0};
    assert_ok(checkpoint_choose(folder, &choice, &error), &error);
    assert_int_equal(choice.position, 20);
    assert_non_null(strstr(choice.note, "is damaged (checkpoint-100.json: this is no manifest"));
    checkpoint_choice_free(&choice);
    write_checkpoint_of(100, 101);
    assert_chosen(20, "checkpoint-100.json is of step 101): that of step 20 is taken");
    write_checkpoint_of(100, 99);
    assert_chosen(20, "checkpoint-100.json is of step 99): that of step 20 is taken");
}

static void the_two_newest_are_damaged(void **state)
{
    (void)state;
    three();
    flip("checkpoint-100.safetensors", 0);
    drop("checkpoint-20.json");
    assert_chosen(9, "block 1 of 2 of checkpoint-100.safetensors does not have its hash), and so "
                     "are 1 before it: that of step 9 is taken");
}

static void assert_refused(cadre_status status, const char *text)
{
    struct checkpoint_choice choice;
    struct cadre_error error = {0};
    assert_error(checkpoint_choose(folder, &choice, &error), status, &error, text);
    assert_null(choice.path);
}

static void none_is_whole(void **state)
{
    (void)state;
    three();
    flip("checkpoint-9.safetensors", 0);
    flip("checkpoint-20.safetensors", 0);
    flip("checkpoint-100.safetensors", 0);
    assert_refused(CADRE_DATA_LOSS,
        "is whole: that of step 100 is damaged (block 1 of 2 of checkpoint-100.safetensors does "
        "not have its hash), and so are all before it");
    drop("checkpoint-9.safetensors");
    drop("checkpoint-9.json");
    drop("checkpoint-20.safetensors");
    drop("checkpoint-20.json");
    assert_refused(CADRE_DATA_LOSS, "does not have its hash)");
}

static void nothing_is_there(void **state)
{
    (void)state;
    struct checkpoint_choice choice;
    struct cadre_error error = {0};
    char path[TEST_PATH_BYTES];
    test_path(path, folder, "empty");
    assert_int_equal(mkdir(path, 0755), 0);
    assert_true(checkpoint_is_folder(path));
    assert_error(checkpoint_choose(path, &choice, &error), CADRE_NOT_FOUND, &error,
        "empty holds no checkpoint (checkpoint-STEP.json and .safetensors)");
    assert_int_equal(rmdir(path), 0);
    assert_false(checkpoint_is_folder(path));
    assert_error(checkpoint_choose(path, &choice, &error), CADRE_NOT_FOUND, &error,
        "cannot read the folder");
}

static void another_one_is_named(void **state)
{
    (void)state;
    char path[TEST_PATH_BYTES];
    char text[1024];
    struct cadre_error error = {0};
    three();
    flip("checkpoint-100.safetensors", 0);
    test_path(path, folder, "checkpoint-100.json");
    cadre_error_set(&error, CADRE_DATA_LOSS, "it is damaged");
    assert_int_equal(checkpoint_suggest_other(path, &error), CADRE_DATA_LOSS);
    snprintf(text, sizeof text,
        "it is damaged; the newest whole one beside it is %s/checkpoint-20.json: name that, or the "
        "folder %s",
        folder, folder);
    assert_string_equal(error.text, text);
    cadre_error_set(&error, CADRE_PERMISSION_DENIED, "no");
    assert_int_equal(checkpoint_suggest_other(path, &error), CADRE_PERMISSION_DENIED);
    assert_string_equal(error.text, "no");
    three();
    cadre_error_set(&error, CADRE_DATA_LOSS, "it is damaged");
    checkpoint_suggest_other(path, &error); /* it is not the one to be named */
    assert_string_equal(error.text, "it is damaged");
}

static void assert_checked(const struct sha256 *hash, cadre_status status, const char *text)
{
    char path[TEST_PATH_BYTES];
    struct cadre_error error = {0};
    struct checkpoint_counts counts = {0};
    test_path(path, folder, "checkpoint-100.json");
    if (status == CADRE_OK) {
        assert_ok(checkpoint_check(NULL, path, hash->bytes, &counts, &error), &error);
        assert_true(counts.whole_bytes > 0);
        assert_int_equal(counts.done_bytes, counts.whole_bytes);
    } else {
        assert_error(
            checkpoint_check(NULL, path, hash->bytes, &counts, &error), status, &error, text);
    }
}

/* What is missing altogether may be in a folder that is not mounted. */
static void one_is_checked(void **state)
{
    (void)state;
    char path[TEST_PATH_BYTES];
    struct cadre_error error = {0};
    struct sha256 hash;
    struct sha256 other = {{1}};
    three();
    CADRE_CLOSE_AT_EXIT int fd =
        open(test_path(path, folder, "checkpoint-100.json"), O_RDONLY | O_CLOEXEC);
    assert_ok(sha256_of_fd(fd, &hash, NULL, &error), &error);
    assert_checked(&hash, CADRE_OK, "");
    assert_checked(
        &other, CADRE_DATA_LOSS, "the manifest checkpoint-100.json is not the one that was");
    flip("checkpoint-100.safetensors", 0);
    assert_checked(&hash, CADRE_DATA_LOSS, "block 1 of 2 of checkpoint-100.safetensors");
    drop("checkpoint-100.safetensors");
    assert_checked(&hash, CADRE_DATA_LOSS, "checkpoint-100.safetensors is missing");
    drop("checkpoint-100.json");
    assert_checked(&hash, CADRE_NOT_FOUND, "checkpoint-100.json is missing");
    write_checkpoint_of(100, 100);
    drop("checkpoint-100.json");
    assert_checked(&hash, CADRE_DATA_LOSS, "checkpoint-100.json is missing");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup(the_newest_is_taken, make_folder),
        cmocka_unit_test_setup(a_block_is_damaged, make_folder),
        cmocka_unit_test_setup(a_file_is_truncated, make_folder),
        cmocka_unit_test_setup(a_file_has_grown, make_folder),
        cmocka_unit_test_setup(a_file_that_cannot_be_read_is_not_damaged, make_folder),
        cmocka_unit_test_setup(a_file_is_missing, make_folder),
        cmocka_unit_test_setup(a_manifest_is_damaged, make_folder),
        cmocka_unit_test_setup(the_two_newest_are_damaged, make_folder),
        cmocka_unit_test_setup(none_is_whole, make_folder),
        cmocka_unit_test_setup(nothing_is_there, make_folder),
        cmocka_unit_test_setup(another_one_is_named, make_folder),
        cmocka_unit_test_setup(one_is_checked, make_folder)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
