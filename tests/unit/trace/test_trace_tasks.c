/* SPDX-License-Identifier: Apache-2.0
 * How far the clocks of hosts are apart, and which spans of a task are missing. */
#include "tests/lib/test.h"

#include "common/pure/prng.h"
#include "coordinator/daemon/traces/trace_tasks.h"

#define MS  UINT64_C(1000000)
#define MIN (UINT64_C(60000) * MS)

/* A host whose clock is `ahead_ns` ahead; the request needs `there_ns`, the answer `back_ns`. */
static bool sample(struct clock_offset *offset, uint64_t at_ns, uint64_t ahead_ns,
    uint64_t there_ns, uint64_t back_ns)
{
    return clock_offset_add(offset, at_ns, at_ns + there_ns + ahead_ns, at_ns + there_ns + back_ns);
}

/* How wrong the offset is. */
static uint64_t wrong_by(const struct clock_offset *offset, uint64_t ahead_ns)
{
    uint64_t true_ns = 0 - ahead_ns; /* our clock = its clock - ahead */
    uint64_t difference = offset->offset_ns - true_ns;
    return difference > UINT64_MAX / 2 ? 0 - difference : difference;
}

static void the_shortest_way_counts(void **state)
{
    (void)state;
    struct clock_offset offset = {0};
    assert_true(clock_offset_error(&offset, 0, 1) == UINT64_MAX);
    assert_true(sample(&offset, 1000 * MS, 7 * MIN, 9 * MS, 1 * MS));
    assert_int_equal(wrong_by(&offset, 7 * MIN), 4 * MS);
    assert_true(sample(&offset, 1100 * MS, 7 * MIN, MS / 2, MS / 2));
    assert_int_equal(wrong_by(&offset, 7 * MIN), 0);
    assert_false(sample(&offset, 1200 * MS, 7 * MIN, 20 * MS, 0));
    assert_int_equal(wrong_by(&offset, 7 * MIN), 0);
    assert_int_equal(offset.samples, 3);
    assert_false(clock_offset_add(&offset, 2000, 5, 1999)); /* received before it was asked */
    assert_int_equal(offset.samples, 3);
}

/* Whatever the ways are, minutes ahead or behind: the bound holds. */
static void the_bound_holds(void **state)
{
    (void)state;
    struct prng prng = {11};
    for (int round = 0; round < 1000; round++) {
        struct clock_offset offset = {0};
        uint64_t ahead_ns = prng_uniform(&prng, 20 * MIN) - 10 * MIN;
        uint64_t began_ns = 30 * MIN;
        uint64_t at_ns = began_ns;
        for (int i = 0; i < 12; i++) {
            (void)sample(
                &offset, at_ns, ahead_ns, prng_uniform(&prng, 5 * MS), prng_uniform(&prng, 5 * MS));
            at_ns += 50 * MS;
        }
        assert_true(wrong_by(&offset, ahead_ns) <= clock_offset_error(&offset, began_ns, at_ns));
        assert_true(clock_offset_error(&offset, began_ns, at_ns) < 6 * MS);
    }
}

static void an_old_sample_is_worth_less(void **state)
{
    (void)state;
    struct clock_offset offset = {0};
    assert_true(sample(&offset, 0, 0, MS / 10, MS / 10));
    assert_false(sample(&offset, 1000 * MS, 0, MS, MS));
    assert_true(sample(&offset, 60000 * MS, 0, MS, MS)); /* a minute's drift is up to 3 ms */
    uint64_t near_ns = clock_offset_error(&offset, 60000 * MS, 61000 * MS);
    uint64_t far_ns = clock_offset_error(&offset, 0, 61000 * MS);
    assert_true(near_ns < far_ns);
}

/* ---- tasks ---- */

static struct traced_task *add(struct trace_tasks *tasks, uint32_t slot, uint64_t incarnation)
{
    const struct task_info info = {
        .slot = slot, .incarnation = incarnation, .worker = "w", .pid = 100 + slot};
    struct traced_task *task = trace_tasks_get(tasks, &info);
    assert_non_null(task);
    task->here = true;
    return task;
}

static void missing_spans_are_counted(void **state)
{
    (void)state;
    struct trace_tasks tasks = {.own_clock = 5};
    struct traced_task *task = add(&tasks, 0, 1);
    trace_tasks_take(&tasks, task, &(struct task_spans){.clock = 5, .span_count = 10}, 1);
    trace_tasks_take(&tasks, task,
        &(struct task_spans){.clock = 5, .sent = 14, .span_count = 3, .lost = 2, .position = 9}, 1);
    assert_int_equal(task->view.missing, 4);
    assert_int_equal(task->view.spans, 13);
    assert_int_equal(task->view.lost, 2);
    assert_int_equal(trace_tasks_position(&tasks), 9);
    assert_false(trace_tasks_are_done(&tasks));
    trace_tasks_take(&tasks, task, &(struct task_spans){.clock = 5, .sent = 17, .ended = true}, 1);
    assert_true(trace_tasks_are_done(&tasks));
    trace_tasks_take(&tasks, task, &(struct task_spans){.clock = 5, .sent = 17}, 1);
    assert_int_equal(task->view.state, TRACE_TASK_ENDED); /* it does not begin again */
    trace_tasks_free(&tasks);
}

