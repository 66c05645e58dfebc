/* SPDX-License-Identifier: Apache-2.0
 * The worker daemon's brain, as transcripts. Tasks are written j<job>.<slot>.<incarnation>. */
#include "worker/core/agent_core.h"

#include <stdlib.h>
#include <string.h>

#include "tests/lib/test.h"
#include "transcript.h"

#define SLOTS    2
#define GRACE_US 1000

static const struct generation FIRST = {.number = 1, .nonce = 77};

struct fixture {
    struct agent_core *core;
    struct agent_actions actions;
    struct transcript transcript;
    uint64_t now_us;
};

static struct fixture *fixture_open(void)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    assert_non_null(fixture);
    const struct agent_options options = {
        .slots = SLOTS, .heartbeat_us = 100000, .orphan_us = 50000, .grace_us = GRACE_US};
    void *memory = malloc(agent_core_bytes(SLOTS));
    assert_non_null(memory);
    fixture->core = agent_core_init(memory, &options);
    fixture->actions.capacity = AGENT_ACTIONS_PER_STEP_MAX(SLOTS);
    fixture->actions.items = calloc(fixture->actions.capacity, sizeof(struct agent_action));
    assert_non_null(fixture->actions.items);
    return fixture;
}

static void fixture_close(struct fixture *fixture)
{
    free(fixture->core);
    free(fixture->actions.items);
    free(fixture);
}

static void step(struct fixture *fixture, struct agent_event event)
{
    event.now_us = fixture->now_us;
    fixture->actions.count = 0;
    agent_core_step(fixture->core, &event, &fixture->actions);
    transcript_agent(&fixture->transcript, &fixture->actions);
    const char *broken = agent_core_invariant(fixture->core);
    if (broken != NULL) {
        fail_msg("broken: %s", broken);
    }
}

static void expect(struct fixture *fixture, const char *transcript)
{
    assert_string_equal(fixture->transcript.text, transcript);
    memset(&fixture->transcript, 0, sizeof(fixture->transcript));
}

static struct task_ref task_of(uint64_t job, uint32_t slot, uint64_t incarnation)
{
    return (struct task_ref){.job = {job}, .slot = slot, .incarnation = incarnation};
}

static void happens(struct fixture *fixture, enum agent_event_type type, struct task_ref task)
{
    step(fixture, (struct agent_event){.type = type, .task = task, .pid = 4711, .text = ""});
}

static void plain(struct fixture *fixture, enum agent_event_type type)
{
    happens(fixture, type, task_of(0, 0, 0));
}

static void down(struct fixture *fixture, const struct agent_down *message)
{
    step(fixture, (struct agent_event){.type = AGENT_EVENT_DOWN, .down = message});
}

static void welcome(struct fixture *fixture)
{
    plain(fixture, AGENT_EVENT_LINK_UP);
    down(fixture, &(struct agent_down){
                      .type = AGENT_DOWN_WELCOME, .welcome = {.worker = {1}, .lease_us = 30000}});
}

static void start(struct fixture *fixture, struct task_ref task)
{
    down(fixture, &(struct agent_down){.type = AGENT_DOWN_START, .start = {.task = task}});
}

static void stop_one(struct fixture *fixture, struct task_ref task)
{
    down(fixture, &(struct agent_down){.type = AGENT_DOWN_STOP,
                      .stop = {.job = task.job, .one = true, .task = task, .grace_us = GRACE_US}});
}

static void exits(struct fixture *fixture, struct task_ref task, int code)
{
    step(fixture,
        (struct agent_event){.type = AGENT_EVENT_EXITED, .task = task, .exit = {.code = code}});
}

static void says(struct fixture *fixture, struct task_ref task, const struct task_up *up)
{
    step(fixture, (struct agent_event){.type = AGENT_EVENT_TASK_UP, .task = task, .up = up});
}

