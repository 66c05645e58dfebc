/* SPDX-License-Identifier: Apache-2.0
 * A daemon whose jobs lose and gain tasks, as transcripts: generations that follow each other,
 * joiners, datasets and checkpoints that are said again. */
#include <stdio.h>
#include <string.h>

#include "agent_fixture.h"

static const struct generation SECOND = {.number = 2, .nonce = 78};

/* The plan of a generation of job 1 with these members. */
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

static void arrives_in(struct fixture *fixture, struct generation generation, struct task_ref task,
    uint64_t applied, uint64_t samples)
{
    expect_output(fixture, task,
        &(struct task_up){.type = TASK_UP_ARRIVE,
            .arrive = {.generation = generation,
                .up_to = 9,
                .applied = applied,
                .cursor = {.stream = 1},
                .consumption = {.samples = samples}}});
}

static void reports(struct fixture *fixture, struct task_ref task, struct generation generation)
{
    expect_output(fixture, task,
        &(struct task_up){.type = TASK_UP_REPORT,
            .report = {.generation = generation,
                .position = 4,
                .clean = true,
                .reason = REPORT_ABORT,
                .text = "",
                .begun = true,
                .stream = 1}});
}

static void relink(struct fixture *fixture)
{
    plain(fixture, AGENT_EVENT_LINK_DOWN);
    memset(&fixture->transcript, 0, sizeof(fixture->transcript));
    welcome(fixture);
}

/* Its process may be gone before it fails in the next generation too. */
static void test_a_failure_is_reported_in_any_generation(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_two_members();
    struct task_ref first = task_of(1, 0, 1);
    const struct roster_entry both[] = {{.slot = 0, .incarnation = 1, .mesh_address = "a"},
        {.slot = 1, .incarnation = 2, .mesh_address = "b"}};
    reports(fixture, first, FIRST);
    plan_of(fixture, SECOND, both, 2);
    memset(&fixture->transcript, 0, sizeof(fixture->transcript));
    reports(fixture, first, FIRST);
    expect(fixture, "");
    expect_output(fixture, first,
        &(struct task_up){.type = TASK_UP_REPORT,
            .report = {.generation = FIRST,
                .position = 4,
                .reason = REPORT_FAILED,
                .code = CADRE_DATA_LOSS,
                .text = "no sample"}});
    expect(fixture, "j1.0.1 send said report g1 at 4 dirty: failed code 15 (no sample)\n");
    fixture_close(fixture);
}

static void test_survivor_goes_on_alone(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_two_members();
    struct task_ref first = task_of(1, 0, 1);
    struct task_ref second = task_of(1, 1, 2);
    const struct roster_entry alone[] = {{.slot = 0, .incarnation = 1, .mesh_address = "a"}};
    arrives(fixture, first, 5, 3);
    arrives(fixture, second, 5, 4);
    exits(fixture, second, 1);
    reports(fixture, first, FIRST);
    memset(&fixture->transcript, 0, sizeof(fixture->transcript));
    plan_of(fixture, SECOND, alone, 1);
    expect(fixture, "j1.0.1 tell\n");
    arrives(fixture, first, 6, 4); /* of the older one */
    expect(fixture, "");
    /* The removed one holds no member back any more, and no older report is sent again. */
    arrives_in(fixture, SECOND, first, 4, 40);
    expect(fixture, "send arrived job 1 g2 tasks 1 up to 9 applied 4 consumed 40 stream 1\n");
    relink(fixture);
    expect(fixture, "send hello\n"
                    "j1.0.1 send started pid 4711\n"
                    "j1.0.1 send said hello g2 at 4 clean released 4 arrived 9\n"
                    "send arrived job 1 g2 tasks 1 up to 9 applied 4 consumed 40 stream 1\n"
                    "j1.1.2 send gone code 1 signal 0\n");
    fixture_close(fixture);
}

