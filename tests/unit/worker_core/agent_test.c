/* SPDX-License-Identifier: Apache-2.0
 * The worker daemon's brain, as transcripts. */
#include <string.h>

#include "agent_fixture.h"

static void test_lifecycle_of_a_task(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_open();
    struct task_ref task = task_of(7, 0, 1);
    welcome(fixture);
    expect(fixture, "send hello\n");
    start(fixture, task);
    expect(fixture, "j7.0.1 prepare\n");
    happens(fixture, AGENT_EVENT_PREPARED, task);
    expect(fixture, "j7.0.1 spawn\n");
    happens(fixture, AGENT_EVENT_SPAWNED, task);
    expect(fixture, "j7.0.1 send started pid 4711\n");
    start(fixture, task); /* said twice */
    expect(fixture, "");
    sends_hello(fixture, task);
    expect(fixture, "j7.0.1 send said hello g0 at 0 dirty released 0 arrived 0\n");
    exits(fixture, task, 3);
    expect(fixture, "j7.0.1 send gone code 3 signal 0\nj7.0.1 collect\n");
    happens(fixture, AGENT_EVENT_COLLECTED, task);
    expect(fixture, "j7.0.1 send collected 0\n");
    start(fixture, task);
    expect(fixture, "j7.0.1 send gone code 3 signal 0\nj7.0.1 send collected 0\n");
    stop_one(fixture, task); /* the coordinator does not know it any more */
    expect(fixture, "j7.0.1 forget\n");
    fixture_close(fixture);
}

static void adopted(struct fixture *fixture, struct task_ref task, bool ended)
{
    const struct agent_down start_of_it = {.type = AGENT_DOWN_START, .start = {.task = task}};
    step(fixture, (struct agent_event){.type = AGENT_EVENT_ADOPTED,
                      .task = task,
                      .pid = 4711,
                      .ended = ended,
                      .down = &start_of_it});
}

static void sends_hello_of_first(struct fixture *fixture, struct task_ref task)
{
    expect_output(fixture, task,
        &(struct task_up){.type = TASK_UP_HELLO,
            .hello = {.frame_version = TASK_FRAME_VERSION,
                .replicas = 1,
                .library_version = "",
                .mesh_address = "",
                .generation = FIRST,
                .position = 4,
                .clean = true,
                .released = 5,
                .arrived = 5}});
}

/* Both are members of the generation that they say they are in; no arrival is of one alone. */
static void test_adopted_tasks_go_on(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_open();
    adopted(fixture, task_of(1, 0, 1), false);
    adopted(fixture, task_of(1, 1, 2), false);
    welcome(fixture);
    expect(fixture, "send hello\n"
                    "j1.0.1 send started pid 4711\n"
                    "j1.1.2 send started pid 4711\n");
    sends_hello_of_first(fixture, task_of(1, 0, 1));
    sends_hello_of_first(fixture, task_of(1, 1, 2));
    memset(&fixture->transcript, 0, sizeof(fixture->transcript));
    arrives(fixture, task_of(1, 0, 1), 6, 5);
    expect(fixture, "");
    arrives(fixture, task_of(1, 1, 2), 7, 4);
    assert_non_null(strstr(fixture->transcript.text, "arrived"));
    exits(fixture, task_of(1, 1, 2), 3);
    assert_non_null(strstr(fixture->transcript.text, "j1.1.2 send gone code 3"));
    fixture_close(fixture);
}

/* It takes no slot, and its end is sent when its last output is read. */
static void test_a_task_is_adopted_after_its_end(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_open();
    adopted(fixture, task_of(1, 0, 1), true);
    adopted(fixture, task_of(1, 0, 3), false); /* its next incarnation */
    adopted(fixture, task_of(1, 1, 2), false);
    memset(&fixture->transcript, 0, sizeof(fixture->transcript));
    exits(fixture, task_of(1, 0, 1), 9);
    welcome(fixture);
    assert_non_null(strstr(fixture->transcript.text, "j1.0.1 send gone code 9"));
    assert_null(strstr(fixture->transcript.text, "signal 15"));
    fixture_close(fixture);
}