static void says_hello(struct fixture *fixture, struct task_ref task)
{
    says(fixture, task,
        &(struct task_up){.type = TASK_UP_HELLO,
            .hello = {.frame_version = TASK_FRAME_VERSION,
                .library_version = "1",
                .mesh_address = "127.0.0.1:1"}});
}

static void arrives(struct fixture *fixture, struct task_ref task, uint64_t up_to, uint64_t applied)
{
    says(fixture, task,
        &(struct task_up){.type = TASK_UP_ARRIVE,
            .arrive = {.generation = FIRST,
                .up_to = up_to,
                .applied = applied,
                .cursor = {.stream = 1},
                .digest = {1, 1}}});
}

static void plan(struct fixture *fixture, uint64_t job)
{
    const struct roster_entry roster[] = {{.slot = 0, .incarnation = 1, .mesh_address = "a"},
        {.slot = 1, .incarnation = 2, .mesh_address = "b"},
        {.slot = 2, .incarnation = 3, .mesh_address = "c"}};
    down(
        fixture, &(struct agent_down){.type = AGENT_DOWN_TELL,
                     .tell = {.job = {job},
                         .down = {.type = TASK_DOWN_PLAN,
                             .plan = {.generation = FIRST, .roster = roster, .roster_count = 3}}}});
}

static void release(struct fixture *fixture, uint64_t job, struct generation generation)
{
    down(fixture, &(struct agent_down){.type = AGENT_DOWN_TELL,
                      .tell = {.job = {job},
                          .down = {.type = TASK_DOWN_RELEASE,
                              .release = {.generation = generation, .up_to = 2}}}});
}

static void runs(struct fixture *fixture, struct task_ref task)
{
    start(fixture, task);
    happens(fixture, AGENT_EVENT_PREPARED, task);
    happens(fixture, AGENT_EVENT_SPAWNED, task);
    says_hello(fixture, task);
}

/* Two tasks of job 1, slots 0 and 1, in the first generation; slot 2 is elsewhere. */
static struct fixture *fixture_two_members(void)
{
    struct fixture *fixture = fixture_open();
    welcome(fixture);
    runs(fixture, task_of(1, 0, 1));
    runs(fixture, task_of(1, 1, 2));
    plan(fixture, 1);
    memset(&fixture->transcript, 0, sizeof(fixture->transcript));
    return fixture;
}

static void test_life_of_a_task(void **state)
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
    says_hello(fixture, task);
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
                    "j3.0.1 send gone code 126 signal 0 (every place of this worker is taken)\n"
                    "j3.0.1 send collected 0\n");
    step(fixture, (struct agent_event){.type = AGENT_EVENT_FAILED,
                      .task = task_of(2, 1, 2),
                      .exit = {.code = 127, .text = "no such file"}});
    expect(fixture, "j2.1.2 send gone code 127 signal 0 (no such file)\nj2.1.2 collect\n");
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
    expect(fixture, "j1.0.1 send gone code 0 signal 9\nj1.0.1 collect\n");
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
    expect(fixture, "");
    happens(fixture, AGENT_EVENT_PREPARED, task_of(1, 0, 1));
    happens(fixture, AGENT_EVENT_SPAWNED, task_of(1, 1, 2));
    expect(fixture, "j1.0.1 send gone code 0 signal 15 (stopped before it started)\n"
                    "j1.0.1 collect\n"
                    "j1.1.2 send started pid 4711\n"
                    "j1.1.2 signal 15\n");
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
    expect(fixture, "j1.0.4 send gone code 126 signal 0 (a newer incarnation of this task is on "
                    "this worker already)\n"
                    "j1.0.4 send collected 0\n");
    exits(fixture, task_of(1, 0, 1), 0);
    expect(fixture, "j1.0.1 send gone code 0 signal 0\nj1.0.1 collect\nj1.0.5 spawn\n");
    fixture_close(fixture);
}