/* A drained task is left out while it still runs: it is in no generation any more. */
static void test_plan_leaves_a_task_out(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_two_members();
    const struct roster_entry others[] = {{.slot = 0, .incarnation = 1, .mesh_address = "a"},
        /* Of another incarnation, whose number is the same below 2^32. */
        {.slot = 1, .incarnation = 2 + (UINT64_C(1) << 32), .mesh_address = "c"}};
    plan_of(fixture, SECOND, others, 2);
    struct agent_task_view view;
    assert_true(agent_core_task(fixture->core, 1, &view));
    assert_int_equal(view.generation.number, 0);
    arrives(fixture, task_of(1, 1, 2), 6, 4);
    reports(fixture, task_of(1, 1, 2), FIRST);
    expect(fixture, "j1.0.1 tell\n");
    release(fixture, 1, FIRST);
    expect(fixture, "");
    down(fixture, &(struct agent_down){.type = AGENT_DOWN_RELAY,
                      .relay_down = {.job = {1},
                          .one = true,
                          .task = task_of(1, 1, 2),
                          .down = {.type = TASK_DOWN_SUPERSEDED}}});
    expect(fixture, "j1.1.2 tell\n");
    fixture_close(fixture);
}

/* An older plan takes no task back, and a duplicate changes nothing. */
static void test_plans_only_go_forward(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_two_members();
    const struct roster_entry both[] = {{.slot = 0, .incarnation = 1, .mesh_address = "a"},
        {.slot = 1, .incarnation = 2, .mesh_address = "b"}};
    plan_of(fixture, SECOND, both, 2);
    arrives_in(fixture, SECOND, task_of(1, 0, 1), 4, 40);
    plan_of(fixture, SECOND, both, 2);
    plan(fixture, 1);
    arrives_in(fixture, SECOND, task_of(1, 1, 2), 4, 40);
    expect(fixture, "j1.0.1 tell\nj1.1.2 tell\n"
                    "j1.0.1 tell\nj1.1.2 tell\n"
                    "send arrived job 1 g2 tasks 2 up to 9 applied 4 consumed 40 stream 1\n");
    fixture_close(fixture);
}

static void test_replacement_joins(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_two_members();
    struct task_ref joiner = task_of(1, 1, 7);
    exits(fixture, task_of(1, 1, 2), 1);
    runs(fixture, joiner);
    memset(&fixture->transcript, 0, sizeof(fixture->transcript));
    down(fixture, &(struct agent_down){.type = AGENT_DOWN_RELAY,
                      .relay_down = {.job = {1},
                          .one = true,
                          .task = joiner,
                          .down = {.type = TASK_DOWN_WARM, .warm = {.tasks = 1}}}});
    const struct task_up join = {.type = TASK_UP_JOIN, .join = {.stream = 1}};
    expect_output(fixture, joiner, &join);
    expect(fixture, "j1.1.7 tell\nj1.1.7 send said join stream 1\n");
    relink(fixture);
    assert_non_null(strstr(fixture->transcript.text,
        "j1.1.7 send said hello g0 at 0 dirty released 0 arrived 0\n"
        "j1.1.7 send said join stream 1\n"));
    const struct roster_entry both[] = {{.slot = 0, .incarnation = 1, .mesh_address = "a"},
        {.slot = 1, .incarnation = 7, .mesh_address = "b"}};
    plan_of(fixture, SECOND, both, 2);
    memset(&fixture->transcript, 0, sizeof(fixture->transcript));
    expect_output(fixture, joiner, &join); /* it has crossed the plan */
    expect(fixture, "");
    relink(fixture);
    assert_null(strstr(fixture->transcript.text, "join"));
    arrives_in(fixture, SECOND, task_of(1, 0, 1), 5, 50);
    memset(&fixture->transcript, 0, sizeof(fixture->transcript));
    /* The consumption is that of the member that has applied least. */
    arrives_in(fixture, SECOND, joiner, 4, 40);
    expect(fixture, "send arrived job 1 g2 tasks 2 up to 9 applied 4 consumed 40 stream 1\n");
    arrives_in(fixture, SECOND, joiner, 5, 50);
    expect(fixture, "send arrived job 1 g2 tasks 2 up to 9 applied 5 consumed 50 stream 1\n");
    fixture_close(fixture);
}

static void sends_stream(
    struct fixture *fixture, struct task_ref task, uint32_t stream, const char *name)
{
    expect_output(fixture, task,
        &(struct task_up){.type = TASK_UP_STREAM, .stream = {.stream = stream, .name = name}});
}

