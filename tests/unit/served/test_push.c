/* SPDX-License-Identifier: Apache-2.0
 * Pushing: one call and one key each, cut by the shards; what is refused before anything is sent.
 */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/fault.h"
#include "fake_strategy.h"
#include "tests/lib/test.h"
#include "tests/unit/runtime/training.h"

#define ROWS 7

static cadre_partitioner fixed(uint64_t shards)
{
    return (cadre_partitioner){.kind = CADRE_PARTITIONER_FIXED, .shards = shards};
}

/* [7, 2] of zeros, with gradient descent at rate 0.5. */
static cadre_variable *zeros(cadre_strategy *strategy)
{
    static const int64_t dims[] = {ROWS, 2};
    cadre_variable *variable;
    const cadre_optimizer_options sgd = {.kind = CADRE_OPTIMIZER_SGD, .rate = 0.5};
    assert_public_ok(cadre_variable_create(strategy, "w", CADRE_F32, 2, dims, NULL, &variable));
    assert_public_ok(memory_train(strategy, variable, &sgd));
    return variable;
}

static cadre_tensor *matrix(int64_t rows, const float *values)
{
    cadre_tensor *tensor;
    const int64_t dims[] = {rows, 2};
    assert_public_ok(cadre_tensor_from_data(CADRE_F32, 2, dims, values, &tensor));
    return tensor;
}

static void check(cadre_variable *variable, const float *wanted)
{
    float is[2 * ROWS];
    assert_public_ok(memory_pull(variable, is));
    for (size_t i = 0; i < 2 * ROWS; i++) {
        if (is[i] != wanted[i]) {
            fail_msg("element %zu is %g, wanted %g", i, (double)is[i], (double)wanted[i]);
        }
    }
}

static void all_kinds_change_the_same_whatever_the_shards(void **state)
{
    (void)state;
    const float up[2 * ROWS] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13};
    for (uint64_t shards = 1; shards <= ROWS; shards++) {
        const cadre_partitioner partitioner = fixed(shards);
        cadre_strategy *strategy = fake_begin(3, &partitioner);
        cadre_variable *variable = zeros(strategy);
        cadre_tensor *all = matrix(ROWS, up);
        float wanted[2 * ROWS];
        float memory[2 * ROWS];
        uint64_t keys = fake_counts().keys;
        uint64_t calls = fake_counts().calls;
        assert_public_ok(cadre_variable_assign(NULL, variable, CADRE_ASSIGN, all));
        assert_public_ok(cadre_variable_assign(NULL, variable, CADRE_ASSIGN_ADD, all));
        assert_public_ok(cadre_variable_assign(NULL, variable, CADRE_ASSIGN_ADD, all));
        assert_public_ok(cadre_variable_assign(NULL, variable, CADRE_ASSIGN_SUB, all));
        assert_public_ok(cadre_variable_push(NULL, variable, CADRE_ASSIGN_UPDATE, all, NULL, NULL));
        const cadre_push_options whole = {.rate = 1};
        assert_public_ok(memory_push(variable, up, &whole));
        assert_ptr_equal(fake_last_memory(), up);
        memcpy(memory, up, sizeof memory);
        assert_public_ok(memory_push_pull(variable, memory, memory, &whole));
        assert_int_equal(fake_counts().keys, keys + 7);
        assert_int_equal(fake_counts().calls, calls + 7);
        for (size_t i = 0; i < 2 * ROWS; i++) {
            wanted[i] = -0.5f * up[i];
        }
        check(variable, wanted);
        for (size_t i = 0; i < 2 * ROWS; i++) {
            assert_true(memory[i] == wanted[i]);
        }
        /* Rows, several times and in any order. */
        static const int64_t ids[] = {6, 0, 3, 0};
        const float rows[] = {1, 1, 2, 2, 3, 3, 4, 4};
        cadre_tensor *numbers;
        cadre_tensor *values = matrix(4, rows);
        const int64_t four = 4;
        assert_public_ok(cadre_tensor_from_data(CADRE_I64, 1, &four, ids, &numbers));
        assert_public_ok(cadre_variable_assign(NULL, variable, CADRE_ASSIGN_ADD, all));
        assert_public_ok(
            cadre_variable_push(NULL, variable, CADRE_ASSIGN_ADD, values, numbers, NULL));
        assert_public_ok(
            cadre_variable_push(NULL, variable, CADRE_ASSIGN_ADD, values, numbers, NULL));
        assert_public_ok(
            cadre_variable_push(NULL, variable, CADRE_ASSIGN_SUB, values, numbers, NULL));
        assert_public_ok(
            cadre_variable_push(NULL, variable, CADRE_ASSIGN_UPDATE, values, numbers, NULL));
        assert_public_ok(memory_push_rows(variable, ids, 4, rows, &whole));
        for (size_t i = 0; i < 2 * ROWS; i++) {
            wanted[i] += up[i];
        }
        for (size_t i = 0; i < 4; i++) { /* + 1 - 0.5 - 1 */
            wanted[2 * ids[i]] -= 0.5f * rows[2 * i];
            wanted[2 * ids[i] + 1] -= 0.5f * rows[2 * i];
        }
        check(variable, wanted);
        assert_public_ok(cadre_variable_push(NULL, variable, CADRE_ASSIGN, values, numbers, NULL));
        for (size_t i = 0; i < 4; i++) { /* the last one counts */
            wanted[2 * ids[i]] = rows[2 * i];
            wanted[2 * ids[i] + 1] = rows[2 * i];
        }
        check(variable, wanted);
        cadre_tensor_release(numbers);
        cadre_tensor_release(values);
        cadre_tensor_release(all);
        fake_end(strategy);
    }
}

