/* SPDX-License-Identifier: Apache-2.0
 * How jobs end: exits, deaths, lost workers, peer errors, cancel; what people read and what submit
 * exits with. */
#include <stdio.h>
#include <string.h>

#include "common/pure/assert.h"
#include "tests/unit/coordinator_core/script.h"

static void a_program_without_cadre_is_reported(void **state)
{
    (void)state;
    struct script *s = stage_started();
    started(s, 1, 1, 0);
    started(s, 2, 1, 1);
    gone(s, 1, 1, 0, 0, 0, "");
    wait_us(s, 9 * SECOND);
    heartbeat(s, 2);
    heartbeat(s, 1);
    wait_us(s, 9 * SECOND);
    heartbeat(s, 2);
    heartbeat(s, 1);
    collected(s, 1, 1, 0);
    gone(s, 2, 1, 1, 0, 0, "");
    script_skip(s);
    collected(s, 2, 1, 1);
    expect_output(s,
        "stop task 1/1#2 on link 2\n"
        "record! job 1: succeeded OK exit 0: all tasks exited with status 0 without joining a "
        "strategy\n"
        "ended job 1\n");
    struct core_job_view view;
    assert_false(core_job(s->core, (struct job_id){1}, &view));
    script_close(s);
}

static void the_first_to_die_is_named(void **state)
{
    (void)state;
    struct script *s = stage_released(4);
    gone(s, 2, 1, 1, 0, 9, "");
    expect_output(s, "record job 1: task 1 exited 0/9\n"
                     "tell job 1: abort g1: task 1 on worker b was killed by signal 9 (Killed)\n"
                     "stop job 1\n");
    /* What the stop does to the others is not the reason. */
    gone(s, 1, 1, 0, 0, 15, "");
    collected(s, 1, 1, 0);
    collected(s, 2, 1, 1);
    expect_output(s,
        "record job 1: task 0 exited 0/15\n"
        "stop task 1/0#1 on link 1\n"
        "stop task 1/1#2 on link 2\n"
        "record! job 1: failed ABORTED exit 137: task 1 on worker b was killed by signal 9 "
        "(Killed)\n"
        "ended job 1\n");
    script_close(s);
}

static void a_status_comes_with_the_last_message(void **state)
{
    (void)state;
    struct script *s = stage_started();
    started(s, 1, 1, 0);
    gone(s, 1, 1, 0, 3, 0, "digits: cannot open data.bin");
    expect_output(s, "record job 1: task 0 exited 3/0\n"
                     "stop job 1\n");
    gone(s, 2, 1, 1, 0, 15, "stopped before it started");
    collected(s, 1, 1, 0);
    script_skip(s);
    collected(s, 2, 1, 1);
    expect_output(s,
        "stop task 1/1#2 on link 2\n"
        "record! job 1: failed ABORTED exit 3: task 0 on worker a exited with status 3: "
        "digits: cannot open data.bin\n"
        "ended job 1\n");
    script_close(s);
}

/* A daemon of a version that says none means FAILED_PRECONDITION. */
static void the_cause_of_no_start_is_the_code_of_the_job(void **state)
{
    (void)state;
    for (cadre_status cause = CADRE_OK; cause <= CADRE_UNAUTHENTICATED; cause++) {
        struct script *s = stage_started();
        char wanted[160];
        bool none = cause == CADRE_OK || cause == CADRE_CANCELLED;
        not_started(s, 1, 1, 0, cause, "why");
        gone(s, 2, 1, 1, 0, 15, "stopped before it started");
        collected(s, 1, 1, 0);
        script_skip(s);
        collected(s, 2, 1, 1);
        snprintf(wanted, sizeof wanted,
            "stop task 1/1#2 on link 2\n"
            "record! job 1: failed %s exit 126: task 0 on worker a did not start: why\n"
            "ended job 1\n",
            cadre_status_name(none ? CADRE_FAILED_PRECONDITION : cause));
        expect_output(s, wanted);
        script_close(s);
    }
}

/* Whether a task is started again depends on how often that happened, for any cause. */
static void no_start_counts_the_same_for_any_cause(void **state)
{
    (void)state;
    static const cadre_status causes[] = {CADRE_OK, CADRE_NOT_FOUND, CADRE_UNAVAILABLE};
    for (size_t i = 0; i < CADRE_COUNT_OF(causes); i++) {
        for (uint32_t most = 1; most <= 2; most++) {
            struct core_job_spec spec = {.tasks = 2, .tasks_min = 2, .max_restarts = most};
            struct script *s = stage_running(&spec, 2, 4);
            gone(s, 2, 1, 1, 0, 9, "");
            collected(s, 2, 1, 1);
            wait_us(s, 3 * SECOND);
            assert_int_equal(job_view(s, 1).restarts, 1);
            not_started(s, 2, 1, 1, causes[i], "why");
            assert_int_equal(job_view(s, 1).restarts, most);
            const char *end = strstr(script_job_text(s, 1),
                "did not start: why; it was restarted 1 time before, as often as it may be");
            assert_int_equal(end != NULL, most == 1);
            script_close(s);
        }
    }
}

