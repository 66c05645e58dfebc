/* SPDX-License-Identifier: Apache-2.0
 * cadre_run: inputs, outputs, contexts, failures; and batches after a position that is no use. */
#include "training.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "worker/library/runtime/input/input.h"

static cadre_status no_output(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)replica;
    (void)inputs;
    (void)outputs;
    (void)user;
    return CADRE_OK;
}

/* 3.0 on every replica, doubled: run/seed_constant_times_2. */
static cadre_status doubled(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    if (cadre_in_cross_replica_context() || cadre_replica_input_count(replica) != 0 ||
        cadre_replica_global_rows(replica) != 0 || cadre_replica_count(replica) != 2) {
        return CADRE_INTERNAL;
    }
    CADRE_TRY(cadre_tensor_from_f32(*(float *)user * 2, &outputs[0]));
    return cadre_tensor_from_i64(cadre_replica_id(replica), &outputs[1]);
}

static void outputs_are_one_per_replica(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_per_replica *outputs[2];
    float x = 3;
    assert_public_ok(cadre_run(strategy, doubled, &x, NULL, 2, outputs));
    assert_int_equal(cadre_per_replica_count(outputs[0]), 2);
    assert_int_equal(cadre_per_replica_components(outputs[0]), 1);
    assert_null(cadre_local_results(outputs[0], 1));
    for (uint32_t i = 0; i < 2; i++) {
        const cadre_tensor *first = cadre_local_results(outputs[0], 0)[i];
        const cadre_tensor *second = cadre_local_results(outputs[1], 0)[i];
        assert_true(*(const float *)cadre_tensor_const_data(first) == 6);
        assert_int_equal(*(const int64_t *)cadre_tensor_const_data(second), i);
    }
    assert_int_equal(cadre_strategy_position(strategy), 1);
    cadre_strategy_release(strategy);
}

static void lent_outputs_can_be_kept(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_per_replica *outputs[2];
    float x = 1;
    assert_public_ok(cadre_run(strategy, doubled, &x, NULL, 2, outputs));
    cadre_per_replica *kept = cadre_per_replica_retain(outputs[0]);
    x = 2;
    assert_public_ok(cadre_run(strategy, doubled, &x, NULL, 2, outputs));
    cadre_strategy_release(strategy);
    const cadre_tensor *tensor = cadre_local_results(kept, 0)[1];
    assert_true(*(const float *)cadre_tensor_const_data(tensor) == 2);
    cadre_per_replica_release(kept);
    cadre_per_replica_release(NULL);
    assert_null(cadre_per_replica_retain(NULL));
}

static cadre_status calls_run(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    (void)user;
    return cadre_run(cadre_replica_strategy(replica), no_output, NULL, NULL, 0, NULL);
}

static cadre_status calls_gather(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    return cadre_gather(cadre_replica_strategy(replica), user, 0, outputs);
}

static void contexts_are_kept_apart(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    assert_public_error(cadre_run(strategy, calls_run, NULL, NULL, 0, NULL),
        CADRE_FAILED_PRECONDITION, "inside a replica function");
    cadre_tensor *row;
    assert_public_ok(cadre_tensor_create(CADRE_F32, 1, (int64_t[]){2}, &row));
    cadre_per_replica *rows;
    assert_public_ok(cadre_values_from_tensors(strategy, (cadre_tensor *[]){row, row}, 2, &rows));
    assert_public_error(
        cadre_run(strategy, calls_gather, rows, NULL, 1, (cadre_per_replica *[1]){0}),
        CADRE_FAILED_PRECONDITION, "cadre_gather");
    cadre_per_replica_release(rows);
    cadre_tensor_release(row);
    assert_int_equal(cadre_strategy_position(strategy), 0);
    cadre_strategy_release(strategy);
}

struct failing {
    uint32_t replica;
    bool with_message;
    bool after_collective;
};

static cadre_status one_fails(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    const struct failing *failing = user;
    cadre_tensor *tensor;
    CADRE_TRY(cadre_tensor_from_f32(1, &tensor));
    cadre_status status = CADRE_OK;
    bool mine = cadre_replica_id(replica) == failing->replica;
    if (!mine || failing->after_collective) {
        status = cadre_all_reduce(replica, CADRE_SUM, &tensor, 1, NULL);
    }
    cadre_tensor_release(tensor);
    if (status == CADRE_OK && mine) {
        if (failing->with_message) {
            return cadre_tensor_create(CADRE_DTYPE_NONE, 0, NULL, &tensor);
        }
        return CADRE_DATA_LOSS;
    }
    if (status == CADRE_OK) { /* waits for the one that fails */
        return cadre_barrier();
    }
    return status;
}

