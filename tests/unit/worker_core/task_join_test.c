/* SPDX-License-Identifier: Apache-2.0
 * Tasks that begin elsewhere than at nothing, as transcripts: one that comes to a job that is under
 * way, one that goes on from a checkpoint; and the checkpoints themselves. */
#include <string.h>

#include "task_fixture.h"

static void joins(struct fixture *fixture, uint32_t stream)
{
    step(fixture, &(struct task_event){.type = TASK_EVENT_JOIN, .cursor = {.stream = stream}});
}

static void warm(struct fixture *fixture)
{
    const struct stream_position positions[] = {{.stream = 1, .epoch = 2, .steps = 9}};
    down(fixture, &(struct task_down){.type = TASK_DOWN_WARM,
                      .warm = {.streams = positions, .stream_count = 1, .tasks = 2}});
}

static struct fixture fixture_warm(void)
{
    struct fixture fixture = fixture_make();
    simple(&fixture, TASK_EVENT_CONNECTED, 0);
    warm(&fixture);
    return fixture;
}

static void test_joiner(void **state)
{
    (void)state;
    struct fixture fixture = fixture_warm();
    const struct task_stream stream = {.stream = 1, .name = "digits", .samples = 100};
    step(&fixture, &(struct task_event){.type = TASK_EVENT_STREAM, .stream = &stream});
    assert_true(fixture.core.warm && !fixture.core.joins);
    joins(&fixture, 1);
    expect(&fixture, "send hello g0 at 0 dirty released 0 arrived 0\n"
                     "warm\n"
                     "send stream 1 digits\n"
                     "send join stream 1\n");
    simple(&fixture, TASK_EVENT_DISCONNECTED, 0);
    simple(&fixture, TASK_EVENT_CONNECTED, 0);
    warm(&fixture); /* the answer to the new hello: the streams may have moved on */
    expect(&fixture, "send hello g0 at 0 dirty released 0 arrived 0\nsend join stream 1\nwarm\n");
    plan_from(&fixture, SECOND, 20, 0);
    expect(&fixture, "form\nchanged\n");
    assert_true(fixture.core.warm); /* until it has its state */
    assert_false(fixture.core.clean);
    step(&fixture, &(struct task_event){.type = TASK_EVENT_SYNCED,
                       .cursor = {.stream = 1, .epoch = 2, .first = 18, .begin = 18, .steps = 9},
                       .consumption = {.steps = 2, .samples = 80}});
    expect(&fixture, "changed\n");
    assert_int_equal(fixture.core.position, 20);
    assert_true(fixture.core.clean && !fixture.core.warm && !fixture.core.joins);
    assert_true(fixture.core.begun); /* another joiner may be let in beside it */
    step(&fixture, &(struct task_event){.type = TASK_EVENT_READY,
                       .position = 27,
                       .cursor = {.stream = 1, .epoch = 2, .first = 18, .begin = 20, .steps = 9}});
    expect(&fixture, "send arrive g2 up to 22 applied 20 stream 1 consumed 80 wants 21\n");
}

static void test_joiner_reports_it_when_it_is_connected(void **state)
{
    (void)state;
    struct fixture fixture = fixture_warm();
    simple(&fixture, TASK_EVENT_DISCONNECTED, 0);
    forget(&fixture);
    joins(&fixture, 0);
    expect(&fixture, "");
    simple(&fixture, TASK_EVENT_CONNECTED, 0);
    expect(&fixture, "send hello g0 at 0 dirty released 0 arrived 0\nsend join stream 0\n");
}

/* The stream that it waited for has come to its end: its program goes on to the next one. */
static void test_joiner_of_another_stream(void **state)
{
    (void)state;
    struct fixture fixture = fixture_warm();
    joins(&fixture, 1);
    forget(&fixture);
    warm(&fixture);
    joins(&fixture, 2);
    expect(&fixture, "warm\nsend join stream 2\n");
    plan_from(&fixture, SECOND, 20, 0);
    warm(&fixture); /* a plan was on its way */
    expect(&fixture, "form\nchanged\n");
    simple(&fixture, TASK_EVENT_SYNCED, 0);
    assert_int_equal(fixture.core.begun_stream, 2);
}

/* It is lost before it has its state: it goes into the next generation like anybody that is torn.
 */
static void test_joiner_whose_source_dies(void **state)
{
    (void)state;
    struct fixture fixture = fixture_warm();
    joins(&fixture, 1);
    plan_from(&fixture, FIRST, 20, 0);
    sent(&fixture, TASK_DOWN_ABORT, FIRST);
    forget(&fixture);
    plan_from(&fixture, SECOND, 20, 0);
    expect(&fixture, "form\nchanged\n");
    simple(&fixture, TASK_EVENT_SYNCED, 0);
    assert_int_equal(fixture.core.position, 20);
    assert_true(fixture.core.begun);
}

static void test_joiner_is_never_the_source(void **state)
{
    (void)state;
    struct fixture fixture = fixture_warm();
    joins(&fixture, 1);
    plan_from(&fixture, SECOND, 0, 1);
    assert_int_equal(fixture.core.phase, TASK_EXIT);
    struct fixture alone = fixture_warm();
    joins(&alone, 1);
    forget(&alone);
    plan_from(&alone, SECOND, 0, SOURCE_NONE);
    expect(&alone, "exit void: the plan starts from the beginning, and this task has begun "
                   "already\n"
                   "changed\n");
    struct fixture busy = fixture_warm();
    forget(&busy);
    plan_from(&busy, SECOND, 20, 0);
    expect(&busy, "exit void: the plan names this task, which has not reached a step yet\n"
                  "changed\n");
}

