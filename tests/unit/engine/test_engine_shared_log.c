/* SPDX-License-Identifier: Apache-2.0
 * Turns whose records go into a log that several coordinators share: what waits for its entry, what
 * does not, what is sent while this coordinator does not know whether it leads. */
#include <string.h>

#include "tests/unit/engine/stage.h"

static struct stage *stage_shared(void)
{
    struct stage *stage = stage_open();
    stage->options.sync_us = SECOND;
    stage_share(stage);
    stage_skip(stage);
    return stage;
}

/* Two workers, job 1 of three tasks that are formed; all entries so far are stored. */
static struct stage *stage_shared_formed(void)
{
    struct stage *stage = stage_shared();
    join(stage, 1, "one", 2);
    join(stage, 2, "two", 2);
    submit(stage, 1, 3);
    flush(stage);
    stored(stage, 1);
    for (uint32_t slot = 0; slot < 3; slot++) {
        uint64_t link = slot < 2 ? 1 : 2;
        started(stage, link, 1, slot);
        task_hello(stage, link, 1, slot);
    }
    flush(stage);
    stored(stage, stage->appended);
    stage_skip(stage);
    return stage;
}

static void step(struct stage *stage, uint64_t up_to)
{
    arrived(stage, 1, 1, 2, up_to);
    arrived(stage, 2, 1, 1, up_to);
    flush(stage);
}

static void messages_wait_for_the_entry_of_their_turn(void **state)
{
    (void)state;
    struct stage *stage = stage_shared();
    struct job_info info;
    assert_true(engine_term(stage->engine).start == 7); /* as the log says */
    join(stage, 1, "one", 2);
    submit(stage, 5, 2);
    flush(stage);
    expect_output(stage, "entry 1!: job 1, started 1\n");
    assert_false(engine_job_info(stage->engine, (struct job_id){1}, &info));
    flush(stage);
    expect_output(stage, "");
    stored(stage, 1);
    expect_output(stage, "link 1: welcome worker 1\n"
                         "answer 5: job 1, 0 before\n"
                         "link 1: start 1/0#1 of 2 program\n"
                         "link 1: start 1/1#2 of 2 program\n"
                         "changed 1: starting\n");
    assert_true(engine_job_info(stage->engine, (struct job_id){1}, &info));
    stage_close(stage);
}

/* Turns go on while an entry is on its way, and what they send leaves in order. */
static void entries_are_on_their_way_together(void **state)
{
    (void)state;
    struct stage *stage = stage_shared();
    submit(stage, 1, 1);
    flush(stage);
    submit(stage, 2, 1);
    flush(stage);
    cancel(stage, 3, 1);
    flush(stage);
    expect_output(stage, "entry 1!: job 1\n"
                         "entry 2!: job 2\n"
                         "entry 3!: ended 1\n");
    stored(stage, 2);
    expect_output(stage, "answer 1: job 1, 0 before\n"
                         "changed 1: ending\n" /* its end is on its way: readers do not see it */
                         "answer 2: job 2, 1 before\n"
                         "changed 2: queued\n"
                         "changed 1: ending\n");
    stored(stage, 3);
    expect_output(stage, "answer 3: job 1, 0 before\n"
                         "changed 1: cancelled\n"
                         "changed 2: queued\n");
    stage_close(stage);
}

/* The records of steps share an entry, in which the newest of each kind is left. */
static void releases_wait_for_nothing(void **state)
{
    (void)state;
    struct stage *stage = stage_shared_formed();
    for (uint64_t up_to = 1; up_to <= 3; up_to++) {
        step(stage, up_to);
        stage->now_us += 1000;
    }
    expect_output(stage, "link 1 job 1: release g1 to 1\n"
                         "link 2 job 1: release g1 to 1\n"
                         "link 1 job 1: release g1 to 2\n"
                         "link 2 job 1: release g1 to 2\n"
                         "link 1 job 1: release g1 to 3\n"
                         "link 2 job 1: release g1 to 3\n");
    assert_true(engine_wake_us(stage->engine) == stage->now_us - 3000 + SECOND);
    stage->now_us += SECOND;
    flush(stage);
    expect_output(stage, "entry 3: watermark 1\n");
    step(stage, 4); /* behind the entry, which it does not wait for */
    expect_output(stage, "link 1 job 1: release g1 to 4\n"
                         "link 2 job 1: release g1 to 4\n");
    stage_close(stage);
}

