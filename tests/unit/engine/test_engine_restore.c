/* SPDX-License-Identifier: Apache-2.0
 * What a coordinator finds in its store: queued jobs queue again, those that ran go on, those that
 * ended are listed as they were. */
#include <string.h>

#include "common/wire/wire.h"
#include "tests/unit/engine/stage.h"

/* Job 1 failed, job 2 runs, job 3 waits. */
static struct stage *stage_three(void)
{
    struct stage *stage = stage_open();
    join(stage, 1, "one", 1);
    submit(stage, 1, 1);
    flush(stage);
    started(stage, 1, 1, 0);
    gone(stage, 1, 1, 0, 3, "cannot find its keys");
    collected(stage, 1, 1, 0);
    flush(stage);
    submit(stage, 2, 1);
    flush(stage);
    started(stage, 1, 2, 0);
    submit(stage, 3, 2);
    flush(stage);
    stage_skip(stage);
    return stage;
}

static struct job_info info_of(struct stage *stage, uint64_t job)
{
    struct job_info info;
    assert_true(engine_job_info(stage->engine, (struct job_id){job}, &info));
    return info;
}

static void all_jobs_come_back(void **state)
{
    (void)state;
    struct stage *stage = stage_three();
    struct job_info before = info_of(stage, 1);
    uint64_t submitted_us = before.submitted_us;
    uint64_t ended_us = before.ended_us;
    assert_true(submitted_us > 0 && submitted_us <= ended_us);
    stage_reopen(stage);
    expect_output(stage, "store is closed\n"); /* what it decided at once is for the first flush */
    flush(stage);
    expect_output(stage, "changed 2: starting\n"
                         "changed 3: queued\n");

    struct job_info info = info_of(stage, 1);
    assert_int_equal(info.state, JOB_FAILED);
    assert_int_equal(info.exit_code, 3);
    assert_non_null(strstr(info.message, "cannot find its keys"));
    assert_int_equal(info.submitted_us, submitted_us);
    assert_int_equal(info.ended_us, ended_us);
    assert_int_equal(info.task_count, 1);
    assert_int_equal(info.tasks[0].state, TASK_EXITED);
    assert_true(info.tasks[0].has_exit);
    assert_int_equal(info.tasks[0].exit.code, 3);
    assert_string_equal(info.tasks[0].exit.text, "cannot find its keys");
    assert_string_equal(info.name, "a job");
    assert_string_equal(info.program, "program");

    /* Its worker is not here yet. */
    info = info_of(stage, 2);
    assert_int_equal(info.state, JOB_STARTING);
    assert_true(info.started_us > 0 && info.ended_us == 0);
    assert_int_equal(info.tasks[0].state, TASK_STARTING);
    assert_int_equal(info.tasks[0].incarnation, 1);
    assert_string_equal(info.tasks[0].worker, "one");

    info = info_of(stage, 3);
    assert_int_equal(info.state, JOB_QUEUED);
    assert_int_equal(info.task_count, 2);

    /* Ids go on, and the queue works. */
    submit(stage, 4, 1);
    join(stage, 7, "two", 2);
    flush(stage);
    expect_output(stage, "commit!: job 4, started 3\n"
                         "answer 4: job 4, 1 before\n"
                         "link 7: welcome worker 2\n"
                         "link 7: start 3/0#1 of 2 program\n"
                         "link 7: start 3/1#2 of 2 program\n"
                         "changed 4: queued\n"
                         "changed 3: starting\n");
    stage_close(stage);
}

static void a_second_restart_changes_nothing(void **state)
{
    (void)state;
    struct stage *stage = stage_three();
    stage_reopen(stage);
    flush(stage);
    stage_reopen(stage);
    stage_skip(stage);
    flush(stage);
    expect_output(stage, "changed 2: starting\n"
                         "changed 3: queued\n");
    stage_close(stage);
}

