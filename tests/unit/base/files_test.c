/* SPDX-License-Identifier: Apache-2.0
 * Files: bounded reads, writes that are whole or absent under every fault, trees, names, locks,
 * hashes. */
#include "common/base/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/fault.h"
#include "common/base/sha256.h"
#include "tests/lib/test.h"

static struct cadre_error error;

static void read_is_bounded(void **state)
{
    (void)state;
    char path[TEST_PATH_BYTES];
    CADRE_FREE_AT_EXIT char *bytes = NULL;
    size_t size = 0;
    const char *folder = test_temp_dir();
    test_write(test_path(path, folder, "a"), "hello");
    assert_ok(file_read(path, 5, &bytes, &size, &error), &error);
    assert_int_equal(size, 5);
    assert_string_equal(bytes, "hello");
    char *none = NULL;
    assert_error(file_read(path, 4, &none, &size, &error), CADRE_OUT_OF_RANGE, &error,
        "larger than the 4 bytes");
    assert_error(
        file_read(folder, 4, &none, &size, &error), CADRE_INVALID_ARGUMENT, &error, "but a folder");
    assert_int_equal(mkfifo(test_path(path, folder, "pipe"), 0600), 0);
    assert_error(file_read(path, 4, &none, &size, &error), CADRE_INVALID_ARGUMENT, &error,
        "a pipe, socket or device");
    assert_error(file_read(test_path(path, folder, "none"), 4, &none, &size, &error),
        CADRE_NOT_FOUND, &error, "No such file");
    assert_ok(file_read("/proc/self/status", 65536, &none, &size, &error), &error);
    assert_true(size > 0);
    free(none);
}

static unsigned entries_in(const char *path)
{
    unsigned count = 0;
    DIR *folder = opendir(path);
    assert_non_null(folder);
    while (readdir(folder) != NULL) {
        count++;
    }
    closedir(folder);
    return count - 2;
}

/* Each call fails once; before the rename the old content remains, and no temporary file is
 * left. */
static void write_is_whole_or_absent(void **state)
{
    (void)state;
    char path[TEST_PATH_BYTES];
    const char *folder = test_temp_dir();
    test_path(path, folder, "state");
    unsigned faults = 0;
    for (uint64_t nth = 1;; nth++) {
        assert_ok(file_write_atomic(path, "old", 3, 0640, &error), &error);
        fault_arm("file.", nth);
        cadre_status status = file_write_atomic(path, "newer", 5, 0640, &error);
        bool met = fault_disarm();
        CADRE_FREE_AT_EXIT char *bytes = NULL;
        size_t size = 0;
        assert_ok(file_read(path, 100, &bytes, &size, &error), &error);
        assert_int_equal(entries_in(folder), 1);
        if (!met) {
            assert_int_equal(status, CADRE_OK);
            assert_string_equal(bytes, "newer");
            break;
        }
        assert_int_not_equal(status, CADRE_OK);
        assert_true(strcmp(bytes, "old") == 0 || (nth == 5 && strcmp(bytes, "newer") == 0));
        faults++;
    }
    assert_int_equal(faults, 5); /* create, write, fsync, rename, fsync of the folder */
    struct stat facts;
    assert_int_equal(stat(path, &facts), 0);
    assert_int_equal(facts.st_mode & 07777, 0640);
    assert_error(file_write_atomic("/proc/none/x", "a", 1, 0600, &error), CADRE_NOT_FOUND, &error,
        "cannot create a file beside /proc/none/x");
}

static void folders_are_made(void **state)
{
    (void)state;
    char path[TEST_PATH_BYTES];
    const char *top = test_temp_dir();
    struct stat facts;
    assert_ok(folder_make(test_path(path, top, "a//b/c/"), 0700, &error), &error);
    assert_int_equal(stat(path, &facts), 0);
    assert_int_equal(facts.st_mode & 07777, 0700);
    assert_ok(folder_make(path, 0755, &error), &error);
    assert_int_equal(stat(path, &facts), 0);
    assert_int_equal(facts.st_mode & 07777, 0700);
    test_write(test_path(path, top, "file"), "x");
    assert_error(folder_make(test_path(path, top, "file/sub"), 0700, &error), CADRE_NOT_FOUND,
        &error, "file");
    assert_error(folder_make("", 0700, &error), CADRE_INVALID_ARGUMENT, &error, "1 to");
}

static void folders_are_durable_or_it_is_reported(void **state)
{
    (void)state;
    char path[TEST_PATH_BYTES];
    const char *top = test_temp_dir();
    for (uint64_t nth = 1; nth <= 3;
         nth++) { /* the parents of a, of a/b, and of a/b that is here */
        fault_arm("file.fsync-folder", 1);
        assert_error(
            folder_make_durable(test_path(path, top, nth == 1 ? "a" : "a/b"), 0700, &error),
            CADRE_DATA_LOSS, &error, "cannot make folder");
        assert_true(fault_disarm());
        assert_int_equal(access(path, F_OK), 0);
    }
    assert_ok(folder_make_durable(test_path(path, top, "a/b/c/d"), 0700, &error), &error);
    assert_int_equal(access(path, F_OK), 0);
}

