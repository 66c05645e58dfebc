/* SPDX-License-Identifier: Apache-2.0
 * From hello to plan, reports, checkpoint parts and bye; tasks that come late or return. */
#include <string.h>

#include "tests/unit/coordinator_core/script.h"

static void all_hellos_make_a_plan(void **state)
{
    (void)state;
    struct script *s = stage_started();
    started(s, 1, 1, 0);
    task_hello(s, 1, 1, 0, 0);
    expect_output(s, "");
    started(s, 2, 1, 1);
    assert_string_equal(script_job_text(s, 1), "1 of 2 tasks joined");
    task_hello(s, 2, 1, 1, 0);
    expect_output(s, "record! job 1: plan g1 from 0\n"
                     "tell job 1: plan g1\n");
    struct core_job_view view = job_view(s, 1);
    assert_int_equal(view.state, JOB_RUNNING);
    assert_int_equal(view.roster, 2);
    assert_int_equal(view.generation.number, 1);
    assert_true(view.checkpoint_at == POSITION_NONE);
    assert_int_equal(core_job_member(s->core, view.job, 1), 1);
    struct core_task_view task;
    core_job_task(s->core, view.job, 1, &task);
    assert_int_equal(task.rank, 1);
    assert_int_equal(task.replicas, 1);
    assert_true(task.sent_hello);
    assert_string_equal(task.mesh_address, "127.0.0.1:9");
    script_close(s);
}

static void a_task_that_comes_back_is_resent(void **state)
{
    (void)state;
    struct script *s = stage_released(4);
    task_hello(s, 2, 1, 1, 0); /* the plan did not reach it */
    expect_output(s, "tell job 1 task 1 on link 2: plan g1\n"
                     "tell job 1 task 1 on link 2: release g1 to 4\n");
    task_hello(s, 2, 1, 1, 1); /* it only lost its connection */
    expect_output(s, "tell job 1 task 1 on link 2: release g1 to 4\n");
    script_close(s);
}

static void a_hello_of_another_version_is_refused(void **state)
{
    (void)state;
    struct script *s = stage_started();
    struct task_up message = {
        .type = TASK_UP_HELLO, .hello = {.frame_version = 9, .replicas = 1, .mesh_address = ""}};
    relay_up(s, 1, 1, 0, &message);
    expect_output(s,
        "tell task 1/0 on link 1: refused FAILED_PRECONDITION: task 0 on worker a has task "
        "frame version 9, the coordinator 8: link the program with the libcadre of the same "
        "version\n"
        "stop job 1\n");
    script_close(s);

    s = stage_started();
    message.hello.frame_version = TASK_FRAME_VERSION;
    message.hello.replicas = 257;
    relay_up(s, 1, 1, 0, &message);
    expect_output(s,
        "tell task 1/0 on link 1: refused INVALID_ARGUMENT: task 0 on worker a wants to run "
        "257 replicas: 1 to 256 are possible\n"
        "stop job 1\n");
    script_close(s);

    s = stage_started();
    message.hello.replicas = 0;
    relay_up(s, 1, 1, 0, &message);
    expect_output(s,
        "tell task 1/0 on link 1: refused INVALID_ARGUMENT: task 0 on worker a wants to run "
        "0 replicas: 1 to 256 are possible\n"
        "stop job 1\n");
    script_close(s);

    s = stage_started();
    char address[LIMIT_ADDRESS_BYTES + 1];
    memset(address, 'x', sizeof(address) - 1);
    address[sizeof(address) - 1] = '\0';
    message.hello.replicas = 1;
    message.hello.mesh_address = address;
    relay_up(s, 1, 1, 0, &message);
    expect_output(s,
        "tell task 1/0 on link 1: refused INVALID_ARGUMENT: task 0 on worker a gave a mesh "
        "address of more than 63 bytes\n"
        "stop job 1\n");
    script_close(s);
}

/* The watermark of a member: of the job's own generation, and no more than can be. */
static struct task_up member_hello(const struct script *s)
{
    return (struct task_up){.type = TASK_UP_HELLO,
        .hello = {.frame_version = TASK_FRAME_VERSION,
            .replicas = 1,
            .mesh_address = "127.0.0.1:9",
            .generation = generation_of(s, 1),
            .released = 4}};
}

