/* SPDX-License-Identifier: Apache-2.0
 * Reading ahead: in order, bounded, errors carried to the taker, cancelled while it waits, started
 * again elsewhere. */
#include "tests/unit/input/cmocka_unit.h"

#include <pthread.h>
#include <string.h>

#include "tests/unit/input/reading.h"
#include "worker/library/input/distribution/input_prefetcher.h"

static struct distributed_input *open_data(cadre_dataset *data)
{
    struct cadre_error error = {0};
    struct distributed_input *input = NULL;
    const struct distributed_layout layout = {
        .workers = 1, .replicas = 1, .policy = CADRE_SHARD_DATA, .name = "train"};
    ASSERT_OK(distributed_input_open(data, &layout, &input, &error));
    cadre_dataset_release(data);
    return input;
}

static struct input_prefetcher *start(struct distributed_input *input, uint32_t depth)
{
    struct cadre_error error = {0};
    struct input_prefetcher *prefetcher = NULL;
    ASSERT_OK(input_prefetcher_create(input, depth, TENSOR_MEMORY_HOST, &prefetcher, &error));
    return prefetcher;
}

static void expect_step(struct input_prefetcher *prefetcher, uint64_t epoch, uint64_t step)
{
    struct cadre_error error = {0};
    struct distributed_batch batch;
    ASSERT_OK(input_prefetcher_take(prefetcher, &batch, &error));
    assert_int_equal(batch.epoch, epoch);
    assert_int_equal(batch.step, step);
    assert_int_equal(*(const int64_t *)cadre_tensor_const_data(batch.elements[0].tensors[0]), step);
    distributed_batch_clear(&batch);
}

static void expect_stop(struct input_prefetcher *prefetcher, cadre_status status)
{
    for (int again = 0; again < 2; again++) {
        struct cadre_error error = {0};
        struct distributed_batch batch;
        assert_int_equal(input_prefetcher_take(prefetcher, &batch, &error), status);
        assert_int_equal(error.code, status);
        assert_null(batch.elements);
    }
}

static void steps_come_in_order(void **state)
{
    (void)state;
    for (uint32_t depth = 0; depth <= INPUT_PREFETCH_DEPTH_MAX;
         depth = depth == 0 ? 1 : 4 * depth) {
        struct distributed_input *input = open_data(cadre_dataset_range(0, 50, 1));
        struct input_prefetcher *prefetcher = start(input, depth);
        expect_stop(prefetcher, CADRE_FAILED_PRECONDITION);
        input_prefetcher_start(prefetcher, 0, 0);
        for (uint64_t step = 0; step < 50; step++) {
            expect_step(prefetcher, 0, step);
        }
        expect_stop(prefetcher, CADRE_OUT_OF_RANGE);
        input_prefetcher_start(prefetcher, 1, 48);
        expect_step(prefetcher, 1, 48);
        input_prefetcher_start(prefetcher, 7, 3);
        expect_step(prefetcher, 7, 3);
        input_prefetcher_free(prefetcher);
        distributed_input_close(input);
    }
    input_prefetcher_free(NULL);
    struct cadre_error error = {0};
    struct input_prefetcher *prefetcher = NULL;
    assert_int_equal(input_prefetcher_create(NULL, 65, TENSOR_MEMORY_HOST, &prefetcher, &error),
        CADRE_INVALID_ARGUMENT);
}

/* A map that can be held at a gate, counts its calls and fails at 20. */
struct gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int calls;
    bool closed;
};

static cadre_status through_gate(const cadre_element *in, cadre_element *ret_out, void *user)
{
    struct gate *gate = user;
    const int64_t *value = cadre_tensor_const_data(in->tensors[0]);
    pthread_mutex_lock(&gate->lock);
    gate->calls++;
    pthread_cond_broadcast(&gate->changed);
    while (gate->closed) {
        pthread_cond_wait(&gate->changed, &gate->lock);
    }
    pthread_mutex_unlock(&gate->lock);
    return *value == 20 ? CADRE_DATA_LOSS : copy_element(in, ret_out, NULL);
}

static void gate_set(struct gate *gate, bool closed)
{
    pthread_mutex_lock(&gate->lock);
    gate->closed = closed;
    pthread_cond_broadcast(&gate->changed);
    pthread_mutex_unlock(&gate->lock);
}

static void gate_wait_for_calls(struct gate *gate, int calls)
{
    pthread_mutex_lock(&gate->lock);
    while (gate->calls < calls) {
        pthread_cond_wait(&gate->changed, &gate->lock);
    }
    pthread_mutex_unlock(&gate->lock);
}

static struct distributed_input *open_gated(struct gate *gate)
{
    static const cadre_element_spec output = {.count = 1, .tensors = {{.dtype = CADRE_I64}}};
    return open_data(cadre_dataset_map(cadre_dataset_range(0, 50, 1), through_gate, gate,
        &(cadre_map_options){.output = &output}));
}

static void errors_come_after_what_was_read(void **state)
{
    (void)state;
    struct gate gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    struct distributed_input *input = open_gated(&gate);
    struct input_prefetcher *prefetcher = start(input, 4);
    input_prefetcher_start(prefetcher, 0, 17);
    gate_wait_for_calls(&gate, 4); /* the failing read was begun before the first take */
    for (uint64_t step = 17; step < 20; step++) {
        expect_step(prefetcher, 0, step);
    }
    expect_stop(prefetcher, CADRE_DATA_LOSS);
    struct distributed_batch batch;
    struct cadre_error error = {0};
    input_prefetcher_take(prefetcher, &batch, &error);
    assert_non_null(strstr(error.text, "dataset 'train', epoch 0, step 20: sample"));
    assert_non_null(strstr(error.text, "map: the function failed"));
    input_prefetcher_start(prefetcher, 0, 21);
    expect_step(prefetcher, 0, 21);
    input_prefetcher_free(prefetcher);
    distributed_input_close(input);
}

