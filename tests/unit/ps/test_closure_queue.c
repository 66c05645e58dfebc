/* SPDX-License-Identifier: Apache-2.0
 * Closures between the chief and its workers. */
#include <string.h>

#include "common/pure/prng.h"
#include "tests/lib/test.h"
#include "worker/library/ps/closure_queue.h"

#define WORKERS 3

struct fixture {
    struct closure_queue queue;
    struct closure_list tagged[WORKERS];
    struct closure closures[8]; /* 0 to 5 are of all workers, 6 and 7 of worker 1 */
    unsigned cancelled;
};

static struct fixture fixture;

static int open(void **state)
{
    (void)state;
    memset(&fixture, 0, sizeof fixture);
    for (int i = 0; i < 8; i++) {
        fixture.closures[i].tag = i < 6 ? CLOSURE_ANY : 1;
    }
    closure_queue_init(&fixture.queue, fixture.tagged, WORKERS, 4);
    return 0;
}

static void put(int closure)
{
    closure_queue_put(&fixture.queue, &fixture.closures[closure]);
}

/* Which one worker `worker` is given; -1: none. */
static int get(uint32_t worker)
{
    struct closure *closure = closure_queue_get(&fixture.queue, worker);
    return closure == NULL ? -1 : (int)(closure - fixture.closures);
}

static void count(struct closure *closure, void *user)
{
    assert_ptr_equal(user, &fixture);
    assert_int_equal(closure->state, CLOSURE_CANCELLED);
    fixture.cancelled++;
}

/* The one whose error is raised; -1: none, -2: not yet. */
static int settle(void)
{
    bool wait = false;
    const struct closure *failed = closure_queue_settle(&fixture.queue, count, &fixture, &wait);
    return failed != NULL ? (int)(failed - fixture.closures) : wait ? -2 : -1;
}

static void they_come_in_order(void **state)
{
    (void)state;
    assert_int_equal(get(0), -1);
    assert_true(closure_queue_idle(&fixture.queue));
    put(0);
    put(1);
    assert_int_equal(get(2), 0);
    assert_int_equal(get(0), 1);
    assert_int_equal(get(1), -1);
    assert_false(closure_queue_idle(&fixture.queue));
    closure_queue_done(&fixture.queue, &fixture.closures[0]);
    closure_queue_done(&fixture.queue, &fixture.closures[1]);
    assert_true(closure_queue_idle(&fixture.queue));
    assert_int_equal(settle(), -1);
}

static void a_full_queue_makes_wait(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        assert_false(closure_queue_full(&fixture.queue));
        put(i);
    }
    assert_true(closure_queue_full(&fixture.queue));
    put(6); /* a worker's own does not wait */
    assert_int_equal(get(0), 0);
    assert_false(closure_queue_full(&fixture.queue));
    put(4);
    assert_true(closure_queue_full(&fixture.queue));
    closure_queue_fail(&fixture.queue, &fixture.closures[0]);
    assert_false(closure_queue_full(&fixture.queue)); /* what waits is about to go */
}

static void a_workers_own_come_first(void **state)
{
    (void)state;
    put(0);
    put(6);
    put(7);
    assert_int_equal(get(0), 0);
    assert_int_equal(get(1), 6);
    assert_int_equal(get(1), 7);
    closure_queue_done(&fixture.queue, &fixture.closures[0]);
    assert_true(closure_queue_idle(&fixture.queue)); /* they count for neither */
    closure_queue_fail(&fixture.queue, &fixture.closures[6]);
    assert_int_equal(settle(), -1);
    assert_true(closure_queue_put_back(&fixture.queue, &fixture.closures[7]));
    assert_int_equal(get(1), 7);
}

/* Of A, B and C: worker 0 dies with A, B ends, then C is taken, and A again. */
static void a_lost_workers_closure_goes_to_the_end(void **state)
{
    (void)state;
    put(0);
    put(1);
    put(2);
    assert_int_equal(get(0), 0);
    assert_int_equal(get(1), 1);
    assert_true(closure_queue_put_back(&fixture.queue, &fixture.closures[0]));
    closure_queue_done(&fixture.queue, &fixture.closures[1]);
    assert_int_equal(get(1), 2);
    assert_int_equal(get(2), 0);
}