/* It ran: its code is not that of a cause. */
static void a_cause_beside_a_process_counts_as_nothing(void **state)
{
    (void)state;
    struct script *s = stage_started();
    started(s, 1, 1, 0);
    not_started(s, 1, 1, 0, CADRE_NOT_FOUND, "");
    gone(s, 2, 1, 1, 0, 15, "stopped before it started");
    collected(s, 1, 1, 0);
    script_skip(s);
    collected(s, 2, 1, 1);
    expect_output(s,
        "stop task 1/1#2 on link 2\n"
        "record! job 1: failed ABORTED exit 126: task 0 on worker a exited with status 126\n"
        "ended job 1\n");
    script_close(s);
}

static void a_task_that_cannot_start(void **state)
{
    (void)state;
    struct script *s = stage_started();
    gone(s, 1, 1, 0, 127, 0, "the program ./digits does not exist");
    assert_string_equal(script_job_text(s, 1),
        "task 0 on worker a did not start: the program ./digits does not exist");
    gone(s, 2, 1, 1, 0, 40, "");
    collected(s, 1, 1, 0);
    script_skip(s);
    collected(s, 2, 1, 1);
    expect_output(s,
        "stop task 1/1#2 on link 2\n"
        "record! job 1: failed FAILED_PRECONDITION exit 127: task 0 on worker a did not start: "
        "the program ./digits does not exist\n"
        "ended job 1\n");
    script_close(s);
}

static void one_that_never_joins_fails_the_others(void **state)
{
    (void)state;
    const char *reason = "task 1 on worker b exited with status 0 before it joined; 1 of 2 tasks "
                         "joined: all must join a strategy, or none";
    struct script *s = stage_started();
    started(s, 1, 1, 0);
    started(s, 2, 1, 1);
    task_hello(s, 1, 1, 0, 0);
    gone(s, 2, 1, 1, 0, 0, "");
    expect_output(s, "record job 1: task 1 exited 0/0\n"
                     "stop job 1\n");
    assert_string_equal(script_job_text(s, 1), reason);
    script_close(s);
    /* The same when it was faster than the other's hello. */
    s = stage_started();
    started(s, 1, 1, 0);
    started(s, 2, 1, 1);
    gone(s, 2, 1, 1, 0, 0, "");
    task_hello(s, 1, 1, 0, 0);
    expect_output(s, "record job 1: task 1 exited 0/0\n"
                     "stop job 1\n");
    assert_string_equal(script_job_text(s, 1), reason);
    script_close(s);
}

static void leaving_without_finish(void **state)
{
    (void)state;
    /* All do so: that is how the program is. */
    struct script *s = stage_released(4);
    gone(s, 1, 1, 0, 0, 0, "");
    wait_us(s, SECOND);
    gone(s, 2, 1, 1, 0, 0, "");
    collected(s, 1, 1, 0);
    script_skip(s);
    collected(s, 2, 1, 1);
    expect_output(s, "stop task 1/1#2 on link 2\n"
                     "record! job 1: succeeded OK exit 0: all tasks exited with status 0 before "
                     "cadre_finish (or cadre_plain_finish)\n"
                     "ended job 1\n");
    script_close(s);
    /* One does so and the other waits for it. */
    s = stage_released(4);
    gone(s, 1, 1, 0, 0, 0, "");
    expect_output(s, "record job 1: task 0 exited 0/0\n");
    wait_us(s, 5 * SECOND);
    expect_output(s,
        "tell job 1: abort g1: task 0 on worker a exited with status 0 before cadre_finish "
        "(or cadre_plain_finish), and 1 other waits: all must call it at the end\n"
        "stop job 1\n");
    script_close(s);
    /* The other notices first. */
    s = stage_released(4);
    gone(s, 1, 1, 0, 0, 0, "");
    peer_error(s, 2, 1, 1, 3);
    expect_output(s,
        "record job 1: task 0 exited 0/0\n"
        "tell job 1: abort g1: task 0 on worker a exited with status 0 before cadre_finish "
        "(or cadre_plain_finish), and 1 other waits: all must call it at the end\n"
        "stop job 1\n");
    script_close(s);
}