static void a_failing_replica_is_the_error_of_the_run(void **state)
{
    (void)state;
    for (uint32_t n = 1; n <= 4; n++) {
        cadre_strategy *strategy = training_strategy(n);
        struct failing failing = {.replica = n - 1};
        assert_public_error(cadre_run(strategy, one_fails, &failing, NULL, 0, NULL),
            CADRE_DATA_LOSS, "left no message");
        failing.with_message = true;
        assert_public_error(cadre_run(strategy, one_fails, &failing, NULL, 0, NULL),
            CADRE_INVALID_ARGUMENT, "replica");
        failing.after_collective = true;
        assert_public_error(cadre_run(strategy, one_fails, &failing, NULL, 0, NULL),
            CADRE_INVALID_ARGUMENT, "replica");
        /* In a job of one task the next step starts afresh. */
        assert_int_equal(cadre_strategy_position(strategy), 0);
        assert_public_ok(cadre_run(strategy, no_output, NULL, NULL, 0, NULL));
        assert_public_ok(cadre_barrier());
        assert_int_equal(cadre_strategy_position(strategy), 1);
        cadre_strategy_release(strategy);
    }
}

static void outputs_are_checked(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_per_replica *outputs[CADRE_OUTPUTS_MAX + 1];
    assert_public_error(cadre_run(strategy, no_output, NULL, NULL, 1, outputs),
        CADRE_INVALID_ARGUMENT, "left output 0 of 1 empty");
    assert_null(outputs[0]);
    assert_public_error(cadre_run(strategy, no_output, NULL, NULL, CADRE_OUTPUTS_MAX + 1, outputs),
        CADRE_INVALID_ARGUMENT, "at most 64");
    assert_public_error(cadre_run(strategy, no_output, NULL, NULL, 1, NULL), CADRE_INVALID_ARGUMENT,
        "without an array for them");
    float x = 1;
    assert_public_ok(cadre_run(strategy, doubled, &x, NULL, 2, outputs));
    cadre_strategy_release(strategy);
}

/* --- inputs that are no batch --- */

/* The replica's id, and how many there are. */
static cadre_status id_and_count(
    const cadre_value_context *context, cadre_element *ret_value, void *user)
{
    (void)user;
    CADRE_TRY(cadre_tensor_from_i64(context->replica_id_in_sync_group, &ret_value->tensors[0]));
    ret_value->count = 1;
    CADRE_TRY(cadre_tensor_from_i64(context->num_replicas_in_sync, &ret_value->tensors[1]));
    ret_value->count = 2;
    return CADRE_OK;
}

/* 10 * the first input + the second; of one input only: that and 1000. */
static cadre_status combine(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)user;
    uint32_t count = cadre_replica_input_count(replica);
    if (count < 1 || count > 2 || cadre_replica_global_rows(replica) != 0) {
        return cadre_fail(CADRE_INTERNAL, "%u inputs, %lld rows", count,
            (long long)cadre_replica_global_rows(replica));
    }
    const int64_t *first = cadre_tensor_const_data(inputs[0]);
    const int64_t *second = count == 2 ? cadre_tensor_const_data(inputs[1]) : NULL;
    return cadre_tensor_from_i64(
        second != NULL ? 10 * *first + *second : *first + 1000, &outputs[0]);
}

static void values_and_outputs_are_inputs(void **state)
{
    (void)state;
    for (uint32_t replicas = 1; replicas <= 3; replicas++) {
        cadre_strategy *strategy = training_strategy(replicas);
        cadre_per_replica *values;
        cadre_per_replica *output = NULL;
        assert_public_ok(cadre_values_from_function(strategy, id_and_count, NULL, &values));
        for (int again = 0; again < 2; again++) { /* the same values in two steps */
            assert_public_ok(cadre_run(strategy, combine, NULL, values, 1, &output));
        }
        for (int again = 0; again < 3; again++) { /* lent, and its own place is taken */
            assert_public_ok(cadre_run(strategy, combine, NULL, output, 1, &output));
        }
        for (uint32_t id = 0; id < replicas; id++) {
            const cadre_tensor *made = cadre_local_results(output, 0)[id];
            assert_int_equal(
                *(const int64_t *)cadre_tensor_const_data(made), 10 * id + replicas + 3000);
        }
        assert_int_equal(cadre_strategy_position(strategy), 5);
        cadre_per_replica_release(values);
        cadre_strategy_release(strategy);
    }
}