static void test_arrivals_are_folded(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_two_members();
    arrives(fixture, task_of(1, 0, 1), 4, 0);
    arrives(fixture, task_of(1, 0, 1), 6, 2);
    expect(fixture, "");
    arrives(fixture, task_of(1, 1, 2), 2, 0);
    expect(fixture, "send arrived job 1 g1 tasks 2 up to 2 applied 0 digest 2\n");
    arrives(fixture, task_of(1, 0, 1), 8, 2);
    expect(fixture, "");
    arrives(fixture, task_of(1, 0, 1), 7, 2); /* watermarks are not taken back */
    arrives(fixture, task_of(1, 1, 2), 9, 1);
    expect(fixture, "send arrived job 1 g1 tasks 2 up to 8 applied 1 digest 2\n");
    arrives(fixture, task_of(1, 1, 2), 9, 2);
    expect(fixture, "send arrived job 1 g1 tasks 2 up to 8 applied 2 digest 2\n");
    exits(fixture, task_of(1, 1, 2), 1);
    memset(&fixture->transcript, 0, sizeof(fixture->transcript));
    arrives(fixture, task_of(1, 0, 1), 12, 4); /* nobody gets past a member that is gone */
    arrives(fixture, task_of(1, 0, 1), 14, 6);
    expect(fixture, "send arrived job 1 g1 tasks 2 up to 9 applied 2 digest 2\n");
    fixture_close(fixture);
}

static void wants(struct fixture *fixture, struct task_ref task, uint64_t up_to, uint64_t wanted)
{
    says(fixture, task,
        &(struct task_up){.type = TASK_UP_ARRIVE,
            .arrive = {.generation = FIRST,
                .up_to = up_to,
                .wanted = wanted,
                .cursor = {.stream = 1},
                .digest = {1, 1}}});
}

/* The most of what is wanted is told at once, also beside one that never arrives. */
static void test_what_is_wanted_does_not_wait_for_the_fold(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_two_members();
    wants(fixture, task_of(1, 1, 2), 1, 0);
    expect(fixture, "");
    wants(fixture, task_of(1, 1, 2), 1, 1);
    expect(fixture, "send arrived job 1 g1 tasks 2 up to 0 applied 0 digest 0 slot 1 wants 1\n");
    wants(fixture, task_of(1, 0, 1), 1, 1);
    expect(fixture, "send arrived job 1 g1 tasks 2 up to 1 applied 0 digest 2 slot 1 wants 1\n");
    wants(fixture, task_of(1, 0, 1), 1, 2);
    expect(fixture, "send arrived job 1 g1 tasks 2 up to 1 applied 0 digest 2 slot 0 wants 2\n");
    wants(fixture, task_of(1, 1, 2), 1, 2); /* known */
    expect(fixture, "");
    plain(fixture, AGENT_EVENT_LINK_DOWN);
    welcome(fixture);
    assert_non_null(strstr(fixture->transcript.text, "slot 0 wants 2\n"));
    fixture_close(fixture);
}

