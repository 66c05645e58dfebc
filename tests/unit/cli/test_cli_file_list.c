/* SPDX-License-Identifier: Apache-2.0
 * What --file stands for: files, folders, patterns; what is refused, with which sentence. */
#include "coordinator/cli/file_list.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/fault.h"
#include "common/model/limits.h"
#include "tests/lib/test.h"

static struct file_list list;
static struct cadre_error error;

/* A working folder with a few files in it. */
static int make_files(void **state)
{
    (void)state;
    static const char *const folders[] = {
        "data", "data/deep", "data/deep/er", "empty", "empty/too"};
    static const char *const files[] = {"train.bin", "data/b.bin", "data/a.bin", "data/notes.txt",
        "data/.hidden", "data/deep/er/c.bin", "a[1].bin"};
    if (chdir(test_temp_dir()) != 0) {
        return -1;
    }
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        assert_int_equal(mkdir(folders[i], 0755), 0);
    }
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        test_write(files[i], files[i]);
    }
    assert_int_equal(symlink("../train.bin", "data/link.bin"), 0);
    return 0;
}

static int clear(void **state)
{
    (void)state;
    file_list_free(&list);
    error = (struct cadre_error){0};
    return 0;
}

/* "PATH=NAME PATH=NAME ...", in order. */
static void assert_list(const char *wanted)
{
    char seen[4096] = "";
    size_t used = 0;
    for (size_t i = 0; i < list.count; i++) {
        used += (size_t)snprintf(seen + used, sizeof seen - used, "%s%s=%s", i > 0 ? " " : "",
            list.files[i].path, list.files[i].name);
        assert_true(used < sizeof seen);
    }
    assert_string_equal(seen, wanted);
    file_list_free(&list);
}

static void assert_added(const char *path, const char *name, const char *wanted)
{
    assert_ok(file_list_add(&list, path, name, &error), &error);
    assert_list(wanted);
}

static void assert_refused(
    const char *path, const char *name, cadre_status status, const char *sentence)
{
    assert_error(file_list_add(&list, path, name, &error), status, &error, sentence);
    file_list_free(&list);
}

static void a_file_has_its_last_part_or_a_name(void **state)
{
    (void)state;
    assert_added("train.bin", NULL, "train.bin=train.bin");
    assert_added("data/a.bin", NULL, "data/a.bin=a.bin");
    assert_added("data/a.bin", "x/y.bin", "data/a.bin=x/y.bin");
    assert_added("a[1].bin", NULL, "a[1].bin=a[1].bin"); /* it exists, so it is no pattern */
}

#define DEEP "data/deep/er/c.bin"

static void a_folder_keeps_what_is_in_it(void **state)
{
    (void)state;
    assert_added("data", NULL,
        "data/.hidden=data/.hidden data/a.bin=data/a.bin data/b.bin=data/b.bin " DEEP "=" DEEP
        " data/link.bin=data/link.bin data/notes.txt=data/notes.txt");
    assert_added("data/deep/", NULL, "data/deep/er/c.bin=deep/er/c.bin");
    assert_added("data/deep", "train/set/", DEEP "=train/set/er/c.bin");
    assert_added("data/deep", ".", DEEP "=er/c.bin");
    assert_added("./data/deep/.", NULL, "./data/deep/./er/c.bin=er/c.bin");
}

static void a_pattern_is_each_match(void **state)
{
    (void)state;
    assert_added("data/*.bin", NULL, "data/a.bin=a.bin data/b.bin=b.bin data/link.bin=link.bin");
    assert_added("data/[ab].bin", "x", "data/a.bin=x/a.bin data/b.bin=x/b.bin");
    assert_added("data/d*", NULL, DEEP "=deep/er/c.bin");
    assert_added("data/d*", "x", DEEP "=x/deep/er/c.bin");
    assert_added("data/.h*", NULL, "data/.hidden=.hidden");
    assert_ok(file_list_add(&list, "data/a.bin", NULL, &error), &error);
    assert_added("data/b.*", NULL, "data/a.bin=a.bin data/b.bin=b.bin");
}

