/* SPDX-License-Identifier: Apache-2.0
 * The trace of a task: what an order begins ends by itself, whatever becomes of the coordinator. */
#include <string.h>

#include "tests/lib/test.h"
#include "worker/library/runtime/task/task.h"
#include "worker/library/runtime/task/task_trace.h"
#include "worker/library/trace/trace.h"

#define HOUR_US UINT64_C(3600000000)
#define KEPT    64

/* A session whose daemon is the test: it keeps what the task sends of its trace. */
struct stand_in {
    struct session session;
    struct session_events events;
    struct task *task;
    struct task_spans newest; /* without its spans */
    unsigned answers;         /* to orders */
    uint64_t steps[KEPT];     /* of the spans that came */
    size_t count;
    uint64_t sent;
};

static cadre_status start(
    struct session *session, const struct session_events *events, struct cadre_error *error)
{
    (void)error;
    ((struct stand_in *)session)->events = *events;
    return CADRE_OK;
}

static void keep(struct session *session, const struct task_up *up)
{
    struct stand_in *daemon = (struct stand_in *)session;
    if (up->type != TASK_UP_SPANS) {
        return;
    }
    assert_int_equal(up->spans.sent, daemon->sent); /* none is left out */
    daemon->sent += up->spans.span_count;
    daemon->answers += up->spans.asked_ns != 0 ? 1 : 0;
    for (size_t i = 0; i < up->spans.span_count && daemon->count < KEPT; i++) {
        daemon->steps[daemon->count++] = up->spans.spans[i].step;
    }
    daemon->newest = up->spans;
    daemon->newest.spans = NULL;
}

static bool take_nothing(struct session *session, struct task_down *ret_down)
{
    (void)session;
    (void)ret_down;
    return false;
}

static void end(struct session *session)
{
    (void)session;
}

static const struct session_ops stand_in_ops = {
    .name = "stand-in", .start = start, .send = keep, .take = take_nothing, .close = end};

static void open_task(struct stand_in *daemon)
{
    const struct task_identity identity = {
        .incarnation = 1, .replicas = 1, .mesh_address = "127.0.0.1:1", .plain = true};
    struct cadre_error error = {0};
    *daemon = (struct stand_in){.session = {.ops = &stand_in_ops}};
    assert_ok(task_open(&daemon->session, &identity, &daemon->task, &error), &error);
}

static void order(struct stand_in *daemon, uint64_t id, uint64_t first, uint64_t end,
    uint64_t limit_us, bool own_numbers)
{
    const struct task_down down = {.type = TASK_DOWN_TRACE,
        .trace = {.id = id,
            .first = first,
            .end = end,
            .limit_us = limit_us,
            .asked_ns = 1000 + id,
            .own_numbers = own_numbers}};
    daemon->sent = id == daemon->newest.id ? daemon->sent : 0;
    daemon->events.down(&down, daemon->events.user);
}

/* A step of the program, with a span in it. */
static void step(struct stand_in *daemon)
{
    trace_end(trace_begin(), TRACE_ALL_REDUCE, 0);
    task_trace_collective(daemon->task);
}

static void steps(struct stand_in *daemon, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        step(daemon);
    }
}

static bool records(void)
{
    return atomic_load(&trace_records);
}

static void it_records_these_steps_and_ends(void **state)
{
    (void)state;
    struct stand_in daemon;
    open_task(&daemon);
    steps(&daemon, 3);
    order(&daemon, 7, 5, 8, HOUR_US, true);
    assert_int_equal(daemon.answers, 1);
    assert_int_equal(daemon.newest.asked_ns, 1007);
    assert_int_equal(daemon.newest.position, 3);
    assert_true(daemon.newest.answered_ns != 0 && daemon.newest.clock != 0);
    assert_false(records());
    steps(&daemon, 2);
    assert_true(records());
    steps(&daemon, 1);
    assert_true(daemon.events.tick(daemon.events.user)); /* soon again */
    assert_int_equal(daemon.count, 1);
    order(&daemon, 7, 5, 8, HOUR_US, true); /* only for its clock */
    assert_int_equal(daemon.answers, 2);
    steps(&daemon, 9);
    assert_false(records());
    assert_true(daemon.newest.ended); /* at once, behind the last step */
    assert_int_equal(daemon.count, 3);
    assert_int_equal(daemon.steps[0], 5);
    assert_int_equal(daemon.steps[2], 7);
    assert_false(daemon.events.tick(daemon.events.user));
    order(&daemon, 7, 5, 8, HOUR_US, true); /* the end may not have come */
    assert_true(daemon.newest.ended);
    assert_false(records());
    task_close(daemon.task);
}