/* One shard is a thousand pushes ahead of the others: that does not make pushes to it stale. */
static void staleness_is_asked_shard_by_shard(void **state)
{
    (void)state;
    const cadre_partitioner partitioner = fixed(3);
    cadre_strategy *strategy = fake_begin(3, &partitioner);
    cadre_variable *variable = zeros(strategy);
    const float gradient[2 * ROWS] = {0};
    float into[2 * ROWS];
    cadre_push_options options = {.staleness = 1};
    *fake_version(1, 0) = 1000;
    assert_public_error(
        memory_push(variable, gradient, &options), CADRE_FAILED_PRECONDITION, "nothing of it was");
    assert_public_ok(memory_pull(variable, into));
    assert_public_ok(memory_push(variable, gradient, &options));
    assert_public_error(memory_push(variable, gradient, &options), CADRE_ABORTED, "stale");
    options.staleness = 3;
    assert_public_ok(memory_push(variable, gradient, &options));
    /* Of rows that one shard has: the others are not asked, and were not read. */
    const int64_t row = 3;
    options.staleness = 1;
    assert_public_ok(memory_gather(variable, &row, 1, into));
    assert_public_ok(memory_push_rows(variable, &row, 1, gradient, &options));
    assert_int_equal(fake_last_push()->based_on, 1002);
    assert_int_equal(fake_last_push()->staleness, 0);
    options = (cadre_push_options){0};
    assert_public_ok(memory_push_rows(variable, &row, 1, gradient, &options));
    assert_true(fake_last_push()->based_on == PUSH_ANY_VERSION);
    assert_true(isnan(fake_last_push()->rate));
    fake_end(strategy);
}

/* A shard without rows waits for this contribution as for all others. */
static void a_step_is_pushed_to_all_shards(void **state)
{
    (void)state;
    const cadre_partitioner partitioner = fixed(3);
    cadre_strategy *strategy = fake_begin(3, &partitioner);
    cadre_variable *variable = zeros(strategy);
    const float row[] = {1, 2};
    const int64_t id = 3;
    uint64_t requests = fake_counts().requests;
    assert_public_ok(memory_push_rows(variable, &id, 1, row, NULL));
    assert_int_equal(fake_counts().requests, requests + 1);
    const cadre_push_options options = {.contributions = 2, .step = 9};
    assert_public_ok(memory_push_rows(variable, &id, 1, row, &options));
    assert_int_equal(fake_counts().requests, requests + 4);
    assert_int_equal(fake_last_push()->contributions, 2);
    assert_int_equal(fake_last_push()->step, 9);
    assert_int_equal(fake_last_push()->rows, 0);
    fake_end(strategy);
}

