/* SPDX-License-Identifier: Apache-2.0
 * Numbers of closures and pushes: which are done, and by what servers tell pushes apart. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/pure/prng.h"
#include "tests/lib/test.h"
#include "worker/library/runtime/ps_job/closure_numbers.h"
#include "worker/library/runtime/ps_job/ps_job.h"

static struct closure_numbers *numbers;

static int open(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    assert_ok(closure_numbers_new(&numbers, &error), &error);
    return 0;
}

static int close_it(void **state)
{
    (void)state;
    closure_numbers_free(numbers);
    return 0;
}

static void the_least_that_is_not_done_counts(void **state)
{
    (void)state;
    assert_int_equal(closure_numbers_watermark(numbers), 1);
    for (uint64_t i = 1; i <= 5; i++) {
        assert_int_equal(closure_numbers_next(numbers), i);
    }
    closure_numbers_done(numbers, 2);
    closure_numbers_done(numbers, 4);
    assert_int_equal(closure_numbers_watermark(numbers), 1);
    closure_numbers_done(numbers, 1);
    assert_int_equal(closure_numbers_watermark(numbers), 3);
    closure_numbers_done(numbers, 1); /* once more, and what was not given out */
    closure_numbers_done(numbers, 6);
    closure_numbers_done(numbers, 0);
    closure_numbers_done(numbers, UINT64_MAX);
    closure_numbers_done(numbers, 3);
    assert_int_equal(closure_numbers_watermark(numbers), 5);
    closure_numbers_done(numbers, 5);
    assert_int_equal(closure_numbers_watermark(numbers), 6);
    assert_int_equal(closure_numbers_next(numbers), 6);
    assert_int_equal(closure_numbers_watermark(numbers), 6);
}

/* One stays behind while so many others come and go that the ring grows several times. */
static void many_thousands_are_in_flight(void **state)
{
    (void)state;
    const uint64_t count = 300000;
    struct prng random = {.state = 11};
    uint64_t *order = malloc(count * sizeof *order);
    assert_non_null(order);
    assert_int_equal(closure_numbers_next(numbers), 1);
    for (uint64_t i = 0; i < count; i++) {
        order[i] = closure_numbers_next(numbers);
        assert_int_equal(order[i], i + 2);
    }
    for (uint64_t i = count - 1; i > 0; i--) {
        uint64_t other = prng_uniform(&random, i + 1);
        uint64_t kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
    for (uint64_t i = 0; i < count; i++) {
        closure_numbers_done(numbers, order[i]);
        assert_int_equal(closure_numbers_watermark(numbers), 1);
    }
    closure_numbers_done(numbers, 1);
    assert_int_equal(closure_numbers_watermark(numbers), count + 2);
    free(order);
}

#define THREADS    4
#define PER_THREAD 20000

static void *take_and_give_back(void *user)
{
    uint64_t held[64] = {0};
    bool *ordered = user;
    uint64_t below = 0;
    *ordered = true;
    for (uint64_t i = 0; i < PER_THREAD; i++) {
        uint64_t *place = &held[i % 64];
        if (*place != 0) {
            closure_numbers_done(numbers, *place);
        }
        *place = closure_numbers_next(numbers);
        uint64_t now = closure_numbers_watermark(numbers);
        *ordered = *ordered && now >= below && now <= *place; /* what is held is not done */
        below = now;
    }
    for (int i = 0; i < 64; i++) {
        closure_numbers_done(numbers, held[i]);
    }
    return NULL;
}

static void threads_take_and_give_back(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    bool ordered[THREADS];
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, take_and_give_back, &ordered[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_true(ordered[i]);
    }
    assert_int_equal(closure_numbers_watermark(numbers), THREADS * PER_THREAD + 1);
}

/* --- by whom they are asked for --- */

static struct ps_job_state *ps_job_of(uint32_t slot)
{
    struct cadre_error error = {0};
    struct ps_job_state *ps_job;
    const struct directory_self self = {
        .ps_job = {.workers = 2, .servers = 1, .evaluators = 1}, .slot = slot, .incarnation = 1};
    assert_ok(ps_job_new(&self, NULL, NULL, &ps_job, &error), &error);
    return ps_job;
}

static void a_chief_takes_a_number_for_each_push(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct ps_job_state *chief = ps_job_of(0);
    uint64_t closure;
    uint32_t ordinal;
    ps_job_set_current(chief);
    assert_int_equal(ps_job_next_closure(), 1);
    assert_ok(ps_job_push_key(&closure, &ordinal, &error), &error);
    assert_int_equal(closure, 2);
    assert_int_equal(ordinal, 0);
    assert_ok(ps_job_push_key(&closure, &ordinal, &error), &error);
    assert_int_equal(closure, 3);
    assert_int_equal(ps_job_done_watermark(), 1);
    ps_job_push_done(1);
    ps_job_push_done(2);
    assert_int_equal(ps_job_done_watermark(), 3);
    ps_job_free(chief);
    assert_null(ps_job_current());
}

static void *run_closure(void *user)
{
    struct cadre_error error = {0};
    uint64_t closure = 0;
    uint32_t ordinal = 0;
    bool *right = user;
    struct ps_job_state *worker = ps_job_of(2);
    ps_job_enter(worker);
    bool same = ps_job_current() == worker && worker->role == ROLE_WORKER && worker->index == 1;
    ps_job_enter_closure(7);
    for (uint32_t i = 0; same && i < 3; i++) {
        same =
            ps_job_push_key(&closure, &ordinal, &error) == CADRE_OK && closure == 7 && ordinal == i;
    }
    ps_job_push_done(7); /* its end is the chief's */
    ps_job_enter_closure(0);
    ps_job_enter_closure(8);
    same = same && ps_job_push_key(&closure, &ordinal, &error) == CADRE_OK && ordinal == 0;
    ps_job_enter_closure(0);
    same = same && ps_job_push_key(&closure, &ordinal, &error) == CADRE_FAILED_PRECONDITION &&
           strstr(error.text, "inside a closure") != NULL;
    ps_job_raise_watermark(5);
    ps_job_raise_watermark(4);
    *right = same && ps_job_done_watermark() == 5;
    ps_job_enter(NULL);
    ps_job_free(worker);
    return NULL;
}

static void a_thread_that_runs_a_closure_counts_its_pushes(void **state)
{
    (void)state;
    pthread_t threads[2];
    bool right[2] = {false, false};
    struct ps_job_state *chief = ps_job_of(0);
    ps_job_set_current(chief);
    assert_int_equal(ps_job_next_closure(), 1);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, run_closure, &right[i]), 0);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        assert_true(right[i]);
    }
    assert_ptr_equal(ps_job_current(), chief);
    assert_int_equal(ps_job_done_watermark(), 1);
    ps_job_free(chief);
}

static void an_evaluator_pushes_nothing(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    uint64_t closure;
    uint32_t ordinal;
    struct ps_job_state *evaluator = ps_job_of(4);
    ps_job_set_current(evaluator);
    assert_error(ps_job_push_key(&closure, &ordinal, &error), CADRE_FAILED_PRECONDITION, &error,
        "an evaluator reads");
    ps_job_free(evaluator);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_least_that_is_not_done_counts, open, close_it),
        cmocka_unit_test_setup_teardown(many_thousands_are_in_flight, open, close_it),
        cmocka_unit_test_setup_teardown(threads_take_and_give_back, open, close_it),
        cmocka_unit_test(a_chief_takes_a_number_for_each_push),
        cmocka_unit_test(a_thread_that_runs_a_closure_counts_its_pushes),
        cmocka_unit_test(an_evaluator_pushes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
