/* SPDX-License-Identifier: Apache-2.0
 * Reading: whole, by row numbers, by slices; whatever the shards are. */
#include <stdlib.h>
#include <string.h>

#include "common/base/fault.h"
#include "fake_strategy.h"
#include "tests/lib/test.h"
#include "tests/unit/runtime/training.h"

#define N CADRE_SLICE_DEFAULT

static cadre_status count_up(void *values, int64_t count, cadre_dtype dtype, void *user)
{
    (void)dtype;
    float *next = user;
    for (int64_t i = 0; i < count; i++) {
        ((float *)values)[i] = (*next)++;
    }
    return CADRE_OK;
}

/* [8, 2]: 1, 2 | 3, 4 | ... 15, 16. */
static cadre_variable *counted(cadre_strategy *strategy)
{
    static const int64_t dims[] = {8, 2};
    float next = 1;
    cadre_variable *variable;
    const cadre_variable_options options = {
        .initializer = {.kind = CADRE_INITIALIZER_FUNCTION, .function = count_up, .user = &next}};
    assert_public_ok(cadre_variable_create(strategy, "w", CADRE_F32, 2, dims, &options, &variable));
    return variable;
}

static cadre_partitioner fixed(uint64_t shards)
{
    return (cadre_partitioner){.kind = CADRE_PARTITIONER_FIXED, .shards = shards};
}

/* The tensor is [count, 2] and holds these rows. */
static void check_rows(cadre_tensor *tensor, size_t count, const int64_t *rows)
{
    assert_int_equal(cadre_tensor_rank(tensor), 2);
    assert_int_equal(cadre_tensor_dim(tensor, 0), count);
    assert_int_equal(cadre_tensor_dim(tensor, 1), 2);
    const float *values = cadre_tensor_const_data(tensor);
    for (size_t i = 0; i < count; i++) {
        assert_true(values[2 * i] == (float)(2 * rows[i] + 1));
        assert_true(values[2 * i + 1] == (float)(2 * rows[i] + 2));
    }
    cadre_tensor_release(tensor);
}

static void slices_are_pythons(void **state)
{
    (void)state;
    static const struct {
        int64_t begin;
        int64_t end;
        int64_t step;
        size_t count;
        int64_t rows[8];
    } cases[] = {
        {N, 2, N, 2, {0, 1}},
        {-10, 2, N, 2, {0, 1}},
        {5, -1, N, 2, {5, 6}},
        {N, N, 3, 3, {0, 3, 6}},
        {1, N, 6, 2, {1, 7}},
        {2, 7, 2, 3, {2, 4, 6}},
        {2, 7, 3, 2, {2, 5}},
        {N, N, -1, 8, {7, 6, 5, 4, 3, 2, 1, 0}},
        {6, 0, -4, 2, {6, 2}},
        {N, N, N, 8, {0, 1, 2, 3, 4, 5, 6, 7}},
        {4, 4, 1, 0, {0}},
        {4, 2, 1, 0, {0}},
        {N, 100, INT64_MAX, 1, {0}},
    };
    for (uint64_t shards = 1; shards <= 8; shards++) {
        const cadre_partitioner partitioner = fixed(shards);
        cadre_strategy *strategy = fake_begin(3, &partitioner);
        cadre_variable *variable = counted(strategy);
        cadre_tensor *rows;
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            assert_public_ok(cadre_variable_slice(
                NULL, variable, cases[i].begin, cases[i].end, cases[i].step, &rows));
            check_rows(rows, cases[i].count, cases[i].rows);
        }
        assert_public_error(
            cadre_variable_slice(NULL, variable, N, N, 0, &rows), CADRE_INVALID_ARGUMENT, "step 0");
        assert_public_ok(cadre_variable_slice(NULL, variable, -3, CADRE_SLICE_ROW, 1, &rows));
        assert_int_equal(cadre_tensor_rank(rows), 1);
        assert_true(*(const float *)cadre_tensor_const_data(rows) == 11);
        cadre_tensor_release(rows);
        assert_public_error(cadre_variable_slice(NULL, variable, 8, CADRE_SLICE_ROW, 1, &rows),
            CADRE_OUT_OF_RANGE, "no row 8");
        assert_public_error(cadre_variable_slice(NULL, variable, -9, CADRE_SLICE_ROW, 1, &rows),
            CADRE_OUT_OF_RANGE, "no row -9");
        fake_end(strategy);
    }
}

