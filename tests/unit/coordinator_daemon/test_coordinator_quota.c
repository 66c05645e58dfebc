/* SPDX-License-Identifier: Apache-2.0
 * The quotas: what counts, which jobs are forgotten to make room, what is refused and with which
 * message. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/files.h"
#include "coordinator/daemon/contents/content_references.h"
#include "coordinator/daemon/base/disk.h"
#include "coordinator/daemon/contents/quota.h"
#include "tests/unit/coordinator_daemon/fake_engine.h"

static struct engine engine;
static struct daemon stand;

static int set_up(void **state)
{
    (void)state;
    engine = (struct engine){0};
    daemon_open(&stand, &engine);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    daemon_close(&stand);
    stand.quota = NULL;
    return 0;
}

static void open_storage(void)
{
    struct cadre_error error = {0};
    quota_close(stand.quota);
    stand.quota = NULL;
    assert_ok(quota_open(&stand, &error), &error);
    assert_ok(refresh_references(&stand, &error), &error);
}

static void add_output(uint64_t job, const char *text)
{
    struct cadre_error error = {0};
    char path[TEST_PATH_BYTES];
    snprintf(path, sizeof path, "%s/%llu/outputs/0", stand.job_dir, (unsigned long long)job);
    assert_ok(folder_make(path, 0700, &error), &error);
    char file[TEST_PATH_BYTES];
    test_write(test_path(file, path, "file"), text);
}

static void add_log(uint64_t job, const char *text)
{
    struct cadre_error error = {0};
    CADRE_FREE_AT_EXIT char *path = path_of_log(&stand, (struct job_id){job}, 0);
    char folder[TEST_PATH_BYTES];
    snprintf(folder, sizeof folder, "%s/%llu/logs", stand.job_dir, (unsigned long long)job);
    assert_ok(folder_make(folder, 0700, &error), &error);
    test_write(path, text);
}

static struct fake_job *ended_job(uint64_t id, const char *program, uint64_t ended_us)
{
    struct fake_job *job = add_job(&engine, id, program);
    job->state = JOB_SUCCEEDED;
    job->ended_us = ended_us;
    return job;
}

static void a_start_finds_what_was_counted(void **state)
{
    (void)state;
    (void)add_job(&engine, 1, "program");
    put_content(&stand, "program");
    open_storage();
    quota_log(stand.quota, (struct job_id){1}, 12);
    add_log(1, "twelve bytes");
    quota_output(stand.quota, (struct job_id){1}, 5);
    add_output(1, "12345");
    CADRE_FREE_AT_EXIT char *series = path_of_series(&stand, (struct job_id){1});
    test_write(series, "what it reported"); /* counts as its logs do */
    quota_log(stand.quota, (struct job_id){1}, 16);
    struct quota_sizes kept = quota_sizes(&stand);
    open_storage();
    struct quota_sizes found = quota_sizes(&stand);
    assert_int_equal(kept.blobs_bytes, 7);
    assert_int_equal(kept.logs_bytes, 28);
    assert_int_equal(kept.outputs_bytes, 5);
    assert_memory_equal(&kept, &found, sizeof kept);
    assert_int_equal(quota_job_bytes(stand.quota, (struct job_id){1}), 33);
    assert_int_equal(quota_job_bytes(stand.quota, (struct job_id){2}), 0);
}

/* The one that ended first goes first, whatever its number; one that runs never. */
static void the_oldest_make_room(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    (void)ended_job(1, "program a", 3000);
    (void)ended_job(2, "program b", 1000);
    (void)ended_job(3, "program c", 2000);
    (void)add_job(&engine, 4, "program d");
    for (uint64_t job = 1; job <= 4; job++) {
        add_output(job, "0123456789");
    }
    open_storage();
    assert_int_equal(quota_sizes(&stand).outputs_bytes, 40);
    stand.options.storage_quota_bytes = 45;
    assert_ok(quota_reserve(&stand, 5, "a file", &error), &error);
    assert_int_equal(engine.job_count, 4);
    assert_ok(quota_reserve(&stand, 20, "a file", &error), &error);
    assert_int_equal(engine.job_count, 2);
    assert_non_null(engine_job_spec(&engine, (struct job_id){1}));
    assert_null(engine_job_spec(&engine, (struct job_id){2}));
    assert_null(engine_job_spec(&engine, (struct job_id){3}));
    assert_int_equal(quota_sizes(&stand).forgotten, 2);
    assert_int_equal(quota_sizes(&stand).outputs_bytes, 20);
    /* More than can ever fit: no job is forgotten without use. */
    assert_error(quota_reserve(&stand, 46, "a file", &error), CADRE_RESOURCE_EXHAUSTED, &error,
        "--storage-quota");
    assert_int_equal(engine.job_count, 2);
    assert_error(quota_reserve(&stand, 40, "out/w.bin", &error), CADRE_RESOURCE_EXHAUSTED, &error,
        "out/w.bin does not fit: 20 of 45 bytes");
    assert_int_equal(engine.job_count, 2); /* it would not have fitted without job 1 either */
    assert_ok(quota_reserve(&stand, 35, "out/w.bin", &error), &error);
    assert_int_equal(engine.job_count, 1);
    assert_non_null(engine_job_spec(&engine, (struct job_id){4}));
    assert_int_equal(quota_sizes(&stand).refused, 2);
}