static void a_number_with_another_nonce_is_another_generation(void **state)
{
    (void)state;
    struct script *s = stage_released(4);
    struct task_up message = member_hello(s);
    message.hello.generation.nonce++;
    relay_up(s, 2, 1, 1, &message);
    expect_output(s, "");
    assert_true(job_view(s, 1).behind);
    script_close(s);
}

static void a_watermark_that_cannot_be_is_not_taken(void **state)
{
    (void)state;
    struct script *s = stage_released(4);
    struct task_up message = member_hello(s);
    message.hello.released = LIMIT_POSITION;
    relay_up(s, 2, 1, 1, &message);
    expect_output(s, "tell job 1 task 1 on link 2: release g1 to 4\n");
    script_close(s);
}

/* Of a member that lost its peers the hello shows that already; one at a halt goes on
 * by a plan. */
static void a_hello_reports_lost_peers(void **state)
{
    (void)state;
    static const struct {
        enum report_reason reason;
        bool lost;
    } cases[] = {{REPORT_ABORT, true}, {REPORT_PEER_ERROR, true}, {REPORT_HALT, false},
        {REPORT_FINISHED, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct script *s = stage_released(4);
        struct task_up message = member_hello(s);
        message.hello.frozen = true;
        message.hello.reason = cases[i].reason;
        relay_up(s, 2, 1, 1, &message);
        expect_output(s, cases[i].lost ? "tell job 1 task 1 on link 2: release g1 to 4\n"
                                         "tell job 1: abort g1: task 1 on worker b lost its peers\n"
                                       : "tell job 1 task 1 on link 2: release g1 to 4\n");
        script_close(s);
    }
}

/* Each hello does not put it off: it counts from the first one. */
static void the_missing_are_named_in_time(void **state)
{
    (void)state;
    const struct core_job_spec spec = {.tasks = 3, .tasks_min = 3};
    struct script *s = script_open(NULL);
    join(s, 1, "a", 3);
    submit_spec(s, 1, &spec);
    for (uint32_t slot = 0; slot < 3; slot++) {
        started(s, 1, 1, slot);
    }
    task_hello(s, 1, 1, 0, 0);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(job_view(s, 1).state, JOB_RUNNING);
        wait_us(s, 5 * SECOND);
        heartbeat(s, 1);
        if (i == 3) {
            task_hello(s, 1, 1, 1, 0);
        }
    }
    assert_string_equal(script_job_text(s, 1),
        "task 2 on worker a did not join within 30 s of the others; 2 of 3 tasks joined");
    script_close(s);
}

/* No halt is set for a joiner that has not sent its address. */
static void no_task_joins_before_its_hello(void **state)
{
    (void)state;
    const struct core_job_spec spec = {.tasks = 3, .tasks_min = 1, .max_restarts = 3};
    struct script *s = stage_running(&spec, 3, 4);
    collect(s, 2, 1, 1);
    frozen(s, 1, 1, 0, 4, 1);
    frozen(s, 3, 1, 2, 4, 1);
    arrived(s, 1, 1, 1, 8, 4);
    arrived(s, 3, 1, 1, 6, 4);
    started(s, 2, 1, 1);
    script_skip(s);
    joins(s, 2, 1, 1, 1);
    expect_output(s, "");
    task_hello(s, 2, 1, 1, 0);
    joins(s, 2, 1, 1, 1);
    expect_output(s, "tell task 1/1#4 on link 2: warm\n"
                     "record! job 1: halt at 6 of stream 1\n"
                     "tell job 1: release g2 to 6, halt\n");
    script_close(s);
}

static void the_missing_are_named(void **state)
{
    (void)state;
    struct script *s = stage_started();
    started(s, 1, 1, 0);
    task_hello(s, 1, 1, 0, 0);
    heartbeat(s, 1);
    /* While task 1 is being prepared the clock does not run. */
    for (int i = 0; i < 10; i++) {
        wait_us(s, 5 * SECOND);
        heartbeat(s, 1);
        heartbeat(s, 2);
    }
    expect_output(s, "");
    started(s, 2, 1, 1);
    for (int i = 0; i < 6; i++) {
        expect_output(s, "");
        wait_us(s, 5 * SECOND);
        heartbeat(s, 1);
        heartbeat(s, 2);
    }
    expect_output(s, "stop job 1\n");
    assert_string_equal(script_job_text(s, 1),
        "task 1 on worker b did not join within 30 s of the others; 1 of 2 tasks "
        "joined");
    script_close(s);
}