static void rows_come_in_the_order_of_their_numbers(void **state)
{
    (void)state;
    static const int64_t ids[] = {7, 0, 3, 3, 7, 5};
    static const int32_t narrow[] = {7, 0, 3, 3, 7, 5};
    static const int64_t dims[] = {3, 2};
    for (uint64_t shards = 1; shards <= 8; shards++) {
        const cadre_partitioner partitioner = fixed(shards);
        cadre_strategy *strategy = fake_begin(3, &partitioner);
        cadre_variable *variable = counted(strategy);
        cadre_tensor *numbers;
        cadre_tensor *rows;
        assert_public_ok(cadre_tensor_from_data(CADRE_I32, 2, dims, narrow, &numbers));
        uint64_t before = fake_counts().calls;
        assert_public_ok(cadre_variable_gather(NULL, variable, numbers, NULL, &rows));
        assert_int_equal(fake_counts().calls, before + 1);
        cadre_tensor_release(numbers);
        assert_int_equal(cadre_tensor_rank(rows), 3);
        assert_int_equal(cadre_tensor_dim(rows, 1), 2);
        const float *values = cadre_tensor_const_data(rows);
        float into[12];
        assert_public_ok(memory_gather(variable, ids, 6, into));
        for (size_t i = 0; i < 6; i++) {
            assert_true(values[2 * i] == (float)(2 * ids[i] + 1));
            assert_true(into[2 * i + 1] == (float)(2 * ids[i] + 2));
        }
        cadre_tensor_release(rows);
        assert_public_ok(memory_gather(variable, NULL, 0, NULL));
        const int64_t bad = 8;
        assert_public_error(memory_gather(variable, &bad, 1, into), CADRE_OUT_OF_RANGE, "no row 8");
        numbers = training_f32(1, (const float[]){1});
        assert_public_error(cadre_variable_gather(NULL, variable, numbers, NULL, &rows),
            CADRE_INVALID_ARGUMENT, "f32; give i32 or i64");
        cadre_tensor_release(numbers);
        fake_end(strategy);
    }
}

static void large_reads_go_to_the_programs_memory(void **state)
{
    (void)state;
    static const int64_t ids[] = {1, 4, 6};
    const cadre_partitioner partitioner = fixed(3);
    cadre_strategy *strategy = fake_begin(2, &partitioner);
    cadre_variable *variable = counted(strategy);
    float into[16] = {0};
    assert_public_ok(memory_pull(variable, into));
    assert_ptr_equal(fake_last_memory(), into);
    assert_true(into[15] == 16);
    assert_public_ok(memory_gather(variable, ids, 3, into));
    assert_ptr_equal(fake_last_memory(), into);
    assert_true(into[2] == 9);
    fake_end(strategy);
}

/* (A fake server answers at once, and checks that so many steps were applied.) */
static void a_step_is_asked_for(void **state)
{
    (void)state;
    const cadre_partitioner partitioner = fixed(3);
    cadre_strategy *strategy = fake_begin(3, &partitioner);
    cadre_variable *variable = counted(strategy);
    float into[16];
    for (uint32_t server = 0; server < 3; server++) {
        *fake_steps(server, 0) = 4;
    }
    assert_public_ok(memory_pull_step(variable, 4, into));
    fake_end(strategy);
}