static void test_member_that_is_forgotten_holds_the_fold(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_two_members();
    arrives(fixture, task_of(1, 0, 1), 2, 0);
    arrives(fixture, task_of(1, 1, 2), 4, 0);
    exits(fixture, task_of(1, 1, 2), 1);
    happens(fixture, AGENT_EVENT_COLLECTED, task_of(1, 1, 2));
    stop_one(fixture, task_of(1, 1, 2));
    memset(&fixture->transcript, 0, sizeof(fixture->transcript));
    arrives(fixture, task_of(1, 0, 1), 6, 2);
    expect(fixture, "");
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
    const struct agent_down refused = {.type = AGENT_DOWN_TELL,
        .tell = {.job = {1},
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
    says_hello(fixture, task);
    happens(fixture, AGENT_EVENT_PREPARED, task);
    happens(fixture, AGENT_EVENT_SPAWNED, task);
    memset(&fixture->transcript, 0, sizeof(fixture->transcript));
    arrives(fixture, task, 2, 0);
    expect(fixture, "j1.0.1 refuse: the task has to say hello before anything else\n");
    says_hello(fixture, task);
    says_hello(fixture, task);
    expect(fixture, "j1.0.1 send said hello g0 at 0 dirty released 0 arrived 0\n"
                    "j1.0.1 refuse: the task said hello twice on one connection\n");
    says(fixture, task, &(struct task_up){.type = TASK_UP_HELLO, .hello = {.frame_version = 99}});
    expect(fixture, "j1.0.1 refuse: the program's libcadre speaks another version than this "
                    "worker: rebuild it\n");
    says_hello(fixture, task);
    memset(&fixture->transcript, 0, sizeof(fixture->transcript));
    arrives(fixture, task, 2, 0); /* in no generation */
    says(fixture, task,
        &(struct task_up){.type = TASK_UP_REPORT, .report = {.generation = FIRST, .text = ""}});
    expect(fixture, "");
    happens(fixture, AGENT_EVENT_TASK_CLOSED, task_of(8, 0, 1));
    says_hello(fixture, task_of(8, 0, 1));
    expect(fixture, "j8.0.1 refuse: no such task runs on this worker\n");
    fixture_close(fixture);
}

static void test_new_link_hears_everything_again(void **state)
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
    says(fixture, first,
        &(struct task_up){.type = TASK_UP_REPORT,
            .report = {.generation = FIRST,
                .position = 2,
                .clean = true,
                .reason = REPORT_PEER_ERROR,
                .text = "rank 1 left"}});
    exits(fixture, second, 1);
    expect(fixture, "j1.1.2 collect\n"); /* nobody to tell it to */
    welcome(fixture);
    expect(fixture, "send hello\n"
                    "j1.0.1 send started pid 4711\n"
                    "j1.0.1 send said hello g1 at 2 clean released 2 arrived 4 frozen: peer error\n"
                    "j1.0.1 send said report g1 at 2 clean: peer error (rank 1 left)\n"
                    "j1.1.2 send gone code 1 signal 0\n"
                    "send arrived job 1 g1 tasks 2 up to 4 applied 1 digest 2\n");
    happens(fixture, AGENT_EVENT_COLLECTED, second);
    welcome(fixture);
    assert_non_null(strstr(fixture->transcript.text, "j1.1.2 send collected 0\n"));
    fixture_close(fixture);
}

static void test_nothing_is_heard_before_the_welcome(void **state)
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
    plain(fixture, AGENT_EVENT_LINK_UP); /* a coordinator that was started anew knows it at once */
    expect(fixture, "send hello, draining\n");
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
    for (uint64_t job = 1; job <= AGENT_PLACES(SLOTS); job++) {
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
        cmocka_unit_test(test_life_of_a_task),
        cmocka_unit_test(test_start_waits_for_a_slot),
        cmocka_unit_test(test_stop_terminates_then_kills),
        cmocka_unit_test(test_stop_before_it_runs),
        cmocka_unit_test(test_stop_of_unknown_task_is_answered),
        cmocka_unit_test(test_newer_incarnation_waits_for_the_older_one),
        cmocka_unit_test(test_arrivals_are_folded),
        cmocka_unit_test(test_what_is_wanted_does_not_wait_for_the_fold),
        cmocka_unit_test(test_member_that_is_forgotten_holds_the_fold),
        cmocka_unit_test(test_fan_out),
        cmocka_unit_test(test_frames_out_of_order_are_refused),
        cmocka_unit_test(test_new_link_hears_everything_again),
        cmocka_unit_test(test_nothing_is_heard_before_the_welcome),
        cmocka_unit_test(test_orphans_are_ended),
        cmocka_unit_test(test_heartbeats_follow_the_lease),
        cmocka_unit_test(test_drain),
        cmocka_unit_test(test_drain_with_nothing_to_do),
        cmocka_unit_test(test_drain_without_coordinator_does_not_wait_for_it),
        cmocka_unit_test(test_oldest_memory_makes_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