static void a_peer_error_waits_for_the_culprit(void **state)
{
    (void)state;
    struct script *s = stage_released(4);
    peer_error(s, 1, 1, 0, 3);
    peer_error(s, 1, 1, 0, 3);
    expect_output(s,
        "tell job 1: abort g1: task 0 on worker a lost its peers in step 3: connection reset "
        "by rank 1\n");
    arrived(s, 1, 1, 1, 5, 4);
    arrived(s, 2, 1, 1, 5, 4);
    expect_output(s, "");
    gone(s, 2, 1, 1, 0, 11, "");
    expect_output(s,
        "record job 1: task 1 exited 0/11\n"
        "tell job 1: abort g1: task 1 on worker b was killed by signal 11 (Segmentation "
        "fault)\n"
        "stop job 1\n");
    script_close(s);
    /* The one that noticed exits, and its end overtakes that of the one that died. */
    s = stage_released(4);
    peer_error(s, 1, 1, 0, 3);
    script_skip(s);
    gone(s, 1, 1, 0, 1, 0, "lost its peers");
    expect_output(s, "record job 1: task 0 exited 1/0\n");
    gone(s, 2, 1, 1, 0, 11, "");
    expect_output(s, "record job 1: task 1 exited 0/11\n");
    collected(s, 1, 1, 0);
    collected(s, 2, 1, 1);
    expect_output(s,
        "stop task 1/0#1 on link 1\n"
        "stop task 1/1#2 on link 2\n"
        "record! job 1: failed ABORTED exit 139: task 1 on worker b was killed by signal 11 "
        "(Segmentation fault)\n"
        "ended job 1\n");
    script_close(s);
    /* No task died: they form another generation. When that does no step, it is a failure. */
    s = stage_released(4);
    peer_error(s, 1, 1, 0, 3);
    script_skip(s);
    peer_error(s, 2, 1, 1, 4);
    expect_output(s, "record! job 1: plan g2 from 4 of 0 1, source rank 1\n"
                     "tell job 1: plan g2\n");
    assert_string_equal(script_job_text(s, 1),
        "task 0 on worker a lost its peers in step 3: connection reset by rank 1; all went on from "
        "step 4");
    peer_error(s, 1, 1, 0, 4);
    expect_output(s,
        "tell job 1: abort g2: task 0 on worker a lost its peers in step 4: connection reset "
        "by rank 1\n");
    peer_error(s, 2, 1, 1, 4);
    expect_output(s,
        "tell job 1: abort g2: task 0 on worker a lost its peers in step 4: connection reset "
        "by rank 1\n"
        "stop job 1\n");
    assert_int_equal(job_view(s, 1).state, JOB_ENDING);
    script_close(s);
}

static void a_lost_worker_takes_its_tasks_along(void **state)
{
    (void)state;
    struct script *s = stage_released(4);
    peer_error(s, 1, 1, 0, 3); /* its collective broke before anybody knew why */
    script_skip(s);
    wait_us(s, 6 * SECOND);
    heartbeat(s, 1);
    wait_us(s, 4 * SECOND);
    expect_output(s,
        "stop task 1/1#2 on link 2\n" /* it did not report */
        "refuse link 2: UNAVAILABLE: the worker was silent for too long: connect again\n"
        "record job 1: task 1 lost 0/0\n");
    struct core_task_view task;
    core_job_task(s->core, (struct job_id){1}, 1, &task);
    assert_int_equal(task.state, TASK_WAITING);
    assert_int_equal(task.link.n, 0);
    assert_false(task.has_exit);
    for (int i = 0; i < 60; i++) {
        wait_us(s, SECOND);
        heartbeat(s, 1);
    }
    expect_output(s,
        "tell job 1: abort g1: 1 of 2 tasks is left, and no place for another was found within "
        "60 s: task 1 was lost with worker b, which was silent for 10 s\n"
        "stop job 1\n");
    gone(s, 1, 1, 0, 0, 15, "");
    script_skip(s);
    collected(s, 1, 1, 0);
    expect_output(s,
        "stop task 1/0#1 on link 1\n"
        "record! job 1: failed UNAVAILABLE exit 1: 1 of 2 tasks is left, and no place for "
        "another was found within 60 s: task 1 was lost with worker b, which was silent for 10 "
        "s\n"
        "ended job 1\n");
    script_close(s);
}

