/* SPDX-License-Identifier: Apache-2.0
 * What is not kept any more, where the records of turns go into a log that several coordinators
 * share: it goes, with its files, when the entry is stored that records it. */
#include <stdio.h>
#include <string.h>

#include "tests/unit/engine/stage.h"

static struct stage *stage_keeping(uint32_t jobs)
{
    struct stage *stage = stage_open();
    stage->options.sync_us = SECOND;
    stage->options.keep_jobs = jobs;
    stage_share(stage);
    stage_skip(stage);
    return stage;
}

/* It ends at once, for no worker has so many slots. */
static void end_a_job(struct stage *stage, uint64_t job)
{
    submit(stage, 1, 3);
    cancel(stage, 2, job);
    flush(stage);
    stored(stage, stage->appended);
    stage_skip(stage);
}

/* All entries are stored. */
static void settle(struct stage *stage)
{
    flush(stage);
    stored(stage, stage->appended);
}

/* A job of one task that saves at each step, keeps `kept` checkpoints and has one of step 1. */
static struct stage *stage_saved(uint32_t kept)
{
    struct stage *stage = stage_keeping(5);
    struct job_spec spec = spec_of(1);
    spec.checkpoints_kept = kept;
    spec.checkpoint_every = 1;
    join(stage, 1, "one", 1);
    submit_spec(stage, 1, &spec);
    settle(stage);
    started(stage, 1, 1, 0);
    task_hello(stage, 1, 1, 0);
    settle(stage);
    arrived(stage, 1, 1, 1, 1);
    flush(stage);
    arrived(stage, 1, 1, 1, 2);
    part(stage, 1, 1, 1);
    settle(stage);
    stage_skip(stage);
    return stage;
}

static void damage(struct stage *stage, uint64_t position)
{
    engine_checkpoint_damaged(
        stage->engine, stage->now_us, (struct job_id){1}, position, "a byte differs");
}

static void see(void *user, struct job_id job, const struct core_checkpoint *checkpoint)
{
    char *text = user;
    size_t at = strlen(text);
    snprintf(text + at, 64 - at, "%u:%u ", (unsigned)job.n, (unsigned)checkpoint->position);
}

static void assert_wanted(struct stage *stage, const char *expected)
{
    char text[64] = "";
    assert_ok(engine_each_checkpoint(stage->engine, see, text, &stage->error), &stage->error);
    assert_string_equal(text, expected);
}

static void a_job_beyond_those_that_are_kept_goes(void **state)
{
    (void)state;
    struct stage *stage = stage_keeping(0);
    struct job_info info;
    submit(stage, 1, 1);
    cancel(stage, 2, 1);
    flush(stage);
    expect_output(stage, "entry 1!: job 1, ended 1, forgotten 1\n");
    flush(stage);
    expect_output(stage, "");
    assert_false(engine_job_may_go(stage->engine, (struct job_id){1}));
    stored(stage, 1);
    expect_output(stage, "answer 1: job 1, 0 before\n"
                         "answer 2: job 1, 0 before\n"
                         "changed 1: cancelled\n"
                         "forgotten 1\n");
    assert_false(engine_job_info(stage->engine, (struct job_id){1}, &info));
    stage_close(stage);
}

/* Until then it is there, and no record of it follows. */
static void a_job_is_forgotten_when_that_is_stored(void **state)
{
    (void)state;
    struct stage *stage = stage_saved(2);
    const struct job_id job = {1};
    struct job_info info;
    cancel(stage, 9, 1);
    flush(stage);
    gone(stage, 1, 1, 0, 0, "");
    collected(stage, 1, 1, 0);
    settle(stage);
    stage_skip(stage);
    assert_true(engine_job_may_go(stage->engine, job));
    assert_ok(engine_forget_job(stage->engine, job, &stage->error), &stage->error);
    assert_false(engine_job_may_go(stage->engine, job));
    assert_true(engine_wake_us(stage->engine) == stage->now_us);
    damage(stage, 1);
    expect_output(stage, "");
    flush(stage);
    expect_output(stage, "entry 6!: forgotten 1\n");
    assert_true(engine_wake_us(stage->engine) > stage->now_us);
    flush(stage);
    damage(stage, 1);
    flush(stage);
    expect_output(stage, "");
    assert_true(engine_job_info(stage->engine, job, &info));
    assert_int_equal(info.state, JOB_CANCELLED);
    assert_wanted(stage, "1:1 ");
    stored(stage, 6);
    expect_output(stage, "forgotten 1\n");
    assert_false(engine_job_info(stage->engine, job, &info));
    assert_wanted(stage, "");
    stage_close(stage);
}

