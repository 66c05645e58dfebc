/* SPDX-License-Identifier: Apache-2.0
 * Halts before a step: joiners enter, draining tasks leave, and no task is aborted. */
#include "tests/unit/coordinator_core/script.h"

/* Two of at most four; a third place is free, so the job grows by it. */
static struct script *stage_growing(void)
{
    static const struct core_job_spec spec = {.tasks = 4, .tasks_min = 2, .max_restarts = 3};
    struct script *s = stage_running(&spec, 2, 4);
    join(s, 3, "c", 1);
    return s;
}

/* Before the joiner has come to its step, both have taken 4 of stream 1 and have 6 in hand. */
static struct script *stage_joining(void)
{
    struct script *s = stage_growing();
    arrived(s, 1, 1, 1, 6, 4);
    task_hello(s, 3, 1, 2, 0);
    script_skip(s);
    return s;
}

static void a_job_grows_by_a_halt(void **state)
{
    (void)state;
    struct script *s = stage_growing();
    expect_output(s, "welcome link 3: worker 3\n"
                     "record! job 1: task 2#3 on c\n"
                     "start again job 1 on link 3\n");
    task_hello(s, 3, 1, 2, 0);
    expect_output(s, "tell task 1/2#3 on link 3: warm\n");
    arrived(s, 1, 1, 1, 6, 4);
    joins(s, 3, 1, 2, 1);
    /* S is the watermark (rule 3); it is durable before it is sent. */
    expect_output(s, "record! job 1: halt at 4 of stream 1\n"
                     "tell job 1: release g1 to 4, halt\n");
    arrived(s, 2, 1, 1, 6, 4);
    expect_output(s, ""); /* nothing is released beyond S */
    halted(s, 1, 1, 0, 4, 1);
    expect_output(s, "");
    halted(s, 2, 1, 1, 4, 1);
    expect_output(s, "record! job 1: plan g2 from 4 of 0 1 2, source rank 0\n"
                     "tell job 1: plan g2\n");
    assert_int_equal(job_view(s, 1).restarts, 0);
    assert_int_equal(job_view(s, 1).halt_kind, HALT_NONE); /* rule 15 */
    assert_int_equal(job_view(s, 1).roster, 3);
    script_close(s);
}

static void a_halt_is_lifted_when_another_stream_comes(void **state)
{
    (void)state;
    struct script *s = stage_joining();
    joins(s, 3, 1, 2, 1);
    expect_output(s, "record! job 1: halt at 4 of stream 1\n"
                     "tell job 1: release g1 to 4, halt\n");
    /* The epoch ends there, and an evaluation begins: the members take its steps. */
    struct cursor evaluation = {.stream = 2, .first = 4, .begin = 4};
    arrived_at(s, 2, 1, 1, 6, 4, evaluation);
    expect_output(s, "record! job 1: no halt\n"
                     "record job 1: released to 6, stream 2 epoch 0 from 4\n"
                     "tell job 1: release g1 to 6\n");
    arrived_at(s, 1, 1, 1, 6, 4, evaluation);
    expect_output(s, "");
    /* The next run of its stream is one to join at. */
    struct cursor training = {.stream = 1, .epoch = 1, .first = 6, .begin = 6};
    arrived_at(s, 1, 1, 1, 8, 6, training);
    expect_output(s, "record! job 1: halt at 6 of stream 1\n"
                     "tell job 1: release g1 to 6, halt\n"
                     "tell task 1/2#3 on link 3: warm\n");
    script_close(s);
}

/* Its program would begin with the other epoch of the turn. */
static void no_task_joins_in_the_middle_of_a_turn(void **state)
{
    (void)state;
    struct script *s = stage_joining();
    joins(s, 3, 1, 2, 1);
    script_skip(s);
    struct cursor nested = {.stream = 1, .epoch = 1, .first = 4, .begin = 4, .nested = true};
    arrived_at(s, 2, 1, 1, 6, 4, nested);
    expect_output(s, "record! job 1: no halt\n"
                     "record job 1: released to 6, stream 1 epoch 1 from 4\n"
                     "tell job 1: release g1 to 6\n"
                     "tell task 1/2#3 on link 3: warm\n");
    arrived_at(s, 1, 1, 1, 6, 4, nested);
    expect_output(s, "");
    /* Its join from before it received this epoch. */
    joins(s, 3, 1, 2, 1);
    expect_output(s, "tell task 1/2#3 on link 3: warm\n");
    /* The other epoch is over: from here on it is the only one. */
    struct cursor alone = {.stream = 1, .epoch = 1, .first = 4, .begin = 6};
    arrived_at(s, 1, 1, 1, 8, 6, alone);
    expect_output(s, "record! job 1: halt at 6 of stream 1\n"
                     "tell job 1: release g1 to 6, halt\n");
    script_close(s);
}