static void an_order_for_nothing_ends_it_at_once(void **state)
{
    (void)state;
    struct stand_in daemon;
    open_task(&daemon);
    order(&daemon, 8, 0, 1000, HOUR_US, true);
    assert_true(records());
    steps(&daemon, 2);
    order(&daemon, 0, 0, 0, 0, false);
    assert_false(records());
    steps(&daemon, 2);
    (void)daemon.events.tick(daemon.events.user);
    assert_int_equal(daemon.count, 0);
    order(&daemon, 9, 4, 5, HOUR_US, true); /* nothing of the one before is in the next */
    steps(&daemon, 3);
    assert_int_equal(daemon.count, 1);
    assert_int_equal(daemon.steps[0], 4);
    task_close(daemon.task);
}

/* It comes back when the steps are done: it receives what was recorded meanwhile. */
static void it_ends_without_the_coordinator(void **state)
{
    (void)state;
    struct stand_in daemon;
    open_task(&daemon);
    order(&daemon, 10, 0, 4, HOUR_US, true);
    daemon.events.disconnected(daemon.events.user);
    steps(&daemon, 6);
    assert_false(records());
    assert_int_equal(daemon.count, 0);
    daemon.events.connected(daemon.events.user);
    (void)daemon.events.tick(daemon.events.user);
    (void)daemon.events.tick(daemon.events.user);
    assert_int_equal(daemon.count, 4);
    assert_true(daemon.newest.ended);
    task_close(daemon.task);
}

static void the_time_ends_it(void **state)
{
    (void)state;
    struct stand_in daemon;
    open_task(&daemon);
    order(&daemon, 11, 0, 1000, 0, true);
    assert_true(records());
    steps(&daemon, 2);
    assert_false(daemon.events.tick(daemon.events.user));
    assert_false(records());
    assert_true(daemon.newest.ended);
    assert_int_equal(daemon.count, 2);
    task_close(daemon.task);
}

/* The rest of the steps is not of interest any more, as when a chief is done. */
static void an_order_with_less_time_ends_it_sooner(void **state)
{
    (void)state;
    struct stand_in daemon;
    open_task(&daemon);
    order(&daemon, 14, 0, 1000, HOUR_US, true);
    steps(&daemon, 2);
    order(&daemon, 14, 0, 1000, 0, true);
    order(&daemon, 14, 0, 1000, HOUR_US, true); /* it is not made longer */
    (void)daemon.events.tick(daemon.events.user);
    assert_false(records());
    assert_true(daemon.newest.ended);
    assert_int_equal(daemon.count, 2);
    task_close(daemon.task);
}

static void steps_that_are_numbered_otherwise_are_not_recorded(void **state)
{
    (void)state;
    struct stand_in daemon;
    open_task(&daemon);
    order(&daemon, 12, 0, 1000, HOUR_US, false);
    assert_false(records());
    assert_true(daemon.newest.own_numbers);
    assert_false(daemon.newest.ended); /* the right order follows */
    order(&daemon, 13, 1, 3, HOUR_US, true);
    steps(&daemon, 5);
    assert_int_equal(daemon.count, 2);
    assert_true(daemon.newest.ended);
    task_close(daemon.task);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_records_these_steps_and_ends),
        cmocka_unit_test(an_order_for_nothing_ends_it_at_once),
        cmocka_unit_test(it_ends_without_the_coordinator),
        cmocka_unit_test(the_time_ends_it),
        cmocka_unit_test(an_order_with_less_time_ends_it_sooner),
        cmocka_unit_test(steps_that_are_numbered_otherwise_are_not_recorded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