/* It is not counted among those that are kept, and not removed twice. */
static void a_job_that_is_going_is_not_kept(void **state)
{
    (void)state;
    struct stage *stage = stage_keeping(1);
    end_a_job(stage, 1);
    assert_ok(engine_forget_job(stage->engine, (struct job_id){1}, &stage->error), &stage->error);
    submit(stage, 1, 3);
    cancel(stage, 2, 2);
    flush(stage);
    expect_output(stage, "entry 2!: job 2, ended 2, forgotten 1\n");
    submit(stage, 3, 3);
    cancel(stage, 4, 3);
    flush(stage);
    expect_output(stage, "entry 3!: job 3, ended 3, forgotten 2\n");
    stored(stage, 2);
    assert_non_null(strstr(stage->transcript, "forgotten 1\n"));
    assert_null(strstr(stage->transcript, "forgotten 2\n"));
    stage_skip(stage);
    stored(stage, 3);
    assert_non_null(strstr(stage->transcript, "forgotten 2\n"));
    stage_close(stage);
}

/* What happened to another job meanwhile, and waits for an entry, is in that one. */
static void the_entry_takes_along_what_waits(void **state)
{
    (void)state;
    struct stage *stage = stage_keeping(5);
    join(stage, 1, "one", 2);
    submit(stage, 1, 2);
    settle(stage);
    end_a_job(stage, 2);
    started(stage, 1, 1, 0);
    flush(stage);
    expect_output(stage, "changed 1: starting\n");
    size_t events = stage->events;
    assert_ok(engine_forget_job(stage->engine, (struct job_id){2}, &stage->error), &stage->error);
    flush(stage);
    assert_non_null(strstr(stage->transcript, "!: forgotten 2\n"));
    assert_int_equal(stage->events, events + 1);
    stage_close(stage);
}

/* A suspended coordinator records nothing. */
static void a_suspended_coordinator_removes_nothing(void **state)
{
    (void)state;
    struct stage *stage = stage_keeping(5);
    struct cadre_error why = {.code = CADRE_UNAVAILABLE, .text = "etcd does not answer"};
    end_a_job(stage, 1);
    engine_suspend(stage->engine, stage->now_us, &why);
    assert_ok(engine_forget_job(stage->engine, (struct job_id){1}, &stage->error), &stage->error);
    flush(stage);
    expect_output(stage, "");
    assert_true(engine_wake_us(stage->engine) == UINT64_MAX);
    engine_resume(stage->engine, stage->now_us);
    flush(stage);
    expect_output(stage, "entry 2!: forgotten 1\n");
    stage_close(stage);
}

static void the_damage_of_a_job_that_ended_is_recorded(void **state)
{
    (void)state;
    struct stage *stage = stage_saved(2);
    struct core_checkpoint newest;
    cancel(stage, 9, 1);
    flush(stage);
    gone(stage, 1, 1, 0, 0, "");
    collected(stage, 1, 1, 0);
    settle(stage);
    stage_skip(stage);
    size_t events = stage->events;
    damage(stage, 1);
    expect_output(stage, "");
    flush(stage);
    expect_output(stage, "entry 6!: checkpoint lost 1\n");
    assert_int_equal(stage->events, events + 1);
    assert_false(engine_checkpoint(stage->engine, (struct job_id){1}, &newest));
    stage_close(stage);
}

/* Its contents are wanted, because the ledger of another coordinator may have it still. */
static void a_dropped_checkpoint_is_wanted_until_that_is_stored(void **state)
{
    (void)state;
    struct stage *stage = stage_saved(1);
    struct core_checkpoint oldest;
    assert_wanted(stage, "1:1 ");
    arrived(stage, 1, 1, 1, 3);
    part(stage, 1, 1, 2);
    flush(stage);
    assert_non_null(strstr(stage->transcript, "checkpoint 1, checkpoint dropped 1\n"));
    assert_true(engine_checkpoint_at(stage->engine, (struct job_id){1}, 0, &oldest));
    assert_int_equal(oldest.position, 2); /* no job begins at the other one any more */
    assert_wanted(stage, "1:2 1:1 ");
    stage_skip(stage);
    stored(stage, stage->appended);
    assert_non_null(strstr(stage->transcript, "dropped checkpoint 1 of 1"));
    assert_wanted(stage, "1:2 ");
    stage_close(stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_beyond_those_that_are_kept_goes),
        cmocka_unit_test(a_job_is_forgotten_when_that_is_stored),
        cmocka_unit_test(a_job_that_is_going_is_not_kept),
        cmocka_unit_test(the_entry_takes_along_what_waits),
        cmocka_unit_test(a_suspended_coordinator_removes_nothing),
        cmocka_unit_test(the_damage_of_a_job_that_ended_is_recorded),
        cmocka_unit_test(a_dropped_checkpoint_is_wanted_until_that_is_stored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