/* Members claim some steps behind a run whatever follows; which one a joiner can enter at is known
 * when they have begun it. */
static void nothing_behind_a_known_run_is_released_to_a_joiner(void **state)
{
    (void)state;
    struct script *s = stage_joining();
    struct cursor evaluation = {.stream = 2, .first = 4, .begin = 4, .steps = 2};
    arrived_at(s, 1, 1, 1, 10, 4, evaluation);
    arrived_at(s, 2, 1, 1, 10, 4, evaluation);
    script_skip(s);
    assert_int_equal(job_view(s, 1).released, 10);
    joins(s, 3, 1, 2, 1);
    struct cursor next = {.stream = 2, .epoch = 1, .first = 6, .begin = 6, .steps = 7};
    arrived_at(s, 1, 1, 1, 17, 6, next);
    arrived_at(s, 2, 1, 1, 17, 6, next);
    script_skip(s);
    assert_int_equal(job_view(s, 1).released, 13); /* the end of the run */
    struct cursor training = {.stream = 1, .epoch = 1, .first = 13, .begin = 13, .steps = 9};
    arrived_at(s, 1, 1, 1, 20, 13, training);
    expect_output(s, "record job 1: stream 1 epoch 1 has 9 steps\n"
                     "record! job 1: halt at 13 of stream 1\n"
                     "tell job 1: release g1 to 13, halt\n"
                     "tell task 1/2#3 on link 3: warm\n");
    script_close(s);
}

static void a_joiner_that_dies_takes_its_halt_along(void **state)
{
    (void)state;
    struct script *s = stage_joining();
    joins(s, 3, 1, 2, 1);
    script_skip(s);
    gone(s, 3, 1, 2, 0, 9, "");
    arrived(s, 2, 1, 1, 6, 4);
    expect_output(s, "record job 1: task 2 exited 0/9\n"
                     "record! job 1: no halt\n"
                     "record job 1: released to 6, stream 1 epoch 0 from 0\n"
                     "tell job 1: release g1 to 6\n");
    script_close(s);
}

static void a_member_dies_in_the_hold(void **state)
{
    (void)state;
    struct script *s = stage_joining();
    joins(s, 3, 1, 2, 1);
    halted(s, 1, 1, 0, 4, 1); /* it is frozen: its report counts */
    script_skip(s);
    gone(s, 2, 1, 1, 0, 9, "");
    expect_output(s, "record job 1: task 1 exited 0/9\n"
                     "record! job 1: plan g2 from 4 of 0 2, source rank 0\n"
                     "tell job 1: plan g2\n");
    script_close(s);
}

static void a_joiner_is_taken_along_when_it_is_aligned(void **state)
{
    (void)state;
    for (uint32_t stream = 1; stream <= 2; stream++) {
        struct script *s = stage_growing();
        task_hello(s, 3, 1, 2, 0);
        gone(s, 2, 1, 1, 0, 9, "");
        joins(s, 3, 1, 2, stream);
        script_skip(s);
        frozen(s, 1, 1, 0, 3, 1);
        if (stream == 1) {
            expect_output(s, "record! job 1: plan g2 from 3 of 0 2, source rank 0\n"
                             "tell job 1: plan g2\n");
        } else { /* the survivor has to go on until it comes there */
            expect_output(s, "record! job 1: plan g2 from 3 of 0, source rank 0\n"
                             "tell job 1: plan g2\n");
        }
        script_close(s);
    }
}

static void a_joiner_is_not_taken_along_into_a_turn(void **state)
{
    (void)state;
    struct script *s = stage_growing();
    task_hello(s, 3, 1, 2, 0);
    gone(s, 2, 1, 1, 0, 9, "");
    joins(s, 3, 1, 2, 1);
    script_skip(s);
    report(s, 1, 1, 0,
        &(struct task_report){.position = 3,
            .clean = true,
            .reason = REPORT_ABORT,
            .text = "",
            .begun = true,
            .stream = 1,
            .nested = true});
    expect_output(s, "record! job 1: plan g2 from 3 of 0, source rank 0\n"
                     "tell job 1: plan g2\n");
    script_close(s);
}

