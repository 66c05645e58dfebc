/* SPDX-License-Identifier: Apache-2.0
 * Closures that fail: the first error of a batch, what is cancelled with it, and what comes after.
 */
#include <stdatomic.h>

#include "common/base/clock.h"
#include "stage.h"

#define LONG_US (60 * CADRE_US_PER_S)

static bool is_ready(void *data)
{
    return cadre_remote_value_ready(data);
}

static void await(cadre_remote_value *value)
{
    assert_true(test_wait(is_ready, value, LONG_US));
}

/* coordinator/error_then_recover */
static void an_error_is_raised_once(void **state)
{
    (void)state;
    struct stage stage;
    bool done = false;
    stage_open_all(&stage, 2);
    for (int64_t i = 0; i < 3; i++) {
        cadre_remote_value_release(stage_schedule(&stage, "tally", i));
    }
    assert_public_ok(cadre_schedule(stage.strategy, "fail", NULL, 0, NULL));
    assert_public_error(cadre_join(stage.strategy), CADRE_INVALID_ARGUMENT, "no good data");
    assert_int_equal(cadre_strategy_position(stage.strategy), 0); /* no step of a failed join */
    assert_public_ok(cadre_done(stage.strategy, &done));
    assert_true(done);
    for (int64_t i = 3; i < 6; i++) {
        cadre_remote_value_release(stage_schedule(&stage, "tally", i));
    }
    assert_public_ok(cadre_join(stage.strategy));
    for (int64_t i = 3; i < 6; i++) {
        assert_int_equal(stage_runs(i), 1);
    }
    stage_close(&stage);
}

/* What runs is waited for, what is queued is cancelled, later errors stay with their values. */
static void the_first_error_ends_the_batch(void **state)
{
    (void)state;
    struct stage stage;
    stage_open_all(&stage, 3);
    cadre_remote_value *values[5];
    for (int64_t i = 0; i < 5; i++) {
        values[i] = stage_schedule(&stage, "hold", i);
    }
    for (int64_t i = 0; i < 3; i++) {
        stage_await_run(i, 1);
    }
    stage_let(1, CADRE_NOT_FOUND);
    await(values[1]);
    /* Queued ones are known to be cancelled, before anybody asks for the error. */
    assert_public_error(cadre_fetch(values[3], NULL, 0, NULL), CADRE_CANCELLED, "another one");
    assert_public_error(cadre_fetch(values[4], NULL, 0, NULL), CADRE_CANCELLED, "another one");
    assert_false(cadre_remote_value_ready(values[0]));
    stage_let(2, CADRE_DATA_LOSS);
    await(values[2]);
    stage_let(0, CADRE_OK);
    assert_public_error(cadre_join(stage.strategy), CADRE_NOT_FOUND, "`hold` on worker");
    assert_public_ok(cadre_fetch(values[0], NULL, 0, NULL));
    assert_public_error(
        cadre_fetch(values[1], NULL, 0, NULL), CADRE_NOT_FOUND, "1 was made to fail");
    assert_public_error(
        cadre_fetch(values[2], NULL, 0, NULL), CADRE_DATA_LOSS, "2 was made to fail");
    for (int64_t i = 0; i < 5; i++) {
        cadre_remote_value_release(values[i]);
    }
    assert_public_ok(cadre_join(stage.strategy));
    stage_close(&stage);
    assert_int_equal(stage_runs(3) + stage_runs(4), 0);
}

/* schedule and done raise it too; what is scheduled then is cancelled with the rest. */
static void schedule_and_done_raise_it(void **state)
{
    (void)state;
    struct stage stage;
    bool done = true;
    cadre_remote_value *value = NULL;
    cadre_remote_value *after = NULL;
    stage_open_all(&stage, 1);
    assert_public_ok(cadre_schedule(stage.strategy, "fail", NULL, 0, &value));
    await(value);
    assert_public_error(cadre_schedule(stage.strategy, "quick", NULL, 0, &after),
        CADRE_INVALID_ARGUMENT, "no good data");
    assert_null(after);
    cadre_remote_value_release(value);
    assert_public_ok(cadre_schedule(stage.strategy, "fail", NULL, 0, &value));
    await(value);
    assert_public_error(cadre_done(stage.strategy, &done), CADRE_INVALID_ARGUMENT, "no good data");
    assert_false(done);
    assert_public_ok(cadre_done(stage.strategy, &done));
    assert_true(done);
    cadre_remote_value_release(value);
    stage_close(&stage);
}

static atomic_bool begun;

static bool has_begun(void *data)
{
    (void)data;
    return atomic_load(&begun);
}

