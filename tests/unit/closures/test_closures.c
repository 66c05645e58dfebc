/* SPDX-License-Identifier: Apache-2.0
 * Closures that all go well: arguments, outputs, steps of the ledger, the end. */
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "stage.h"

/* Outputs are those of the closure, at any time, also after the strategy. */
static void values_are_fetched_again_and_again(void **state)
{
    (void)state;
    struct stage stage;
    cadre_remote_value *values[200];
    cadre_tensor *outputs[2] = {NULL};
    uint32_t count = 0;
    stage_open_all(&stage, 3);
    for (int64_t i = 0; i < 200; i++) {
        values[i] = stage_schedule(&stage, "tally", i);
    }
    assert_public_ok(cadre_fetch(values[7], NULL, 0, NULL));
    assert_true(cadre_remote_value_ready(values[7]));
    assert_public_error(
        cadre_fetch(values[7], outputs, 1, &count), CADRE_INVALID_ARGUMENT, "2 outputs");
    assert_public_ok(cadre_join(stage.strategy));
    stage_close(&stage);
    for (int64_t i = 0; i < 200; i++) {
        assert_public_ok(cadre_fetch(values[i], outputs, 2, &count));
        assert_int_equal(count, 2);
        assert_int_equal(*(const int64_t *)cadre_tensor_const_data(outputs[0]), i);
        assert_int_equal(*(const int64_t *)cadre_tensor_const_data(outputs[1]), 2 * i);
        cadre_tensor_release(outputs[0]);
        cadre_tensor_release(outputs[1]);
        cadre_remote_value_release(values[i]);
        assert_int_equal(stage_runs(i), 1);
    }
}

/* Tensors of any kind arrive as they were; the program may release its own at once. */
static void arguments_travel_by_value(void **state)
{
    (void)state;
    static const cadre_string strings[] = {{"a", 1}, {"", 0}, {"b\0c", 3}, {"dd", 2}};
    static const float floats[] = {1, 2, 3, 4, 5, 6};
    const int64_t dims[] = {2, 3};
    const int64_t square[] = {2, 2};
    const int64_t none[] = {0, 5};
    struct stage stage;
    cadre_tensor *tensors[4];
    cadre_closure_argument arguments[4] = {0};
    cadre_tensor *outputs[4];
    cadre_remote_value *value = NULL;
    uint32_t count = 0;
    stage_open_all(&stage, 1);
    assert_public_ok(cadre_tensor_from_data(CADRE_F32, 2, dims, floats, &tensors[0]));
    assert_public_ok(cadre_tensor_from_data(CADRE_STRING, 2, square, strings, &tensors[1]));
    assert_public_ok(cadre_tensor_create(CADRE_BOOL, 2, none, &tensors[2]));
    tensors[3] = stage_i64(-5);
    for (int i = 0; i < 4; i++) {
        arguments[i].tensor = tensors[i];
    }
    assert_public_ok(cadre_schedule(stage.strategy, "echo", arguments, 4, &value));
    for (int i = 0; i < 4; i++) {
        cadre_tensor_release(tensors[i]);
    }
    assert_public_ok(cadre_fetch(value, outputs, 4, &count));
    assert_int_equal(count, 4);
    assert_int_equal(cadre_tensor_dim(outputs[0], 1), 3);
    assert_memory_equal(cadre_tensor_const_data(outputs[0]), floats, sizeof floats);
    const cadre_string *got = cadre_tensor_const_data(outputs[1]);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(got[i].size, strings[i].size);
        assert_memory_equal(got[i].bytes, strings[i].bytes, strings[i].size);
    }
    assert_int_equal(cadre_tensor_dtype(outputs[2]), CADRE_BOOL);
    assert_int_equal(cadre_tensor_dim(outputs[2], 1), 5);
    assert_int_equal(*(const int64_t *)cadre_tensor_const_data(outputs[3]), -5);
    for (int i = 0; i < 4; i++) {
        cadre_tensor_release(outputs[i]);
    }
    cadre_remote_value_release(value);
    stage_close(&stage);
}

/* A join is a step of the ledger where something was done since the last one. */
static void joins_are_steps(void **state)
{
    (void)state;
    struct stage stage;
    bool done = false;
    stage_open_all(&stage, 2);
    assert_public_ok(cadre_join(stage.strategy));
    assert_int_equal(cadre_strategy_position(stage.strategy), 0);
    assert_int_equal(stage_noted_step(), 0);
    for (uint64_t step = 1; step <= 3; step++) {
        for (int i = 0; i < 5; i++) {
            assert_public_ok(cadre_schedule(stage.strategy, "quick", NULL, 0, NULL));
        }
        assert_public_ok(cadre_join(stage.strategy));
        assert_public_ok(cadre_join(stage.strategy));
        assert_int_equal(cadre_strategy_position(stage.strategy), step);
        assert_int_equal(stage_noted_step(), step);
    }
    assert_public_ok(cadre_done(stage.strategy, &done));
    assert_true(done);
    stage_close(&stage);
}