static void who_is_left_over_at_the_end_is_superseded(void **state)
{
    (void)state;
    struct script *s = stage_joining();
    joins(s, 3, 1, 2, 7); /* a stream that never comes */
    expect_output(s, "");
    finished(s, 1, 1, 0, 4);
    finished(s, 2, 1, 1, 4);
    expect_output(s,
        "record! job 1: done at 4\n"
        "tell job 1: bye g1\n"
        "tell task 1/2 on link 3: superseded ABORTED: the job goes on without this task\n"
        "stop task 1/2#3 on link 3\n");
    gone(s, 3, 1, 2, 0, 15, "");
    gone(s, 1, 1, 0, 0, 0, "");
    gone(s, 2, 1, 1, 0, 0, "");
    collected(s, 1, 1, 0);
    collected(s, 2, 1, 1);
    script_skip(s);
    collected(s, 3, 1, 2);
    expect_output(s, "stop task 1/2#3 on link 3\n"
                     "record! job 1: succeeded OK exit 0: finished after 4 steps\n"
                     "ended job 1\n");
    script_close(s);
}

static void draining_tasks_go_elsewhere(void **state)
{
    (void)state;
    struct script *s =
        stage_running(&(struct core_job_spec){.tasks = 2, .tasks_min = 1, .max_restarts = 0}, 2, 4);
    drain(s, 5, "b");
    expect_output(s, "record! worker b is drained\n"
                     "answer 5: job 0, 0 before\n"
                     "record! job 1: halt at 4\n"
                     "tell job 1: release g1 to 4, halt\n");
    drain(s, 6, "q");
    expect_output(s, "answer 6: NOT_FOUND: no worker is named q: `cadre workers` lists them\n");
    halted(s, 1, 1, 0, 4, 1);
    halted(s, 2, 1, 1, 4, 1);
    expect_output(s,
        "record! job 1: plan g2 from 4 of 0, source rank 0\n"
        "tell job 1: plan g2\n"
        "tell task 1/1 on link 2: superseded ABORTED: the job goes on without this task\n"
        "stop task 1/1#2 on link 2\n");
    gone(s, 2, 1, 1, 0, 15, "");
    collected(s, 2, 1, 1);
    expect_output(s, "record job 1: task 1 exited 0/15\n"
                     "stop task 1/1#2 on link 2\n"); /* and nothing is placed there */
    join(s, 3, "c", 1);
    expect_output(s, "welcome link 3: worker 3\n"
                     "record! job 1: task 1#3 on c\n"
                     "start again job 1 on link 3\n");
    script_close(s);
}

static void a_fixed_job_drains_when_there_is_room(void **state)
{
    (void)state;
    struct script *s = stage_running(&(struct core_job_spec){.tasks = 2, .tasks_min = 2}, 2, 4);
    join(s, 3, "c", 1);
    script_skip(s);
    drain(s, 0, "b");
    expect_output(s, "record! worker b is drained\n"
                     "record! job 1: halt at 4\n"
                     "tell job 1: release g1 to 4, halt\n");
    halted(s, 1, 1, 0, 4, 1);
    halted(s, 2, 1, 1, 4, 1);
    expect_output(s,
        "tell task 1/1 on link 2: superseded ABORTED: the job goes on without this task\n"
        "stop task 1/1#2 on link 2\n");
    collect(s, 2, 1, 1);
    expect_output(s, "record job 1: task 1 exited 0/9\n"
                     "stop task 1/1#2 on link 2\n"
                     "record! job 1: task 1#3 on c\n"
                     "start again job 1 on link 3\n");
    task_hello(s, 3, 1, 1, 0);
    script_skip(s);
    joins(s, 3, 1, 1, 1);
    expect_output(s, "record! job 1: plan g2 from 4 of 0 1, source rank 0\n"
                     "tell job 1: plan g2\n");
    assert_int_equal(job_view(s, 1).restarts, 0);
    script_close(s);
}

static void a_drain_has_a_deadline(void **state)
{
    (void)state;
    struct script *s =
        stage_running(&(struct core_job_spec){.tasks = 2, .tasks_min = 1, .max_restarts = 0}, 2, 4);
    drain(s, 0, "b");
    halted(s, 1, 1, 0, 4, 1);
    script_skip(s);
    wait_us(s, 5 * SECOND);
    expect_output(s,
        "record! job 1: plan g2 from 4 of 0, source rank 0\n"
        "tell job 1: plan g2\n"
        "tell task 1/1 on link 2: superseded ABORTED: the job goes on without this task\n"
        "stop task 1/1#2 on link 2\n");
    script_close(s);
}