static void no_more_than_the_depth_is_read(void **state)
{
    (void)state;
    struct gate gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    struct distributed_input *input = open_gated(&gate);
    struct input_prefetcher *prefetcher = start(input, 3);
    input_prefetcher_start(prefetcher, 0, 0);
    for (uint64_t step = 0; step < 10; step++) {
        gate_wait_for_calls(&gate, (int)step + 3);
        pthread_mutex_lock(&gate.lock);
        /* `step` taken, 3 held or being read: never one more. */
        assert_int_equal(gate.calls, (int)step + 3);
        pthread_mutex_unlock(&gate.lock);
        expect_step(prefetcher, 0, step);
    }
    input_prefetcher_free(prefetcher);
    distributed_input_close(input);
}

static void nothing_is_read_that_no_reader_waits_for(void **state)
{
    (void)state;
    struct gate gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    struct distributed_input *input = open_gated(&gate);
    struct input_prefetcher *prefetcher = start(input, 0);
    input_prefetcher_start(prefetcher, 0, 0);
    assert_true(input_prefetcher_await(prefetcher, UINT64_C(60) * 1000 * 1000));
    for (uint64_t step = 0; step < 20; step++) {
        expect_step(prefetcher, 0, step);
        pthread_mutex_lock(&gate.lock);
        assert_int_equal(gate.calls, (int)step + 1);
        pthread_mutex_unlock(&gate.lock);
    }
    expect_stop(prefetcher, CADRE_DATA_LOSS);
    input_prefetcher_free(prefetcher);
    distributed_input_close(input);
}

struct taker {
    struct input_prefetcher *prefetcher;
    cadre_status status;
};

static void *take_one(void *argument)
{
    struct taker *taker = argument;
    struct distributed_batch batch;
    taker->status = input_prefetcher_take(taker->prefetcher, &batch, NULL);
    return NULL;
}

static void cancel_wakes_a_taker(void **state)
{
    (void)state;
    struct gate gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    struct distributed_input *input = open_gated(&gate);
    struct input_prefetcher *prefetcher = start(input, 2);
    struct taker taker = {.prefetcher = prefetcher};
    pthread_t thread;
    gate_set(&gate, true);
    input_prefetcher_start(prefetcher, 0, 5);
    gate_wait_for_calls(&gate, 1);
    assert_int_equal(pthread_create(&thread, NULL, take_one, &taker), 0);
    input_prefetcher_cancel(prefetcher);
    pthread_join(thread, NULL);
    assert_int_equal(taker.status, CADRE_CANCELLED);
    expect_stop(prefetcher, CADRE_CANCELLED);
    /* Started again while the old read hangs at the gate: what that brings is dropped. */
    input_prefetcher_start(prefetcher, 0, 30);
    gate_set(&gate, false);
    expect_step(prefetcher, 0, 30);
    expect_step(prefetcher, 0, 31);
    input_prefetcher_free(prefetcher);
    distributed_input_close(input);
}

static void ignore(struct batch_stage *stage)
{
    (void)stage;
}

/* A stage that stands at the gate with the second step. */
static cadre_status stage_at_gate(
    void *user, struct distributed_batch *batch, struct cadre_error *error)
{
    struct gate *gate = user;
    static struct batch_stage nothing_to_wait_for = {.finish = ignore};
    (void)error;
    pthread_mutex_lock(&gate->lock);
    gate->calls++;
    pthread_cond_broadcast(&gate->changed);
    while (gate->closed && batch->step == 1) {
        pthread_cond_wait(&gate->changed, &gate->lock);
    }
    pthread_mutex_unlock(&gate->lock);
    batch->staged = &nothing_to_wait_for;
    return CADRE_OK;
}

static void a_slow_stage_does_not_delay_the_step_before(void **state)
{
    (void)state;
    for (int cancels = 0; cancels < 2; cancels++) {
        struct gate gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
        struct distributed_input *input = open_data(cadre_dataset_range(0, 50, 1));
        struct input_prefetcher *prefetcher = start(input, 3);
        input_prefetcher_stage(prefetcher, 2, stage_at_gate, &gate);
        gate_set(&gate, true);
        input_prefetcher_start(prefetcher, 0, 0);
        gate_wait_for_calls(&gate, 2);
        expect_step(prefetcher, 0, 0);
        assert_false(input_prefetcher_await(prefetcher, 1000)); /* the gate has the second one */
        if (cancels == 1) {
            input_prefetcher_cancel(prefetcher); /* with what is at the gate */
            expect_stop(prefetcher, CADRE_CANCELLED);
            input_prefetcher_start(prefetcher, 0, 7);
            gate_set(&gate, false);
            expect_step(prefetcher, 0, 7);
        } else {
            gate_set(&gate, false);
            expect_step(prefetcher, 0, 1);
            expect_step(prefetcher, 0, 2);
        }
        input_prefetcher_free(prefetcher);
        distributed_input_close(input);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_come_in_order),
        cmocka_unit_test(errors_come_after_what_was_read),
        cmocka_unit_test(no_more_than_the_depth_is_read),
        cmocka_unit_test(nothing_is_read_that_no_reader_waits_for),
        cmocka_unit_test(cancel_wakes_a_taker),
        cmocka_unit_test(a_slow_stage_does_not_delay_the_step_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
