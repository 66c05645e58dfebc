/* SPDX-License-Identifier: Apache-2.0
 * The files of the cache of objects: another owner, the bound of all folders, and what a hostile
 * task may have put there. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tests/lib/test.h"
#include "worker/host/daemon/objects/object_cache.h"

#define BLOCK 1000

static char objects[TEST_PATH_BYTES];

static int fresh(void **state)
{
    (void)state;
    test_path(objects, test_temp_dir(), "objects");
    assert_int_equal(mkdir(objects, 0711), 0);
    return 0;
}

static const char *path_of(const char *name)
{
    static char path[TEST_PATH_BYTES + 192];
    snprintf(path, sizeof path, "%s/%s", objects, name);
    return path;
}

/* A block that was used `age_s` ago. */
static void put(const char *folder, const char *object, unsigned number, long age_s)
{
    char name[128];
    static const char bytes[BLOCK + 1] = "";
    (void)mkdir(path_of(folder), 0700);
    snprintf(name, sizeof name, "%s/%s", folder, object);
    (void)mkdir(path_of(name), 0700);
    snprintf(name, sizeof name, "%s/%s/%u", folder, object, number);
    int fd = open(path_of(name), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, BLOCK), BLOCK);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const struct timespec times[2] = {{.tv_sec = now.tv_sec}, {.tv_sec = now.tv_sec - age_s}};
    assert_int_equal(futimens(fd, times), 0);
    close(fd);
}

static bool is_there(const char *name)
{
    return access(path_of(name), F_OK) == 0;
}

static void what_was_used_longest_ago_makes_room(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 10; i++) {
        put("a", "x", i, 100 - (long)i);
        put("b", "y", i, 50 - (long)i);
    }
    assert_int_equal(object_cache_trim(objects, 20 * BLOCK), 20 * BLOCK); /* all fit */
    assert_true(is_there("a/x/0"));
    assert_int_equal(object_cache_trim(objects, 16 * BLOCK), 14 * BLOCK);
    assert_false(is_there("a/x/5"));
    assert_true(is_there("a/x/6"));
    assert_true(is_there("b/y/0"));
    assert_int_equal(object_cache_trim(objects, 0), 0);
    assert_false(is_there("b/y/9"));
    assert_true(is_there("a/x"));
    assert_int_equal(object_cache_trim(objects, 0), 0); /* an empty folder of an object goes, too */
    assert_false(is_there("a/x"));
    assert_true(is_there("a"));
    assert_int_equal(object_cache_trim("/nonexistent", BLOCK), 0);
}

/* Nothing outside of the folder is touched. */
static void links_are_not_followed(void **state)
{
    char outside[TEST_PATH_BYTES];
    char file[TEST_PATH_BYTES + 8];
    (void)state;
    assert_int_equal(mkdir(test_path(outside, test_temp_dir(), "outside"), 0700), 0);
    snprintf(file, sizeof file, "%s/0", outside);
    test_write(file, "precious");
    put("a", "x", 1, 0);
    assert_int_equal(symlink(outside, path_of("a/link")), 0);
    assert_int_equal(symlink(outside, path_of("linked")), 0);
    assert_int_equal(symlink(file, path_of("a/x/2")), 0);
    assert_int_equal(mkdir(path_of("a/x/deep"), 0700), 0);
    assert_int_equal(mkfifo(path_of("a/x/pipe"), 0600), 0);
    (void)object_cache_trim(objects, 0);
    assert_false(is_there("a/x/1"));
    assert_int_equal(access(file, F_OK), 0);
}

static uid_t owner_of(const char *path)
{
    struct stat about;
    assert_int_equal(lstat(path, &about), 0);
    return about.st_uid;
}

static void another_owner(void **state)
{
    char outside[TEST_PATH_BYTES];
    (void)state;
    if (geteuid() != 0) {
        skip(); /* who may not give files away */
    }
    test_write(test_path(outside, test_temp_dir(), "outside"), "precious");
    put("a", "x", 0, 0);
    put("a", "x", 1, 0);
    assert_int_equal(symlink(outside, path_of("a/x/2")), 0);
    assert_int_equal(link(outside, path_of("a/x/3")), 0);
    assert_int_equal(symlink(outside, path_of("a/z")), 0);
    int fd = open(objects, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(object_cache_chown(fd, "a", 12345, 12345), 0);
    assert_int_equal(owner_of(path_of("a")), 12345);
    assert_int_equal(owner_of(path_of("a/x")), 12345);
    assert_int_equal(owner_of(path_of("a/x/1")), 12345);
    assert_int_equal(owner_of(outside), 0);
    assert_false(is_there("a/x/2"));
    assert_false(is_there("a/x/3"));
    assert_false(is_there("a/z"));
    assert_int_equal(object_cache_chown(fd, "none", 12345, 12345), ENOENT);
    assert_int_equal(symlink(outside, path_of("b")), 0);
    assert_true(object_cache_chown(fd, "b", 12345, 12345) != 0);
    assert_int_equal(owner_of(outside), 0);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(what_was_used_longest_ago_makes_room, fresh),
        cmocka_unit_test_setup(links_are_not_followed, fresh),
        cmocka_unit_test_setup(another_owner, fresh),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