static void a_restarted_daemon_has_lost_its_tasks(void **state)
{
    (void)state;
    struct script *s = stage_released(4);
    struct task_ref left = ref(s, 1, 1);
    link_down(s, 2);
    hello(s, 5, "b", 77, 1, &left, 1);
    expect_output(s,
        "welcome link 5: worker 3\n"
        "tell job 1: abort g1: task 1 was lost with worker b, which was started again\n"
        "record job 1: task 1 lost 0/0\n"
        "record! job 1: task 1#3 on b\n"
        "start again job 1 on link 5\n"
        "stop task 1/1#2 on link 5\n");
    script_close(s);
}

static void draining_with_a_task(void **state)
{
    (void)state;
    struct script *s = stage_released(4);
    draining(s, 2);
    expect_output(s, "record! job 1: halt at 5 of stream 0\n"
                     "tell job 1: release g1 to 4, halt\n"); /* its job cannot do without it */
    gone(s, 2, 1, 1, 0, 15, "");
    assert_non_null(strstr(script_job_text(s, 1), "its worker drains"));
    assert_int_equal(job_view(s, 1).restarts, 0);
    script_close(s);
    /* A task that exits with status 0 when it is stopped has not finished. */
    s = stage_released(4);
    draining(s, 2);
    gone(s, 2, 1, 1, 0, 0, "");
    assert_non_null(strstr(script_job_text(s, 1), "its worker drains"));
    script_close(s);
}

static void after_goodbye_an_exit_still_counts(void **state)
{
    (void)state;
    struct script *s = stage_released(4);
    finished(s, 1, 1, 0, 4);
    finished(s, 2, 1, 1, 4);
    script_skip(s);
    gone(s, 2, 1, 1, 7, 0, "");
    expect_output(
        s, "record job 1: task 1 exited 7/0\n"); /* the other is about to exit by itself */
    collected(s, 2, 1, 1);
    gone(s, 1, 1, 0, 0, 0, "");
    script_skip(s);
    collected(s, 1, 1, 0);
    expect_output(s,
        "stop task 1/0#1 on link 1\n"
        "record! job 1: failed ABORTED exit 7: task 1 on worker b exited with status 7; all 4 "
        "steps were done by then\n"
        "ended job 1\n");
    script_close(s);
    /* One exits between its report and bye: that is not too early. */
    s = stage_released(4);
    finished(s, 1, 1, 0, 4);
    gone(s, 1, 1, 0, 0, 0, "");
    finished(s, 2, 1, 1, 4);
    script_skip(s);
    wait_us(s, 9 * SECOND);
    expect_output(s, "");
    assert_int_equal(job_view(s, 1).state, JOB_RUNNING);
    assert_string_equal(script_job_text(s, 1), "");
    script_close(s);
}

/* It exits at its end while the other is still about to come there, and cannot any more: it is to
 * blame, not who lost it. */
static void leaving_while_all_wait_for_each_other(void **state)
{
    (void)state;
    struct script *s = stage_released(4);
    const struct task_report lost = {.position = 3, .begun = true, .reason = REPORT_PEER_ERROR};
    finished(s, 1, 1, 0, 4);
    gone(s, 1, 1, 0, 0, 0, "");
    report(s, 2, 1, 1, &lost);
    script_skip(s);
    assert_string_equal(script_job_text(s, 1), "task 0 on worker a exited with status 0 in "
                                               "cadre_finish, where all wait for each other");
    script_close(s);
}

static void uncollected_tasks_are_given_up(void **state)
{
    (void)state;
    struct script *s = stage_released(4);
    gone(s, 1, 1, 0, 1, 0, "");
    gone(s, 2, 1, 1, 1, 0, "");
    script_skip(s);
    collected(s, 1, 1, 0);
    for (int i = 0; i < 4; i++) {
        expect_output(s, i == 0 ? "stop task 1/0#1 on link 1\n" : "");
        wait_us(s, 5 * SECOND);
        heartbeat(s, 1);
        heartbeat(s, 2);
    }
    expect_output(s,
        "record! job 1: failed ABORTED exit 1: task 0 on worker a exited with status 1; logs and "
        "outputs of some tasks did not come in time\n"
        "ended job 1\n");
    /* Its slot is free. */
    submit(s, 0, 2, 0);
    expect_output(s, "record! job 2: submitted 2 tasks\n"
                     "record! job 2: started, incarnations to 2\n"
                     "start job 2\n");
    script_close(s);
}

static void lost_outputs_are_reported(void **state)
{
    (void)state;
    struct script *s = stage_started();
    gone(s, 1, 1, 0, 0, 0, "");
    gone(s, 2, 1, 1, 0, 0, "");
    script_skip(s);
    not_collected(s, 2, 1, 1, "the disk is full");
    collected(s, 1, 1, 0);
    expect_output(s,
        "stop task 1/1#2 on link 2\n"
        "stop task 1/0#1 on link 1\n"
        "record! job 1: succeeded OK exit 0: all tasks exited with status 0 without joining a "
        "strategy; not all that task 1 left could be collected: the disk is full\n"
        "ended job 1\n");
    script_close(s);
}

