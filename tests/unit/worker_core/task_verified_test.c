/* SPDX-License-Identifier: Apache-2.0
 * What a task says of its state: that it was found equal to the others', or not, and what it is at
 * the end. */
#include "task_fixture.h"

static void verified(struct fixture *fixture, uint64_t position, uint64_t digest)
{
    step(fixture, &(struct task_event){.type = TASK_EVENT_VERIFIED,
                      .verified = {.position = position, .digest = digest}});
}

static void diverged(struct fixture *fixture, uint64_t position)
{
    const struct divergence divergence = {
        .position = position, .verified = 0, .culprits = {0, 3}, .culprit_count = 2};
    step(fixture,
        &(struct task_event){
            .type = TASK_EVENT_DIVERGED, .divergence = &divergence, .text = "they differ"});
}

static void part(struct fixture *fixture, uint64_t position, uint64_t digest)
{
    const struct task_part sent = {
        .position = position, .path = "c.json", .size_bytes = 1, .digest = digest};
    step(fixture, &(struct task_event){.type = TASK_EVENT_PART, .part = &sent});
}

static void test_reported_with_the_next_arrival(void **state)
{
    (void)state;
    struct fixture fixture = fixture_running(10);
    release(&fixture, 2);
    forget(&fixture);
    verified(&fixture, 0, 77);
    expect(&fixture, "");
    apply_step(&fixture, 0);
    expect(&fixture, "send arrive g1 up to 3 applied 1 stream 1 verified 0\n");
    release(&fixture, 3);
    apply_step(&fixture, 1); /* what was sent stays true */
    expect(&fixture, "changed\nsend arrive g1 up to 4 applied 2 stream 1 verified 0\n");
    verified(&fixture, 2, 78);
    simple(&fixture, TASK_EVENT_FLUSH, 0);
    expect(&fixture, "send arrive g1 up to 4 applied 2 stream 1 verified 2\n");
    simple(&fixture, TASK_EVENT_FLUSH, 0);
    expect(&fixture, "");
    simple(&fixture, TASK_EVENT_DISCONNECTED, 0);
    simple(&fixture, TASK_EVENT_CONNECTED, 0);
    expect(&fixture, "send hello g1 at 2 clean released 3 arrived 4\n"
                     "send arrive g1 up to 4 applied 2 stream 1 verified 2\n");
    peer_error(&fixture, "a peer is gone");
    plan_from(&fixture, SECOND, 2, 1); /* of the next generation nothing is known */
    simple(&fixture, TASK_EVENT_SYNCED, 0);
    forget(&fixture);
    ready(&fixture, 1, 0, 10, 10);
    expect(&fixture, "send arrive g2 up to 4 applied 2 stream 1 wants 3\n");
}

/* The program may wait for its checkpoint, and take no step before it is published. */
static void test_reported_at_once_where_a_checkpoint_waits(void **state)
{
    (void)state;
    struct fixture fixture = fixture_running(10);
    release(&fixture, 2);
    apply_step(&fixture, 0);
    forget(&fixture);
    part(&fixture, 1, 77);
    expect(&fixture, "send part g1 at 1 c.json\nchanged\n");
    verified(&fixture, 0, 76); /* not far enough */
    expect(&fixture, "");
    verified(&fixture, 1, 77);
    expect(&fixture, "send arrive g1 up to 3 applied 1 stream 1 verified 1\n");
    release(&fixture, 3);
    apply_step(&fixture, 1);
    forget(&fixture);
    verified(&fixture, 2, 78); /* it waits for another one, of which nothing is known yet */
    part(&fixture, 2, 78);
    expect(&fixture, "send arrive g1 up to 4 applied 2 stream 1 verified 2\n"
                     "send part g1 at 2 c.json\nchanged\n");
    part(&fixture, 2, 0); /* one that is not compared waits for nothing */
    verified(&fixture, 2, 78);
    expect(&fixture, "send part g1 at 2 c.json\nchanged\n");
}

static void test_one_that_differs_freezes(void **state)
{
    (void)state;
    struct fixture fixture = fixture_running(10);
    release(&fixture, 2);
    forget(&fixture);
    diverged(&fixture, 0);
    expect(&fixture,
        "abort mesh: they differ\nchanged\n"
        "send report g1 at 0 clean: diverged, in stream 1 at 0, verified 0, by slot 0, "
        "by slot 3 (they differ)\n");
    peer_error(&fixture, "a peer is gone");
    expect(&fixture, "");
    simple(&fixture, TASK_EVENT_DISCONNECTED, 0);
    simple(&fixture, TASK_EVENT_CONNECTED, 0);
    expect(&fixture,
        "send hello g1 at 0 clean released 2 arrived 2 frozen: diverged\n"
        "send arrive g1 up to 2 applied 0 stream 1 wants 1\n"
        "send report g1 at 0 clean: diverged, in stream 1 at 0, verified 0, by slot 0, "
        "by slot 3 (they differ)\n");
}

/* Another task was quicker to end the mesh. */
static void test_one_that_is_frozen_reports_it_too(void **state)
{
    (void)state;
    struct fixture fixture = fixture_running(10);
    peer_error(&fixture, "a peer is gone");
    forget(&fixture);
    diverged(&fixture, 0);
    expect(&fixture,
        "send report g1 at 0 clean: diverged, in stream 1 at 0, verified 0, by slot 0, "
        "by slot 3 (they differ)\n");
    struct fixture done = fixture_running(10); /* but not one that is done */
    simple(&done, TASK_EVENT_FINISH, 0);
    forget(&done);
    diverged(&done, 0);
    expect(&done, "");
}

static void test_what_it_leaves_is_reported(void **state)
{
    (void)state;
    struct fixture fixture = fixture_running(1);
    release(&fixture, 1);
    apply_step(&fixture, 0);
    forget(&fixture);
    step(&fixture, &(struct task_event){.type = TASK_EVENT_FINISH, .digest = 79});
    expect(&fixture, "changed\nsend report g1 at 1 clean: finished as 79\n");
    struct fixture stopped = fixture_running(10);
    release_halt(&stopped, FIRST, 0, 0, HALT_STOP, 0);
    forget(&stopped);
    step(&stopped, &(struct task_event){.type = TASK_EVENT_PAUSE_POINT, .digest = 80});
    expect(&stopped, "changed\nsend report g1 at 0 clean: halt, in stream 1 as 80\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reported_with_the_next_arrival),
        cmocka_unit_test(test_reported_at_once_where_a_checkpoint_waits),
        cmocka_unit_test(test_one_that_differs_freezes),
        cmocka_unit_test(test_one_that_is_frozen_reports_it_too),
        cmocka_unit_test(test_what_it_leaves_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
