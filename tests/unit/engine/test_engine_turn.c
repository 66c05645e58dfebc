/* SPDX-License-Identifier: Apache-2.0
 * The order of a turn: events, one commit, speech. What fails, what is dropped, what keys are. */
#include <string.h>

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "tests/unit/engine/stage.h"

static void records_come_before_speech(void **state)
{
    (void)state;
    struct stage *stage = stage_open();
    join(stage, 1, "one", 2);
    submit(stage, 5, 2);
    expect_output(stage, ""); /* nothing before the turn ends */
    flush(stage);
    expect_output(stage, "commit!: job 1, started 1\n"
                         "link 1: welcome worker 1\n"
                         "answer 5: job 1, 0 before\n"
                         "link 1: start 1/0#1 of 2 program\n"
                         "link 1: start 1/1#2 of 2 program\n"
                         "changed 1: starting\n");
    stage_close(stage);
}

static void one_commit_for_many_events(void **state)
{
    (void)state;
    struct stage *stage = stage_open();
    submit(stage, 1, 1);
    submit(stage, 2, 1);
    cancel(stage, 3, 1);
    cancel(stage, 4, 77);
    flush(stage);
    expect_output(stage, "commit!: job 1, job 2, ended 1\n"
                         "answer 1: job 1, 0 before\n"
                         "answer 2: job 2, 1 before\n"
                         "answer 3: job 1, 0 before\n"
                         "answer 4: NOT_FOUND: job 77 does not exist: `cadre jobs` lists them\n"
                         "changed 1: cancelled\n"
                         "changed 2: queued\n");
    flush(stage);
    expect_output(stage, ""); /* nothing to say: no commit */
    stage_close(stage);
}

static void a_plan_is_one_message_for_each_worker(void **state)
{
    (void)state;
    struct stage *stage = stage_open();
    join(stage, 1, "one", 2);
    join(stage, 2, "two", 2);
    submit(stage, 1, 3);
    flush(stage);
    for (uint32_t slot = 0; slot < 3; slot++) {
        uint64_t link = slot < 2 ? 1 : 2;
        started(stage, link, 1, slot);
        task_hello(stage, link, 1, slot);
    }
    stage_skip(stage);
    flush(stage);
    expect_output(stage, "commit!: plan 1\n"
                         "link 1 job 1: plan g1 of 3 from 0, state of no task\n"
                         "link 2 job 1: plan g1 of 3 from 0, state of no task\n"
                         "changed 1: running\n");
    stage_close(stage);
}

static void an_outdated_release_is_not_sent(void **state)
{
    (void)state;
    struct stage *stage = stage_formed();
    arrived(stage, 1, 1, 2, 1);
    arrived(stage, 2, 1, 1, 1);
    arrived(stage, 1, 1, 2, 2);
    arrived(stage, 2, 1, 1, 2);
    flush(stage);
    expect_output(stage, "commit: watermark 1, watermark 1\n"
                         "link 1 job 1: release g1 to 2\n"
                         "link 2 job 1: release g1 to 2\n");
    stage_close(stage);
}

static void a_job_cancelled_in_the_turn_is_started_and_stopped(void **state)
{
    (void)state;
    struct stage *stage = stage_open();
    join(stage, 1, "one", 2);
    submit(stage, 1, 2);
    cancel(stage, 2, 1);
    flush(stage);
    expect_output(stage, "commit!: job 1, started 1, ending 1\n"
                         "link 1: welcome worker 1\n"
                         "answer 1: job 1, 0 before\n"
                         "link 1: start 1/0#1 of 2 program\n"
                         "link 1: start 1/1#2 of 2 program\n"
                         "answer 2: job 1, 0 before\n"
                         "link 1: stop job 1\n"
                         "changed 1: ending\n");
    stage_close(stage);
}

static void a_link_that_broke_receives_nothing(void **state)
{
    (void)state;
    struct stage *stage = stage_formed();
    arrived(stage, 1, 1, 2, 1);
    arrived(stage, 2, 1, 1, 1);
    engine_link_down(stage->engine, stage->now_us, (struct link_id){2});
    flush(stage);
    expect_output(stage, "commit: watermark 1\n"
                         "link 1 job 1: release g1 to 1\n");
    stage_close(stage);
}