static void cancelling_at_each_stage(void **state)
{
    (void)state;
    struct script *s = stage_started();
    cancel(s, 9, 1);
    expect_output(s, "answer 9: job 1, 0 before\n"
                     "stop job 1\n");
    cancel(s, 9, 1); /* repeated, because the answer was lost */
    expect_output(s, "answer 9: job 1, 0 before\n");
    script_close(s);

    s = stage_started();
    gone(s, 1, 1, 0, 3, 0, "");
    script_skip(s);
    cancel(s, 9, 1);
    expect_output(s, "answer 9: FAILED_PRECONDITION: job 1 is ending already\n");
    script_close(s);

    s = stage_released(4);
    cancel(s, 9, 1);
    expect_output(s, "answer 9: job 1, 0 before\n"
                     "tell job 1: abort g1: cancelled\n"
                     "stop job 1\n");
    task_hello(s, 1, 1, 0, 1); /* back in the middle of it */
    expect_output(s, "tell job 1 task 0 on link 1: abort g1: cancelled\n");
    gone(s, 1, 1, 0, 0, 15, "");
    gone(s, 2, 1, 1, 0, 0, "");
    collected(s, 1, 1, 0);
    script_skip(s);
    collected(s, 2, 1, 1);
    expect_output(s, "stop task 1/1#2 on link 2\n"
                     "record! job 1: cancelled CANCELLED exit 130: cancelled\n"
                     "ended job 1\n");
    script_close(s);

    s = stage_released(4);
    finished(s, 1, 1, 0, 4);
    finished(s, 2, 1, 1, 4);
    script_skip(s);
    cancel(s, 9, 1);
    expect_output(s, "answer 9: job 1, 0 before\n"
                     "stop job 1\n");
    script_close(s);
}

static void long_last_message_are_cut_whole(void **state)
{
    (void)state;
    struct script *s = stage_started();
    char words[LIMIT_TEXT_BYTES];
    for (size_t i = 0; i + 2 < sizeof(words); i += 2) {
        memcpy(words + i, "\xc3\xa9", 3);
    }
    started(s, 1, 1, 0);
    gone(s, 1, 1, 0, 3, 0, words);
    const char *text = script_job_text(s, 1);
    size_t length = strlen(text);
    assert_true(length >= LIMIT_TEXT_BYTES - 2);
    assert_int_equal((unsigned char)text[length - 1], 0xa9);
    script_close(s);
}

static void doubled_messages_change_nothing(void **state)
{
    (void)state;
    struct script *s = stage_released(4);
    started(s, 1, 1, 0);
    gone(s, 1, 1, 0, 1, 0, "");
    script_skip(s);
    gone(s, 1, 1, 0, 2, 0, "");
    started(s, 1, 1, 0);
    task_hello(s, 1, 1, 0, 1);
    expect_output(s, "");
    collected(s, 1, 1, 0);
    collected(s, 1, 1, 0);
    collected(s, 2, 1, 1); /* it still runs: too early */
    expect_output(s, "stop task 1/0#1 on link 1\n"
                     "stop task 1/0#1 on link 1\n");
    script_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_without_cadre_is_reported),
        cmocka_unit_test(the_first_to_die_is_named),
        cmocka_unit_test(a_status_comes_with_the_last_message),
        cmocka_unit_test(the_cause_of_no_start_is_the_code_of_the_job),
        cmocka_unit_test(no_start_counts_the_same_for_any_cause),
        cmocka_unit_test(a_cause_beside_a_process_counts_as_nothing),
        cmocka_unit_test(a_task_that_cannot_start),
        cmocka_unit_test(one_that_never_joins_fails_the_others),
        cmocka_unit_test(leaving_without_finish),
        cmocka_unit_test(a_peer_error_waits_for_the_culprit),
        cmocka_unit_test(a_lost_worker_takes_its_tasks_along),
        cmocka_unit_test(a_restarted_daemon_has_lost_its_tasks),
        cmocka_unit_test(draining_with_a_task),
        cmocka_unit_test(after_goodbye_an_exit_still_counts),
        cmocka_unit_test(leaving_while_all_wait_for_each_other),
        cmocka_unit_test(uncollected_tasks_are_given_up),
        cmocka_unit_test(lost_outputs_are_reported),
        cmocka_unit_test(cancelling_at_each_stage),
        cmocka_unit_test(long_last_message_are_cut_whole),
        cmocka_unit_test(doubled_messages_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
