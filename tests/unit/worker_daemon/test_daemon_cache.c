/* SPDX-License-Identifier: Apache-2.0
 * The contents that a worker keeps: which are removed first, and which never. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <fcntl.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/sha256.h"
#include "tests/lib/test.h"
#include "worker/host/daemon/cache.h"
#include "worker/host/daemon/daemon.h"
#include "worker/host/daemon/task_files.h"

static struct daemon fixture;

static char *path_of(const char *text)
{
    struct sha256 hash;
    assert_int_equal(sha256_of(text, strlen(text), &hash, NULL), CADRE_OK);
    return sha256_path(fixture.blob_dir, hash.bytes);
}

/* Used so many seconds ago. */
static void put(const char *text, long seconds_ago)
{
    CADRE_FREE_AT_EXIT char *path = path_of(text);
    struct timespec times[2] = {{0}, {.tv_nsec = UTIME_OMIT}};
    clock_gettime(CLOCK_REALTIME, &times[0]);
    times[0].tv_sec -= seconds_ago;
    test_write(path, text);
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static bool is_here(const char *text)
{
    CADRE_FREE_AT_EXIT char *path = path_of(text);
    return access(path, F_OK) == 0;
}

const struct job_file *tasks_file(const struct task_files *task, size_t i)
{
    return i == 0 ? &task->spec->program : &task->spec->files[i - 1];
}

static int set_up(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    fixture = (struct daemon){.blob_dir = (char *)(uintptr_t)test_temp_dir()};
    assert_ok(rpc_loop_open(&fixture.loop, &error), &error);
    fixture.file_pool.loop = fixture.loop;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    rpc_loop_close(fixture.loop);
    return 0;
}

/* What has to go is removed by a thread. */
static void came(uint64_t bytes, bool was_here)
{
    cache_added(&fixture, bytes, was_here);
    file_work_pool_wait(&fixture.file_pool);
}

static void the_least_recently_used_go_first(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    put("ten bytes1", 30);
    put("ten bytes2", 50);
    put("ten bytes3", 10);
    char other[TEST_PATH_BYTES];
    test_write(test_path(other, fixture.blob_dir, FETCH_PREFIX "1"), "half of one");
    fixture.options.cache_limit_bytes = 25;
    assert_ok(cache_open(&fixture, &error), &error);
    assert_false(is_here("ten bytes2"));
    assert_true(is_here("ten bytes1"));
    assert_int_equal(fixture.cache_bytes, 20);
    assert_int_equal(fixture.counts.cache_evicted_bytes, 10);
    assert_int_equal(access(other, F_OK), 0);

    CADRE_FREE_AT_EXIT char *used = path_of("ten bytes1");
    cache_used(used); /* now it is the newest */
    put("ten bytes4", 0);
    came(10, false);
    assert_true(is_here("ten bytes1"));
    assert_false(is_here("ten bytes3"));
    assert_int_equal(fixture.cache_bytes, 20);
}

/* A task that is being prepared is about to copy them. */
static void what_a_task_needs_stays(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct job_file files[1] = {0};
    struct job_spec spec = {.files = files, .file_count = 1};
    struct task_files task = {.daemon = &fixture, .spec = &spec};
    struct sha256 hash;
    put("program", 90);
    put("file", 80);
    put("other", 1);
    assert_int_equal(sha256_of("program", 7, &hash, NULL), CADRE_OK);
    memcpy(spec.program.sha256, hash.bytes, sizeof hash.bytes);
    assert_int_equal(sha256_of("file", 4, &hash, NULL), CADRE_OK);
    memcpy(files[0].sha256, hash.bytes, sizeof hash.bytes);
    fixture.tasks = &task;
    fixture.options.cache_limit_bytes = 1;
    assert_ok(cache_open(&fixture, &error), &error);
    assert_true(is_here("program"));
    assert_true(is_here("file"));
    assert_false(is_here("other"));
    task.ready = true; /* it has its copies */
    came(0, false);
    assert_false(is_here("program"));
    assert_false(is_here("file"));
    assert_int_equal(fixture.cache_bytes, 0);
}

/* Two tasks of a job fetch its program at one time: there is one file. */
static void one_that_came_twice_counts_once(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    put("ten bytes1", 30);
    put("ten bytes2", 20);
    fixture.options.cache_limit_bytes = 25;
    assert_ok(cache_open(&fixture, &error), &error);
    came(10, true);
    assert_int_equal(fixture.cache_bytes, 20);
    assert_int_equal(fixture.counts.fetched_bytes, 10);
    fixture.cache_bytes = 1000; /* however that came about */
    came(10, true);
    assert_true(is_here("ten bytes1"));
    assert_int_equal(fixture.cache_bytes, 20);
}

static void without_a_limit_all_stay(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    put("ten bytes1", 30000000);
    assert_ok(cache_open(&fixture, &error), &error);
    came(1U << 30, false);
    assert_true(is_here("ten bytes1"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_least_recently_used_go_first, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_a_task_needs_stays, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_that_came_twice_counts_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(without_a_limit_all_stay, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