/* The caller's tensor is filled, and is the result. */
static void a_tensor_is_filled(void **state)
{
    (void)state;
    cadre_strategy *strategy = fake_begin(2, NULL);
    cadre_variable *variable = counted(strategy);
    const int64_t dims[] = {8, 2};
    const int64_t other[] = {2, 8};
    cadre_read_options options = {0};
    cadre_tensor *value;
    assert_public_ok(cadre_tensor_create(CADRE_F32, 2, dims, &options.into));
    assert_public_ok(cadre_variable_value(NULL, variable, &options, &value));
    assert_ptr_equal(value, options.into);
    cadre_tensor_release(value);
    cadre_tensor_release(options.into);
    assert_public_ok(cadre_tensor_create(CADRE_F32, 2, other, &options.into));
    assert_public_error(cadre_variable_value(NULL, variable, &options, &value),
        CADRE_INVALID_ARGUMENT, "f32 [2, 8]");
    assert_null(value);
    assert_public_error(
        cadre_variable_value(NULL, variable, NULL, NULL), CADRE_INVALID_ARGUMENT, "ret_value");
    cadre_tensor_release(options.into);
    fake_end(strategy);
}

static void a_scalar_has_no_rows(void **state)
{
    (void)state;
    cadre_strategy *strategy = fake_begin(1, NULL);
    cadre_variable *variable;
    cadre_tensor *rows;
    const int64_t row = 0;
    float value = 1;
    assert_public_ok(cadre_variable_create(strategy, "s", CADRE_F32, 0, NULL, NULL, &variable));
    assert_public_error(cadre_variable_slice(NULL, variable, N, N, N, &rows),
        CADRE_INVALID_ARGUMENT, "is a scalar");
    assert_public_error(cadre_variable_slice(NULL, variable, 0, CADRE_SLICE_ROW, 1, &rows),
        CADRE_INVALID_ARGUMENT, "is a scalar");
    assert_public_error(
        memory_gather(variable, &row, 1, &value), CADRE_INVALID_ARGUMENT, "is a scalar");
    assert_public_ok(memory_pull(variable, &value));
    assert_true(value == 0);
    fake_end(strategy);
}

static void a_lost_server_is_reported_by_each(void **state)
{
    (void)state;
    const cadre_partitioner partitioner = fixed(3);
    cadre_strategy *strategy = fake_begin(2, &partitioner);
    cadre_variable *variable = counted(strategy);
    cadre_tensor *tensor;
    cadre_tensor *numbers = training_i32(2, (const int32_t[]){7, 0});
    float into[16];
    fault_arm("client.call", 1);
    assert_public_error(
        cadre_variable_value(NULL, variable, NULL, &tensor), CADRE_UNAVAILABLE, "'w'");
    assert_null(tensor);
    fault_arm("client.call", 1);
    assert_public_error(memory_pull(variable, into), CADRE_UNAVAILABLE, "'w'");
    fault_arm("client.call", 1);
    assert_public_error(
        cadre_variable_gather(NULL, variable, numbers, NULL, &tensor), CADRE_UNAVAILABLE, "'w'");
    fault_arm("client.call", 1);
    assert_public_error(
        cadre_variable_slice(NULL, variable, N, N, -1, &tensor), CADRE_UNAVAILABLE, "'w'");
    fault_arm("client.call", 1);
    assert_public_error(cadre_variable_slice(NULL, variable, 1, CADRE_SLICE_ROW, 1, &tensor),
        CADRE_UNAVAILABLE, "'w'");
    assert_true(fault_disarm());
    cadre_tensor_release(numbers);
    fake_end(strategy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slices_are_pythons),
        cmocka_unit_test(rows_come_in_the_order_of_their_numbers),
        cmocka_unit_test(large_reads_go_to_the_programs_memory),
        cmocka_unit_test(a_step_is_asked_for),
        cmocka_unit_test(a_tensor_is_filled),
        cmocka_unit_test(a_scalar_has_no_rows),
        cmocka_unit_test(a_lost_server_is_reported_by_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
