/* SPDX-License-Identifier: Apache-2.0
 * What a daemon says again when its link is back, and what does not begin again with a second word,
 * as transcripts. */
#include <string.h>

#include "agent_fixture.h"

static const struct generation SECOND = {.number = 2, .nonce = 78};

static void forget(struct fixture *fixture)
{
    memset(&fixture->transcript, 0, sizeof(fixture->transcript));
}

static void relink(struct fixture *fixture)
{
    plain(fixture, AGENT_EVENT_LINK_DOWN);
    forget(fixture);
    welcome(fixture);
}

static bool is_sent(const struct fixture *fixture, const char *part)
{
    return strstr(fixture->transcript.text, part) != NULL;
}

static void passes(struct fixture *fixture, uint64_t us)
{
    fixture->now_us += us;
    plain(fixture, AGENT_EVENT_TICK);
}

/* The machine goes in a minute: that is sent however late the coordinator is back. */
static void test_a_notice_outlives_the_link(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_open();
    struct task_ref task = task_of(1, 0, 1);
    welcome(fixture);
    runs(fixture, task);
    plain(fixture, AGENT_EVENT_LINK_DOWN);
    expect_output(
        fixture, task, &(struct task_up){.type = TASK_UP_PREEMPT, .preempt = {.stops = true}});
    welcome(fixture);
    assert_true(is_sent(fixture, "preempt stops"));
    fixture_close(fixture);
}

static void plan_of(struct fixture *fixture, struct generation generation,
    const struct roster_entry *roster, size_t count)
{
    down(fixture, &(struct agent_down){.type = AGENT_DOWN_RELAY,
                      .relay_down = {.job = {1},
                          .down = {.type = TASK_DOWN_PLAN,
                              .plan = {.generation = generation,
                                  .roster = roster,
                                  .roster_count = count,
                                  .resume = 4}}}});
}

static void fails(
    struct fixture *fixture, struct task_ref task, struct generation generation, const char *why)
{
    expect_output(fixture, task,
        &(struct task_up){.type = TASK_UP_REPORT,
            .report = {.generation = generation,
                .position = 3,
                .reason = REPORT_FAILED,
                .code = CADRE_INVALID_ARGUMENT,
                .text = why}});
}

/* The exit reports neither the failure of the program nor its cause: the failure is sent before it,
 * to a coordinator that may have received neither. */
static void test_a_failure_outlives_the_link_and_the_task(void **state)
{
    (void)state;
    for (unsigned ended = 0; ended < 2; ended++) { /* before the link is back, or collected */
        struct fixture *fixture = fixture_two_members();
        struct task_ref task = task_of(1, 0, 1);
        plain(fixture, AGENT_EVENT_LINK_DOWN);
        fails(fixture, task, FIRST, "different paths");
        exits(fixture, task, 1);
        if (ended == 1) {
            happens(fixture, AGENT_EVENT_COLLECTED, task);
        }
        forget(fixture);
        welcome(fixture);
        const char *failure = strstr(fixture->transcript.text, "different paths");
        const char *gone = strstr(fixture->transcript.text, "gone");
        assert_non_null(failure);
        assert_non_null(gone);
        assert_true(failure < gone);
        assert_true(strstr(fixture->transcript.text, "hello") < failure);
        if (ended == 1) {
            stop_one(fixture, task); /* it is acknowledged */
            relink(fixture);
            assert_false(is_sent(fixture, "different paths"));
        }
        fixture_close(fixture);
    }
}

/* It is final in whatever generation: also a plan that comes meanwhile does not undo it. */
static void test_a_failure_outlives_its_generation(void **state)
{
    (void)state;
    const struct roster_entry both[] = {{.slot = 0, .incarnation = 1, .mesh_address = "a"},
        {.slot = 1, .incarnation = 2, .mesh_address = "b"}};
    for (unsigned before = 0; before < 2; before++) { /* the plan comes after it, or before */
        struct fixture *fixture = fixture_two_members();
        struct task_ref task = task_of(1, 0, 1);
        if (before == 0) {
            fails(fixture, task, FIRST, "different paths");
        }
        plan_of(fixture, SECOND, both, 2);
        if (before == 1) {
            fails(fixture, task, FIRST, "different paths");
        }
        exits(fixture, task, 1);
        relink(fixture);
        assert_true(is_sent(fixture, "different paths"));
        fixture_close(fixture);
    }
}

static void names_stream(struct fixture *fixture, struct task_ref task, const char *name)
{
    expect_output(fixture, task,
        &(struct task_up){.type = TASK_UP_STREAM, .stream = {.stream = 1, .name = name}});
}

/* Each job has a first dataset, and keeps it as long as one of its tasks is here. */
static void test_datasets_are_those_of_their_job(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_open();
    welcome(fixture);
    runs(fixture, task_of(1, 0, 1));
    runs(fixture, task_of(2, 0, 1));
    names_stream(fixture, task_of(1, 0, 1), "digits");
    names_stream(fixture, task_of(2, 0, 1), "letters");
    relink(fixture);
    assert_true(is_sent(fixture, "stream 1 digits"));
    assert_true(is_sent(fixture, "stream 1 letters"));
    exits(fixture, task_of(1, 0, 1), 0);
    relink(fixture);
    assert_false(is_sent(fixture, "stream 1 digits"));
    assert_true(is_sent(fixture, "stream 1 letters"));
    fixture_close(fixture);
}