static cadre_status until_cancelled(cadre_closure *closure, cadre_tensor *outputs[], void *user)
{
    uint64_t until = clock_monotonic_us() + LONG_US;
    (void)outputs;
    (void)user;
    atomic_store(&begun, true);
    while (!cadre_closure_cancelled(closure)) {
        if (clock_monotonic_us() > until) {
            return cadre_fail(CADRE_DEADLINE_EXCEEDED, "it was not cancelled");
        }
    }
    return cadre_fail(CADRE_CANCELLED, "it was not wanted any more");
}

/* Running closures are cancelled; those of the next batch are not. */
static void running_closures_are_cancelled(void **state)
{
    (void)state;
    struct stage stage;
    cadre_remote_value *value = NULL;
    stage_open_all(&stage, 2);
    assert_public_ok(cadre_schedule(stage.strategy, "until_cancelled", NULL, 0, &value));
    assert_true(test_wait(has_begun, NULL, LONG_US));
    assert_public_ok(cadre_schedule(stage.strategy, "fail", NULL, 0, NULL));
    assert_public_error(cadre_join(stage.strategy), CADRE_INVALID_ARGUMENT, "no good data");
    assert_public_error(cadre_fetch(value, NULL, 0, NULL), CADRE_CANCELLED, "not wanted");
    cadre_remote_value_release(value);
    value = stage_schedule(&stage, "tally", 5);
    assert_public_ok(cadre_join(stage.strategy));
    assert_public_ok(cadre_fetch(value, NULL, 0, NULL));
    cadre_remote_value_release(value);
    stage_close(&stage);
}

/* A, B run on two workers, C waits; A's worker is lost, so it stands behind C. */
static void a_lost_closure_goes_to_the_end(void **state)
{
    (void)state;
    struct stage stage;
    stage_open_all(&stage, 2);
    cadre_remote_value *a = stage_schedule(&stage, "hold", 0);
    uint32_t lost = stage_await_run(0, 1);
    cadre_remote_value *b = stage_schedule(&stage, "hold", 1);
    assert_int_equal(stage_await_run(1, 1), 1 - lost);
    cadre_remote_value *c = stage_schedule(&stage, "hold", 2);
    assert_true(scheduler_drop(&stage.chief, lost));
    stage_await_connected(&stage, 1); /* its thread still runs A: it does not come yet */
    stage_let(1, CADRE_OK);
    assert_int_equal(stage_await_run(2, 1), 1 - lost);
    assert_int_equal(stage_runs(0), 1);
    stage_let(2, CADRE_OK);
    assert_int_equal(stage_await_run(0, 2), 1 - lost);
    stage_let(0, CADRE_OK);
    assert_public_ok(cadre_join(stage.strategy));
    assert_public_ok(cadre_fetch(a, NULL, 0, NULL));
    assert_int_equal(stage_runs(1), 1);
    assert_int_equal(stage_runs(2), 1);
    cadre_remote_value_release(a);
    cadre_remote_value_release(b);
    cadre_remote_value_release(c);
    stage_close(&stage);
}

/* The same, and B fails: C and A are cancelled. */
static void a_lost_closure_is_cancelled_with_the_rest(void **state)
{
    (void)state;
    struct stage stage;
    stage_open_all(&stage, 2);
    cadre_remote_value *a = stage_schedule(&stage, "hold", 0);
    uint32_t lost = stage_await_run(0, 1);
    cadre_remote_value *b = stage_schedule(&stage, "hold", 1);
    stage_await_run(1, 1);
    cadre_remote_value *c = stage_schedule(&stage, "hold", 2);
    assert_true(scheduler_drop(&stage.chief, lost));
    stage_await_connected(&stage, 1);
    stage_let(1, CADRE_OUT_OF_RANGE);
    assert_public_error(cadre_join(stage.strategy), CADRE_OUT_OF_RANGE, "1 was made to fail");
    assert_public_error(cadre_fetch(a, NULL, 0, NULL), CADRE_CANCELLED, "another one");
    assert_public_error(cadre_fetch(b, NULL, 0, NULL), CADRE_OUT_OF_RANGE, "1 was made to fail");
    assert_public_error(cadre_fetch(c, NULL, 0, NULL), CADRE_CANCELLED, "another one");
    stage_let(0, CADRE_OK);
    cadre_remote_value_release(a);
    cadre_remote_value_release(b);
    cadre_remote_value_release(c);
    c = stage_schedule(&stage, "tally", 3);
    assert_public_ok(cadre_join(stage.strategy));
    cadre_remote_value_release(c);
    stage_close(&stage);
    assert_int_equal(stage_runs(0), 1);
    assert_int_equal(stage_runs(2), 0);
}

