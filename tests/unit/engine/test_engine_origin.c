/* SPDX-License-Identifier: Apache-2.0
 * A job that goes on from another one's checkpoint, which turns out to be damaged: before it was
 * submitted, and after its tasks were started. */
#include <stdio.h>
#include <string.h>

#include "tests/unit/engine/stage.h"

#define WHY "its content does not have its hash"

/* Job 1 has those of the steps 1, 2 and 3. */
static struct stage *stage_trained(void)
{
    struct stage *stage = stage_open();
    struct job_spec spec = spec_of(1);
    spec.checkpoints_kept = 3;
    spec.checkpoint_every = 1;
    join(stage, 1, "one", 1);
    submit_spec(stage, 1, &spec);
    flush(stage);
    join(stage, 2, "two", 2);
    started(stage, 1, 1, 0);
    task_hello(stage, 1, 1, 0);
    flush(stage);
    arrived(stage, 1, 1, 1, 1);
    flush(stage);
    for (uint64_t position = 1; position <= 3; position++) {
        arrived(stage, 1, 1, 1, position + 1);
        part(stage, 1, 1, position);
        flush(stage);
    }
    stage_skip(stage);
    return stage;
}

static void damage(struct stage *stage, uint64_t job, uint64_t position)
{
    engine_checkpoint_damaged(stage->engine, stage->now_us, (struct job_id){job}, position, WHY);
    flush(stage);
}

/* As the coordinator finds it: for each job that needs the content. */
static void damage_both(struct stage *stage, uint64_t position)
{
    engine_checkpoint_damaged(stage->engine, stage->now_us, (struct job_id){1}, position, WHY);
    engine_checkpoint_damaged(stage->engine, stage->now_us, (struct job_id){2}, position, WHY);
    flush(stage);
}

static void restore(struct stage *stage, uint64_t call, uint64_t step)
{
    struct job_spec spec = spec_of(1);
    spec.max_restarts = 1;
    spec.restore_from.n = 1;
    spec.restore_step = step;
    submit_spec(stage, call, &spec);
    flush(stage);
}

static void end_of_job_1(struct stage *stage)
{
    cancel(stage, 9, 1);
    flush(stage);
    gone(stage, 1, 1, 0, 0, "");
    collected(stage, 1, 1, 0);
    flush(stage);
    stage_skip(stage);
}

static void damage_that_is_known_is_reported(struct stage *stage)
{
    damage(stage, 1, 3);
    stage_skip(stage);
    stage_reopen(stage); /* a start of the coordinator forgets nothing of it */
    flush(stage);
    join(stage, 2, "two", 2);
    flush(stage);
    stage_skip(stage);
    restore(stage, 2, 0);
    expect_output(stage,
        "commit!: job 2, started 2\n"
        "answer 2: job 2, 0 before; the checkpoint of step 3 of job 1 is damaged (" WHY
        "): the job goes on from that of step 2\n"
        "link 2: start 2/0#1 of 1 program from step 2 (checkpoints/checkpoint-2.json, 77 "
        "bytes, 02)\n"
        "changed 2: starting\n");
    restore(stage, 3, 3);
    expect_output(stage, "answer 3: DATA_LOSS: the checkpoint of step 3 of job 1 is damaged (" WHY
                         "): it keeps those of the steps 1 and 2\n");
    damage(stage, 1, 2);
    damage(stage, 1, 1);
    stage_skip(stage);
    restore(stage, 4, 0);
    expect_output(stage,
        "answer 4: DATA_LOSS: job 1 has no checkpoint that is whole: the newest, of step 3, "
        "is damaged (" WHY "), and it keeps no other\n");
    restore(stage, 5, 1);
    stage_skip(stage);
}

static void of_a_job_that_ended(void **state)
{
    (void)state;
    struct stage *stage = stage_trained();
    end_of_job_1(stage);
    damage_that_is_known_is_reported(stage);
    stage_close(stage);
}

