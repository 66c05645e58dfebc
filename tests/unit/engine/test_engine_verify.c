/* SPDX-License-Identifier: Apache-2.0
 * What the ledger proves, what a drain is answered with, and how long a record may wait for its
 * sync. */
#include <string.h>

#include "tests/unit/engine/stage.h"

/* Both workers have the steps below `up_to` in hand and `applied` applied; epochs have two steps of
 * 8 samples each. */
static void come_to(struct stage *stage, uint64_t epoch, uint64_t up_to, uint64_t applied)
{
    struct cursor cursor = {
        .stream = 1, .epoch = epoch, .first = 2 * epoch, .begin = 2 * epoch, .steps = 2};
    uint64_t steps = applied - cursor.first;
    struct consumption consumption = {.steps = steps,
        .samples = 8 * steps,
        .consumed = {100 * epoch + steps, steps},
        .expected = {100 * epoch + steps, steps},
        .provable = true};
    consumed(stage, 1, 1, 2, up_to, applied, &cursor, &consumption);
    consumed(stage, 2, 1, 1, up_to, applied, &cursor, &consumption);
    flush(stage);
}

/* The first epoch is done, and one step of the second. */
static struct stage *stage_trained(void)
{
    struct stage *stage = stage_formed();
    distributed(stage, 1, 1, 0, 16);
    come_to(stage, 0, 1, 0);
    come_to(stage, 0, 2, 1);
    come_to(stage, 0, 2, 2);
    come_to(stage, 1, 3, 2);
    come_to(stage, 1, 4, 3);
    return stage;
}

static void assert_audit(struct stage *stage)
{
    struct verify_response response;
    assert_ok(
        engine_verify(stage->engine, &(struct verify_request){.id = {1}}, &response, &stage->error),
        &stage->error);
    assert_int_equal(response.job.id.n, 1);
    assert_int_equal(response.job.task_count, 0);
    assert_false(response.more);
    assert_int_equal(response.generation_count, 1);
    assert_true(generation_equal(response.generations[0].generation, stage->generation));
    assert_int_equal(response.generations[0].members, 3);
    assert_int_equal(response.generations[0].resume, 0);
    assert_true(response.generations[0].planned_us > 0);
    assert_int_equal(response.epoch_count, 1);
    const struct verify_epoch *epoch = &response.epochs[0];
    assert_string_equal(epoch->name, "train");
    assert_true(epoch->shares && epoch->consumption.provable);
    assert_int_equal(epoch->source_samples, 16);
    assert_int_equal(epoch->cursor.epoch, 0);
    assert_int_equal(epoch->cursor.steps, 2);
    assert_int_equal(epoch->consumption.steps, 2);
    assert_int_equal(epoch->consumption.samples, 16);
    assert_int_equal(epoch->consumption.consumed[0], 2);
}

static void epochs_and_generations_are_audited(void **state)
{
    (void)state;
    struct stage *stage = stage_trained();
    struct verify_response response;
    struct job_info info;
    assert_audit(stage);
    assert_true(engine_job_info(stage->engine, (struct job_id){1}, &info));
    assert_int_equal(info.position, 3);
    stage_reopen(stage);
    assert_audit(stage);
    assert_error(
        engine_verify(stage->engine, &(struct verify_request){.id = {9}}, &response, &stage->error),
        CADRE_NOT_FOUND, &stage->error, "no job 9");
    stage_close(stage);
}

static uint64_t position(struct stage *stage)
{
    struct job_info info;
    assert_true(engine_job_info(stage->engine, (struct job_id){1}, &info));
    return info.position;
}

/* Three steps are committed and five released. After a start the records say two: an epoch. */
static void a_start_reports_no_more_than_was_committed(void **state)
{
    (void)state;
    struct stage *stage = stage_trained();
    come_to(stage, 1, 5, 3);
    stage_reopen(stage);
    assert_int_equal(position(stage), 2);
    rejoin(stage, 1, "one", 2, 1, 0, 2);
    rejoin(stage, 2, "two", 2, 1, 2, 1);
    for (uint32_t slot = 0; slot < 3; slot++) {
        task_hello_again(stage, slot < 2 ? 1 : 2, 1, slot, 3, 4);
    }
    assert_int_equal(position(stage), 2);
    come_to(stage, 1, 5, 3);
    assert_int_equal(position(stage), 3);
    cancel(stage, 5, 1);
    flush(stage);
    stage_reopen(stage);
    flush(stage);
    assert_int_equal(position(stage), 3); /* it is still ending */
    rejoin(stage, 1, "one", 2, 1, 0, 2);
    rejoin(stage, 2, "two", 2, 1, 2, 1);
    for (uint32_t slot = 0; slot < 3; slot++) {
        gone(stage, slot < 2 ? 1 : 2, 1, slot, 0, "");
        collected(stage, slot < 2 ? 1 : 2, 1, slot);
    }
    flush(stage);
    assert_int_equal(position(stage), 3);
    stage_reopen(stage);
    struct job_info info;
    assert_true(engine_job_info(stage->engine, (struct job_id){1}, &info));
    assert_int_equal(info.state, JOB_CANCELLED);
    assert_int_equal(info.position, 3);
    stage_close(stage);
}

static void drain(struct stage *stage, uint64_t call, const char *worker, bool ends)
{
    const struct drain_request asked = {.worker = worker, .reason = "kernel", .ends = ends};
    engine_drain(stage->engine, stage->now_us, (struct call_id){call}, &asked, "alice");
    flush(stage);
}