static void test_joiner_is_not_needed(void **state)
{
    (void)state;
    struct fixture fixture = fixture_warm();
    joins(&fixture, 1);
    forget(&fixture);
    sent(&fixture, TASK_DOWN_SUPERSEDED, FIRST);
    expect(&fixture, "exit void: the job goes on or has ended without this task\nchanged\n");
}

/* No task has the first state: it is made by all, or loaded, before SYNCED. */
static void test_begins_again(void **state)
{
    (void)state;
    struct fixture fixture = fixture_make();
    plan_from(&fixture, FIRST, 0, SOURCE_NONE);
    assert_false(fixture.core.clean);
    expect(&fixture, "form\nchanged\n");
    simple(&fixture, TASK_EVENT_SYNCED, 0);
    assert_true(fixture.core.clean);
    assert_false(fixture.core.begun);
}

static void test_restored(void **state)
{
    (void)state;
    struct fixture fixture = fixture_make();
    simple(&fixture, TASK_EVENT_CONNECTED, 0);
    plan_from(&fixture, FIRST, 900, SOURCE_NONE);
    forget(&fixture);
    assert_int_equal(fixture.core.position, 0); /* it stands nowhere yet */
    assert_false(fixture.core.clean);
    simple(&fixture, TASK_EVENT_DISCONNECTED, 0);
    simple(&fixture, TASK_EVENT_CONNECTED, 0);
    expect(&fixture, "send hello g1 at 0 dirty released 900 arrived 900\n");
    step(&fixture, &(struct task_event){.type = TASK_EVENT_SYNCED,
                       .cursor = {.stream = 1, .first = 890, .begin = 890, .steps = 20},
                       .consumption = {.samples = 400}});
    ready(&fixture, 1, 890, 20, 910);
    expect(&fixture, "changed\nsend arrive g1 up to 902 applied 900 stream 1 consumed 400 wants "
                     "901\n");
    assert_int_equal(fixture.core.cursor.begin, 900);
}

/* ---- checkpoints ---- */

static void part(struct fixture *fixture, uint64_t position)
{
    const struct task_part part = {.position = position, .path = "checkpoint.json"};
    step(fixture, &(struct task_event){.type = TASK_EVENT_PART, .part = &part});
}

static void publish(struct fixture *fixture, uint64_t position)
{
    down(fixture, &(struct task_down){.type = TASK_DOWN_RELEASE,
                      .release = {.generation = fixture->core.generation,
                          .up_to = fixture->core.released,
                          .checkpoint_at = POSITION_NONE,
                          .halt_at = POSITION_NONE,
                          .published = position}});
}

static void test_published_is_known_from_releases(void **state)
{
    (void)state;
    struct fixture fixture = fixture_running(10);
    assert_true(fixture.core.published == POSITION_NONE);
    release(&fixture, 2);
    apply_step(&fixture, 0);
    part(&fixture, 1);
    forget(&fixture);
    publish(&fixture, 1);
    publish(&fixture, POSITION_NONE);
    assert_true(fixture.core.published == 1);
    expect(&fixture, "changed\nchanged\n");
    simple(&fixture, TASK_EVENT_DISCONNECTED, 0);
    simple(&fixture, TASK_EVENT_CONNECTED, 0);
    assert_null(strstr(fixture.transcript.text, "part")); /* it is not sent again */
    /* Also a task that has reported gets it: it may wait for that before it ends. */
    simple(&fixture, TASK_EVENT_FINISH, 0);
    publish(&fixture, 2);
    assert_true(fixture.core.published == 2);
    publish(&fixture, 1); /* the newer one is damaged; a task that was notified of it has gone on */
    assert_true(fixture.core.published == 2);
}

/* A checkpoint that lies on the line outlives a regroup, and is said in the new generation. */
static void test_part_outlives_a_generation(void **state)
{
    (void)state;
    struct fixture fixture = fixture_running(10);
    release(&fixture, 2);
    apply_step(&fixture, 0);
    part(&fixture, 1);
    sent(&fixture, TASK_DOWN_ABORT, FIRST);
    plan_from(&fixture, SECOND, 1, 1);
    forget(&fixture);
    simple(&fixture, TASK_EVENT_SYNCED, 0);
    expect(&fixture, "changed\nsend part g2 at 1 checkpoint.json\n");
    /* It became durable while the mesh was formed. */
    sent(&fixture, TASK_DOWN_ABORT, SECOND);
    plan_from(&fixture, (struct generation){.number = 3}, 1, 1);
    forget(&fixture);
    part(&fixture, 1);
    expect(&fixture, "send part g3 at 1 checkpoint.json\nchanged\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_joiner),
        cmocka_unit_test(test_joiner_reports_it_when_it_is_connected),
        cmocka_unit_test(test_joiner_of_another_stream),
        cmocka_unit_test(test_joiner_whose_source_dies),
        cmocka_unit_test(test_joiner_is_never_the_source),
        cmocka_unit_test(test_joiner_is_not_needed),
        cmocka_unit_test(test_begins_again),
        cmocka_unit_test(test_restored),
        cmocka_unit_test(test_published_is_known_from_releases),
        cmocka_unit_test(test_part_outlives_a_generation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