struct putter {
    struct stage *stage;
    pthread_t thread;
};

static void *put_nine(void *user)
{
    struct putter *putter = user;
    for (int64_t i = 0; i < 9; i++) {
        cadre_remote_value_release(stage_schedule(putter->stage, "tally", i));
    }
    return NULL;
}

static bool is_full_and_waits(void *data)
{
    struct scheduler *scheduler = data;
    pthread_mutex_lock(&scheduler->lock);
    bool waits = scheduler->waiting == 1 && scheduler->queue.queued == 4;
    pthread_mutex_unlock(&scheduler->lock);
    return waits;
}

/* Who schedules waits while the queue is full. */
static void the_queue_is_bounded(void **state)
{
    (void)state;
    struct stage stage;
    struct putter putter = {.stage = &stage};
    stage_open(&stage, 1);
    stage.chief.scheduler->queue.capacity = 4;
    assert_int_equal(pthread_create(&putter.thread, NULL, put_nine, &putter), 0);
    assert_true(test_wait(is_full_and_waits, stage.chief.scheduler, 60 * CADRE_US_PER_S));
    assert_int_equal(stage_number_count(), 4);
    stage_start(&stage, 0);
    pthread_join(putter.thread, NULL);
    assert_public_ok(cadre_join(stage.strategy));
    for (int64_t i = 0; i < 9; i++) {
        assert_int_equal(stage_runs(i), 1);
    }
    stage_close(&stage);
}

/* What is not done at the end is cancelled: in the queue, and on a worker. */
static void an_end_cancels_what_is_left(void **state)
{
    (void)state;
    struct stage stage;
    stage_open_all(&stage, 1);
    cadre_remote_value *running = stage_schedule(&stage, "hold", 1);
    cadre_remote_value *queued = stage_schedule(&stage, "hold", 2);
    stage_await_run(1, 1);
    assert_false(cadre_remote_value_ready(running));
    stage_end_scheduler(&stage);
    assert_public_error(
        cadre_fetch(running, NULL, 0, NULL), CADRE_CANCELLED, "when the strategy ended");
    assert_public_error(
        cadre_fetch(queued, NULL, 0, NULL), CADRE_CANCELLED, "when the strategy ended");
    cadre_remote_value_release(running);
    cadre_remote_value_release(queued);
    stage_let(1, CADRE_OK);
    stage_close(&stage);
    assert_int_equal(stage_runs(2), 0);
}

/* No worker connects, and the coordinator ends the job: a waiting call returns. */
static void waits_return_when_the_job_ends(void **state)
{
    (void)state;
    struct stage stage;
    struct cadre_error over = {0};
    stage_open(&stage, 1);
    cadre_remote_value *value = stage_schedule(&stage, "quick", 0);
    cadre_error_set(&over, CADRE_UNAVAILABLE, "worker 0 failed 3 times");
    directory_end(stage.chief.directory, &over);
    assert_public_error(cadre_join(stage.strategy), CADRE_UNAVAILABLE, "failed 3 times");
    assert_public_error(cadre_fetch(value, NULL, 0, NULL), CADRE_UNAVAILABLE, "failed 3 times");
    cadre_remote_value_release(value);
    stage_close(&stage);
}

static void measure(const char *what, uint32_t workers, int closures)
{
    struct stage stage;
    stage_open_all(&stage, workers);
    uint64_t began = clock_monotonic_us();
    for (int i = 0; i < closures; i++) {
        assert_public_ok(cadre_schedule(stage.strategy, "quick", NULL, 0, NULL));
    }
    assert_public_ok(cadre_join(stage.strategy));
    uint64_t took = clock_monotonic_us() - began;
    print_message("%s: %.0f empty closures a second\n", what,
        (double)closures * 1e6 / (double)(took == 0 ? 1 : took));
    began = clock_monotonic_us();
    uint64_t longest = 0;
    for (int i = 0; i < 200; i++) {
        cadre_remote_value *value = NULL;
        uint64_t one = clock_monotonic_us();
        assert_public_ok(cadre_schedule(stage.strategy, "quick", NULL, 0, &value));
        assert_public_ok(cadre_fetch(value, NULL, 0, NULL));
        one = clock_monotonic_us() - one;
        longest = one > longest ? one : longest;
        cadre_remote_value_release(value);
    }
    print_message("%s: one at a time %.0f us on average, %llu at most\n", what,
        (double)(clock_monotonic_us() - began) / 200, (unsigned long long)longest);
    stage_close(&stage);
}

static void how_fast_it_is(void **state)
{
    (void)state;
    measure("1 worker", 1, 3000);
    measure("4 workers", 4, 3000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_fetched_again_and_again),
        cmocka_unit_test(arguments_travel_by_value),
        cmocka_unit_test(joins_are_steps),
        cmocka_unit_test(the_queue_is_bounded),
        cmocka_unit_test(an_end_cancels_what_is_left),
        cmocka_unit_test(waits_return_when_the_job_ends),
        cmocka_unit_test(how_fast_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