/* Every commit of a job fails once: nothing of that turn is sent, and a new coordinator
 * finds the store as it was acknowledged. */
static bool live_with_failing_commit(unsigned nth)
{
    struct stage *stage = stage_open();
    struct job_info info;
    stage->store.failing_commit = nth;
    cadre_status status = CADRE_OK;
    for (unsigned turn = 0; turn < 4 && status == CADRE_OK; turn++) {
        switch (turn) {
        case 0:
            join(stage, 1, "one", 1);
            submit(stage, 1, 1);
            break;
        case 1:
            started(stage, 1, 1, 0);
            task_hello(stage, 1, 1, 0);
            break;
        case 2:
            arrived(stage, 1, 1, 1, 1);
            break;
        default:
            gone(stage, 1, 1, 0, 3, "oh");
            collected(stage, 1, 1, 0);
            break;
        }
        stage_skip(stage);
        status = engine_flush(stage->engine, stage->now_us, &stage->error);
    }
    bool met = status != CADRE_OK;
    if (met) {
        assert_int_equal(status, CADRE_RESOURCE_EXHAUSTED);
        assert_string_equal(stage->error.text, "the disk is full");
        assert_memory_equal(stage->transcript, "commit", 6);
        assert_non_null(strstr(stage->transcript, " fails:"));
        assert_ptr_equal(strchr(stage->transcript, '\n') + 1, stage->transcript + stage->length);
        /* It stays broken, takes no harm from events, and says nothing any more. */
        stage_skip(stage);
        submit(stage, 9, 1);
        submit(stage, 10, 0);
        engine_tick(stage->engine, stage->now_us);
        assert_error(engine_flush(stage->engine, stage->now_us, &stage->error),
            CADRE_RESOURCE_EXHAUSTED, &stage->error, "the disk is full");
        expect_output(stage, "");
    }
    stage_reopen(stage);
    flush(stage);
    assert_int_equal(engine_job_at(stage->engine, 0, &info), nth != 1);
    assert_true(nth == 1 || job_state_is_final(info.state) == !met);
    stage_close(stage);
    return met;
}

static void a_failed_commit_is_never_sent(void **state)
{
    (void)state;
    unsigned nth = 1;
    while (live_with_failing_commit(nth)) {
        nth++;
    }
    assert_true(nth > 4);
}

/* The same, held and tried again: the job comes to its end, and each thing is said once, after it
 * is stored. */
static bool live_with_held_commit(unsigned nth)
{
    struct stage *stage = stage_open();
    struct job_info info;
    struct cadre_error why;
    bool met = false;
    stage->options.retry_us = 1000;
    stage_reopen(stage);
    stage->store.commits = 0;
    stage->store.failing_commit = nth;
    for (unsigned turn = 0; turn < 5; turn++) {
        switch (turn) {
        case 0:
            join(stage, 1, "one", 1);
            submit(stage, 1, 1);
            break;
        case 1:
            started(stage, 1, 1, 0);
            task_hello(stage, 1, 1, 0);
            break;
        case 2:
            arrived(stage, 1, 1, 1, 1);
            break;
        case 3:
            gone(stage, 1, 1, 0, 3, "oh");
            break;
        default:
            collected(stage, 1, 1, 0);
            break;
        }
        flush(stage);
        if (engine_held(stage->engine, &why)) {
            met = true;
            assert_string_equal(why.text, "the disk is full");
            assert_non_null(strstr(stage->transcript, " fails:"));
            assert_ptr_equal(strchr(strstr(stage->transcript, " fails:"), '\n') + 1,
                stage->transcript + stage->length);
            bool shown = engine_job_info(stage->engine, (struct job_id){1}, &info);
            assert_true(shown == (turn > 0));
            assert_true(!shown || !job_state_is_final(info.state));
            stage->now_us += 1000;
            flush(stage);
            assert_false(engine_held(stage->engine, &why));
        }
        stage_skip(stage);
    }
    assert_true(engine_job_info(stage->engine, (struct job_id){1}, &info));
    assert_int_equal(info.state, JOB_FAILED);
    assert_int_equal(info.exit_code, 3);
    stage_close(stage);
    return met;
}