/* The daemon came back with fewer slots, and no link is up. */
static void test_adopted_tasks_without_a_slot_or_a_coordinator_end(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_open();
    adopted(fixture, task_of(1, 0, 1), false);
    adopted(fixture, task_of(1, 1, 2), false);
    expect(fixture, "");
    adopted(fixture, task_of(1, 2, 3), false);
    expect(fixture, "j1.2.3 signal 15\n");
    exits(fixture, task_of(1, 2, 3), 0);
    memset(&fixture->transcript, 0, sizeof(fixture->transcript));
    fixture->now_us = agent_core_wake_us(fixture->core);
    assert_true(fixture->now_us < UINT64_MAX);
    plain(fixture, AGENT_EVENT_TICK);
    expect(fixture, "j1.0.1 signal 15\nj1.1.2 signal 15\n");
    fixture_close(fixture);
}

static void test_start_waits_for_a_slot(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_open();
    welcome(fixture);
    runs(fixture, task_of(1, 0, 1));
    runs(fixture, task_of(1, 1, 2));
    memset(&fixture->transcript, 0, sizeof(fixture->transcript));
    start(fixture, task_of(2, 0, 1)); /* the coordinator has given job 1 up, its stop comes later */
    happens(fixture, AGENT_EVENT_PREPARED, task_of(2, 0, 1));
    expect(fixture, "j2.0.1 prepare\n");
    start(fixture, task_of(2, 1, 2));
    start(fixture, task_of(3, 0, 1));
    expect(fixture, "j2.1.2 prepare\n"
                    "j3.0.1 send gone code 126 signal 0 (all task entries of this worker are "
                    "taken)\n"
                    "j3.0.1 send collected 0\n");
    step(fixture, (struct agent_event){.type = AGENT_EVENT_FAILED,
                      .task = task_of(2, 1, 2),
                      .exit = {.code = 127, .text = "no such file"},
                      .code = CADRE_NOT_FOUND});
    expect(fixture, "j2.1.2 send gone code 127 signal 0 cause 5 (no such file)\nj2.1.2 collect\n");
    start(fixture, task_of(2, 1, 2)); /* sent twice */
    expect(fixture, "j2.1.2 send gone code 127 signal 0 cause 5 (no such file)\n");
    exits(fixture, task_of(1, 1, 2), 0);
    expect(fixture, "j1.1.2 send gone code 0 signal 0\nj1.1.2 collect\nj2.0.1 spawn\n");
    fixture_close(fixture);
}

static void test_stop_terminates_then_kills(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_open();
    struct task_ref task = task_of(1, 0, 1);
    welcome(fixture);
    runs(fixture, task);
    memset(&fixture->transcript, 0, sizeof(fixture->transcript));
    fixture->now_us = 100;
    stop_one(fixture, task);
    expect(fixture, "j1.0.1 signal 15\n");
    assert_int_equal(agent_core_wake_us(fixture->core), 100 + GRACE_US);
    stop_one(fixture, task);
    fixture->now_us = 99 + GRACE_US;
    plain(fixture, AGENT_EVENT_TICK);
    expect(fixture, "");
    fixture->now_us = 100 + GRACE_US;
    plain(fixture, AGENT_EVENT_TICK);
    expect(fixture, "j1.0.1 signal 9\n");
    step(fixture,
        (struct agent_event){.type = AGENT_EVENT_EXITED, .task = task, .exit = {.signal = 9}});
    expect(fixture, "j1.0.1 send gone code 0 signal 9 (stopped by Cadre)\nj1.0.1 collect\n");
    fixture_close(fixture);
}