/* With a shared log a job goes a little later, and none goes for the same room meanwhile. */
static void one_at_a_time_goes_where_that_takes_time(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    engine.forgets_later = true;
    for (uint64_t job = 1; job <= 4; job++) {
        (void)ended_job(job, "program", job);
        add_output(job, "0123456789");
    }
    open_storage();
    stand.options.storage_quota_bytes = 45;
    for (int i = 0; i < 3; i++) {
        assert_ok(quota_reserve(&stand, 20, "a file", &error), &error);
        assert_int_equal(quota_sizes(&stand).forgotten, 1);
        assert_int_equal(quota_sizes(&stand).outputs_bytes, 40);
    }
    /* Also with the job that goes it never fits. */
    assert_error(quota_reserve(&stand, 46, "a file", &error), CADRE_RESOURCE_EXHAUSTED, &error,
        "--storage-quota");
    forget_going(&engine);
    assert_int_equal(engine.job_count, 3);
    assert_int_equal(quota_sizes(&stand).outputs_bytes, 30);
    assert_ok(quota_reserve(&stand, 20, "a file", &error), &error);
    assert_int_equal(quota_sizes(&stand).forgotten, 2);
    forget_going(&engine);
    assert_ok(quota_reserve(&stand, 20, "a file", &error), &error);
    assert_int_equal(engine.job_count, 2);
    assert_int_equal(quota_sizes(&stand).forgotten, 2);
}

/* Programs and files of the forgotten go too, unless another job has them. */
static void contents_of_the_forgotten_go(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    (void)ended_job(1, "only here", 1000);
    (void)ended_job(2, "both have it", 2000);
    (void)add_job(&engine, 3, "both have it");
    put_old_content(&stand, "only here");
    put_old_content(&stand, "both have it");
    open_storage();
    assert_int_equal(quota_sizes(&stand).blobs_bytes, 21);
    stand.options.storage_quota_bytes = 22;
    assert_ok(quota_reserve(&stand, 10, "a file", &error), &error);
    assert_false(is_here(&stand, "only here"));
    assert_true(is_here(&stand, "both have it"));
    assert_int_equal(engine.job_count, 2);
    assert_int_equal(quota_sizes(&stand).blobs_bytes, 12);
}

/* What is on its way counts: two uploads cannot share the last bytes. */
static void uploads_under_way_count(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    open_storage();
    stand.options.storage_quota_bytes = 100;
    quota_add_incoming(stand.quota, 60);
    assert_error(quota_reserve(&stand, 60, "an upload", &error), CADRE_RESOURCE_EXHAUSTED, &error,
        "an upload does not fit");
    quota_add_incoming(stand.quota, -60);
    assert_ok(quota_reserve(&stand, 60, "an upload", &error), &error);
}

static void a_job_has_its_own_bound(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct job_id job = {1};
    (void)add_job(&engine, 1, "program");
    open_storage();
    quota_output(stand.quota, job, 50);
    assert_ok(quota_reserve_job(&stand, job, 1000, 0, "a file", &error), &error);
    stand.options.job_quota_bytes = 100;
    assert_ok(quota_reserve_job(&stand, job, 50, 0, "a file", &error), &error);
    assert_error(quota_reserve_job(&stand, job, 51, 0, "a file", &error), CADRE_RESOURCE_EXHAUSTED,
        &error, "--job-quota");
    assert_error(quota_reserve_job(&stand, job, 20, 31, "a checkpoint", &error),
        CADRE_RESOURCE_EXHAUSTED, &error, "a checkpoint of 20 bytes does not fit");
    assert_error(quota_reserve_job(&stand, job, UINT64_MAX, 0, "a file", &error),
        CADRE_RESOURCE_EXHAUSTED, &error, "--job-quota");
}

/* Its name goes first; a kill leaves some of it, and the next start removes that. */
static void what_a_forgotten_job_left_goes(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    char path[TEST_PATH_BYTES];
    add_output(1, "of one that is forgotten");
    add_output(2, "of one that is known");
    paths_remove_job(&stand, (struct job_id){1});
    settle(&stand);
    assert_int_not_equal(access(test_path(path, stand.job_dir, "1"), F_OK), 0);
    assert_int_not_equal(access(test_path(path, stand.job_dir, "1.forgotten"), F_OK), 0);
    assert_ok(folder_make(test_path(path, stand.job_dir, "3.forgotten"), 0700, &error), &error);
    test_write(test_path(path, stand.job_dir, "3.forgotten/file"), "half of it");
    paths_resume_removal(&stand);
    settle(&stand);
    assert_int_not_equal(access(test_path(path, stand.job_dir, "3.forgotten"), F_OK), 0);
    assert_int_equal(access(test_path(path, stand.job_dir, "2/outputs/0/file"), F_OK), 0);
    paths_remove_job(&stand, (struct job_id){9}); /* that left nothing */
}

static void jobs_are_forgotten_in_time(void **state)
{
    (void)state;
    uint64_t now_us = clock_wall_us();
    (void)ended_job(1, "a", now_us - 100 * CADRE_US_PER_S);
    (void)ended_job(2, "b", now_us - 200 * CADRE_US_PER_S);
    (void)ended_job(3, "c", now_us - 10 * CADRE_US_PER_S);
    (void)add_job(&engine, 4, "d");
    (void)ended_job(5, "e", now_us - 60 * CADRE_US_PER_S);
    open_storage();
    quota_expire_jobs(&stand);
    assert_int_equal(engine.job_count, 5); /* for ever */
    stand.options.keep_for_us = 50 * CADRE_US_PER_S;
    quota_expire_jobs(&stand);
    assert_int_equal(engine.job_count, 2);
    assert_non_null(engine_job_spec(&engine, (struct job_id){3}));
    assert_non_null(engine_job_spec(&engine, (struct job_id){4}));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(a_start_finds_what_was_counted),
        TEST(the_oldest_make_room), TEST(one_at_a_time_goes_where_that_takes_time),
        TEST(contents_of_the_forgotten_go), TEST(uploads_under_way_count),
        TEST(a_job_has_its_own_bound), TEST(what_a_forgotten_job_left_goes),
        TEST(jobs_are_forgotten_in_time)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
