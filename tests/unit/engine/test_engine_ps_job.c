/* SPDX-License-Identifier: Apache-2.0
 * A ps job through the engine: which members each task receives, the key, what a server takes over,
 * what workers have to remove, and what clients read. */
#include <string.h>

#include "tests/unit/engine/stage.h"

/* Slots: 0 chief, 1 worker, 2 and 3 servers, 4 evaluator. */
static struct job_spec ps_job_spec(void)
{
    struct job_spec spec = spec_of(5);
    spec.strategy = PS_JOB_STRATEGY;
    spec.workers_min = 5;
    spec.max_restarts = 3;
    spec.ps_job = (struct ps_job){.workers = 1, .servers = 2, .evaluators = 1};
    return spec;
}

/* Worker "one" has slots 0 to 2, "two" 3 and 4; all said hello but worker and evaluator. */
static struct stage *stage_ps_job(void)
{
    struct stage *stage = stage_open();
    struct job_spec spec = ps_job_spec();
    join(stage, 1, "one", 3);
    join(stage, 2, "two", 2);
    submit_spec(stage, 1, &spec);
    flush(stage);
    for (uint32_t slot = 0; slot < 5; slot++) {
        started(stage, slot < 3 ? 1 : 2, 1, slot);
    }
    task_hello(stage, 1, 1, 2);
    task_hello(stage, 2, 1, 3);
    flush(stage);
    stage_skip(stage);
    task_hello(stage, 1, 1, 0);
    flush(stage);
    return stage;
}

static void members_are_named_with_the_key_of_the_plan(void **state)
{
    (void)state;
    struct stage *stage = stage_ps_job();
    uint8_t key[LIMIT_JOB_KEY_BYTES];
    expect_output(stage, "commit!: plan 1\n"
                         "link 1 job 1: plan g1 of 1 from 0, state of no task\n"
                         "link 1 task 1/0: members g1: 0#1* 1#2 2#3* 3#4* 4#5\n"
                         "link 1 task 1/2: members g1: 0#1* 2#3* 3#4*\n"
                         "link 2 task 1/3: members g1: 0#1* 2#3* 3#4*\n"
                         "changed 1: running\n");
    memcpy(key, stage->key, sizeof key);
    memset(stage->key, 0, sizeof stage->key);
    task_hello(stage, 1, 1, 1);
    task_hello(stage, 2, 1, 4);
    flush(stage);
    expect_output(stage,
        "link 1 task 1/1: members g1: 0#1* 2#3* 3#4*\n" /* the chief once in a turn */
        "link 2 task 1/4: members g1: 0#1* 2#3* 3#4*\n"
        "link 1 task 1/0: members changed g1: 1#2* 4#5*\n"
        "changed 1: running\n");
    assert_memory_equal(key, stage->key, sizeof key);
    stage_close(stage);
}

/* A change costs what changed; a task that says hello again gets the whole list. */
static void what_changes_is_sent(void **state)
{
    (void)state;
    struct stage *stage = stage_ps_job();
    task_hello(stage, 1, 1, 1);
    task_hello(stage, 2, 1, 4);
    flush(stage);
    stage_skip(stage);
    gone(stage, 2, 1, 3, 1, "");
    collected(stage, 2, 1, 3);
    flush(stage);
    expect_output(stage, "commit!: task exit 1, task 1\n"
                         "link 1 task 1/0: members changed g1: 3#6 again\n"
                         "link 1 task 1/1: members changed g1: 3#6 again\n"
                         "link 1 task 1/2: members changed g1: 3#6 again\n"
                         "link 2 task 1/4: members changed g1: 3#6 again\n"
                         "link 2: stop job 1, one task\n"
                         "link 2: start 1/3#6 of 5 program\n"
                         "changed 1: running\n");
    task_hello(stage, 2, 1, 4);
    stage->incarnations_before = 2;
    started(stage, 2, 1, 3);
    task_hello(stage, 2, 1, 3);
    flush(stage);
    expect_output(stage, "link 1 task 1/0: members changed g1: 3#6 again*\n"
                         "link 1 task 1/1: members changed g1: 3#6 again*\n"
                         "link 1 task 1/2: members changed g1: 3#6 again*\n"
                         "link 2 task 1/3: members g1: 0#1* 2#3* 3#6 again*\n"
                         "link 2 task 1/4: members g1: 0#1* 2#3* 3#6 again*\n"
                         "changed 1: running\n");
    stage_close(stage);
}