static void test_stop_before_it_runs(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_open();
    welcome(fixture);
    start(fixture, task_of(1, 0, 1));
    start(fixture, task_of(1, 1, 2));
    happens(fixture, AGENT_EVENT_PREPARED, task_of(1, 1, 2));
    memset(&fixture->transcript, 0, sizeof(fixture->transcript));
    down(fixture,
        &(struct agent_down){.type = AGENT_DOWN_STOP, .stop = {.job = {1}, .grace_us = GRACE_US}});
    expect(fixture, "j1.0.1 send gone code 0 signal 15 (stopped before it started)\n"
                    "j1.0.1 collect\n");
    happens(fixture, AGENT_EVENT_SPAWNED, task_of(1, 1, 2));
    expect(fixture, "j1.1.2 send started pid 4711\n"
                    "j1.1.2 signal 15\n");
    /* What comes of preparing it comes too late. */
    happens(fixture, AGENT_EVENT_PREPARED, task_of(1, 0, 1));
    happens(fixture, AGENT_EVENT_FAILED, task_of(1, 0, 1));
    happens(fixture, AGENT_EVENT_COLLECTED, task_of(1, 0, 1));
    expect(fixture, "j1.0.1 send collected 0\n");
    happens(fixture, AGENT_EVENT_PREPARED, task_of(1, 0, 1));
    stop_one(fixture, task_of(1, 0, 1));
    expect(fixture, "j1.0.1 forget\n");
    happens(fixture, AGENT_EVENT_FAILED, task_of(1, 0, 1));
    expect(fixture, "");
    fixture_close(fixture);
}

static void test_stop_of_unknown_task_is_answered(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_open();
    welcome(fixture);
    stop_one(fixture, task_of(9, 0, 1));
    expect(fixture, "send hello\n"
                    "j9.0.1 send gone code 126 signal 0 (this worker has no such task)\n");
    fixture_close(fixture);
}

static void test_newer_incarnation_waits_for_the_older_one(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_open();
    welcome(fixture);
    runs(fixture, task_of(1, 0, 1));
    runs(fixture, task_of(1, 1, 2)); /* both slots are taken */
    memset(&fixture->transcript, 0, sizeof(fixture->transcript));
    start(fixture, task_of(1, 0, 5));
    expect(fixture, "j1.0.5 prepare\nj1.0.1 signal 9\n");
    happens(fixture, AGENT_EVENT_PREPARED, task_of(1, 0, 5));
    expect(fixture, "");
    start(fixture, task_of(1, 0, 4));
    expect(fixture, "j1.0.4 send gone code 126 signal 0 (a newer incarnation of this task runs on "
                    "this worker already)\n"
                    "j1.0.4 send collected 0\n");
    exits(fixture, task_of(1, 0, 1), 0);
    expect(fixture, "j1.0.1 send gone code 0 signal 0\nj1.0.1 collect\nj1.0.5 spawn\n");
    fixture_close(fixture);
}

static void test_fan_out(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_two_members();
    release(fixture, 1, FIRST);
    expect(fixture, "j1.0.1 tell\nj1.1.2 tell\n");
    release(fixture, 1, (struct generation){.number = 1, .nonce = 5});
    release(fixture, 2, FIRST);
    expect(fixture, "");
    happens(fixture, AGENT_EVENT_TASK_CLOSED, task_of(1, 0, 1));
    release(fixture, 1, FIRST);
    expect(fixture, "j1.1.2 tell\n");
    const struct agent_down refused = {.type = AGENT_DOWN_RELAY,
        .relay_down = {.job = {1},
            .one = true,
            .task = task_of(1, 1, 2),
            .down = {.type = TASK_DOWN_SUPERSEDED}}};
    down(fixture, &refused);
    expect(fixture, "j1.1.2 tell\n");
    fixture_close(fixture);
}

static void test_frames_out_of_order_are_refused(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_open();
    struct task_ref task = task_of(1, 0, 1);
    welcome(fixture);
    start(fixture, task);
    sends_hello(fixture, task);
    happens(fixture, AGENT_EVENT_PREPARED, task);
    happens(fixture, AGENT_EVENT_SPAWNED, task);
    memset(&fixture->transcript, 0, sizeof(fixture->transcript));
    arrives(fixture, task, 2, 0);
    expect(fixture, "j1.0.1 refuse: the task must send hello first\n");
    sends_hello(fixture, task);
    sends_hello(fixture, task);
    expect(fixture, "j1.0.1 send said hello g0 at 0 dirty released 0 arrived 0\n"
                    "j1.0.1 refuse: the task sent hello twice on one connection\n");
    expect_output(
        fixture, task, &(struct task_up){.type = TASK_UP_HELLO, .hello = {.frame_version = 99}});
    expect(fixture, "j1.0.1 refuse: the program's libcadre has another protocol version than this "
                    "worker: rebuild it\n");
    sends_hello(fixture, task);
    memset(&fixture->transcript, 0, sizeof(fixture->transcript));
    arrives(fixture, task, 2, 0); /* in no generation */
    expect_output(fixture, task,
        &(struct task_up){.type = TASK_UP_REPORT, .report = {.generation = FIRST, .text = ""}});
    expect(fixture, "");
    happens(fixture, AGENT_EVENT_TASK_CLOSED, task_of(8, 0, 1));
    sends_hello(fixture, task_of(8, 0, 1));
    expect(fixture, "j8.0.1 refuse: no such task runs on this worker\n");
    fixture_close(fixture);
}