static void what_is_not_there_is_named(void **state)
{
    (void)state;
    assert_refused("absent", NULL, CADRE_NOT_FOUND, "absent: No such file");
    assert_refused("trian.bin", NULL, CADRE_NOT_FOUND, "did you mean train.bin?");
    assert_refused("data/*.npy", NULL, CADRE_NOT_FOUND, "no file matches data/*.npy");
    assert_refused("empty", NULL, CADRE_NOT_FOUND, "the folder empty has no files");
    assert_refused("empt*", NULL, CADRE_NOT_FOUND, "the folder empty has no files");
    assert_refused("data/**/c.bin", NULL, CADRE_INVALID_ARGUMENT, "give the folder");
    assert_refused("..", NULL, CADRE_INVALID_ARGUMENT, "under which name? Write ..:NAME");
    assert_refused("/", NULL, CADRE_INVALID_ARGUMENT, "under which name? Write /:NAME");
}

static void an_object_is_not_looked_at(void **state)
{
    (void)state;
    assert_added("s3://bucket/sets/a*[1].bin", NULL, "s3://bucket/sets/a*[1].bin=a*[1].bin");
    assert_added("s3://bucket/a", "x/y", "s3://bucket/a=x/y");
    assert_added("https://host:1/a/b.bin?c=/d", NULL, "https://host:1/a/b.bin?c=/d=b.bin");
    assert_refused("s3://bucket/", NULL, CADRE_INVALID_ARGUMENT, "s3://bucket/ has no key");
    assert_refused("s3://bucket/a/", NULL, CADRE_INVALID_ARGUMENT, "names a folder");
    assert_refused(
        "https://host?secret", NULL, CADRE_INVALID_ARGUMENT, "https://host names no host and path");
    assert_null(strstr(error.text, "secret"));
}

static void a_name_follows_the_last_colon(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *name;
    } rows[] = {{"a", NULL}, {"a:b", "b"}, {"a:b:c", "c"}, {"a:", ""}, {"s3://bucket/a", NULL},
        {"s3://bucket/a:b/c", "b/c"}, {"https://host:80/a", NULL}, {"https://host:80/a:b", "b"},
        {"https://host:80", NULL}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *name = file_list_name_of(rows[i].text);
        if (rows[i].name == NULL) {
            assert_null(name);
        } else {
            assert_string_equal(name, rows[i].name);
        }
    }
}

static void odd_files_are_refused(void **state)
{
    (void)state;
    assert_int_equal(mkdir("odd", 0755), 0);
    assert_int_equal(mkfifo("odd/pipe", 0600), 0);
    assert_refused("odd", NULL, CADRE_INVALID_ARGUMENT, "odd/pipe is neither a file nor a folder");
    assert_refused("odd/p*", NULL, CADRE_INVALID_ARGUMENT, "odd/pipe is neither");
    assert_int_equal(unlink("odd/pipe"), 0);
    assert_int_equal(symlink("nowhere", "odd/broken"), 0);
    assert_refused("odd", NULL, CADRE_NOT_FOUND, "odd/broken: No such file");
    assert_int_equal(unlink("odd/broken"), 0);
    assert_int_equal(symlink("..", "odd/up"), 0);
    assert_refused("odd", NULL, CADRE_INVALID_ARGUMENT, "is a link to a folder that it is in");
    assert_int_equal(unlink("odd/up"), 0);
    assert_int_equal(symlink("../data/deep", "odd/deep"), 0);
    assert_added("odd", NULL, "odd/deep/er/c.bin=odd/deep/er/c.bin");
}

