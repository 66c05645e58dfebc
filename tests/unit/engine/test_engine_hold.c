/* SPDX-License-Identifier: Apache-2.0
 * A turn that is held because the disk is full: no time passes for the core, so that no lease ends
 * while no worker can be received, and all of it passes again from then on; what is stored late,
 * and what is not waited for. */
#include <string.h>

#include "tests/unit/engine/stage.h"

#define RETRY_US SECOND

static struct stage *stage_with_jobs(void)
{
    struct stage *stage = stage_open();
    stage->options.retry_us = RETRY_US;
    stage_reopen(stage);
    stage_form(stage);
    return stage;
}

static void pass(struct stage *stage, uint64_t us)
{
    stage->now_us += us;
    engine_tick(stage->engine, stage->now_us);
    flush(stage);
}

/* The disk is full for a minute, while a client submits, and no worker is received. */
static void hold_for_a_minute(struct stage *stage, uint64_t call)
{
    struct cadre_error why;
    stage->store.full = true;
    submit(stage, call, 1);
    flush(stage);
    assert_true(engine_held(stage->engine, &why));
    for (unsigned i = 0; i < 60; i++) {
        assert_true(engine_wake_us(stage->engine) == stage->now_us + RETRY_US);
        pass(stage, RETRY_US);
        assert_true(engine_held(stage->engine, &why));
    }
    stage->store.full = false;
    stage_skip(stage);
    pass(stage, RETRY_US);
    assert_false(engine_held(stage->engine, &why));
}

static void receive_every(struct stage *stage)
{
    heartbeat(stage, 1);
    heartbeat(stage, 2);
    flush(stage);
}

/* Each hold by itself, and both together, is longer than a lease. */
static void no_lease_ends_while_a_turn_is_held(void **state)
{
    (void)state;
    struct stage *stage = stage_with_jobs();
    const uint64_t lease_us = stage->options.core.lease_us;
    for (uint64_t call = 2; call < 4; call++) {
        receive_every(stage);
        pass(stage, 3 * SECOND);
        hold_for_a_minute(stage, call);
        assert_non_null(strstr(stage->transcript, "commit!: job "));
        assert_null(strstr(stage->transcript, "refuse"));
        assert_null(strstr(stage->transcript, "task exit"));
    }
    /* Three seconds had passed before, so there is the rest of the lease, to the microsecond. */
    const uint64_t end_us = stage->now_us + lease_us - 3 * SECOND;
    stage_skip(stage);
    for (uint64_t wake_us; (wake_us = engine_wake_us(stage->engine)) < end_us;) {
        pass(stage, wake_us - stage->now_us); /* for something else */
    }
    assert_null(strstr(stage->transcript, "refuse"));
    assert_true(engine_wake_us(stage->engine) == end_us);
    pass(stage, end_us - stage->now_us);
    assert_non_null(strstr(stage->transcript, "refuse link 1: UNAVAILABLE: the worker was silent"));
    assert_non_null(strstr(stage->transcript, "refuse link 2: UNAVAILABLE: the worker was silent"));
    stage_close(stage);
}

/* A worker that sends during a hold has the whole lease from its end on. */
static void who_reports_meanwhile_counts_from_the_end(void **state)
{
    (void)state;
    struct stage *stage = stage_with_jobs();
    struct cadre_error why;
    const uint64_t lease_us = stage->options.core.lease_us;
    receive_every(stage);
    pass(stage, 4 * SECOND);
    stage->store.full = true;
    submit(stage, 2, 1);
    flush(stage);
    pass(stage, 30 * SECOND);
    heartbeat(stage, 1);
    pass(stage, 30 * SECOND);
    assert_true(engine_held(stage->engine, &why));
    stage->store.full = false;
    pass(stage, RETRY_US);
    stage_skip(stage);
    pass(stage, lease_us - 4 * SECOND);
    assert_null(strstr(stage->transcript, "refuse link 1"));
    assert_non_null(strstr(stage->transcript, "refuse link 2"));
    stage_skip(stage);
    pass(stage, 4 * SECOND - 1);
    assert_null(strstr(stage->transcript, "refuse link 1"));
    pass(stage, 1);
    assert_non_null(strstr(stage->transcript, "refuse link 1"));
    stage_close(stage);
}