static void a_stopped_start_is_harmless(void **state)
{
    (void)state;
    struct stage *stage = stage_three();
    stage_reopen(stage); /* never flushed: nothing was written, nothing was said */
    stage_reopen(stage);
    flush(stage);
    assert_int_equal(info_of(stage, 2).state, JOB_STARTING);
    stage_close(stage);
}

static void lower_limits_end_what_does_not_fit(void **state)
{
    (void)state;
    struct stage *stage = stage_three();
    stage->options.core.limits =
        (struct core_limits){.workers_max = 1, .jobs_max = 1, .tasks_max = 1};
    stage_reopen(stage);
    flush(stage);
    struct job_info info = info_of(stage, 3);
    assert_int_equal(info.state, JOB_FAILED);
    assert_non_null(strstr(info.message, "limits"));
    stage_close(stage);
}

static void put(struct stage *stage, const void *spec, size_t spec_bytes, uint32_t tasks)
{
    struct core_record record = {
        .type = CORE_RECORD_JOB, .sync = true, .job = {1}, .submitted.spec.tasks = tasks};
    struct store_record wrapped = {
        .record = &record, .wall_us = 5, .spec = spec, .spec_bytes = spec_bytes};
    assert_ok(stage->store.inner->ops->commit(stage->store.inner, &wrapped, 1, true, &stage->error),
        &stage->error);
}

static cadre_status open_again(struct stage *stage)
{
    static const struct engine_sink none;
    struct engine *engine = NULL;
    cadre_status status = engine_open(
        &stage->options, &stage->store.base, &none, NULL, stage->now_us, &engine, &stage->error);
    assert_null(engine);
    return status;
}

static void a_damaged_store_is_reported(void **state)
{
    (void)state;
    struct stage *stage = stage_open();
    put(stage, "\377\377\377", 3, 1);
    assert_error(open_again(stage), CADRE_INVALID_ARGUMENT, &stage->error, "job 1 in the store");
    expect_output(stage, ""); /* the store stays the caller's */
    const struct core_record forgotten = {.type = CORE_RECORD_FORGOTTEN, .job = {1}};
    const struct store_record removal = {.record = &forgotten};
    assert_ok(stage->store.inner->ops->commit(stage->store.inner, &removal, 1, true, &stage->error),
        &stage->error);
    struct wire_buffer packed = {0};
    struct job_spec spec = {.name = "n", .program = {.name = "p"}, .workers = 2, .strategy = ""};
    assert_ok(wire_pack_job_spec(&spec, &packed, &stage->error), &stage->error);
    put(stage, packed.bytes, packed.size, 3);
    assert_error(open_again(stage), CADRE_DATA_LOSS, &stage->error, "3 tasks and a spec of 2");
    wire_buffer_free(&packed);
    stage_close(stage);
}

/* What had tasks is listed by its name before it is back. */
static void expected_workers_are_listed_by_name(void **state)
{
    (void)state;
    struct stage *stage = stage_three();
    stage_reopen(stage);
    flush(stage);
    struct worker_info info;
    uint32_t cursor = 0;
    assert_true(engine_worker_next(stage->engine, &cursor, &info));
    assert_string_equal(info.name, "one");
    assert_true(info.expected);
    assert_false(info.connected);
    assert_int_equal(info.joined_us, 0);
    assert_false(engine_worker_next(stage->engine, &cursor, &info));
    rejoin(stage, 5, "one", 1, 2, 0, 1);
    flush(stage);
    cursor = 0;
    assert_true(engine_worker_next(stage->engine, &cursor, &info));
    assert_string_equal(info.name, "one");
    assert_false(info.expected);
    assert_true(info.connected);
    assert_true(info.joined_us > 0);
    assert_false(engine_worker_next(stage->engine, &cursor, &info));
    stage_close(stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_jobs_come_back),
        cmocka_unit_test(expected_workers_are_listed_by_name),
        cmocka_unit_test(a_second_restart_changes_nothing),
        cmocka_unit_test(a_stopped_start_is_harmless),
        cmocka_unit_test(lower_limits_end_what_does_not_fit),
        cmocka_unit_test(a_damaged_store_is_reported)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