static void values_of_other_replicas_are_refused(void **state)
{
    (void)state;
    cadre_per_replica *values;
    cadre_per_replica *output;
    cadre_strategy *strategy = training_strategy(2);
    assert_public_ok(cadre_values_from_function(strategy, id_and_count, NULL, &values));
    cadre_strategy_release(strategy);
    strategy = training_strategy(3);
    assert_public_error(cadre_run(strategy, combine, NULL, values, 1, &output),
        CADRE_INVALID_ARGUMENT, "values of 2 replicas, and this task has 3");
    assert_null(output);
    cadre_per_replica_release(values);
    cadre_strategy_release(strategy);
}

static cadre_status counts(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    atomic_fetch_add((atomic_int *)user, 1 << (8 * cadre_replica_local_id(replica)));
    return CADRE_OK;
}

static void each_replica_runs_once_a_step(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(3);
    atomic_int calls = 0;
    for (int i = 0; i < 100; i++) {
        assert_public_ok(cadre_run(strategy, counts, &calls, NULL, 0, NULL));
    }
    assert_int_equal(atomic_load(&calls), 100 | 100 << 8 | 100 << 16);
    assert_int_equal(cadre_strategy_position(strategy), 100);
    cadre_strategy_release(strategy);
}

/* --- positions that came from elsewhere --- */

static cadre_status is_odd(const cadre_element *in, bool *ret_keep, void *user)
{
    (void)user;
    *ret_keep = *(const int64_t *)cadre_tensor_const_data(in->tensors[0]) % 2 != 0;
    return CADRE_OK;
}

/* 1, 3, 5, ... 39 in batches of 4. */
static void assert_all_is_read(cadre_strategy *strategy, cadre_distributed_dataset *data)
{
    cadre_per_replica *batch;
    int64_t wanted = 1;
    while (cadre_next(data, &batch) == CADRE_OK) {
        for (uint32_t replica = 0; replica < cadre_per_replica_count(batch); replica++) {
            const cadre_tensor *rows = cadre_local_results(batch, 0)[replica];
            for (int64_t i = 0; i < cadre_tensor_rows(rows); i++, wanted += 2) {
                assert_int_equal(((const int64_t *)cadre_tensor_const_data(rows))[i], wanted);
            }
        }
        assert_public_ok(cadre_run(strategy, no_output, NULL, batch, 0, NULL));
    }
    assert_public_ok(cadre_distributed_status(data));
    assert_int_equal(wanted, 41);
}

/* One that is damaged, of another pipeline, or of one that is read by place now: the epoch is read
 * from its beginning instead. */
static void a_position_that_does_not_fit_is_left_out(void **state)
{
    (void)state;
    static const char *const saved[] = {
        "", "x", "\0\0\0\0\0\1\3abc", "no position at all, but long enough"};
    for (int by_index = 0; by_index < 2; by_index++) {
        for (size_t i = 0; i < sizeof saved / sizeof saved[0]; i++) {
            cadre_strategy *strategy = training_strategy(2);
            cadre_distributed_dataset *data;
            cadre_dataset *odd =
                by_index != 0 ? cadre_dataset_range(1, 41, 2)
                              : cadre_dataset_filter(cadre_dataset_range(0, 41, 1), is_odd, NULL);
            assert_public_ok(cadre_distribute_dataset(
                strategy, cadre_dataset_batch(odd, 4, false), NULL, &data));
            assert_true(cadre_next_epoch(data, 1, NULL));
            struct cadre_error error = {0};
            const size_t count = i == 2 ? 10 : strlen(saved[i]);
            uint8_t *bytes = malloc(count + 1);
            memcpy(bytes, saved[i], count);
            data->received = (struct dataset_received){.any = true,
                .has_state = true,
                .state = {.epoch = 0, .step = 2, .bytes = bytes, .count = count}};
            assert_int_equal(distributed_take_received(strategy, true, &error), CADRE_OK);
            assert_all_is_read(strategy, data);
            cadre_strategy_release(strategy);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outputs_are_one_per_replica),
        cmocka_unit_test(lent_outputs_can_be_kept),
        cmocka_unit_test(contexts_are_kept_apart),
        cmocka_unit_test(a_failing_replica_is_the_error_of_the_run),
        cmocka_unit_test(outputs_are_checked),
        cmocka_unit_test(values_and_outputs_are_inputs),
        cmocka_unit_test(values_of_other_replicas_are_refused),
        cmocka_unit_test(each_replica_runs_once_a_step),
        cmocka_unit_test(a_position_that_does_not_fit_is_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
