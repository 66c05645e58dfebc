/* SPDX-License-Identifier: Apache-2.0
 * Copies of contents that lie in an object store, which is a folder here: fetched once, checked,
 * removed when they are too much; and a store that is away. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/fault.h"
#include "common/base/files.h"
#include "coordinator/daemon/objects/object_cache.h"
#include "coordinator/daemon/objects/object_names.h"
#include "tests/lib/test.h"

#define LIMIT_BYTES 1000
#define READERS     8

static struct objects *objects;
static struct object_cache *cache;
static char root[TEST_PATH_BYTES];
static char folder[TEST_PATH_BYTES];

static void open_cache(void)
{
    struct cadre_error error = {0};
    assert_ok(object_cache_open(objects, folder, LIMIT_BYTES, &cache, &error), &error);
}

static int set_up(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    snprintf(root, sizeof root, "%s", test_temp_dir());
    snprintf(folder, sizeof folder, "%s", test_temp_dir());
    const struct objects_options options = {.root = root, .deadline_us = CADRE_US_PER_S};
    assert_ok(objects_open(&options, &objects, &error), &error);
    open_cache();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    object_cache_close(cache);
    objects_close(objects);
    return 0;
}

static struct sha256 put(const char *text, size_t size)
{
    struct cadre_error error = {0};
    struct sha256 hash;
    assert_ok(sha256_of(text, size, &hash, &error), &error);
    CADRE_FREE_AT_EXIT char *path = object_name_of_blob(objects, hash.bytes);
    assert_ok(objects_put(objects, path, text, size, &error), &error);
    return hash;
}

static bool has_copy(const struct sha256 *hash)
{
    CADRE_FREE_AT_EXIT char *path = sha256_path(folder, hash->bytes);
    return access(path, F_OK) == 0;
}

static cadre_status read_content(
    const struct sha256 *hash, uint64_t *ret_bytes, struct cadre_error *error)
{
    CADRE_CLOSE_AT_EXIT int fd = -1;
    struct sha256 read;
    CADRE_TRY(object_cache_read(cache, folder, hash->bytes, &fd, ret_bytes, error));
    CADRE_TRY(sha256_of_fd(fd, &read, NULL, error));
    assert_true(sha256_equal(hash, &read));
    return CADRE_OK;
}

static void a_content_is_fetched_once(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    uint64_t bytes = 0;
    struct sha256 hash = put("a content", 9);
    assert_false(has_copy(&hash));
    assert_ok(read_content(&hash, &bytes, &error), &error);
    assert_int_equal(bytes, 9);
    assert_true(has_copy(&hash));
    CADRE_FREE_AT_EXIT char *path = object_name_of_blob(objects, hash.bytes);
    assert_int_equal(unlink(path), 0);
    assert_ok(read_content(&hash, &bytes, &error), &error);
    object_cache_drop(cache, hash.bytes);
    assert_error(read_content(&hash, &bytes, &error), CADRE_NOT_FOUND, &error, "");
}

static void *read_in_thread(void *argument)
{
    struct cadre_error error = {0};
    uint64_t bytes = 0;
    assert_ok(read_content(argument, &bytes, &error), &error);
    return NULL;
}

static void several_read_the_same(void **state)
{
    (void)state;
    static char text[900];
    pthread_t threads[READERS];
    struct sha256 hash = put(text, sizeof text);
    for (size_t i = 0; i < READERS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, read_in_thread, &hash), 0);
    }
    for (size_t i = 0; i < READERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_true(has_copy(&hash));
}

static void one_that_is_wrong_is_no_copy(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    uint64_t bytes = 0;
    struct sha256 hash = put("a content", 9);
    CADRE_FREE_AT_EXIT char *path = object_name_of_blob(objects, hash.bytes);
    test_write(path, "b content");
    assert_error(
        read_content(&hash, &bytes, &error), CADRE_DATA_LOSS, &error, "does not have its hash");
    assert_false(has_copy(&hash));
}

static void set_used(const struct sha256 *hash, time_t seconds)
{
    CADRE_FREE_AT_EXIT char *path = sha256_path(folder, hash->bytes);
    const struct timespec times[2] = {{.tv_sec = seconds}, {.tv_nsec = UTIME_OMIT}};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void what_was_used_longest_ago_goes(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct sha256 hashes[4];
    uint64_t bytes = 0;
    for (size_t i = 0; i < 4; i++) {
        char text[300];
        memset(text, 'a' + (int)i, sizeof text);
        hashes[i] = put(text, sizeof text);
    }
    for (size_t i = 0; i < 3; i++) {
        assert_ok(read_content(&hashes[i], &bytes, &error), &error);
        set_used(&hashes[i], 1000 - (time_t)i); /* the last one longest ago */
    }
    object_cache_close(cache);
    open_cache(); /* it counts what is there */
    assert_ok(read_content(&hashes[0], &bytes, &error), &error);
    assert_ok(read_content(&hashes[3], &bytes, &error), &error);
    assert_true(has_copy(&hashes[0]));
    assert_false(has_copy(&hashes[2]));
    assert_true(has_copy(&hashes[3]));
    assert_ok(read_content(&hashes[2], &bytes, &error), &error);
}