static void all_finish_at_one_position(void **state)
{
    (void)state;
    struct script *s = stage_released(4);
    part(s, 1, 1, 0, 4, "checkpoint/4");
    part(s, 1, 1, 0, 4, "checkpoint/4"); /* sent twice */
    part(s, 2, 1, 1, 4, "checkpoint/4"); /* not the chief's */
    expect_output(s, "");
    arrived(s, 1, 1, 1, 4, 4);
    arrived(s, 2, 1, 1, 4, 4); /* now all have applied what it holds */
    expect_output(s, "record! job 1: checkpoint at 4 in checkpoint/4\n"
                     "tell job 1: release g1 to 4\n");
    assert_string_equal(job_view(s, 1).checkpoint.path, "checkpoint/4");
    finished(s, 1, 1, 0, 4);
    finished(s, 1, 1, 0, 4);
    expect_output(s, "");
    finished(s, 2, 1, 1, 4);
    expect_output(s, "record! job 1: done at 4\n"
                     "tell job 1: bye g1\n");
    /* Back after the end: members receive bye again, no other task does (rule 16). */
    task_hello(s, 1, 1, 0, 1);
    task_hello(s, 2, 1, 1, 0);
    expect_output(s,
        "tell job 1 task 0 on link 1: bye g1\n"
        "tell task 1/1 on link 2: superseded ABORTED: this task is not of the job's current "
        "generation\n");
    gone(s, 1, 1, 0, 0, 0, "");
    gone(s, 2, 1, 1, 0, 0, "");
    collected(s, 2, 1, 1);
    expect_output(s, "record job 1: task 0 exited 0/0\n"
                     "record job 1: task 1 exited 0/0\n"
                     "stop task 1/1#2 on link 2\n");
    assert_int_equal(job_view(s, 1).state, JOB_ENDING);
    collected(s, 1, 1, 0);
    expect_output(s, "stop task 1/0#1 on link 1\n"
                     "record! job 1: succeeded OK exit 0: finished after 4 steps\n"
                     "ended job 1\n");
    script_close(s);
}

static void finishing_at_different_positions_fails(void **state)
{
    (void)state;
    struct script *s = stage_released(4);
    finished(s, 1, 1, 0, 4);
    finished(s, 2, 1, 1, 3);
    expect_output(s,
        "tell job 1: abort g1: task 0 on worker a called cadre_finish at position 4, task 1 on "
        "worker b at position 3: the programs took different paths\n"
        "stop job 1\n");
    script_close(s);

    s = stage_released(4);
    finished(s, 1, 1, 0, 5);
    expect_output(s,
        "tell job 1: abort g1: task 0 on worker a called cadre_finish at position 5, of which "
        "only 4 steps were released\n"
        "stop job 1\n");
    script_close(s);
}

/* It is inside of a step that others may have applied. */
static void no_task_finishes_inside_a_step(void **state)
{
    (void)state;
    struct script *s = stage_released(4);
    report(s, 1, 1, 0, &(struct task_report){.position = 3, .reason = REPORT_FINISHED});
    expect_output(s,
        "tell job 1: abort g1: task 0 on worker a called cadre_finish at position 3 with a "
        "step half applied; 4 steps were released\n"
        "stop job 1\n");
    script_close(s);
}

/* A job of one task, whose last step failed: no other task wants it. */
static void who_is_alone_finishes_at_its_position(void **state)
{
    (void)state;
    struct script *s = stage_running(&(struct core_job_spec){.tasks = 1, .tasks_min = 1}, 1, 4);
    wants_after(s, 1, 1, 0, 4, 4, 5);
    script_skip(s);
    finished(s, 1, 1, 0, 4);
    expect_output(s, "record! job 1: done at 4\n"
                     "tell job 1: bye g1\n");
    script_close(s);
}

static void a_checkpoint_is_never_ahead(void **state)
{
    (void)state;
    struct script *s = stage_released(4);
    part(s, 1, 1, 0, 5, "x");
    expect_output(s,
        "tell job 1: abort g1: task 0 on worker a saved a checkpoint of position 5, but only 4 "
        "steps were released\n"
        "stop job 1\n");
    script_close(s);
    s = stage_released(4);
    arrived(s, 1, 1, 1, 5, 4);
    part(s, 1, 1, 0, 3, "x");
    arrived(s, 2, 1, 1, 4, 2);
    expect_output(s, "");
    arrived(s, 2, 1, 1, 4, 3);
    expect_output(s, "record! job 1: checkpoint at 3 in x\n"
                     "tell job 1: release g1 to 4\n");
    part(s, 1, 1, 0, 2, "y"); /* older */
    part(s, 1, 1, 0, 4, "");
    expect_output(s, "");
    script_close(s);
}