/* What had time becomes part of the next entry of its job, in front of what waits. */
static void an_entry_takes_along_what_was_kept_of_its_job(void **state)
{
    (void)state;
    struct stage *stage = stage_shared_formed();
    step(stage, 1);
    step(stage, 2);
    stage_skip(stage);
    part(stage, 1, 1, 1);
    flush(stage);
    expect_output(stage, "entry 3!: watermark 1, checkpoint 1\n");
    stage->now_us += 2 * SECOND;
    flush(stage);
    expect_output(stage, ""); /* nothing is left */
    stage_close(stage);
}

/* An entry of one job does not carry what was kept of all others, which goes when it is due. */
static void what_was_kept_of_other_jobs_stays(void **state)
{
    (void)state;
    struct stage *stage = stage_shared_formed();
    step(stage, 1);
    uint64_t due_us = stage->now_us + SECOND;
    stage_skip(stage);
    stage->now_us += 1000;
    submit(stage, 2, 1);
    flush(stage);
    expect_output(stage, "entry 3!: job 2, started 2\n");
    assert_true(engine_wake_us(stage->engine) == due_us);
    stage->now_us = due_us;
    flush(stage);
    expect_output(stage, "entry 4: watermark 1\n");
    stage_close(stage);
}

/* A release has what was recorded before it, so it must not overtake that; others are sent. */
static void a_release_waits_behind_its_own_job_alone(void **state)
{
    (void)state;
    struct stage *stage = stage_shared_formed();
    submit(stage, 2, 1);
    flush(stage);
    stage_skip(stage);
    step(stage, 1);
    expect_output(stage, "link 1 job 1: release g1 to 1\n"
                         "link 2 job 1: release g1 to 1\n");
    step(stage, 2);
    stage_skip(stage);
    part(stage, 1, 1, 1);
    flush(stage);
    expect_output(stage, "entry 4!: watermark 1, checkpoint 1\n");
    step(stage, 3);
    expect_output(stage, "");
    stored(stage, 3);
    assert_non_null(strstr(stage->transcript, "start 2/0"));
    assert_null(strstr(stage->transcript, "job 1: release"));
    stage_skip(stage);
    stored(stage, 4);
    assert_non_null(strstr(stage->transcript, "link 1 job 1: release g1 to 3"));
    stage_close(stage);
}

/* An old leader must not refuse anything, so a refusal waits although nothing is recorded. */
static void a_refusal_waits_for_an_entry_without_records(void **state)
{
    (void)state;
    struct stage *stage = stage_shared_formed();
    stage->now_us += stage->options.core.lease_us; /* both workers are silent for too long */
    engine_tick(stage->engine, stage->now_us);
    flush(stage);
    assert_non_null(strstr(stage->transcript, "entry 3!:"));
    assert_null(strstr(stage->transcript, "refuse"));
    stored(stage, stage->appended);
    assert_non_null(strstr(stage->transcript, "refuse link 1: UNAVAILABLE"));
    assert_non_null(strstr(stage->transcript, "refuse link 2: UNAVAILABLE"));
    stage_skip(stage);
    cancel(stage, 9, 77);
    flush(stage);
    expect_output(stage, "entry 4!:\n");
    stored(stage, 4);
    expect_output(stage, "answer 9: NOT_FOUND: job 77 does not exist: `cadre jobs` lists them\n");
    stage_close(stage);
}