static void a_held_commit_costs_nothing(void **state)
{
    (void)state;
    unsigned nth = 1;
    while (live_with_held_commit(nth)) {
        nth++;
    }
    assert_true(nth > 4);
}

/* Two tasks exit, and with the messages that tell their workers so only the ledger knows how they
 * ended: one fsync for both, before. */
static void ends_are_synced_before_workers_forget_them(void **state)
{
    (void)state;
    struct stage *stage = stage_formed();
    gone(stage, 1, 1, 0, 0, "");
    gone(stage, 1, 1, 1, 0, "");
    flush(stage);
    assert_memory_equal(stage->transcript, "commit: task exit 1, ", 21); /* no worker forgets yet */
    stage_skip(stage);
    collected(stage, 1, 1, 0);
    collected(stage, 1, 1, 1);
    flush(stage);
    expect_output(stage, "commit!:\n" /* one fsync, of what is recorded already */
                         "link 1: stop job 1, one task\n"
                         "link 1: stop job 1, one task\n"
                         "changed 1: running\n");
    store_memory_lose_tail(stage->store.inner);
    stage_reopen(stage);
    struct job_info info;
    assert_true(engine_job_info(stage->engine, (struct job_id){1}, &info));
    assert_true(info.tasks[0].has_exit && info.tasks[1].has_exit);
    stage_close(stage);
}

/* Its end and its removal are one commit. */
static void a_job_that_is_not_kept_goes_with_its_end(void **state)
{
    (void)state;
    struct stage *stage = stage_open();
    struct job_info info;
    stage->options.keep_jobs = 0;
    stage_reopen(stage);
    stage_skip(stage);
    submit(stage, 1, 1);
    cancel(stage, 2, 1);
    flush(stage);
    expect_output(stage, "commit!: job 1, ended 1, forgotten 1\n"
                         "answer 1: job 1, 0 before\n"
                         "answer 2: job 1, 0 before\n"
                         "changed 1: cancelled\n"
                         "forgotten 1\n");
    stage_reopen(stage);
    assert_false(engine_job_at(stage->engine, 0, &info));
    submit(stage, 1, 1);
    flush(stage);
    assert_true(engine_job_at(stage->engine, 0, &info));
    assert_int_equal(info.id.n, 2); /* no number is used twice */
    stage_close(stage);
}

static void a_failed_removal_breaks_it(void **state)
{
    (void)state;
    struct stage *stage = stage_open();
    stage->options.keep_jobs = 0;
    stage_reopen(stage);
    stage->store.removals_full = true;
    submit(stage, 1, 1);
    cancel(stage, 2, 1);
    assert_error(engine_flush(stage->engine, stage->now_us, &stage->error),
        CADRE_RESOURCE_EXHAUSTED, &stage->error, "the disk is full");
    stage_close(stage);
}

static void what_is_refused_leaves_nothing(void **state)
{
    (void)state;
    struct stage *stage = stage_open();
    struct job_info info;
    submit(stage, 1, 0);     /* no tasks */
    submit(stage, 2, 20000); /* over the limit of the wire */
    submit(stage, 3, 9);     /* over what this coordinator holds */
    flush(stage);
    assert_null(strstr(stage->transcript, "commit"));
    expect_output(stage,
        "answer 1: INVALID_ARGUMENT: JobSpec.workers is 0; it must be from 1 to 16384\n"
        "answer 2: INVALID_ARGUMENT: JobSpec.workers is 20000; it must be from 1 to 16384\n"
        "answer 3: RESOURCE_EXHAUSTED: the job asks for 9 tasks and the coordinator holds 0 of at "
        "most 8: try again when a job has ended, or raise --tasks-max\n");
    submit(stage, 4, 1);
    submit(stage, 5, 1);
    submit(stage, 6, 1);
    flush(stage);
    stage_skip(stage);
    submit(stage, 7, 1);
    flush(stage);
    expect_output(stage,
        "answer 7: RESOURCE_EXHAUSTED: the coordinator holds 3 jobs that have not ended, which is "
        "its limit: try again when one has, or raise --jobs-max\n");
    assert_false(engine_job_at(stage->engine, 3, &info));
    stage_close(stage);
}