static void of_a_job_that_runs(void **state)
{
    (void)state;
    struct stage *stage = stage_trained();
    damage_that_is_known_is_reported(stage);
    stage_close(stage);
}

static void one_that_is_newer_than_the_damage_is_taken(void **state)
{
    (void)state;
    struct stage *stage = stage_trained();
    damage(stage, 1, 3);
    arrived(stage, 1, 1, 1, 5);
    part(stage, 1, 1, 4);
    flush(stage);
    stage_skip(stage);
    restore(stage, 2, 0);
    expect_output(stage,
        "commit!: job 2, started 2\n"
        "answer 2: job 2, 0 before\n"
        "link 2: start 2/0#1 of 1 program from step 4 (checkpoints/checkpoint-4.json, 77 "
        "bytes, 04)\n"
        "changed 2: starting\n");
    stage_close(stage);
}

static void assert_message(struct stage *stage, uint64_t job, const char *expected)
{
    struct job_info info;
    assert_true(engine_job_info(stage->engine, (struct job_id){job}, &info));
    assert_string_equal(info.message, expected);
}

static void its_tasks_are_started_again_from_an_older_one(void **state)
{
    (void)state;
    struct stage *stage = stage_trained();
    end_of_job_1(stage);
    restore(stage, 2, 0);
    started(stage, 2, 2, 0);
    flush(stage);
    stage_skip(stage);
    damage_both(stage, 3);
    expect_output(stage, "commit!: checkpoint lost 1, origin 2\n"
                         "link 2: stop job 2, one task\n"
                         "changed 2: running\n");
    gone(stage, 2, 2, 0, 1, "the checkpoint of step 3 cannot be had");
    collected(stage, 2, 2, 0);
    flush(stage);
    expect_output(stage,
        "commit!: task exit 2, task 2\n"
        "link 2: stop job 2, one task\n"
        "link 2: start 2/0#2 of 1 program from step 2 (checkpoints/checkpoint-2.json, 77 "
        "bytes, 02)\n"
        "changed 2: running\n");
    stage->incarnations_before = 1;
    started(stage, 2, 2, 0);
    task_hello(stage, 2, 2, 0);
    flush(stage);
    expect_output(stage, "commit!: plan 2\n"
                         "link 2 job 2: plan g1 of 1 from 2, state of no task\n"
                         "link 2 job 2: release g1 to 2, published 2\n"
                         "changed 2: running\n");
    assert_message(stage, 2,
        "the checkpoint of step 3 of job 1 is damaged (" WHY
        "): the job goes on from that of step 2 of job 1");
    stage_close(stage);
}

/* Two of them, and a start of the coordinator between the record and the words. */
static void a_start_of_the_coordinator_goes_on_from_the_older_one(void **state)
{
    (void)state;
    struct stage *stage = stage_trained();
    restore(stage, 2, 0);
    started(stage, 2, 2, 0);
    damage_both(stage, 3);
    damage_both(stage, 2);
    stage_reopen(stage);
    flush(stage);
    stage_skip(stage);
    rejoin(stage, 2, "two", 2, 2, 0, 1);
    flush(stage);
    expect_output(stage, "link 2: welcome worker 2\n"
                         "link 2: stop job 2, one task\n");
    gone(stage, 2, 2, 0, 0, "");
    collected(stage, 2, 2, 0);
    flush(stage);
    expect_output(stage,
        "commit!: task exit 2, task 2\n"
        "link 2: stop job 2, one task\n"
        "link 2: start 2/0#2 of 1 program from step 1 (checkpoints/checkpoint-1.json, 77 "
        "bytes, 01)\n"
        "changed 2: starting\n");
    stage_close(stage);
}

static void assert_failed(struct stage *stage, const char *message)
{
    struct job_info info;
    gone(stage, 2, 2, 0, 0, "");
    collected(stage, 2, 2, 0);
    flush(stage);
    assert_true(engine_job_info(stage->engine, (struct job_id){2}, &info));
    assert_int_equal(info.code, CADRE_DATA_LOSS);
    assert_string_equal(info.message, message);
}