static void another_generation_is_ignored(void **state)
{
    (void)state;
    struct script *s = stage_released(4);
    struct task_up message = {.type = TASK_UP_REPORT,
        .report = {.generation = {.number = 1, .nonce = 1},
            .position = 4,
            .clean = true,
            .reason = REPORT_FINISHED,
            .text = ""}};
    relay_up(s, 1, 1, 0, &message);
    message.report.reason = REPORT_PEER_ERROR;
    relay_up(s, 1, 1, 0, &message);
    message = (struct task_up){
        .type = TASK_UP_PART, .part = {.generation = {.number = 2}, .position = 4, .path = "x"}};
    relay_up(s, 1, 1, 0, &message);
    relay_up(s, 2, 1, 0, &message); /* task 0 is not on worker b: it receives STOP_TASK */
    expect_output(s, "stop task 1/0#1 on link 2\n");
    script_close(s);
}

static void another_incarnation_is_ignored(void **state)
{
    (void)state;
    struct script *s = stage_released(4);
    struct task_ref old = {.job = {1}, .slot = 0, .incarnation = 2}; /* that of slot 1 */
    struct agent_up message = {
        .type = AGENT_UP_TASK_GONE, .gone = {.task = old, .exit = {.signal = 9}}};
    struct core_event event = {.type = CORE_EVENT_AGENT_UP, .agent = {.link = {1}, .up = &message}};
    step(s, &event);
    expect_output(s, "");
    message = (struct agent_up){.type = AGENT_UP_TASK_STARTED, .started = {.task = old}};
    step(s, &event);
    expect_output(s, "stop task 1/0#2 on link 1\n");
    assert_int_equal(job_view(s, 1).state, JOB_RUNNING);
    script_close(s);
}

static void nonces_come_from_the_seed(void **state)
{
    (void)state;
    struct script *s = stage_joined();
    struct script *t = stage_joined();
    assert_true(generation_equal(job_view(s, 1).generation, job_view(t, 1).generation));
    assert_true(core_digest(s->core) == core_digest(t->core));
    heartbeat(s, 1);
    wait_us(t, 1);
    heartbeat(t, 1);
    assert_true(core_digest(s->core) != core_digest(t->core));
    script_close(s);
    script_close(t);
}

/* A replacement has as long as the others had. */
static void the_deadline_for_hellos_restarts(void **state)
{
    (void)state;
    struct script *s = stage_started();
    join(s, 3, "c", 1);
    started(s, 1, 1, 0);
    started(s, 2, 1, 1);
    task_hello(s, 1, 1, 0, 0);
    for (int i = 0; i < 4; i++) {
        wait_us(s, 5 * SECOND);
        heartbeat(s, 1);
        heartbeat(s, 2);
        heartbeat(s, 3);
    }
    link_down(s, 2);
    script_skip(s);
    hello(s, 4, "b", 99, 1, NULL, 0);
    expect_output(s, "welcome link 4: worker 4\n"
                     "record job 1: task 1 lost 0/0\n"
                     "record! job 1: task 1#3 on c\n"
                     "start again job 1 on link 3\n");
    started(s, 3, 1, 1);
    for (int i = 0; i < 5; i++) {
        wait_us(s, 5 * SECOND);
        heartbeat(s, 1);
        heartbeat(s, 3);
        heartbeat(s, 4);
    }
    expect_output(s, "");
    assert_int_equal(job_view(s, 1).state, JOB_RUNNING);
    wait_us(s, 5 * SECOND);
    assert_int_equal(job_view(s, 1).state, JOB_ENDING);
    script_close(s);
}