/* Files of a job: so many, and in one folder so many bytes. */
static void there_are_bounds(void **state)
{
    (void)state;
    char path[64];
    assert_int_equal(mkdir("many", 0755), 0);
    for (unsigned i = 0; i <= LIMIT_FILES_PER_JOB; i++) {
        snprintf(path, sizeof path, "many/%u", i);
        int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
        assert_true(fd >= 0);
        close(fd);
    }
    assert_refused("many", NULL, CADRE_RESOURCE_EXHAUSTED, "many has more than 4096 entries");
    assert_refused("many/*", NULL, CADRE_RESOURCE_EXHAUSTED, "many/*: with its files the job has");
    assert_int_equal(unlink("many/7"), 0);
    assert_ok(file_list_add(&list, "many", NULL, &error), &error);
    assert_int_equal(list.count, LIMIT_FILES_PER_JOB);
    assert_refused(
        "train.bin", NULL, CADRE_RESOURCE_EXHAUSTED, "train.bin: with its files the job");
    assert_int_equal(mkdir("large", 0755), 0);
    test_write("large/small", "x");
    test_write("large/sparse", "x");
    assert_int_equal(truncate("large/sparse", (off_t)LIMIT_BLOB_BYTES), 0);
    assert_refused("large", NULL, CADRE_RESOURCE_EXHAUSTED, "large: its files have more than");
    assert_refused("large/s*", NULL, CADRE_RESOURCE_EXHAUSTED, "its files have more than");
    assert_added("large/sparse", NULL, "large/sparse=sparse"); /* as much as one file may have */
}

static void folders_in_folders_have_an_end(void **state)
{
    (void)state;
    char path[1024] = "chain";
    for (unsigned i = 0; i < FILE_LIST_DEPTH_MAX; i++) {
        assert_int_equal(mkdir(path, 0755), 0);
        size_t length = strlen(path);
        snprintf(path + length, sizeof path - length, "/d");
    }
    test_write(path, "x");
    assert_ok(file_list_add(&list, "chain", NULL, &error), &error);
    assert_int_equal(list.count, 1);
    file_list_free(&list);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0755), 0);
    assert_refused("chain", NULL, CADRE_RESOURCE_EXHAUSTED, "or more than 64 in each other");
    /* Two links to the next folder in each of twenty: a million ways, and no file. */
    for (unsigned i = 0; i < 20; i++) {
        char target[32];
        snprintf(path, sizeof path, "web%u", i);
        assert_int_equal(mkdir(path, 0755), 0);
        snprintf(target, sizeof target, "../web%u", i + 1);
        for (unsigned link = 0; link < 2 && i < 19; link++) {
            snprintf(path, sizeof path, "web%u/%u", i, link);
            assert_int_equal(symlink(target, path), 0);
        }
    }
    assert_refused("web0", NULL, CADRE_RESOURCE_EXHAUSTED, "web0: more than 16384 folders");
}

/* Each allocation and each read fails once: an error, and what was there before stays usable. */
static void every_call_may_fail(void **state)
{
    (void)state;
    static const char *const entries[][2] = {{"data", NULL}, {"data/*", "x"}, {"train.bin", NULL}};
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        uint64_t failed = 0;
        for (uint64_t nth = 1;; nth++) {
            fault_arm("file_list.", nth);
            cadre_status status = file_list_add(&list, entries[i][0], entries[i][1], &error);
            if (!fault_disarm()) {
                assert_ok(status, &error);
                break;
            }
            assert_int_not_equal(status, CADRE_OK);
            assert_true(error.text[0] != '\0');
            file_list_free(&list);
            failed++;
        }
        assert_true(failed > 0);
        file_list_free(&list);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_file_has_its_last_part_or_a_name, clear),
        cmocka_unit_test_teardown(a_folder_keeps_what_is_in_it, clear),
        cmocka_unit_test_teardown(a_pattern_is_each_match, clear),
        cmocka_unit_test_teardown(what_is_not_there_is_named, clear),
        cmocka_unit_test_teardown(an_object_is_not_looked_at, clear),
        cmocka_unit_test_teardown(a_name_follows_the_last_colon, clear),
        cmocka_unit_test_teardown(odd_files_are_refused, clear),
        cmocka_unit_test_teardown(there_are_bounds, clear),
        cmocka_unit_test_teardown(folders_in_folders_have_an_end, clear),
        cmocka_unit_test_teardown(every_call_may_fail, clear)};
    return cmocka_run_group_tests(tests, make_files, NULL);
}
