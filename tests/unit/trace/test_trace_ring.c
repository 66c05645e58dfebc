/* SPDX-License-Identifier: Apache-2.0
 * The ring of spans: nothing while it is off, each span once however many threads put, and what has
 * no room is counted. */
#include "tests/lib/test.h"

#include <pthread.h>

#include "worker/library/trace/trace.h"

#define THREADS       4
#define EACH          20000
#define TAKEN_AT_ONCE 512

static int empty(void **state)
{
    (void)state;
    assert_true(trace_open());
    trace_set(false, 0);
    return 0;
}

static void nothing_is_recorded_while_it_is_off(void **state)
{
    (void)state;
    struct trace_span span;
    struct trace_mark mark = trace_begin();
    assert_int_equal(mark.begin_ns, 0);
    assert_int_equal(trace_now(mark), 0);
    trace_end(mark, TRACE_INPUT, 0);
    trace_put_collective(mark, TRACE_ALL_REDUCE, 0, 1, 2, 3);
    assert_int_equal(trace_take(&span, 1), 0);
}

static void a_span_has_the_step_in_which_it_began(void **state)
{
    (void)state;
    struct trace_span spans[3];
    trace_set(true, 7);
    struct trace_mark outer = trace_begin();
    struct trace_mark inner = trace_begin();
    uint64_t arrived_ns = trace_now(inner);
    trace_put_collective(inner, TRACE_ALL_GATHER, 3, arrived_ns, 4096, 99);
    trace_set(false, 8); /* the last step that is recorded is over */
    trace_end(outer, TRACE_STEP, 0);
    trace_end(trace_begin(), TRACE_INPUT, 0);
    assert_int_equal(trace_take(spans, 3), 2);
    assert_int_equal(spans[0].kind, TRACE_ALL_GATHER);
    assert_int_equal(spans[0].replica, 3);
    assert_int_equal(spans[0].step, 7);
    assert_int_equal(spans[0].bytes, 4096);
    assert_int_equal(spans[0].match, 99);
    assert_true(spans[0].begin_ns <= spans[0].arrived_ns);
    assert_true(spans[0].arrived_ns <= spans[0].end_ns);
    assert_int_equal(spans[1].kind, TRACE_STEP);
    assert_int_equal(spans[1].step, 7);
    assert_true(spans[1].begin_ns <= spans[0].begin_ns);
    assert_true(spans[0].end_ns <= spans[1].end_ns);
}

static void what_has_no_room_is_counted(void **state)
{
    (void)state;
    struct trace_span span;
    uint64_t before = trace_lost();
    trace_set(true, 1);
    for (uint32_t i = 0; i < TRACE_RING_SPANS + 10; i++) {
        trace_put_collective(trace_begin(), TRACE_BARRIER, 0, 0, i, 0);
    }
    assert_int_equal(trace_lost() - before, 10);
    for (uint32_t i = 0; i < TRACE_RING_SPANS; i++) {
        assert_int_equal(trace_take(&span, 1), 1);
        assert_int_equal(span.bytes, i); /* the oldest are kept */
    }
    assert_int_equal(trace_take(&span, 1), 0);
    trace_put_collective(trace_begin(), TRACE_BARRIER, 0, 0, 5, 0); /* there is room again */
    assert_int_equal(trace_take(&span, 1), 1);
    assert_int_equal(span.bytes, 5);
}

static void *put_many(void *argument)
{
    uint32_t replica = *(const uint32_t *)argument;
    for (uint64_t i = 0; i < EACH; i++) {
        trace_put_collective(trace_begin(), TRACE_ALL_REDUCE, replica, 0, i, replica + i);
    }
    return NULL;
}

/* While they put, another takes. */
static void each_span_of_each_thread_comes_once_and_whole(void **state)
{
    (void)state;
    static struct trace_span taken[TAKEN_AT_ONCE];
    pthread_t threads[THREADS];
    uint32_t numbers[THREADS];
    uint64_t next[THREADS] = {0};
    uint64_t before = trace_lost();
    uint64_t count = 0;
    trace_set(true, 1);
    for (uint32_t i = 0; i < THREADS; i++) {
        numbers[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, put_many, &numbers[i]), 0);
    }
    while (count + (trace_lost() - before) < (uint64_t)THREADS * EACH) {
        size_t more = trace_take(taken, TAKEN_AT_ONCE);
        for (size_t i = 0; i < more; i++) {
            const struct trace_span *span = &taken[i];
            assert_true(span->replica < THREADS);
            assert_true(span->bytes >= next[span->replica]); /* in its order, never twice */
            assert_int_equal(span->match, span->replica + span->bytes);
            next[span->replica] = span->bytes + 1;
        }
        count += more;
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_int_equal(trace_take(taken, TAKEN_AT_ONCE), 0);
}

static void the_clock_has_one_number(void **state)
{
    (void)state;
    assert_true(trace_clock_id() != 0);
    assert_true(trace_clock_id() == trace_clock_id());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(nothing_is_recorded_while_it_is_off, empty),
        cmocka_unit_test_setup(a_span_has_the_step_in_which_it_began, empty),
        cmocka_unit_test_setup(what_has_no_room_is_counted, empty),
        cmocka_unit_test_setup(each_span_of_each_thread_comes_once_and_whole, empty),
        cmocka_unit_test(the_clock_has_one_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