static void test_datasets_outlive_one_of_two_tasks(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_two_members();
    names_stream(fixture, task_of(1, 0, 1), "digits");
    exits(fixture, task_of(1, 0, 1), 0);
    relink(fixture);
    assert_true(is_sent(fixture, "stream 1 digits"));
    fixture_close(fixture);
}

/* A peer that accepts its connections and never welcomes it is no coordinator. */
static void test_who_does_not_welcome_keeps_no_orphans(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_open();
    welcome(fixture);
    runs(fixture, task_of(1, 0, 1));
    plain(fixture, AGENT_EVENT_LINK_DOWN);
    for (int i = 0; i < 4; i++) {
        passes(fixture, 10000);
        plain(fixture, AGENT_EVENT_LINK_UP);
        plain(fixture, AGENT_EVENT_LINK_DOWN);
    }
    forget(fixture);
    passes(fixture, 9999);
    expect(fixture, "");
    passes(fixture, 1);
    expect(fixture, "j1.0.1 signal 15\n");
    fixture_close(fixture);
}

static void stops_in(struct fixture *fixture, struct task_ref task, uint64_t grace_us)
{
    down(fixture, &(struct agent_down){.type = AGENT_DOWN_STOP,
                      .stop = {.job = task.job, .one = true, .task = task, .grace_us = grace_us}});
}

/* The first one counts, unless a following one is sooner. */
static void test_a_second_stop_gives_no_more_time(void **state)
{
    (void)state;
    struct task_ref task = task_of(1, 0, 1);
    for (unsigned spawned_before = 0; spawned_before < 2; spawned_before++) {
        struct fixture *fixture = fixture_open();
        welcome(fixture);
        start(fixture, task);
        happens(fixture, AGENT_EVENT_PREPARED, task);
        if (spawned_before == 1) {
            happens(fixture, AGENT_EVENT_SPAWNED, task);
        }
        stops_in(fixture, task, GRACE_US);
        stops_in(fixture, task, 60 * GRACE_US);
        if (spawned_before == 0) {
            happens(fixture, AGENT_EVENT_SPAWNED, task);
        }
        forget(fixture);
        passes(fixture, GRACE_US);
        expect(fixture, "j1.0.1 signal 9\n");
        fixture_close(fixture);
    }
}

static void saves(struct fixture *fixture, struct task_ref task, uint8_t content)
{
    expect_output(fixture, task,
        &(struct task_up){.type = TASK_UP_PART,
            .part = {.generation = FIRST,
                .position = 4,
                .size_bytes = 8,
                .sha256 = {content},
                .path = "checkpoint-4.json"}});
}

/* The step was taken again, so its checkpoint is another one, of the same name and size. */
static void test_another_content_is_published_again(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_two_members();
    struct task_ref chief = task_of(1, 0, 1);
    saves(fixture, chief, 1);
    assert_true(is_sent(fixture, "publish"));
    happens(fixture, AGENT_EVENT_PUBLISHED, chief);
    forget(fixture);
    saves(fixture, chief, 1);
    assert_false(is_sent(fixture, "publish"));
    assert_true(is_sent(fixture, "part g1 at 4"));
    forget(fixture);
    saves(fixture, chief, 2);
    assert_true(is_sent(fixture, "publish"));
    assert_false(is_sent(fixture, "part g1 at 4"));
    fixture_close(fixture);
}

/* An older plan names no task of the newer generation, and ends nothing of it. */
static void test_an_older_plan_removes_no_task(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_two_members();
    const struct roster_entry both[] = {{.slot = 0, .incarnation = 1, .mesh_address = "a"},
        {.slot = 1, .incarnation = 2, .mesh_address = "b"}};
    plan_of(fixture, SECOND, both, 2);
    plan_of(fixture, FIRST, both, 1);
    for (uint32_t slot = 0; slot < 2; slot++) {
        forget(fixture);
        expect_output(fixture, task_of(1, slot, slot + 1),
            &(struct task_up){.type = TASK_UP_ARRIVE,
                .arrive = {
                    .generation = SECOND, .up_to = 6, .applied = 4, .cursor = {.stream = 1}}});
    }
    expect(fixture, "send arrived job 1 g2 tasks 2 up to 6 applied 4 consumed 0 stream 1\n");
    fixture_close(fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_notice_outlives_the_link),
        cmocka_unit_test(test_a_failure_outlives_the_link_and_the_task),
        cmocka_unit_test(test_a_failure_outlives_its_generation),
        cmocka_unit_test(test_datasets_are_those_of_their_job),
        cmocka_unit_test(test_datasets_outlive_one_of_two_tasks),
        cmocka_unit_test(test_who_does_not_welcome_keeps_no_orphans),
        cmocka_unit_test(test_a_second_stop_gives_no_more_time),
        cmocka_unit_test(test_another_content_is_published_again),
        cmocka_unit_test(test_an_older_plan_removes_no_task),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