static void test_datasets_are_resent_once(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_two_members();
    char name[] = "digits";
    sends_stream(fixture, task_of(1, 0, 1), 1, name);
    sends_stream(fixture, task_of(1, 1, 2), 1, name);
    name[0] = 'x'; /* the frame is gone */
    sends_stream(fixture, task_of(1, 1, 2), 2, "letters");
    expect(fixture, "j1.0.1 send said stream 1 digits\n"
                    "j1.1.2 send said stream 1 digits\n"
                    "j1.1.2 send said stream 2 letters\n");
    happens(fixture, AGENT_EVENT_TASK_CLOSED, task_of(1, 0, 1));
    relink(fixture);
    assert_non_null(strstr(fixture->transcript.text, "j1.1.2 send said stream 1 digits\n"
                                                     "j1.1.2 send said stream 2 letters\n"));
    assert_null(strstr(fixture->transcript.text, "j1.0.1 send said stream"));
    exits(fixture, task_of(1, 0, 1), 0);
    exits(fixture, task_of(1, 1, 2), 0);
    relink(fixture);
    assert_null(strstr(fixture->transcript.text, "stream 1"));
    fixture_close(fixture);
}

/* A job with more datasets than can be kept is relayed, and leaves room for others. */
static void test_too_many_datasets(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_open();
    welcome(fixture);
    runs(fixture, task_of(1, 0, 1));
    runs(fixture, task_of(2, 0, 1));
    for (uint32_t stream = 1; stream <= 2 * LIMIT_STREAMS; stream++) {
        memset(&fixture->transcript, 0, sizeof(fixture->transcript));
        sends_stream(fixture, task_of(1, 0, 1), stream, "d");
        assert_true(fixture->transcript.used > 0);
    }
    sends_stream(fixture, task_of(2, 0, 1), 1, "other");
    relink(fixture);
    assert_non_null(strstr(fixture->transcript.text, "stream 64 d\n"));
    assert_null(strstr(fixture->transcript.text, "stream 65 d\n"));
    assert_non_null(strstr(fixture->transcript.text, "j2.0.1 send said stream 1 other\n"));
    fixture_close(fixture);
}

static void sends_part(
    struct fixture *fixture, struct generation generation, uint64_t position, bool shared)
{
    char path[LIMIT_FILE_NAME_BYTES];
    snprintf(path, sizeof path, "checkpoint-%d.json", (int)position);
    expect_output(fixture, task_of(1, 0, 1),
        &(struct task_up){.type = TASK_UP_PART,
            .part = {.generation = generation,
                .position = position,
                .path = path,
                .shared = shared,
                .sha256 = {(uint8_t)position}}});
}

static void published(struct fixture *fixture, cadre_status code)
{
    step(fixture, (struct agent_event){.type = AGENT_EVENT_PUBLISHED,
                      .task = task_of(1, 0, 1),
                      .code = code,
                      .text = "the coordinator has no room"});
}

static void test_part_is_sent_when_it_is_published(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_two_members();
    sends_part(fixture, FIRST, 1, true);
    expect(fixture, "j1.0.1 send said part g1 at 1 checkpoint-1.json\n");
    sends_part(fixture, FIRST, 2, false);
    expect(fixture, "j1.0.1 publish checkpoint-2.json\n");
    sends_part(fixture, FIRST, 2, false); /* on another connection: it is being done */
    sends_part(fixture, FIRST, 3, false);
    expect(fixture, "j1.0.1 publish checkpoint-3.json\n");
    relink(fixture); /* the newest that is published */
    assert_non_null(strstr(fixture->transcript.text, "said part g1 at 1 checkpoint-1.json\n"));
    assert_null(strstr(fixture->transcript.text, "checkpoint-3"));
    plain(fixture, AGENT_EVENT_LINK_DOWN);
    memset(&fixture->transcript, 0, sizeof(fixture->transcript));
    published(fixture, CADRE_OK); /* no link is up */
    expect(fixture, "");
    welcome(fixture);
    assert_non_null(strstr(fixture->transcript.text, "said part g1 at 3 checkpoint-3.json\n"));
    memset(&fixture->transcript, 0, sizeof(fixture->transcript));
    sends_part(fixture, FIRST, 3, false); /* it is published already */
    expect(fixture, "j1.0.1 send said part g1 at 3 checkpoint-3.json\n");
    published(fixture, CADRE_OK);
    expect(fixture, "");
    fixture_close(fixture);
}