static void the_first_error_is_raised_when_nothing_runs(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        put(i);
    }
    assert_int_equal(get(0), 0);
    assert_int_equal(get(1), 1);
    assert_int_equal(get(2), 2);
    closure_queue_fail(&fixture.queue, &fixture.closures[1]);
    assert_true(fixture.queue.cancelling);
    assert_int_equal(get(1), -1); /* nothing new is begun */
    assert_int_equal(settle(), -2);
    closure_queue_fail(&fixture.queue, &fixture.closures[0]);
    assert_int_equal(settle(), -2);
    assert_false(closure_queue_put_back(&fixture.queue, &fixture.closures[2]));
    assert_int_equal(settle(), 1);
    assert_int_equal(fixture.cancelled, 1);
    assert_int_equal(fixture.closures[0].state, CLOSURE_FAILED);
    assert_int_equal(fixture.closures[2].state, CLOSURE_CANCELLED);
    assert_int_equal(fixture.closures[3].state, CLOSURE_CANCELLED);
    assert_true(closure_queue_idle(&fixture.queue));
    assert_int_equal(settle(), -1);
    put(4);
    assert_int_equal(get(0), 4); /* as new */
}

/* What is queued may be cancelled at once; what is put until then is cancelled with the error. */
static void what_is_queued_is_cancelled_early(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        put(i);
    }
    put(6);
    assert_int_equal(get(0), 0);
    assert_int_equal(get(0), 1);
    closure_queue_fail(&fixture.queue, &fixture.closures[0]);
    closure_queue_cancel(&fixture.queue, count, &fixture);
    assert_int_equal(fixture.cancelled, 2);
    assert_int_equal(fixture.queue.queued, 0);
    assert_int_equal(get(1), 6); /* a worker's own are not cancelled */
    assert_int_equal(settle(), -2);
    put(4);
    closure_queue_done(&fixture.queue, &fixture.closures[1]);
    assert_int_equal(settle(), 0);
    assert_int_equal(fixture.cancelled, 3);
    assert_true(closure_queue_idle(&fixture.queue));
}

/* Whatever happens: each closure is in one place, and the counts are right. */
static void counts_stay_right(void **state)
{
    struct prng random = {.state = 1};
    for (int round = 0; round < 2000; round++) {
        open(state);
        for (int event = 0; event < 40; event++) {
            struct closure *closure = &fixture.closures[prng_uniform(&random, 8)];
            uint64_t what = prng_uniform(&random, 6);
            if (closure->state == CLOSURE_NEW && what < 2) {
                closure_queue_put(&fixture.queue, closure);
            } else if (closure->state == CLOSURE_RUNNING && what == 0) {
                closure_queue_fail(&fixture.queue, closure);
            } else if (closure->state == CLOSURE_RUNNING && what == 1) {
                closure_queue_done(&fixture.queue, closure);
            } else if (closure->state == CLOSURE_RUNNING && what == 2) {
                (void)closure_queue_put_back(&fixture.queue, closure);
            } else if (what == 3) {
                (void)settle();
            } else {
                (void)get((uint32_t)prng_uniform(&random, WORKERS));
            }
            size_t queued = 0;
            size_t running = 0;
            for (int i = 0; i < 6; i++) {
                queued += fixture.closures[i].state == CLOSURE_QUEUED;
                running += fixture.closures[i].state == CLOSURE_RUNNING;
            }
            assert_int_equal(fixture.queue.queued, queued);
            assert_int_equal(fixture.queue.running, running);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(they_come_in_order, open),
        cmocka_unit_test_setup(a_full_queue_makes_wait, open),
        cmocka_unit_test_setup(a_workers_own_come_first, open),
        cmocka_unit_test_setup(a_lost_workers_closure_goes_to_the_end, open),
        cmocka_unit_test_setup(the_first_error_is_raised_when_nothing_runs, open),
        cmocka_unit_test_setup(what_is_queued_is_cancelled_early, open),
        cmocka_unit_test_setup(counts_stay_right, open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