/* Two tasks, of which one is killed before they all met. */
static struct script *stage_killed(uint32_t max_restarts)
{
    const struct core_job_spec spec = {.tasks = 2, .tasks_min = 2, .max_restarts = max_restarts};
    struct script *s = script_open(NULL);
    join(s, 1, "a", 1);
    join(s, 2, "b", 1);
    submit_spec(s, 1, &spec);
    started(s, 1, 1, 0);
    started(s, 2, 1, 1);
    task_hello(s, 1, 1, 0, 0);
    wait_us(s, 9 * SECOND);
    heartbeat(s, 1);
    heartbeat(s, 2);
    script_skip(s);
    gone(s, 2, 1, 1, 0, 9, "");
    return s;
}

static void who_is_killed_before_the_first_plan_is_started_again(void **state)
{
    (void)state;
    struct script *s = stage_killed(1);
    expect_output(s, "record job 1: task 1 lost 0/9\n");
    assert_int_equal(job_view(s, 1).restarts, 1);
    collected(s, 2, 1, 1);
    expect_output(s, "stop task 1/1#2 on link 2\n"
                     "record! job 1: task 1#3 on b\n"
                     "start again job 1 on link 2\n");
    started(s, 2, 1, 1);
    for (uint32_t i = 0; i < 5; i++) { /* the time for its hello is its own */
        wait_us(s, 5 * SECOND);
        heartbeat(s, 1);
        heartbeat(s, 2);
    }
    expect_output(s, "");
    task_hello(s, 2, 1, 1, 0);
    expect_output(s, "record! job 1: plan g1 from 0\n"
                     "tell job 1: plan g1\n");
    script_close(s);
}

static void once_more_than_it_may_be_it_fails_and_reports_it(void **state)
{
    (void)state;
    struct script *s = stage_killed(1);
    collected(s, 2, 1, 1);
    started(s, 2, 1, 1);
    gone(s, 2, 1, 1, 0, 9, "");
    assert_string_equal(script_job_text(s, 1),
        "task 1 on worker b was killed by signal 9 (Killed); it was restarted 1 time before, as "
        "often as it may be (--max-restarts)");
    assert_int_equal(job_view(s, 1).state, JOB_ENDING);
    script_close(s);
    s = stage_killed(0);
    assert_string_equal(
        script_job_text(s, 1), "task 1 on worker b was killed by signal 9 (Killed)");
    script_close(s);
}

/* A program without a strategy: its exit status is its own, a signal is not. */
static void a_plain_task_that_is_killed_is_started_again(void **state)
{
    (void)state;
    const struct core_job_spec spec = {.tasks = 1, .tasks_min = 1, .max_restarts = 3};
    struct script *s = script_open(NULL);
    join(s, 1, "a", 1);
    submit_spec(s, 1, &spec);
    started(s, 1, 1, 0);
    gone(s, 1, 1, 0, 0, 9, "");
    collected(s, 1, 1, 0);
    started(s, 1, 1, 0);
    assert_int_equal(job_view(s, 1).state, JOB_RUNNING);
    gone(s, 1, 1, 0, 3, 0, "");
    assert_string_equal(script_job_text(s, 1), "task 0 on worker a exited with status 3");
    script_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_hellos_make_a_plan),
        cmocka_unit_test(a_task_that_comes_back_is_resent),
        cmocka_unit_test(a_hello_of_another_version_is_refused),
        cmocka_unit_test(a_number_with_another_nonce_is_another_generation),
        cmocka_unit_test(a_watermark_that_cannot_be_is_not_taken),
        cmocka_unit_test(a_hello_reports_lost_peers),
        cmocka_unit_test(no_task_joins_before_its_hello),
        cmocka_unit_test(the_missing_are_named_in_time),
        cmocka_unit_test(the_missing_are_named),
        cmocka_unit_test(all_finish_at_one_position),
        cmocka_unit_test(finishing_at_different_positions_fails),
        cmocka_unit_test(no_task_finishes_inside_a_step),
        cmocka_unit_test(who_is_alone_finishes_at_its_position),
        cmocka_unit_test(a_checkpoint_is_never_ahead),
        cmocka_unit_test(another_generation_is_ignored),
        cmocka_unit_test(another_incarnation_is_ignored),
        cmocka_unit_test(nonces_come_from_the_seed),
        cmocka_unit_test(the_deadline_for_hellos_restarts),
        cmocka_unit_test(who_is_killed_before_the_first_plan_is_started_again),
        cmocka_unit_test(once_more_than_it_may_be_it_fails_and_reports_it),
        cmocka_unit_test(a_plain_task_that_is_killed_is_started_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