static void test_new_link_receives_everything_again(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_two_members();
    struct task_ref first = task_of(1, 0, 1);
    struct task_ref second = task_of(1, 1, 2);
    release(fixture, 1, FIRST);
    arrives(fixture, first, 4, 1);
    arrives(fixture, second, 4, 2);
    plain(fixture, AGENT_EVENT_LINK_DOWN);
    memset(&fixture->transcript, 0, sizeof(fixture->transcript));
    expect_output(fixture, first,
        &(struct task_up){.type = TASK_UP_REPORT,
            .report = {.generation = FIRST,
                .position = 2,
                .clean = true,
                .reason = REPORT_PEER_ERROR,
                .text = "rank 1 left"}});
    exits(fixture, second, 1);
    expect(fixture, "j1.1.2 collect\n"); /* no link is up */
    welcome(fixture);
    expect(fixture, "send hello\n"
                    "j1.0.1 send started pid 4711\n"
                    "j1.0.1 send said hello g1 at 2 clean released 2 arrived 4 frozen: peer error\n"
                    "send arrived job 1 g1 tasks 2 up to 4 applied 1 consumed 10 stream 1\n"
                    "j1.0.1 send said report g1 at 2 clean: peer error (rank 1 left)\n"
                    "j1.1.2 send gone code 1 signal 0\n");
    happens(fixture, AGENT_EVENT_COLLECTED, second);
    plain(fixture, AGENT_EVENT_LINK_DOWN);
    welcome(fixture);
    assert_non_null(strstr(fixture->transcript.text, "j1.1.2 send collected 0\n"));
    fixture_close(fixture);
}

static void test_nothing_is_received_before_the_welcome(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_open();
    start(fixture, task_of(1, 0, 1));
    plain(fixture, AGENT_EVENT_LINK_UP);
    start(fixture, task_of(1, 0, 1));
    expect(fixture, "send hello\n");
    fixture_close(fixture);
}

static void test_orphans_are_ended(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_two_members();
    plain(fixture, AGENT_EVENT_LINK_DOWN);
    assert_int_equal(agent_core_wake_us(fixture->core), 50000);
    plain(fixture, AGENT_EVENT_LINK_UP); /* a coordinator that never says welcome is none */
    fixture->now_us = 50000;
    plain(fixture, AGENT_EVENT_TICK);
    expect(fixture, "send hello\nj1.0.1 signal 15\nj1.1.2 signal 15\n");
    fixture_close(fixture);
}

static void test_heartbeats_follow_the_lease(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_open();
    welcome(fixture);
    assert_int_equal(agent_core_wake_us(fixture->core), 10000); /* a third of the lease */
    fixture->now_us = 10000;
    plain(fixture, AGENT_EVENT_TICK);
    expect(fixture, "send hello\nsend heartbeat\n");
    assert_int_equal(agent_core_wake_us(fixture->core), 20000);
    plain(fixture, AGENT_EVENT_LINK_DOWN);
    assert_true(agent_core_wake_us(fixture->core) == 60000);
    fixture_close(fixture);
}