static void trees_are_removed_without_following_links(void **state)
{
    (void)state;
    char path[TEST_PATH_BYTES];
    char outside[TEST_PATH_BYTES];
    const char *top = test_temp_dir();
    const char *other = test_temp_dir();
    test_write(test_path(outside, other, "keep"), "x");
    assert_ok(folder_make(test_path(path, top, "t/a/b"), 0755, &error), &error);
    test_write(test_path(path, top, "t/a/f"), "x");
    assert_int_equal(symlink(other, test_path(path, top, "t/a/link")), 0);
    assert_int_equal(symlink("nowhere", test_path(path, top, "t/dangling")), 0);
    assert_ok(tree_remove(test_path(path, top, "t"), &error), &error);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(access(outside, F_OK), 0);
    assert_ok(tree_remove(path, &error), &error);
    assert_int_equal(symlink(other, path), 0);
    assert_ok(tree_remove(path, &error), &error); /* the link itself goes */
    assert_int_equal(access(outside, F_OK), 0);
}

/* Deeper than any path can name, and than the recursion goes. */
static void a_deep_tree_is_removed(void **state)
{
    (void)state;
    char path[TEST_PATH_BYTES];
    test_path(path, test_temp_dir(), "deep");
    assert_int_equal(mkdir(path, 0755), 0);
    int fd = open(path, O_RDONLY | O_DIRECTORY);
    for (unsigned i = 0; i < 1500; i++) {
        assert_int_equal(mkdirat(fd, "abcdef", 0755), 0);
        int next = openat(fd, "abcdef", O_RDONLY | O_DIRECTORY);
        close(fd);
        fd = next;
    }
    int file = openat(fd, "file", O_WRONLY | O_CREAT, 0600);
    close(file);
    close(fd);
    assert_ok(tree_remove(path, &error), &error);
    assert_int_equal(access(path, F_OK), -1);
}

static void a_failed_removal_is_reported(void **state)
{
    (void)state;
    char path[TEST_PATH_BYTES];
    const char *top = test_temp_dir();
    assert_ok(folder_make(test_path(path, top, "t/a"), 0755, &error), &error);
    test_write(test_path(path, top, "t/a/f"), "x");
    test_path(path, top, "t");
    for (uint64_t nth = 1;; nth++) {
        fault_arm("tree.", nth);
        cadre_status status = tree_remove(path, &error);
        if (!fault_disarm()) {
            assert_int_equal(status, CADRE_OK);
            break;
        }
        assert_int_not_equal(status, CADRE_OK);
        assert_non_null(strstr(error.text, "cannot remove"));
    }
    assert_int_equal(access(path, F_OK), -1);
}

static void names_from_elsewhere(void **state)
{
    (void)state;
    static const char *const good[] = {
        "a", "data/x.npy", "..a", "a..", ".hidden", "a b", "caf\xc3\xa9"};
    static const struct {
        const char *name;
        const char *fault;
    } bad[] = {{"", "empty"}, {"/etc/passwd", "relative"}, {"..", "not allowed"},
        {"a/../b", "not allowed"}, {"./a", "not allowed"}, {"a//b", "empty part"},
        {"a/", "empty part"}, {"a\nb", "control"}, {"a\x7f", "control"}, {"\xff", "UTF-8"},
        {"a\xc2\x9b", "control"}};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_ok(file_name_check(good[i], &error), &error);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_error(
            file_name_check(bad[i].name, &error), CADRE_INVALID_ARGUMENT, &error, bad[i].fault);
    }
    char name[4200];
    memset(name, 'x', sizeof name);
    name[255] = '\0';
    assert_ok(file_name_check(name, &error), &error);
    name[255] = 'x';
    name[256] = '\0';
    assert_error(file_name_check(name, &error), CADRE_INVALID_ARGUMENT, &error, "255");
    name[256] = 'x';
    name[4096] = '\0';
    assert_error(file_name_check(name, &error), CADRE_INVALID_ARGUMENT, &error, "1024");
}