static void a_step_that_was_named_is_not_replaced(void **state)
{
    (void)state;
    struct stage *stage = stage_trained();
    restore(stage, 2, 3);
    started(stage, 2, 2, 0);
    damage_both(stage, 3);
    assert_failed(stage,
        "the checkpoint of step 3 of job 1 is damaged (" WHY
        "), and it is the one that the job goes on from; job 1 keeps those of the steps 1 and 2: "
        "name one with --restore 1@2");
    stage_close(stage);
}

static void when_none_is_whole_it_fails(void **state)
{
    (void)state;
    struct stage *stage = stage_trained();
    end_of_job_1(stage);
    restore(stage, 2, 0);
    started(stage, 2, 2, 0);
    damage_both(stage, 3);
    damage_both(stage, 2);
    damage_both(stage, 1);
    assert_failed(stage,
        "the checkpoint of step 1 of job 1 is damaged (" WHY
        "), and it is the one that the job goes on from; job 1 keeps no other that is whole");
    stage_close(stage);
}

/* It goes on, and would begin again from the older one. */
static void who_has_its_state_is_not_disturbed(void **state)
{
    (void)state;
    struct stage *stage = stage_trained();
    restore(stage, 2, 0);
    started(stage, 2, 2, 0);
    task_hello(stage, 2, 2, 0);
    flush(stage);
    stage_skip(stage);
    damage_both(stage, 3);
    expect_output(stage, "commit!: checkpoint lost 1, published 1, origin 2, published 2\n"
                         "changed 1: running\n"
                         "changed 2: running\n");
    gone(stage, 2, 2, 0, 9, "");
    collected(stage, 2, 2, 0);
    flush(stage);
    expect_output(stage,
        "commit!: task exit 2, task 2\n"
        "link 2: stop job 2, one task\n"
        "link 2: start 2/0#2 of 1 program from step 2 (checkpoints/checkpoint-2.json, 77 "
        "bytes, 02)\n"
        "changed 2: running\n");
    stage_close(stage);
}

/* Of one in a shared folder the worker says it, with the end of the task that it did not start; no
 * other worker may. */
static void a_worker_reports_that_it_is_damaged(void **state)
{
    (void)state;
    struct stage *stage = stage_trained();
    restore(stage, 2, 0);
    struct agent_up up = {.type = AGENT_UP_TASK_GONE,
        .gone = {.task = {.job = {2}, .slot = 0, .incarnation = 1},
            .exit = {.code = 126, .text = WHY},
            .damaged_step = 3}};
    stage_skip(stage);
    engine_agent_up(stage->engine, stage->now_us, (struct link_id){1}, &up);
    flush(stage);
    expect_output(stage, "");
    engine_agent_up(stage->engine, stage->now_us, (struct link_id){2}, &up);
    collected(stage, 2, 2, 0);
    flush(stage);
    expect_output(stage,
        "commit!: origin 2, task exit 2, task 2\n"
        "link 2: stop job 2, one task\n"
        "link 2: stop job 2, one task\n"
        "link 2: start 2/0#2 of 1 program from step 2 (checkpoints/checkpoint-2.json, 77 "
        "bytes, 02)\n"
        "changed 2: starting\n");
    stage_close(stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(of_a_job_that_ended),
        cmocka_unit_test(of_a_job_that_runs),
        cmocka_unit_test(one_that_is_newer_than_the_damage_is_taken),
        cmocka_unit_test(its_tasks_are_started_again_from_an_older_one),
        cmocka_unit_test(a_start_of_the_coordinator_goes_on_from_the_older_one),
        cmocka_unit_test(a_step_that_was_named_is_not_replaced),
        cmocka_unit_test(when_none_is_whole_it_fails),
        cmocka_unit_test(who_has_its_state_is_not_disturbed),
        cmocka_unit_test(a_worker_reports_that_it_is_damaged)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