static struct worker_info second_worker(struct stage *stage)
{
    struct worker_info worker;
    uint32_t cursor = 0;
    assert_true(engine_worker_next(stage->engine, &cursor, &worker));
    assert_true(engine_worker_next(stage->engine, &cursor, &worker));
    return worker;
}

static void a_drain_is_answered(void **state)
{
    (void)state;
    struct stage *stage = stage_formed();
    drain(stage, 7, "w99", false);
    expect_output(
        stage, "answer 7: NOT_FOUND: no worker is named w99: `cadre workers` lists them\n");
    drain(stage, 8, "two", false);
    expect_output(stage,
        "commit!: drained 0, control 1\n" /* the job cannot do without it, and is saved */
        "answer 8: job 0, 0 before\n"
        "link 1 job 1: release g1 to 0; halt 2 at 1 of 0\n"
        "link 2 job 1: release g1 to 0; halt 2 at 1 of 0\n"
        "changed 1: running\n");
    assert_true(second_worker(stage).draining);
    stage_close(stage);
}

/* It outlives the coordinator, with who and why, until a client ends it. */
static void a_drain_is_kept(void **state)
{
    (void)state;
    struct stage *stage = stage_open();
    join(stage, 1, "one", 1);
    join(stage, 2, "two", 1);
    flush(stage);
    drain(stage, 8, "two", false);
    stage_reopen(stage);
    flush(stage);
    join(stage, 3, "one", 1);
    join(stage, 4, "two", 1);
    flush(stage);
    assert_true(second_worker(stage).draining);
    assert_string_equal(second_worker(stage).drained_by, "alice");
    assert_string_equal(second_worker(stage).drained_why, "kernel");
    stage_skip(stage);
    drain(stage, 9, "two", true);
    expect_output(stage, "commit!: undrained 0\n"
                         "answer 9: job 0, 0 before\n");
    assert_false(second_worker(stage).draining);
    drain(stage, 10, "two", true);
    expect_output(stage,
        "answer 10: NOT_FOUND: no client drained a worker named two: `cadre workers` lists "
        "those that are drained\n");
    stage_reopen(stage);
    flush(stage);
    join(stage, 5, "one", 1);
    join(stage, 6, "two", 1);
    flush(stage);
    assert_false(second_worker(stage).draining);
    assert_string_equal(second_worker(stage).drained_by, "");
    stage_close(stage);
}

/* One of the two workers arrives, then the other: a record that needs no sync of its own. */
static void release_one(struct stage *stage, uint64_t up_to)
{
    arrived(stage, 1, 1, 2, up_to);
    arrived(stage, 2, 1, 1, up_to);
    flush(stage);
}

static void what_may_lag_is_synced_in_time(void **state)
{
    (void)state;
    struct stage *stage = stage_open();
    stage->options.sync_us = SECOND;
    stage_reopen(stage);
    stage_form(stage);
    release_one(stage, 1);
    stage_skip(stage);
    release_one(stage, 2);
    assert_memory_equal(stage->transcript, "commit: watermark 1\n", 20);
    uint64_t due_us = engine_wake_us(stage->engine);
    assert_int_equal(due_us, stage->now_us + SECOND);
    stage_skip(stage);
    stage->now_us = due_us - 1;
    flush(stage);
    expect_output(stage, "");
    stage->now_us = due_us;
    engine_tick(stage->engine, stage->now_us);
    flush(stage);
    expect_output(stage, "commit!:\n");
    assert_true(engine_wake_us(stage->engine) > due_us);
    flush(stage);
    expect_output(stage, ""); /* once */
    /* Late records go along with it. */
    release_one(stage, 3);
    stage->now_us += SECOND;
    stage_skip(stage);
    release_one(stage, 4);
    assert_memory_equal(stage->transcript, "commit!: watermark 1\n", 21);
    /* The sync fails like any commit. */
    release_one(stage, 5);
    stage->store.failing_commit = stage->store.commits + 1;
    stage->now_us += SECOND;
    assert_error(engine_flush(stage->engine, stage->now_us, &stage->error),
        CADRE_RESOURCE_EXHAUSTED, &stage->error, "the disk is full");
    stage_close(stage);
}

/* However often something is recorded meanwhile: nothing lags for longer. */
static void records_do_not_put_the_sync_off(void **state)
{
    (void)state;
    struct stage *stage = stage_open();
    stage->options.sync_us = SECOND;
    stage_reopen(stage);
    stage_form(stage);
    release_one(stage, 1);
    uint64_t due_us = engine_wake_us(stage->engine);
    for (uint64_t up_to = 2; up_to <= 4; up_to++) {
        stage->now_us += SECOND / 4;
        release_one(stage, up_to);
        assert_int_equal(engine_wake_us(stage->engine), due_us);
    }
    stage_skip(stage);
    stage->now_us = due_us;
    flush(stage);
    expect_output(stage, "commit!:\n");
    stage_close(stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(epochs_and_generations_are_audited),
        cmocka_unit_test(a_start_reports_no_more_than_was_committed),
        cmocka_unit_test(a_drain_is_answered), cmocka_unit_test(a_drain_is_kept),
        cmocka_unit_test(what_may_lag_is_synced_in_time),
        cmocka_unit_test(records_do_not_put_the_sync_off)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