static void the_oldest_ended_jobs_are_forgotten(void **state)
{
    (void)state;
    struct stage *stage = stage_open();
    struct job_info info;
    for (uint64_t job = 1; job <= 3; job++) {
        submit(stage, job, 1);
    }
    cancel(stage, 11, 2);
    cancel(stage, 12, 3);
    flush(stage);
    stage_skip(stage);
    cancel(stage, 13, 1);
    flush(stage);
    expect_output(stage, "commit!: ended 1, forgotten 1\n"
                         "answer 13: job 1, 0 before\n"
                         "changed 1: cancelled\n"
                         "forgotten 1\n");
    assert_false(engine_job_info(stage->engine, (struct job_id){1}, &info));
    assert_null(engine_job_spec(stage->engine, (struct job_id){1}));
    assert_true(engine_job_info(stage->engine, (struct job_id){2}, &info));
    cancel(stage, 14, 1);
    cancel(stage, 15, 2);
    flush(stage);
    expect_output(stage, "answer 14: FAILED_PRECONDITION: job 1 has ended already\n"
                         "answer 15: FAILED_PRECONDITION: job 2 has ended already\n");
    stage_reopen(stage);
    assert_true(engine_job_at(stage->engine, 1, &info));
    assert_int_equal(info.id.n, 2);
    assert_false(engine_job_at(stage->engine, 2, &info));
    stage_close(stage);
}

static void put_le(uint8_t *at, uint64_t value)
{
    for (int i = 0; i < 8; i++) {
        at[i] = (uint8_t)(value >> (8 * i));
    }
}

static void a_key_is_of_its_generation(void **state)
{
    (void)state;
    struct stage *stage = stage_formed();
    uint8_t text[32] = "cadrekey";
    uint8_t expected[LIMIT_JOB_KEY_BYTES];
    put_le(text + 8, 1);
    put_le(text + 16, stage->generation.number);
    put_le(text + 24, stage->generation.nonce);
    assert_non_null(HMAC(
        EVP_sha256(), stage->store.secret, STORE_SECRET_BYTES, text, sizeof text, expected, NULL));
    assert_memory_equal(stage->key, expected, sizeof expected);
    struct generation first = stage->generation;

    /* The same seed and secret give the same key, another secret another one. */
    struct stage *again = stage_open();
    memcpy(again->store.secret, stage->store.secret, STORE_SECRET_BYTES);
    for (int round = 0; round < 2; round++) {
        stage_reopen(again);
        again->generation = (struct generation){0};
        join(again, 1, "one", 1);
        submit(again, 1, 1);
        flush(again);
        uint64_t job = (uint64_t)round + 1;
        started(again, 1, job, 0);
        task_hello(again, 1, job, 0);
        flush(again);
        assert_int_equal(again->generation.number, 1);
        if (round == 0) {
            assert_true(generation_equal(again->generation, first));
            assert_memory_equal(again->key, expected, sizeof expected);
        } else {
            assert_memory_not_equal(again->key, expected, sizeof expected); /* of another job */
        }
        gone(again, 1, job, 0, 3, "");
        collected(again, 1, job, 0);
        flush(again);
    }
    stage_close(again);
    struct stage *other = stage_formed();
    assert_true(generation_equal(other->generation, first));
    assert_memory_not_equal(other->key, expected, sizeof expected);
    stage_close(other);
    stage_close(stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(records_come_before_speech),
        cmocka_unit_test(one_commit_for_many_events),
        cmocka_unit_test(a_plan_is_one_message_for_each_worker),
        cmocka_unit_test(an_outdated_release_is_not_sent),
        cmocka_unit_test(a_job_cancelled_in_the_turn_is_started_and_stopped),
        cmocka_unit_test(a_link_that_broke_receives_nothing),
        cmocka_unit_test(a_failed_commit_is_never_sent),
        cmocka_unit_test(a_held_commit_costs_nothing),
        cmocka_unit_test(ends_are_synced_before_workers_forget_them),
        cmocka_unit_test(a_job_that_is_not_kept_goes_with_its_end),
        cmocka_unit_test(a_failed_removal_breaks_it),
        cmocka_unit_test(what_is_refused_leaves_nothing),
        cmocka_unit_test(the_oldest_ended_jobs_are_forgotten),
        cmocka_unit_test(a_key_is_of_its_generation)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
