/* SPDX-License-Identifier: Apache-2.0
 * The disk fills up under the ledger: of the turn that cannot be stored nothing is said. The engine
 * says why it ends, and the next one goes on from what was said; or it waits until there is room.
 */
#include <stdio.h>
#include <string.h>

#include "coordinator/engine/engine.h"
#include "tests/lib/test.h"
#include "tests/unit/store/small_disk.h"

static const char *disk;
static struct engine *engine;
static struct cadre_error error;
static char path[TEST_PATH_BYTES];
static uint64_t answered; /* the newest job that was answered for */
static unsigned relay_up;
static uint64_t retry_us;

static void note_down(void *user, struct link_id link, const struct agent_down *down)
{
    (void)user;
    (void)link;
    (void)down;
    relay_up++;
}

static void note_answer(void *user, struct call_id call, cadre_status code, struct job_id job,
    uint32_t queued_before, const char *text)
{
    (void)user;
    (void)call;
    (void)queued_before;
    if (code != CADRE_OK) {
        fail_msg("%s", text);
    }
    answered = job.n;
    relay_up++;
}

static void note_changed(void *user, struct job_id job)
{
    (void)user;
    (void)job;
    relay_up++;
}

static cadre_status open_engine(void)
{
    const struct engine_sink sink = {
        .down = note_down, .answer = note_answer, .job_changed = note_changed};
    const struct engine_options options = {
        .core = {.limits = {.workers_max = 10, .jobs_max = 10000, .tasks_max = 10000},
            .lease_us = 1000000},
        .keep_jobs = 10,
        .retry_us = retry_us};
    struct store *store = NULL;
    CADRE_TRY(store_sqlite_open(test_path(path, disk, "ledger.db"), &store, &error));
    assert_ok(engine_open(&options, store, &sink, NULL, 1, &engine, &error), &error);
    return engine_flush(engine, 1, &error);
}

static void submit(void)
{
    const struct job_spec spec = {.name = "job",
        .program = {.name = "program"},
        .workers = 1,
        .strategy = "",
        .checkpoint_folder = ""};
    engine_submit(engine, 1, (struct call_id){1}, &spec);
}

static void assert_known(uint64_t newest)
{
    struct job_info info;
    for (uint64_t id = 1; id <= newest; id++) {
        assert_true(engine_job_info(engine, (struct job_id){id}, &info));
        assert_int_equal(info.state, JOB_QUEUED);
    }
    assert_false(engine_job_info(engine, (struct job_id){newest + 1}, &info));
}

static void what_cannot_be_stored_is_not_reported(void **state)
{
    (void)state;
    assert_ok(open_engine(), &error);
    cadre_status status;
    unsigned before;
    do {
        before = relay_up;
        submit();
        status = engine_flush(engine, 1, &error);
    } while (status == CADRE_OK && answered < 10000);
    assert_int_equal(status, CADRE_RESOURCE_EXHAUSTED);
    assert_non_null(strstr(error.text, path));
    assert_non_null(strstr(error.text, "free space on its disk"));
    assert_int_equal(relay_up, before);
    assert_true(answered > 3);
    /* From here on it is silent, and gives every reader the same. */
    submit();
    engine_tick(engine, 2);
    memset(&error, 0, sizeof error);
    assert_int_equal(engine_flush(engine, 2, &error), CADRE_RESOURCE_EXHAUSTED);
    assert_non_null(strstr(error.text, "free space on its disk"));
    assert_int_equal(relay_up, before);
    engine_close(engine);
    small_disk_grow("2m"); /* an operator makes room */
    uint64_t newest = answered;
    assert_ok(open_engine(), &error);
    assert_known(newest);
    submit();
    assert_ok(engine_flush(engine, 1, &error), &error);
    assert_int_equal(answered, newest + 1);
    engine_close(engine);
}

/* The same with a pause instead of an end: nothing is said or shown meanwhile, and all of it then.
 */
static void what_is_held_is_reported_when_there_is_room(void **state)
{
    (void)state;
    struct job_info info;
    small_disk_keep_free(64 * 1024);
    retry_us = 1000;
    assert_ok(open_engine(), &error);
    uint64_t newest = answered;
    unsigned before;
    do {
        before = relay_up;
        newest = answered;
        submit();
        assert_ok(engine_flush(engine, 1, &error), &error);
    } while (!engine_held(engine, &error) && answered < 10000);
    assert_non_null(strstr(error.text, "free space on its disk"));
    assert_int_equal(engine_wake_us(engine), 1001);
    submit();
    engine_tick(engine, 1000000000); /* for the core no time passes: no lease ends */
    assert_ok(engine_flush(engine, 1001, &error), &error);
    assert_true(engine_held(engine, &error));
    assert_int_equal(relay_up, before);
    assert_known(newest);
    assert_true(engine_job_at(engine, 0, &info));
    assert_int_equal(info.id.n, newest);
    assert_non_null(strstr(info.message, "free space on its disk"));
    small_disk_grow("8m");
    assert_ok(engine_flush(engine, 1500, &error), &error); /* it is not time yet */
    assert_true(engine_held(engine, &error));
    assert_ok(engine_flush(engine, 3000, &error), &error);
    assert_false(engine_held(engine, &error));
    assert_int_equal(answered, newest + 2);
    assert_known(newest + 2);
    engine_close(engine);
    assert_ok(open_engine(), &error);
    assert_known(newest + 2);
    engine_close(engine);
}

int main(void)
{
    disk = small_disk_open("192k");
    if (disk == NULL) {
        test_skip("this user may not mount a small file system of its own");
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_cannot_be_stored_is_not_reported),
        cmocka_unit_test(what_is_held_is_reported_when_there_is_room)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    small_disk_close();
    return failed;
}