static void test_part_that_cannot_be_published(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_two_members();
    sends_part(fixture, FIRST, 2, false);
    published(fixture, CADRE_RESOURCE_EXHAUSTED);
    expect(fixture, "j1.0.1 publish checkpoint-2.json\n");
    sends_part(fixture, FIRST, 2, false); /* said again, tried again */
    expect(fixture, "j1.0.1 publish checkpoint-2.json\n");
    published(fixture, CADRE_OK);
    expect(fixture, "j1.0.1 send said part g1 at 2 checkpoint-2.json\n");
    fixture_close(fixture);
}

static bool publishes(const struct fixture *fixture)
{
    for (size_t i = 0; i < fixture->actions.count; i++) {
        if (fixture->actions.items[i].type == AGENT_ACTION_PUBLISH) {
            return true;
        }
    }
    return false;
}

/* The core is woken then, and at no other time. */
static void assert_published_after(struct fixture *fixture, uint64_t pause_us)
{
    const uint64_t due_us = fixture->now_us + pause_us;
    while (fixture->now_us < due_us) {
        uint64_t wake_us = agent_core_wake_us(fixture->core);
        fixture->now_us = wake_us < due_us ? wake_us : due_us;
        memset(&fixture->transcript, 0, sizeof(fixture->transcript));
        plain(fixture, AGENT_EVENT_TICK);
        assert_int_equal(publishes(fixture), fixture->now_us == due_us);
        assert_true(wake_us <= due_us);
    }
}

/* Whatever the reason was: its program may wait for it, and sends it once. */
static void test_what_failed_is_published_again(void **state)
{
    (void)state;
    static const cadre_status codes[] = {CADRE_UNAVAILABLE, CADRE_INTERNAL, CADRE_DATA_LOSS,
        CADRE_CANCELLED, CADRE_NOT_FOUND, CADRE_UNKNOWN, CADRE_RESOURCE_EXHAUSTED};
    struct fixture *fixture = fixture_two_members();
    sends_part(fixture, FIRST, 2, false);
    for (unsigned i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        published(fixture, codes[i]);
        assert_published_after(fixture, (uint64_t)1000000 << (i < 5 ? i : 5));
    }
    published(fixture, CADRE_UNAVAILABLE);
    sends_part(fixture, FIRST, 3, false); /* a newer one takes its place at once */
    assert_true(publishes(fixture));
    published(fixture, CADRE_UNAVAILABLE);
    assert_published_after(fixture, 1000000);
    memset(&fixture->transcript, 0, sizeof(fixture->transcript));
    published(fixture, CADRE_OK);
    expect(fixture, "j1.0.1 send said part g1 at 3 checkpoint-3.json\n");
    assert_true(agent_core_wake_us(fixture->core) <= fixture->now_us + 100000); /* a heartbeat */
    fixture_close(fixture);
}

/* Nothing waits for it any more. */
static void test_nothing_is_published_for_a_task_that_ended(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_two_members();
    sends_part(fixture, FIRST, 2, false);
    published(fixture, CADRE_UNAVAILABLE);
    exits(fixture, task_of(1, 0, 1), 1);
    for (unsigned i = 0; i < 20; i++) {
        fixture->now_us += 100000;
        memset(&fixture->transcript, 0, sizeof(fixture->transcript));
        plain(fixture, AGENT_EVENT_TICK);
        assert_false(publishes(fixture));
    }
    fixture_close(fixture);
}

static void says_published(struct fixture *fixture, uint64_t position)
{
    down(fixture, &(struct agent_down){.type = AGENT_DOWN_RELAY,
                      .relay_down = {.job = {1},
                          .down = {.type = TASK_DOWN_RELEASE,
                              .release = {.generation = FIRST,
                                  .up_to = 2,
                                  .checkpoint_at = POSITION_NONE,
                                  .halt_at = POSITION_NONE,
                                  .published = position}}}});
}