static void one_process_holds_the_lock(void **state)
{
    (void)state;
    char path[TEST_PATH_BYTES];
    char holder[64];
    int fd = -1;
    int other = -1;
    test_path(path, test_temp_dir(), "lock");
    assert_ok(lock_file_acquire(path, &fd, &error), &error);
    snprintf(holder, sizeof holder, "is held by pid %ld;", (long)getpid());
    pid_t child = fork();
    if (child == 0) {
        cadre_status status = lock_file_acquire(path, &other, &error);
        bool named = strstr(error.text, holder) != NULL;
        _exit(status == CADRE_FAILED_PRECONDITION && named ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    close(fd);
    assert_ok(lock_file_acquire(path, &fd, &error), &error);
    close(fd);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("/etc/passwd", path), 0);
    assert_int_not_equal(lock_file_acquire(path, &other, &error), CADRE_OK);
}

#define ABC_HEX "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

static void hashes(void **state)
{
    (void)state;
    char path[TEST_PATH_BYTES];
    char hex[SHA256_HEX_BYTES];
    struct sha256 whole;
    struct sha256 parsed;
    uint64_t bytes = 0;
    assert_ok(sha256_of("abc", 3, &whole, &error), &error);
    sha256_hex(&whole, hex);
    assert_string_equal(hex, ABC_HEX);
    assert_true(sha256_parse(hex, &parsed));
    assert_true(sha256_equal(&whole, &parsed));
    assert_false(sha256_parse("ab", &parsed));
    assert_false(sha256_parse(ABC_HEX "0", &parsed));
    hex[10] = 'A';
    assert_false(sha256_parse(hex, &parsed));
    struct sha256_stream *stream = NULL;
    assert_ok(sha256_open(&stream, &error), &error);
    assert_ok(sha256_add(stream, "a", 1, &error), &error);
    assert_ok(sha256_add(stream, "bc", 2, &error), &error);
    assert_ok(sha256_finish(stream, &parsed, &error), &error);
    sha256_close(stream);
    sha256_close(NULL);
    assert_true(sha256_equal(&whole, &parsed));
    const char *folder = test_temp_dir();
    test_write(test_path(path, folder, "abc"), "abc");
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_ok(sha256_of_fd(fd, &parsed, &bytes, &error), &error);
    assert_true(sha256_equal(&whole, &parsed));
    assert_int_equal(bytes, 3);
    close(fd);
    fd = open(folder, O_RDONLY | O_CLOEXEC);
    assert_error(sha256_of_fd(fd, &parsed, NULL, &error), CADRE_INVALID_ARGUMENT, &error,
        "read while hashing: Is a directory");
    close(fd);
}

static void errno_has_a_text(void **state)
{
    (void)state;
    assert_error(cadre_error_errno(&error, ENOSPC, "write %s", "x"), CADRE_RESOURCE_EXHAUSTED,
        &error, "write x: No space left on device");
    assert_error(cadre_error_wrap(&error, CADRE_ABORTED, "job %d", 3), CADRE_ABORTED, &error,
        "job 3: write x: No space");
}

static void long_errors_are_cut_between_characters(void **state)
{
    (void)state;
    char name[CADRE_ERROR_TEXT_BYTES];
    for (size_t shift = 0; shift < 4; shift++) {
        memset(name, 'x', shift);
        for (size_t at = shift; at + 3 < sizeof name; at += 3) {
            memcpy(name + at, "\u20ac", 4);
        }
        cadre_error_set(&error, CADRE_NOT_FOUND, "%s%s", name, name);
        size_t length = strlen(error.text);
        assert_true(length < CADRE_ERROR_TEXT_BYTES && length >= CADRE_ERROR_TEXT_BYTES - 4);
        assert_string_equal(error.text + length - 3, "...");
        assert_int_equal((length - 3 - shift) % 3, 0);
        cadre_error_wrap(&error, CADRE_ABORTED, "12");
        length = strlen(error.text);
        assert_string_equal(error.text + length - 3, "...");
        assert_int_equal((length - 3 - shift - strlen("12: ")) % 3, 0);
    }
}

static void bytes_are_written_whole_or_with_a_reason(void **state)
{
    (void)state;
    char path[TEST_PATH_BYTES];
    char *read_back = NULL;
    size_t size = 0;
    test_path(path, test_temp_dir(), "out");
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_ok(file_write_all(fd, path, "abc", 3, &error), &error);
    assert_ok(file_write_all(fd, path, NULL, 0, &error), &error);
    assert_ok(file_write_all(fd, path, "de", 2, &error), &error);
    fault_arm("file.write", 1);
    assert_error(file_write_all(fd, "it", "f", 1, &error), CADRE_DATA_LOSS, &error,
        "cannot write 1 bytes to it: Input/output error");
    assert_true(fault_disarm());
    close(fd);
    assert_ok(file_read(path, 100, &read_back, &size, &error), &error);
    assert_memory_equal(read_back, "abcde", 5);
    free(read_back);
    fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    assert_error(file_write_all(fd, "it", "abc", 3, &error), CADRE_RESOURCE_EXHAUSTED, &error,
        "cannot write 3 bytes to it: No space left on device");
    close(fd);
}

int main(void)
{
    umask(022);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(read_is_bounded),
        cmocka_unit_test(write_is_whole_or_absent),
        cmocka_unit_test(folders_are_made),
        cmocka_unit_test(folders_are_durable_or_it_is_reported),
        cmocka_unit_test(trees_are_removed_without_following_links),
        cmocka_unit_test(a_deep_tree_is_removed),
        cmocka_unit_test(a_failed_removal_is_reported),
        cmocka_unit_test(names_from_elsewhere),
        cmocka_unit_test(one_process_holds_the_lock),
        cmocka_unit_test(hashes),
        cmocka_unit_test(errno_has_a_text),
        cmocka_unit_test(long_errors_are_cut_between_characters),
        cmocka_unit_test(bytes_are_written_whole_or_with_a_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
