/* SPDX-License-Identifier: Apache-2.0
 * Numbers of closures and pushes: which are done, and by what servers tell pushes apart. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/pure/prng.h"
#include "tests/lib/test.h"
#include "worker/library/runtime/crew/closure_numbers.h"
#include "worker/library/runtime/crew/crew.h"

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
    assert_int_equal(closure_numbers_done_below(numbers), 1);
    for (uint64_t i = 1; i <= 5; i++) {
        assert_int_equal(closure_numbers_next(numbers), i);
    }
    closure_numbers_done(numbers, 2);
    closure_numbers_done(numbers, 4);
    assert_int_equal(closure_numbers_done_below(numbers), 1);
    closure_numbers_done(numbers, 1);
    assert_int_equal(closure_numbers_done_below(numbers), 3);
    closure_numbers_done(numbers, 1); /* once more, and what was not given out */
    closure_numbers_done(numbers, 6);
    closure_numbers_done(numbers, 0);
    closure_numbers_done(numbers, UINT64_MAX);
    closure_numbers_done(numbers, 3);
    assert_int_equal(closure_numbers_done_below(numbers), 5);
    closure_numbers_done(numbers, 5);
    assert_int_equal(closure_numbers_done_below(numbers), 6);
    assert_int_equal(closure_numbers_next(numbers), 6);
    assert_int_equal(closure_numbers_done_below(numbers), 6);
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
        uint64_t other = prng_below(&random, i + 1);
        uint64_t kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
    for (uint64_t i = 0; i < count; i++) {
        closure_numbers_done(numbers, order[i]);
        assert_int_equal(closure_numbers_done_below(numbers), 1);
    }
    closure_numbers_done(numbers, 1);
    assert_int_equal(closure_numbers_done_below(numbers), count + 2);
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
        uint64_t now = closure_numbers_done_below(numbers);
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
    assert_int_equal(closure_numbers_done_below(numbers), THREADS * PER_THREAD + 1);
}

/* --- by whom they are asked for --- */

static struct crew_state *crew_of(uint32_t slot)
{
    struct cadre_error error = {0};
    struct crew_state *crew;
    const struct directory_self self = {
        .crew = {.workers = 2, .servers = 1, .evaluators = 1}, .slot = slot, .incarnation = 1};
    assert_ok(crew_new(&self, NULL, &crew, &error), &error);
    return crew;
}

static void a_chief_takes_a_number_for_each_push(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct crew_state *chief = crew_of(0);
    uint64_t closure;
    uint32_t ordinal;
    crew_set_current(chief);
    assert_int_equal(crew_next_closure(), 1);
    assert_ok(crew_push_key(&closure, &ordinal, &error), &error);
    assert_int_equal(closure, 2);
    assert_int_equal(ordinal, 0);
    assert_ok(crew_push_key(&closure, &ordinal, &error), &error);
    assert_int_equal(closure, 3);
    assert_int_equal(crew_done_below(), 1);
    crew_push_done(1);
    crew_push_done(2);
    assert_int_equal(crew_done_below(), 3);
    crew_free(chief);
    assert_null(crew_current());
}

static void *run_closure(void *user)
{
    struct cadre_error error = {0};
    uint64_t closure = 0;
    uint32_t ordinal = 0;
    bool *right = user;
    struct crew_state *worker = crew_of(2);
    crew_enter(worker);
    bool same = crew_current() == worker && worker->role == ROLE_WORKER && worker->index == 1;
    crew_enter_closure(7);
    for (uint32_t i = 0; same && i < 3; i++) {
        same =
            crew_push_key(&closure, &ordinal, &error) == CADRE_OK && closure == 7 && ordinal == i;
    }
    crew_push_done(7); /* its end is the chief's */
    crew_enter_closure(0);
    crew_enter_closure(8);
    same = same && crew_push_key(&closure, &ordinal, &error) == CADRE_OK && ordinal == 0;
    crew_enter_closure(0);
    same = same && crew_push_key(&closure, &ordinal, &error) == CADRE_FAILED_PRECONDITION &&
           strstr(error.text, "inside a closure") != NULL;
    crew_heard_done_below(5);
    crew_heard_done_below(4);
    *right = same && crew_done_below() == 5;
    crew_enter(NULL);
    crew_free(worker);
    return NULL;
}

static void a_thread_that_runs_a_closure_counts_its_pushes(void **state)
{
    (void)state;
    pthread_t threads[2];
    bool right[2] = {false, false};
    struct crew_state *chief = crew_of(0);
    crew_set_current(chief);
    assert_int_equal(crew_next_closure(), 1);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, run_closure, &right[i]), 0);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        assert_true(right[i]);
    }
    assert_ptr_equal(crew_current(), chief);
    assert_int_equal(crew_done_below(), 1);
    crew_free(chief);
}

static void an_evaluator_pushes_nothing(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    uint64_t closure;
    uint32_t ordinal;
    struct crew_state *evaluator = crew_of(4);
    crew_set_current(evaluator);
    assert_error(crew_push_key(&closure, &ordinal, &error), CADRE_FAILED_PRECONDITION, &error,
        "an evaluator reads");
    crew_free(evaluator);
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