/* The coordinator could not use it: a content was gone, or there was no room. */
static void test_what_is_not_published_is_sent_again(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_two_members();
    sends_part(fixture, FIRST, 2, false);
    published(fixture, CADRE_OK);
    for (unsigned i = 0; i < 6; i++) {
        assert_published_after(fixture, (uint64_t)5000000 << (i < 3 ? i : 3));
        memset(&fixture->transcript, 0, sizeof(fixture->transcript));
        published(fixture, CADRE_OK);
        expect(fixture, "j1.0.1 send said part g1 at 2 checkpoint-2.json\n");
        says_published(fixture, 1); /* an older one */
    }
    says_published(fixture, 2);
    for (unsigned i = 0; i < 4000; i++) {
        fixture->now_us += 100000;
        memset(&fixture->transcript, 0, sizeof(fixture->transcript));
        plain(fixture, AGENT_EVENT_TICK);
        assert_false(publishes(fixture));
    }
    fixture_close(fixture);
}

/* One in a folder that all see is not uploaded: it is sent. */
static void test_a_shared_part_is_sent_again(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_two_members();
    sends_part(fixture, FIRST, 2, true);
    for (unsigned tick = 1; tick <= 100; tick++) {
        fixture->now_us += 100000;
        memset(&fixture->transcript, 0, sizeof(fixture->transcript));
        plain(fixture, AGENT_EVENT_TICK);
        bool sent = strstr(fixture->transcript.text, "part g1 at 2 checkpoint-2.json") != NULL;
        assert_int_equal(sent, tick == 50);
    }
    says_published(fixture, 2);
    fixture->now_us += 1000000000;
    plain(fixture, AGENT_EVENT_TICK);
    assert_null(strstr(fixture->transcript.text, "part"));
    fixture_close(fixture);
}

/* The regroup comes while it is published: it is said for the new generation, and published once.
 */
static void test_part_outlives_a_generation(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_two_members();
    const struct roster_entry both[] = {{.slot = 0, .incarnation = 1, .mesh_address = "a"},
        {.slot = 1, .incarnation = 2, .mesh_address = "b"}};
    sends_part(fixture, FIRST, 2, false);
    plan_of(fixture, SECOND, both, 2);
    memset(&fixture->transcript, 0, sizeof(fixture->transcript));
    published(fixture, CADRE_OK);
    relink(fixture);
    assert_null(strstr(fixture->transcript.text, "part"));
    memset(&fixture->transcript, 0, sizeof(fixture->transcript));
    sends_part(fixture, SECOND, 2, false);
    expect(fixture, "j1.0.1 send said part g2 at 2 checkpoint-2.json\n");
    sends_part(fixture, SECOND, 3, false);
    sends_part(fixture, FIRST, 4, false);
    expect(fixture, "j1.0.1 publish checkpoint-3.json\n");
    fixture_close(fixture);
}

static void test_stalls_are_relayed(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_two_members();
    struct task_up up = {
        .type = TASK_UP_STALL, .stall = {.generation = FIRST, .position = 3, .slot = 1}};
    expect_output(fixture, task_of(1, 0, 1), &up);
    up.stall.generation = SECOND;
    expect_output(fixture, task_of(1, 0, 1), &up);
    expect(fixture, "j1.0.1 send said stall g1 at 3 for slot 1\n");
    fixture_close(fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_survivor_goes_on_alone),
        cmocka_unit_test(test_a_failure_is_reported_in_any_generation),
        cmocka_unit_test(test_plan_leaves_a_task_out),
        cmocka_unit_test(test_plans_only_go_forward),
        cmocka_unit_test(test_replacement_joins),
        cmocka_unit_test(test_datasets_are_resent_once),
        cmocka_unit_test(test_too_many_datasets),
        cmocka_unit_test(test_part_is_sent_when_it_is_published),
        cmocka_unit_test(test_part_that_cannot_be_published),
        cmocka_unit_test(test_what_failed_is_published_again),
        cmocka_unit_test(test_nothing_is_published_for_a_task_that_ended),
        cmocka_unit_test(test_what_is_not_published_is_sent_again),
        cmocka_unit_test(test_a_shared_part_is_sent_again),
        cmocka_unit_test(test_part_outlives_a_generation),
        cmocka_unit_test(test_stalls_are_relayed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