/* Contents that are larger than all copies together may be. */
static void one_that_is_larger_than_the_limit(void **state)
{
    (void)state;
    static char text[2 * LIMIT_BYTES];
    struct cadre_error error = {0};
    uint64_t bytes = 0;
    struct sha256 small = put("a content", 9);
    struct sha256 large = put(text, sizeof text);
    assert_ok(read_content(&small, &bytes, &error), &error);
    set_used(&small, 1000);
    assert_ok(read_content(&large, &bytes, &error), &error);
    assert_int_equal(bytes, sizeof text);
    assert_false(has_copy(&small));
    assert_ok(read_content(&small, &bytes, &error), &error);
    assert_ok(read_content(&large, NULL, &error), &error);
}

static void a_start_removes_what_is_no_copy(void **state)
{
    (void)state;
    char path[TEST_PATH_BYTES];
    object_cache_close(cache);
    test_write(test_path(path, folder, "fetch-17"), "half");
    open_cache();
    assert_int_not_equal(access(path, F_OK), 0);
}

static void a_store_that_is_away_is_tried_again(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct cadre_error refused = {0};
    assert_false(objects_are_away(objects, NULL));
    assert_error(objects_judge(objects,
                     cadre_error_set(&error, CADRE_PERMISSION_DENIED, "no s3:PutObject"), &error),
        CADRE_UNAVAILABLE, &error, "no s3:PutObject");
    assert_true(objects_are_away(objects, &refused));
    assert_error(refused.code, CADRE_UNAVAILABLE, &refused,
        "the object store of --contents is away: no s3:PutObject");
    CADRE_FREE_AT_EXIT char *path = objects_path(objects, "some");
    assert_error(objects_put(objects, path, "x", 1, &error), CADRE_UNAVAILABLE, &error,
        "no s3:PutObject"); /* not yet */
    assert_true(objects_wait(objects));
    assert_false(objects_are_away(objects, NULL));
    assert_ok(objects_put(objects, path, "x", 1, &error), &error);
    (void)objects_judge(objects, cadre_error_set(&error, CADRE_UNAVAILABLE, "no answer"), &error);
    objects_stop(objects);
    assert_false(objects_wait(objects));
}

/* What the wall clock shows more than it does; as if it were set back before the wait. */
static _Atomic time_t ahead_s;

int __real_clock_gettime(clockid_t which, struct timespec *ret_time);
int __wrap_clock_gettime(clockid_t which, struct timespec *ret_time);

int __wrap_clock_gettime(clockid_t which, struct timespec *ret_time)
{
    int result = __real_clock_gettime(which, ret_time);
    ret_time->tv_sec += which == CLOCK_REALTIME ? ahead_s : 0;
    return result;
}

static void a_clock_that_is_set_back(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    (void)objects_judge(objects, cadre_error_set(&error, CADRE_UNAVAILABLE, "no answer"), &error);
    uint64_t begun_us = clock_monotonic_us();
    ahead_s = 30;
    assert_true(objects_wait(objects));
    ahead_s = 0;
    assert_true(clock_monotonic_us() - begun_us < 25 * CADRE_US_PER_S);
}

static bool may(const void *user)
{
    unsigned *left = *(unsigned *const *)user;
    return (*left)-- > 0;
}

static void all_below_a_folder_is_removed(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    CADRE_FREE_AT_EXIT char *job = objects_path(objects, "jobs/1");
    CADRE_FREE_AT_EXIT char *log = objects_path(objects, "jobs/1/logs/0/x");
    CADRE_FREE_AT_EXIT char *output = objects_path(objects, "jobs/1/outputs/0/y");
    CADRE_FREE_AT_EXIT char *other = objects_path(objects, "jobs/10/outputs/0/y");
    assert_ok(objects_put(objects, log, "x", 1, &error), &error);
    assert_ok(objects_put(objects, output, "x", 1, &error), &error);
    assert_ok(objects_put(objects, other, "x", 1, &error), &error);
    unsigned left = 1;
    unsigned *user = &left;
    assert_error(objects_remove_all(objects, job, may, &user, &error), CADRE_UNAVAILABLE, &error,
        "does not know whether it leads still");
    assert_int_not_equal(access(log, F_OK) == 0, access(output, F_OK) == 0);
    left = 10;
    assert_ok(objects_remove_all(objects, job, may, &user, &error), &error);
    assert_int_not_equal(access(log, F_OK), 0);
    assert_int_not_equal(access(output, F_OK), 0);
    assert_int_equal(access(other, F_OK), 0);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(a_content_is_fetched_once), TEST(several_read_the_same),
        TEST(one_that_is_wrong_is_no_copy), TEST(what_was_used_longest_ago_goes),
        TEST(one_that_is_larger_than_the_limit), TEST(a_start_removes_what_is_no_copy),
        TEST(a_store_that_is_away_is_tried_again), TEST(a_clock_that_is_set_back),
        TEST(all_below_a_folder_is_removed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