/* The other way round: the error first, and then the worker of one that runs is lost. */
static void a_lost_closure_is_cancelled_while_an_error_is_pending(void **state)
{
    (void)state;
    struct stage stage;
    stage_open_all(&stage, 2);
    cadre_remote_value *a = stage_schedule(&stage, "hold", 0);
    uint32_t lost = stage_await_run(0, 1);
    cadre_remote_value *b = stage_schedule(&stage, "fail", 1);
    await(b);
    assert_true(scheduler_drop(&stage.chief, lost));
    assert_public_error(cadre_join(stage.strategy), CADRE_INVALID_ARGUMENT, "no good data");
    assert_public_error(cadre_fetch(a, NULL, 0, NULL), CADRE_CANCELLED, "another one");
    stage_let(0, CADRE_OK);
    cadre_remote_value_release(a);
    cadre_remote_value_release(b);
    stage_close(&stage);
}

/* A machine that is gone says nothing; the coordinator does. */
static void the_coordinator_gives_a_worker_up(void **state)
{
    (void)state;
    struct stage stage;
    stage_open_all(&stage, 2);
    cadre_remote_value_release(stage_schedule(&stage, "hold", 0));
    uint32_t lost = stage_await_run(0, 1);
    const struct task_member gone = {.slot = lost + 1, .incarnation = 1000, .attempts = 2};
    const struct task_members members = {
        .generation = {.number = 3}, .members = &gone, .member_count = 1};
    directory_update(stage.chief.directory, &members);
    assert_int_equal(stage_await_run(0, 2), 1 - lost);
    stage_let(0, CADRE_OK);
    assert_public_ok(cadre_join(stage.strategy));
    assert_int_equal(
        cadre_workers_connected(stage.strategy), 1); /* its old incarnation is refused */
    stage_close(&stage);
}

struct shaker {
    struct stage *stage;
    pthread_t thread;
    atomic_bool stop;
    uint32_t drops;
};

static void *shake(void *user)
{
    struct shaker *shaker = user;
    uint32_t seed = 12345;
    while (!atomic_load(&shaker->stop)) {
        seed = seed * 1664525 + 1013904223;
        uint64_t until = clock_monotonic_us() + (seed >> 20);
        while (clock_monotonic_us() < until && !atomic_load(&shaker->stop)) {
        }
        shaker->drops += scheduler_drop(&shaker->stage->chief, (seed >> 8) % 4) ? 1 : 0;
    }
    return NULL;
}

/* Connections break at any time: each closure is done, with its result. */
static void workers_are_lost_all_the_time(void **state)
{
    (void)state;
    struct stage stage;
    struct shaker shaker = {.stage = &stage};
    enum { CLOSURES = 3000 };
    static cadre_remote_value *values[CLOSURES];
    cadre_tensor *outputs[2];
    uint32_t count = 0;
    uint32_t runs = 0;
    stage_open_all(&stage, 4);
    assert_int_equal(pthread_create(&shaker.thread, NULL, shake, &shaker), 0);
    for (int64_t i = 0; i < CLOSURES; i++) {
        values[i] = stage_schedule(&stage, "tally", i);
    }
    assert_public_ok(cadre_join(stage.strategy));
    atomic_store(&shaker.stop, true);
    pthread_join(shaker.thread, NULL);
    for (int64_t i = 0; i < CLOSURES; i++) {
        assert_public_ok(cadre_fetch(values[i], outputs, 2, &count));
        assert_int_equal(count, 2);
        assert_int_equal(*(const int64_t *)cadre_tensor_const_data(outputs[1]), 2 * i);
        cadre_tensor_release(outputs[0]);
        cadre_tensor_release(outputs[1]);
        cadre_remote_value_release(values[i]);
        assert_true(stage_runs(i) >= 1);
        runs += stage_runs(i);
    }
    assert_true(shaker.drops > 0);
    print_message(
        "%u connections broke, %u closures were run for %d\n", shaker.drops, runs, CLOSURES);
    stage_close(&stage);
}

static int register_more(void **state)
{
    (void)state;
    return cadre_function_register("until_cancelled", until_cancelled, NULL) == CADRE_OK ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_error_is_raised_once),
        cmocka_unit_test(the_first_error_ends_the_batch),
        cmocka_unit_test(schedule_and_done_raise_it),
        cmocka_unit_test(running_closures_are_cancelled),
        cmocka_unit_test(a_lost_closure_goes_to_the_end),
        cmocka_unit_test(a_lost_closure_is_cancelled_with_the_rest),
        cmocka_unit_test(a_lost_closure_is_cancelled_while_an_error_is_pending),
        cmocka_unit_test(the_coordinator_gives_a_worker_up),
        cmocka_unit_test(workers_are_lost_all_the_time),
    };
    return cmocka_run_group_tests(tests, register_more, NULL);
}