/* Rule HA12. Whether another one leads is seen with the entries that all else waits for. */
static void a_task_that_knows_more_than_the_ledger_is_kept(void **state)
{
    (void)state;
    struct stage *stage = stage_shared_formed();
    struct job_info info;
    stage->generation.number++;
    task_hello_again(stage, 1, 1, 0, 5, 5);
    flush(stage);
    stored(stage, stage->appended);
    expect_output(stage, "changed 1: running\n");
    step(stage, 1);
    stored(stage, stage->appended);
    expect_output(stage, "");
    assert_true(engine_job_info(stage->engine, (struct job_id){1}, &info));
    assert_non_null(strstr(info.message, "the ledger is older than the job"));
    stage_close(stage);
}

/* The first message on a link is the welcome. */
static void a_release_does_not_overtake_a_welcome(void **state)
{
    (void)state;
    struct stage *stage = stage_shared_formed();
    join(stage, 3, "three", 1);
    flush(stage);
    step(stage, 1);
    expect_output(stage, "entry 3!:\n");
    stored(stage, 3);
    expect_output(stage, "link 3: welcome worker 3\n"
                         "link 1 job 1: release g1 to 1\n"
                         "link 2 job 1: release g1 to 1\n");
    stage_close(stage);
}

/* Nothing is sent, whatever is stored meanwhile, and no time passes for the core. */
static void a_suspended_coordinator_sends_nothing(void **state)
{
    (void)state;
    struct stage *stage = stage_shared_formed();
    struct cadre_error why = {.code = CADRE_UNAVAILABLE, .text = "etcd does not answer"};
    struct cadre_error held;
    submit(stage, 2, 1);
    flush(stage);
    stage_skip(stage);
    engine_suspend(stage->engine, stage->now_us, &why);
    assert_true(engine_wake_us(stage->engine) == UINT64_MAX);
    step(stage, 1);
    stored(stage, 3);
    stage->now_us += 5 * stage->options.core.lease_us;
    engine_tick(stage->engine, stage->now_us);
    flush(stage);
    expect_output(stage, "");
    assert_true(engine_held(stage->engine, &held));
    assert_string_equal(held.text, "etcd does not answer");
    engine_resume(stage->engine, stage->now_us);
    assert_false(engine_held(stage->engine, &held));
    flush(stage);
    assert_non_null(strstr(stage->transcript, "answer 2: job 2"));
    assert_non_null(strstr(stage->transcript, "link 1 job 1: release g1 to 1"));
    assert_null(strstr(stage->transcript, "refuse"));
    stage_close(stage);
}

static void a_log_that_takes_nothing_breaks_the_engine(void **state)
{
    (void)state;
    struct stage *stage = stage_shared_formed();
    stage->append_is = CADRE_RESOURCE_EXHAUSTED;
    submit(stage, 2, 1);
    assert_error(engine_flush(stage->engine, stage->now_us, &stage->error),
        CADRE_RESOURCE_EXHAUSTED, &stage->error, "the log is gone");
    expect_output(stage, "entry 3!: job 2, started 2\n");
    stage_close(stage);
}

/* Nothing is lost that waits when the coordinator ends. */
static void what_waits_is_freed_with_the_engine(void **state)
{
    (void)state;
    struct stage *stage = stage_shared();
    for (uint64_t call = 1; call < 4; call++) {
        join(stage, call, call == 1 ? "one" : call == 2 ? "two" : "three", 1);
        submit(stage, call, 1);
        flush(stage);
    }
    stage_close(stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_wait_for_the_entry_of_their_turn),
        cmocka_unit_test(entries_are_on_their_way_together),
        cmocka_unit_test(releases_wait_for_nothing),
        cmocka_unit_test(an_entry_takes_along_what_was_kept_of_its_job),
        cmocka_unit_test(what_was_kept_of_other_jobs_stays),
        cmocka_unit_test(a_release_waits_behind_its_own_job_alone),
        cmocka_unit_test(a_refusal_waits_for_an_entry_without_records),
        cmocka_unit_test(a_task_that_knows_more_than_the_ledger_is_kept),
        cmocka_unit_test(a_release_does_not_overtake_a_welcome),
        cmocka_unit_test(a_suspended_coordinator_sends_nothing),
        cmocka_unit_test(a_log_that_takes_nothing_breaks_the_engine),
        cmocka_unit_test(what_waits_is_freed_with_the_engine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