/* Two that have begun nothing yet, of a job that may not fail once; a third would join at 0. */
static struct script *stage_halting(void)
{
    static const struct core_job_spec spec = {.tasks = 3, .tasks_min = 2};
    struct script *s = stage_running(&spec, 2, 0);
    join(s, 3, "c", 1);
    task_hello(s, 3, 1, 2, 0);
    joins(s, 3, 1, 2, 1);
    script_skip(s);
    arrived(s, 1, 1, 1, 2, 0);
    expect_output(s, "record! job 1: halt at 0 of stream 1\n"
                     "tell job 1: release g1 to 0, halt\n");
    return s;
}

/* One was at the halt already when it was lifted: all go on in another generation, and no failure
 * is counted. */
static void a_halt_is_lifted_too_late(void **state)
{
    (void)state;
    struct script *s = stage_halting();
    link_down(s, 3);
    hello(s, 4, "c", 77, 1, NULL, 0); /* its daemon was started again */
    script_skip(s);
    arrived(s, 2, 1, 1, 2, 0);
    expect_output(s, "record! job 1: no halt\n"
                     "record job 1: released to 2, stream 1 epoch 0 from 0\n"
                     "tell job 1: release g1 to 2\n");
    halted(s, 1, 1, 0, 0, 1);
    expect_output(s,
        "tell job 1: abort g1: task 0 on worker a stood before step 0 when that halt was "
        "lifted\n");
    frozen(s, 2, 1, 1, 0, 1);
    expect_output(s, "record! job 1: plan g2 from 0 of 0 1, source rank 0\n"
                     "tell job 1: plan g2\n");
    assert_int_equal(job_view(s, 1).restarts, 0);
    script_close(s);
}

/* Its daemon was stopped while the stream was down: its hello reports the drain. */
static void a_worker_that_comes_back_drains(void **state)
{
    (void)state;
    struct script *s =
        stage_running(&(struct core_job_spec){.tasks = 2, .tasks_min = 1, .max_restarts = 0}, 2, 4);
    struct task_ref held = ref(s, 1, 1);
    link_down(s, 2);
    step(s, &(struct core_event){.type = CORE_EVENT_AGENT_UP,
                .agent = {.link = {5},
                    .up = &(struct agent_up){.type = AGENT_UP_HELLO,
                        .hello = {.protocol_version = AGENT_PROTOCOL_VERSION,
                            .name = "b",
                            .boot_nonce = 1002,
                            .slots = 1,
                            .draining = true,
                            .tasks = &held,
                            .task_count = 1}}}});
    draining(s, 5);
    expect_output(s, "welcome link 5: worker 2\n"
                     "record! job 1: halt at 4\n"
                     "tell job 1: release g1 to 4, halt\n");
    script_close(s);
}

static bool drains(const struct script *s, uint64_t worker)
{
    struct core_worker_view view;
    assert_true(core_worker_find(s->core, (struct worker_id){worker}, &view));
    return view.draining;
}

/* The daemon that was draining crashed, and the next one took its task over; a client's drain
 * outlives a stream that breaks. */
static void a_worker_that_comes_back_stays(void **state)
{
    (void)state;
    struct script *s =
        stage_running(&(struct core_job_spec){.tasks = 2, .tasks_min = 1, .max_restarts = 0}, 2, 4);
    struct task_ref held[] = {ref(s, 1, 0), ref(s, 1, 1)};
    draining(s, 2);
    link_down(s, 2);
    script_skip(s);
    assert_true(drains(s, 2));
    hello(s, 5, "b", 1002, 2, &held[1], 1);
    assert_false(drains(s, 2));
    submit(s, 0, 1, 0); /* and finds room */
    assert_int_equal(job_view(s, 2).state, JOB_STARTING);
    drain(s, 6, "a");
    link_down(s, 1);
    hello(s, 7, "a", 1001, 1, &held[0], 1);
    assert_true(drains(s, 1));
    script_close(s);
}

/* One that has nothing whole, or that is there for another reason than this step, cannot go on
 * in the generation that the halt is for. */
