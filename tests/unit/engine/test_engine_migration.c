/* SPDX-License-Identifier: Apache-2.0
 * The ledger that a cluster of version 1 left: its jobs are listed as they were, what was queued
 * waits again with its whole spec, and what ran is reported as ended. */
#include <string.h>

#include "coordinator/engine/engine.h"
#include "tests/lib/test.h"
#include "tests/unit/store/version_1.h"

static struct engine *engine;

static void send_nothing(void *user, struct job_id job)
{
    (void)user;
    (void)job;
}

static void open_old_ledger(void)
{
    char path[TEST_PATH_BYTES];
    struct cadre_error error = {0};
    struct store *store = NULL;
    const struct engine_sink sink = {.job_changed = send_nothing};
    const struct engine_options options = {
        .core = {.limits = {.workers_max = 10, .jobs_max = 10, .tasks_max = 10},
            .lease_us = 1000000},
        .keep_jobs = 10};
    test_path(path, test_temp_dir(), "ledger.db");
    version_1_make(path, version_1_ledger, "");
    assert_ok(store_sqlite_open(path, &store, &error), &error);
    assert_ok(engine_open(&options, store, &sink, NULL, 1, &engine, &error), &error);
    assert_ok(engine_flush(engine, 1, &error), &error);
}

static void assert_job(uint64_t id, enum job_state state, uint64_t position, const char *message)
{
    struct job_info info;
    assert_true(engine_job_info(engine, (struct job_id){id}, &info));
    assert_int_equal(info.state, state);
    assert_int_equal(info.position, position);
    if (strstr(info.message, message) == NULL) {
        fail_msg("job %u: %s", (unsigned)id, info.message);
    }
    assert_string_equal(info.checkpoint, "");
}

static void jobs_of_an_old_cluster_are_known(void **state)
{
    (void)state;
    open_old_ledger();
    assert_job(1, JOB_SUCCEEDED, 20, "finished after 20 steps");
    assert_job(2, JOB_FAILED, 0, "exited with status 1");
    assert_job(3, JOB_CANCELLED, 0, "cancelled");
    assert_job(4, JOB_FAILED, 0, "replaced by a newer version");
    assert_job(5, JOB_QUEUED, 0, "waits for workers");
    const struct job_spec *spec = engine_job_spec(engine, (struct job_id){1});
    assert_string_equal(spec->name, "good");
    assert_string_equal(spec->program.name, "trainer");
    assert_int_equal(spec->program.sha256[0], 0xb5);
    assert_int_equal(spec->argument_count, 1);
    assert_string_equal(spec->arguments[0], "20");
    assert_int_equal(spec->environment_count, 1);
    assert_string_equal(spec->environment[0], "A=b");
    assert_int_equal(spec->file_count, 1);
    assert_string_equal(spec->files[0].name, "data/file.txt");
    assert_int_equal(spec->priority, 3);
    spec = engine_job_spec(engine, (struct job_id){5});
    assert_int_equal(spec->priority, -2);
    assert_int_equal(spec->workers, 2);
    struct verify_response response;
    struct cadre_error error = {0};
    assert_ok(
        engine_verify(engine, &(struct verify_request){.id = {1}}, &response, &error), &error);
    assert_int_equal(response.generation_count, 1);
    assert_int_equal(response.generations[0].members, 2);
    assert_int_equal(response.epoch_count, 0); /* nothing was counted then */
    engine_close(engine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(jobs_of_an_old_cluster_are_known)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