/* Which start this is may be stored late, and once: no worker gets it before that. */
static void a_start_without_room_is_stored_when_there_is_some(void **state)
{
    (void)state;
    struct stage *stage = stage_with_jobs();
    struct cadre_error why;
    uint64_t before = engine_term(stage->engine).start;
    stage->store.full = true;
    stage_reopen(stage);
    pass(stage, 1);
    assert_true(engine_held(stage->engine, &why));
    stage->store.full = false;
    pass(stage, RETRY_US);
    assert_false(engine_held(stage->engine, &why));
    for (uint64_t call = 2; call < 4; call++) {
        assert_int_equal(engine_term(stage->engine).start, before + 1);
        submit(stage, call, 1);
        pass(stage, RETRY_US);
    }
    stage_reopen(stage);
    assert_int_equal(engine_term(stage->engine).start, before + 2);
    stage_close(stage);
}

static void a_start_that_supersedes_is_above(void **state)
{
    (void)state;
    struct stage *stage = stage_with_jobs();
    for (unsigned full = 0; full < 2; full++) {
        uint64_t seen = engine_term(stage->engine).start + 7;
        stage->store.full = full > 0;
        engine_supersede(stage->engine, seen);
        pass(stage, 1);
        stage->store.full = false;
        pass(stage, RETRY_US);
        assert_int_equal(engine_term(stage->engine).start, seen + 1);
        stage_reopen(stage);
        assert_int_equal(engine_term(stage->engine).start, seen + 2);
    }
    stage_close(stage);
}

/* Waiting mends a full disk, and nothing else. */
static void another_error_is_not_waited_for(void **state)
{
    (void)state;
    struct stage *stage = stage_with_jobs();
    struct cadre_error why;
    stage->store.commit_is = CADRE_DATA_LOSS;
    submit(stage, 2, 1);
    for (unsigned i = 0; i < 2; i++) {
        assert_error(engine_flush(stage->engine, stage->now_us, &stage->error), CADRE_DATA_LOSS,
            &stage->error, "the disk is gone");
        assert_false(engine_held(stage->engine, &why));
        stage->store.commit_is = CADRE_OK; /* what it said cannot be taken back */
    }
    stage_close(stage);
}

static void without_a_deadline_there_is_none_after_a_hold(void **state)
{
    (void)state;
    struct stage *stage = stage_open();
    stage->options.retry_us = RETRY_US;
    stage_reopen(stage);
    flush(stage);
    stage->store.full = true;
    submit(stage, 1, 1);
    flush(stage);
    pass(stage, 5 * SECOND);
    stage->store.full = false;
    pass(stage, RETRY_US);
    assert_true(engine_wake_us(stage->engine) == UINT64_MAX);
    stage_close(stage);
}

/* A checkpoint that is one too many goes with the record of the next one, or stays with it. */
static void what_cannot_be_dropped_is_tried_again(void **state)
{
    (void)state;
    struct stage *stage = stage_with_jobs();
    struct job_spec spec = spec_of(1);
    spec.checkpoints_kept = 1;
    spec.checkpoint_every = 1;
    submit_spec(stage, 2, &spec);
    flush(stage);
    started(stage, 2, 2, 0);
    task_hello(stage, 2, 2, 0);
    flush(stage);
    arrived(stage, 2, 2, 1, 1);
    arrived(stage, 2, 2, 1, 2);
    part(stage, 2, 2, 1);
    flush(stage);
    stage->store.removals_full = true;
    arrived(stage, 2, 2, 1, 3);
    part(stage, 2, 2, 2);
    stage_skip(stage);
    flush(stage);
    expect_output(stage, "commit! fails: watermark 2, checkpoint 2, checkpoint dropped 2\n");
    flush(stage);
    expect_output(stage, "");
    assert_true(engine_wake_us(stage->engine) == stage->now_us + RETRY_US);
    stage->store.removals_full = false;
    pass(stage, RETRY_US);
    expect_output(stage, "commit!: watermark 2, checkpoint 2, checkpoint dropped 2\n"
                         "link 2 job 2: release g1 to 3, published 2\n"
                         "changed 2: running\n"
                         "dropped checkpoint 1 of 2: checkpoints/checkpoint-1.json\n");
    pass(stage, RETRY_US);
    expect_output(stage, "");
    stage_close(stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_lease_ends_while_a_turn_is_held),
        cmocka_unit_test(who_reports_meanwhile_counts_from_the_end),
        cmocka_unit_test(a_start_without_room_is_stored_when_there_is_some),
        cmocka_unit_test(a_start_that_supersedes_is_above),
        cmocka_unit_test(another_error_is_not_waited_for),
        cmocka_unit_test(without_a_deadline_there_is_none_after_a_hold),
        cmocka_unit_test(what_cannot_be_dropped_is_tried_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