static void tasks_of_a_host_share_its_clock(void **state)
{
    (void)state;
    struct trace_tasks tasks = {.own_clock = 5};
    struct trace_task items[4];
    size_t cursor = 0;
    trace_tasks_take(&tasks, add(&tasks, 0, 1),
        &(struct task_spans){.clock = 8, .asked_ns = 100, .answered_ns = 5100}, 120);
    trace_tasks_take(&tasks, add(&tasks, 1, 2),
        &(struct task_spans){.clock = 8, .asked_ns = 100, .answered_ns = 5160}, 900);
    trace_tasks_take(&tasks, add(&tasks, 2, 3), &(struct task_spans){.clock = 5}, 900);
    (void)add(&tasks, 3, 4);
    assert_int_equal(trace_tasks_changed(&tasks, 900, false, &cursor, items, 4), 4);
    assert_true(items[0].offset_ns == items[1].offset_ns);
    assert_true(items[0].offset_ns == (uint64_t)110 - 5100); /* of the shorter way */
    assert_true(items[1].error_ns < 20);
    assert_int_equal(items[2].offset_ns, 0);
    assert_int_equal(items[2].error_ns, 0); /* it is this host's */
    assert_true(items[3].error_ns == UINT64_MAX);
    cursor = 0;
    assert_int_equal(trace_tasks_changed(&tasks, 900, false, &cursor, items, 4), 0);
    cursor = 0;
    assert_int_equal(trace_tasks_changed(&tasks, 900, true, &cursor, items, 3), 3);
    assert_int_equal(trace_tasks_changed(&tasks, 900, true, &cursor, items, 3), 1);
    trace_tasks_free(&tasks);
}

static void a_task_that_is_started_again_is_another(void **state)
{
    (void)state;
    struct trace_tasks tasks = {.own_clock = 5};
    (void)add(&tasks, 0, 1);
    (void)add(&tasks, 1, 2);
    trace_tasks_begin_look(&tasks);
    (void)add(&tasks, 0, 1);
    (void)add(&tasks, 1, 7);
    trace_tasks_end_look(&tasks);
    assert_int_equal(tasks.count, 3);
    assert_int_equal(trace_tasks_find(&tasks, 1, 2)->view.state, TRACE_TASK_GONE);
    assert_int_equal(trace_tasks_find(&tasks, 1, 7)->view.state, TRACE_TASK_ASKED);
    assert_null(trace_tasks_find(&tasks, 1, 3));
    trace_tasks_take(
        &tasks, trace_tasks_find(&tasks, 0, 1), &(struct task_spans){.ended = true}, 1);
    assert_false(trace_tasks_are_done(&tasks)); /* the new one may send */
    trace_tasks_begin_look(&tasks);
    trace_tasks_end_look(&tasks);
    assert_true(trace_tasks_are_done(&tasks));
    trace_tasks_free(&tasks);
}

/* The number has to be ahead of all when the order has come to the last. */
static void a_plain_program_begins_ahead_of_all(void **state)
{
    (void)state;
    struct trace_tasks tasks = {.own_clock = 5};
    uint64_t number = 0;
    struct task_spans spans = {.clock = 5, .own_numbers = true, .position = 1000};
    (void)add(&tasks, 0, 1);
    (void)add(&tasks, 1, 2);
    assert_false(trace_tasks_next_number(&tasks, 300 * MS, &number)); /* none has answered */
    trace_tasks_take(&tasks, &tasks.items[0], &spans, 1 * MS);
    trace_tasks_take(&tasks, &tasks.items[1], &spans, 1 * MS);
    spans.position = 1010;
    trace_tasks_take(&tasks, &tasks.items[0], &spans, 50 * MS);
    assert_false(trace_tasks_next_number(&tasks, 300 * MS, &number)); /* not for long enough */
    spans.position = 1100;                                            /* a thousand a second */
    trace_tasks_take(&tasks, &tasks.items[0], &spans, 101 * MS);
    assert_false(trace_tasks_next_number(&tasks, 300 * MS, &number)); /* not both */
    trace_tasks_take(&tasks, &tasks.items[1], &spans, 101 * MS);
    assert_true(trace_tasks_next_number(&tasks, 300 * MS, &number));
    assert_int_equal(number, 1100 + 300 + 2);
    tasks.items[1].own_numbers = false;
    assert_false(trace_tasks_next_number(&tasks, 300 * MS, &number));
    tasks.items[1].here = false; /* it ended */
    assert_true(trace_tasks_next_number(&tasks, 300 * MS, &number));
    trace_tasks_free(&tasks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_shortest_way_counts),
        cmocka_unit_test(the_bound_holds),
        cmocka_unit_test(an_old_sample_is_worth_less),
        cmocka_unit_test(missing_spans_are_counted),
        cmocka_unit_test(tasks_of_a_host_share_its_clock),
        cmocka_unit_test(a_task_that_is_started_again_is_another),
        cmocka_unit_test(a_plain_program_begins_ahead_of_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