static void only_who_can_go_on_meets_a_halt(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct script *s = stage_joining();
        joins(s, 3, 1, 2, 1);
        script_skip(s);
        report(s, 1, 1, 0,
            &(struct task_report){.position = 4,
                .clean = i != 0,
                .begun = i != 1,
                .reason = REPORT_HALT,
                .stream = 1});
        expect_output(s,
            "tell job 1: abort g1: task 0 on worker a stood before step 4 when that halt was "
            "lifted\n");
        script_close(s);
    }
}

/* A member at the halt is frozen, and only a plan ends that. */
static void a_halt_that_a_member_met_stays(void **state)
{
    (void)state;
    struct script *s = stage_joining();
    joins(s, 3, 1, 2, 1);
    halted(s, 1, 1, 0, 4, 1);
    script_skip(s);
    gone(s, 3, 1, 2, 0, 9, "");
    arrived(s, 2, 1, 1, 6, 4);
    expect_output(s, "record job 1: task 2 exited 0/9\n");
    assert_int_equal(job_view(s, 1).halt_at, 4);
    halted(s, 2, 1, 1, 4, 1);
    expect_output(s, "record! job 1: plan g2 from 4 of 0 1, source rank 0\n"
                     "tell job 1: plan g2\n");
    script_close(s);
}

static void no_task_halts_for_one_who_comes_at_the_end(void **state)
{
    (void)state;
    struct script *s = stage_joining();
    finished(s, 1, 1, 0, 4);
    joins(s, 3, 1, 2, 1);
    expect_output(s, ""); /* a finished member does not reach the halt */
    finished(s, 2, 1, 1, 4);
    expect_output(s,
        "record! job 1: done at 4\n"
        "tell job 1: bye g1\n"
        "tell task 1/2 on link 3: superseded ABORTED: the job goes on without this task\n"
        "stop task 1/2#3 on link 3\n");
    script_close(s);
}

/* A halt is set when the watermark is known: a hello with a higher one is wrong, and dropped.
 * An arrival that applied steps beyond the halt fails the job. */
static void nothing_is_released_beyond_a_halt(void **state)
{
    (void)state;
    struct script *s = stage_joining();
    joins(s, 3, 1, 2, 1);
    expect_output(s, "record! job 1: halt at 4 of stream 1\n"
                     "tell job 1: release g1 to 4, halt\n");
    struct task_up odd = {.type = TASK_UP_HELLO,
        .hello = {.frame_version = TASK_FRAME_VERSION,
            .replicas = 1,
            .mesh_address = "127.0.0.1:9",
            .generation = generation_of(s, 1),
            .position = 5,
            .clean = true,
            .released = 5}};
    relay_up(s, 2, 1, 1, &odd);
    expect_output(s, "tell job 1 task 1 on link 2: release g1 to 4, halt\n");
    arrived(s, 2, 1, 1, 6, 5);
    script_skip(s);
    assert_string_equal(script_job_text(s, 1),
        "worker b says that its tasks applied 5 steps, are ready for 6 and want 0, but only 4 were "
        "released");
    script_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_grows_by_a_halt),
        cmocka_unit_test(a_halt_is_lifted_when_another_stream_comes),
        cmocka_unit_test(no_task_joins_in_the_middle_of_a_turn),
        cmocka_unit_test(a_joiner_is_not_taken_along_into_a_turn),
        cmocka_unit_test(nothing_behind_a_known_run_is_released_to_a_joiner),
        cmocka_unit_test(a_joiner_that_dies_takes_its_halt_along),
        cmocka_unit_test(a_member_dies_in_the_hold),
        cmocka_unit_test(a_joiner_is_taken_along_when_it_is_aligned),
        cmocka_unit_test(who_is_left_over_at_the_end_is_superseded),
        cmocka_unit_test(draining_tasks_go_elsewhere),
        cmocka_unit_test(a_fixed_job_drains_when_there_is_room),
        cmocka_unit_test(a_drain_has_a_deadline),
        cmocka_unit_test(a_halt_is_lifted_too_late),
        cmocka_unit_test(only_who_can_go_on_meets_a_halt),
        cmocka_unit_test(a_halt_that_a_member_met_stays),
        cmocka_unit_test(no_task_halts_for_one_who_comes_at_the_end),
        cmocka_unit_test(a_worker_that_comes_back_drains),
        cmocka_unit_test(a_worker_that_comes_back_stays),
        cmocka_unit_test(nothing_is_released_beyond_a_halt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