static void a_ps_job_survives_the_coordinator(void **state)
{
    (void)state;
    struct stage *stage = stage_ps_job();
    gone(stage, 2, 1, 3, 1, "");
    collected(stage, 2, 1, 3);
    flush(stage);
    stage_skip(stage);
    uint8_t key[LIMIT_JOB_KEY_BYTES];
    memcpy(key, stage->key, sizeof key);
    stage_reopen(stage);
    rejoin(stage, 11, "one", 3, 1, 0, 3);
    flush(stage);
    struct job_info info;
    assert_true(engine_job_info(stage->engine, (struct job_id){1}, &info));
    assert_int_equal(info.ps_job.servers, 2);
    assert_int_equal(info.tasks[3].role, ROLE_SERVER);
    assert_int_equal(info.tasks[3].index, 1);
    assert_int_equal(info.tasks[3].incarnation, 6);
    assert_int_equal(info.tasks[4].role, ROLE_EVALUATOR);
    stage_close(stage);
}

static void backed(struct stage *stage, uint64_t number, uint64_t by)
{
    const struct agent_up up = {.type = AGENT_UP_RELAY,
        .relay_up = {.task = {.job = {1}, .slot = 2, .incarnation = 3},
            .up = {.type = TASK_UP_BACKED, .backed = {.number = number, .by = by}}}};
    engine_agent_up(stage->engine, stage->now_us, (struct link_id){1}, &up);
    flush(stage);
}

/* Of several coordinators an old one records nothing: then it says nothing of a copy, and no server
 * goes on alone. */
static void which_copy_counts_is_in_the_log_before_it_is_sent(void **state)
{
    (void)state;
    struct stage *stage = stage_open();
    struct job_spec spec = ps_job_spec();
    spec.ps_job.backups = true;
    stage_share(stage);
    join(stage, 1, "one", 3);
    join(stage, 2, "two", 2);
    submit_spec(stage, 1, &spec);
    flush(stage);
    stored(stage, stage->appended);
    for (uint32_t slot = 0; slot < 5; slot++) {
        started(stage, slot < 3 ? 1 : 2, 1, slot);
        task_hello(stage, slot < 3 ? 1 : 2, 1, slot);
    }
    flush(stage);
    stored(stage, stage->appended);
    stage_skip(stage);
    backed(stage, 1, 4);
    backed(stage, 2, 0); /* and without it, at once */
    expect_output(stage, "entry 3!: backed 1\nentry 4!: backed 1\n");
    stored(stage, 3);
    expect_output(stage, "link 1 task 1/2: members g1: 0#1* 2#3* 3#4*\n");
    backed(stage, 2, 0); /* sent again, because no answer came: nothing is to be recorded */
    expect_output(stage, "entry 5!:\n");
    stored(stage, 4);
    expect_output(stage, "link 1 task 1/2: members g1: 0#1* 2#3* 3#4*\n");
    stage_close(stage);
}

static void the_evaluators_progress_is_its_own(void **state)
{
    (void)state;
    struct stage *stage = stage_ps_job();
    struct job_info info;
    progress(stage, 1, 1, 0, 7);
    progress(stage, 2, 1, 4, 3);
    flush(stage);
    assert_true(engine_job_info(stage->engine, (struct job_id){1}, &info));
    assert_true(info.has_progress && info.has_evaluation);
    assert_int_equal(info.progress.epoch, 7);
    assert_int_equal(info.evaluation.epoch, 3);
    stage_close(stage);
}

static void workers_forget_what_is_over(void **state)
{
    (void)state;
    struct stage *stage = stage_ps_job();
    const struct job_id kept[] = {{1}, {2}};
    struct agent_up hello = {.type = AGENT_UP_HELLO,
        .hello = {.protocol_version = AGENT_PROTOCOL_VERSION,
            .library_version = "1.2.3",
            .name = "three",
            .host = "host",
            .boot_nonce = 9,
            .slots = 1,
            .kept = kept,
            .kept_count = 2}};
    submit(stage, 7, 1);
    cancel(stage, 8, 2);
    flush(stage);
    stage_skip(stage);
    engine_agent_up(stage->engine, stage->now_us, (struct link_id){3}, &hello);
    flush(stage);
    expect_output(stage, "link 3: welcome worker 3\n"
                         "link 3: forget job 2\n"); /* job 1 runs */
    cancel(stage, 2, 1);
    flush(stage);
    for (uint32_t slot = 0; slot < 5; slot++) {
        gone(stage, slot < 3 ? 1 : 2, 1, slot, 0, "");
        collected(stage, slot < 3 ? 1 : 2, 1, slot);
        flush(stage);
        if (slot == 3) {
            stage_skip(stage);
        }
    }
    expect_output(stage, "commit!: task exit 1, ended 1\n"
                         "link 2: stop job 1, one task\n"
                         "link 1: forget job 1\n"
                         "link 2: forget job 1\n"
                         "link 3: forget job 1\n"
                         "changed 1: cancelled\n");
    stage_close(stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_are_named_with_the_key_of_the_plan),
        cmocka_unit_test(what_changes_is_sent),
        cmocka_unit_test(a_ps_job_survives_the_coordinator),
        cmocka_unit_test(which_copy_counts_is_in_the_log_before_it_is_sent),
        cmocka_unit_test(the_evaluators_progress_is_its_own),
        cmocka_unit_test(workers_forget_what_is_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