static void what_does_not_fit_is_named(void **state)
{
    (void)state;
    cadre_strategy *strategy = fake_begin(2, NULL);
    cadre_variable *variable = zeros(strategy);
    cadre_variable *flag;
    const float values[2 * ROWS] = {0};
    cadre_tensor *wrong = matrix(3, values);
    cadre_tensor *ids = training_i32(2, (const int32_t[]){0, 7});
    cadre_tensor *two = matrix(2, values);
    cadre_tensor *truth;
    uint64_t calls = fake_counts().calls;
    assert_public_error(cadre_variable_push(NULL, variable, CADRE_ASSIGN_UPDATE, wrong, NULL, NULL),
        CADRE_INVALID_ARGUMENT, "variable 'w' is f32 [7, 2] and cannot be assigned f32 [3, 2]");
    assert_public_error(cadre_variable_assign(NULL, variable, CADRE_ASSIGN, ids),
        CADRE_INVALID_ARGUMENT, "variable 'w' is f32 [7, 2] and cannot be assigned i32 [2]");
    assert_public_error(cadre_variable_push(NULL, variable, CADRE_ASSIGN_UPDATE, NULL, NULL, NULL),
        CADRE_INVALID_ARGUMENT, "values");
    assert_public_error(cadre_variable_push(NULL, variable, CADRE_ASSIGN_UPDATE, wrong, ids, NULL),
        CADRE_INVALID_ARGUMENT, "are f32 [3, 2] and have to be f32 [2, 2]");
    assert_public_error(cadre_variable_push(NULL, variable, CADRE_ASSIGN_UPDATE, two, ids, NULL),
        CADRE_OUT_OF_RANGE, "no row 7");
    assert_public_error(cadre_variable_push(NULL, variable, CADRE_ASSIGN_ADD, two, ids,
                            &(cadre_push_options){.into = wrong}),
        CADRE_INVALID_ARGUMENT, "which is for the whole");
    assert_public_error(
        memory_push(variable, values, &(cadre_push_options){.rate = (double)INFINITY}),
        CADRE_INVALID_ARGUMENT, "rate inf");
    assert_public_error(
        memory_push(variable, values, &(cadre_push_options){.contributions = 1, .staleness = 1}),
        CADRE_INVALID_ARGUMENT, "synchronous or not");
    assert_int_equal(fake_counts().calls, calls);
    assert_public_ok(cadre_variable_create(strategy, "flag", CADRE_BOOL, 0, NULL, NULL, &flag));
    const bool yes = true;
    assert_public_ok(cadre_tensor_from_data(CADRE_BOOL, 0, NULL, &yes, &truth));
    assert_public_error(cadre_variable_assign(NULL, flag, CADRE_ASSIGN_ADD, truth),
        CADRE_INVALID_ARGUMENT, "truth values");
    assert_public_error(cadre_variable_push(NULL, flag, CADRE_ASSIGN_UPDATE, truth, NULL, NULL),
        CADRE_FAILED_PRECONDITION, "has no optimizer");
    assert_public_ok(cadre_variable_assign(NULL, flag, CADRE_ASSIGN, truth));
    fake_become(ROLE_EVALUATOR);
    assert_public_ok(cadre_variable_find(NULL, "w", &variable));
    assert_public_error(
        memory_push(variable, values, NULL), CADRE_FAILED_PRECONDITION, "evaluator");
    float into[2 * ROWS];
    assert_public_ok(memory_pull(variable, into));
    cadre_tensor_release(truth);
    cadre_tensor_release(two);
    cadre_tensor_release(ids);
    cadre_tensor_release(wrong);
    fake_end(strategy);
}

/* Its number is given back all the same (fake_end counts them). */
static void a_lost_server_is_reported(void **state)
{
    (void)state;
    const cadre_partitioner partitioner = fixed(3);
    cadre_strategy *strategy = fake_begin(2, &partitioner);
    cadre_variable *variable = zeros(strategy);
    const float values[2 * ROWS] = {0};
    const int64_t ids[] = {6, 1};
    float into[2 * ROWS];
    fault_arm("client.call", 1);
    assert_public_error(memory_push(variable, values, NULL), CADRE_UNAVAILABLE, "'w': ps 1");
    fault_arm("client.call", 1);
    assert_public_error(
        memory_push_pull(variable, values, into, NULL), CADRE_UNAVAILABLE, "'w': ps 1");
    fault_arm("client.call", 1);
    assert_public_error(
        memory_push_rows(variable, ids, 2, values, NULL), CADRE_UNAVAILABLE, "'w': ps 1");
    assert_true(fault_disarm());
    fake_end(strategy);
}

struct pusher {
    cadre_variable *variable;
    cadre_status status;
};

static void *push_on(void *user)
{
    struct pusher *pusher = user;
    const float ones[2 * ROWS] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    float into[2 * ROWS];
    for (int i = 0; i < 50 && pusher->status == CADRE_OK; i++) {
        cadre_variable *same = NULL;
        const cadre_push_options options = {.staleness = 100000};
        pusher->status = cadre_variable_find(NULL, "w", &same);
        if (pusher->status == CADRE_OK) {
            pusher->status = memory_pull(same, into);
        }
        if (pusher->status == CADRE_OK) {
            pusher->status = memory_push(same, ones, &options);
        }
    }
    return NULL;
}

static void all_threads_push_at_once(void **state)
{
    (void)state;
    const cadre_partitioner partitioner = fixed(3);
    cadre_strategy *strategy = fake_begin(2, &partitioner);
    cadre_variable *variable = zeros(strategy);
    struct pusher pushers[4] = {{.variable = variable}};
    pthread_t threads[4];
    fake_become(ROLE_WORKER); /* all four look it up, and one adds it */
    for (size_t i = 0; i < 4; i++) {
        pushers[i].status = CADRE_OK;
        assert_int_equal(pthread_create(&threads[i], NULL, push_on, &pushers[i]), 0);
    }
    for (size_t i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(pushers[i].status, CADRE_OK);
    }
    float wanted[2 * ROWS];
    for (size_t i = 0; i < 2 * ROWS; i++) {
        wanted[i] = -100;
    }
    assert_public_ok(cadre_variable_find(NULL, "w", &variable));
    check(variable, wanted);
    fake_end(strategy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_kinds_change_the_same_whatever_the_shards),
        cmocka_unit_test(staleness_is_asked_shard_by_shard),
        cmocka_unit_test(a_step_is_pushed_to_all_shards),
        cmocka_unit_test(what_does_not_fit_is_named),
        cmocka_unit_test(a_lost_server_is_reported),
        cmocka_unit_test(all_threads_push_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