static void test_drain(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_two_members();
    struct task_ref first = task_of(1, 0, 1);
    struct task_ref second = task_of(1, 1, 2);
    plain(fixture, AGENT_EVENT_DRAIN);
    plain(fixture, AGENT_EVENT_DRAIN);
    expect(fixture, "send draining\n");
    plain(fixture, AGENT_EVENT_LINK_DOWN);
    plain(fixture, AGENT_EVENT_LINK_UP); /* a restarted coordinator gets it at once */
    expect(fixture, "send hello, draining\n");
    plain(fixture, AGENT_EVENT_LINK_DOWN);
    welcome(fixture);
    memset(&fixture->transcript, 0, sizeof(fixture->transcript));
    start(fixture, task_of(3, 0, 1));
    expect(fixture, "j3.0.1 send gone code 126 signal 0 (the worker is draining and takes no new "
                    "tasks)\n"
                    "j3.0.1 send collected 0\n");
    exits(fixture, first, 0); /* it ended by itself within the grace */
    fixture->now_us = GRACE_US;
    plain(fixture, AGENT_EVENT_TICK);
    expect(fixture, "j1.0.1 send gone code 0 signal 0\nj1.0.1 collect\nj1.1.2 signal 15\n");
    exits(fixture, second, 0);
    happens(fixture, AGENT_EVENT_COLLECTED, first);
    happens(fixture, AGENT_EVENT_COLLECTED, second);
    expect(fixture, "j1.1.2 send gone code 0 signal 0\n"
                    "j1.1.2 collect\n"
                    "j1.0.1 send collected 0\n"
                    "j1.1.2 send collected 0\n");
    stop_one(fixture, first); /* acknowledged */
    stop_one(fixture, second);
    expect(fixture, "j1.0.1 forget\nj1.1.2 forget\nleave\n");
    fixture_close(fixture);
}

static void test_drain_with_nothing_to_do(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_open();
    plain(fixture, AGENT_EVENT_DRAIN);
    expect(fixture, "leave\n");
    fixture_close(fixture);
}

static void test_drain_without_coordinator_does_not_wait_for_it(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_two_members();
    plain(fixture, AGENT_EVENT_LINK_DOWN);
    plain(fixture, AGENT_EVENT_DRAIN);
    exits(fixture, task_of(1, 0, 1), 0);
    exits(fixture, task_of(1, 1, 2), 0);
    expect(fixture, "j1.0.1 collect\nj1.1.2 collect\n");
    fixture->now_us = GRACE_US;
    plain(fixture, AGENT_EVENT_TICK);
    expect(fixture, "leave\n");
    fixture_close(fixture);
}

static void test_oldest_memory_makes_room(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_open();
    welcome(fixture);
    for (uint64_t job = 1; job <= AGENT_ENTRIES(SLOTS); job++) {
        runs(fixture, task_of(job, 0, 1));
        exits(fixture, task_of(job, 0, 1), 0);
        happens(fixture, AGENT_EVENT_COLLECTED, task_of(job, 0, 1));
    }
    memset(&fixture->transcript, 0, sizeof(fixture->transcript));
    start(fixture, task_of(9, 0, 1));
    expect(fixture, "j1.0.1 forget\nj9.0.1 prepare\n");
    fixture_close(fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lifecycle_of_a_task),
        cmocka_unit_test(test_adopted_tasks_go_on),
        cmocka_unit_test(test_a_task_is_adopted_after_its_end),
        cmocka_unit_test(test_adopted_tasks_without_a_slot_or_a_coordinator_end),
        cmocka_unit_test(test_start_waits_for_a_slot),
        cmocka_unit_test(test_stop_terminates_then_kills),
        cmocka_unit_test(test_stop_before_it_runs),
        cmocka_unit_test(test_stop_of_unknown_task_is_answered),
        cmocka_unit_test(test_newer_incarnation_waits_for_the_older_one),
        cmocka_unit_test(test_fan_out),
        cmocka_unit_test(test_frames_out_of_order_are_refused),
        cmocka_unit_test(test_new_link_receives_everything_again),
        cmocka_unit_test(test_nothing_is_received_before_the_welcome),
        cmocka_unit_test(test_orphans_are_ended),
        cmocka_unit_test(test_heartbeats_follow_the_lease),
        cmocka_unit_test(test_drain),
        cmocka_unit_test(test_drain_with_nothing_to_do),
        cmocka_unit_test(test_drain_without_coordinator_does_not_wait_for_it),
        cmocka_unit_test(test_oldest_memory_makes_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
