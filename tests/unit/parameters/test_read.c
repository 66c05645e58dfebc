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
static cadre_parameter *counted(cadre_strategy *strategy)
{
    static const int64_t dims[] = {8, 2};
    float next = 1;
    cadre_parameter *parameter;
    const cadre_parameter_options options = {
        .initializer = {.kind = CADRE_INITIALIZER_FUNCTION, .function = count_up, .user = &next}};
    assert_public_ok(
        cadre_parameter_create(strategy, "w", CADRE_F32, 2, dims, &options, &parameter));
    return parameter;
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
        cadre_parameter *parameter = counted(strategy);
        cadre_tensor *rows;
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            assert_public_ok(cadre_parameter_slice(
                parameter, cases[i].begin, cases[i].end, cases[i].step, &rows));
            check_rows(rows, cases[i].count, cases[i].rows);
        }
        assert_public_error(
            cadre_parameter_slice(parameter, N, N, 0, &rows), CADRE_INVALID_ARGUMENT, "step 0");
        assert_public_ok(cadre_parameter_row(parameter, -3, &rows));
        assert_int_equal(cadre_tensor_rank(rows), 1);
        assert_true(*(const float *)cadre_tensor_const_data(rows) == 11);
        cadre_tensor_release(rows);
        assert_public_error(
            cadre_parameter_row(parameter, 8, &rows), CADRE_OUT_OF_RANGE, "no row 8");
        assert_public_error(
            cadre_parameter_row(parameter, -9, &rows), CADRE_OUT_OF_RANGE, "no row -9");
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
        cadre_parameter *parameter = counted(strategy);
        cadre_tensor *numbers;
        cadre_tensor *rows;
        assert_public_ok(cadre_tensor_from_data(CADRE_I32, 2, dims, narrow, &numbers));
        uint64_t before = fake_counts().calls;
        assert_public_ok(cadre_parameter_gather(parameter, numbers, &rows, NULL));
        assert_int_equal(fake_counts().calls, before + 1);
        cadre_tensor_release(numbers);
        assert_int_equal(cadre_tensor_rank(rows), 3);
        assert_int_equal(cadre_tensor_dim(rows, 1), 2);
        const float *values = cadre_tensor_const_data(rows);
        float into[12];
        assert_public_ok(cadre_parameter_gather_rows(parameter, ids, 6, into, NULL));
        for (size_t i = 0; i < 6; i++) {
            assert_true(values[2 * i] == (float)(2 * ids[i] + 1));
            assert_true(into[2 * i + 1] == (float)(2 * ids[i] + 2));
        }
        cadre_tensor_release(rows);
        assert_public_ok(cadre_parameter_gather_rows(parameter, NULL, 0, NULL, NULL));
        const int64_t bad = 8;
        assert_public_error(cadre_parameter_gather_rows(parameter, &bad, 1, into, NULL),
            CADRE_OUT_OF_RANGE, "no row 8");
        numbers = training_f32(1, (const float[]){1});
        assert_public_error(cadre_parameter_gather(parameter, numbers, &rows, NULL),
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
    cadre_parameter *parameter = counted(strategy);
    float into[16] = {0};
    assert_public_ok(cadre_parameter_pull(parameter, into, NULL));
    assert_ptr_equal(fake_last_memory(), into);
    assert_true(into[15] == 16);
    assert_public_ok(cadre_parameter_gather_rows(parameter, ids, 3, into, NULL));
    assert_ptr_equal(fake_last_memory(), into);
    assert_true(into[2] == 9);
    fake_end(strategy);
}

static void the_version_is_that_of_the_least_changed_shard(void **state)
{
    (void)state;
    const cadre_partitioner partitioner = fixed(3);
    cadre_strategy *strategy = fake_begin(3, &partitioner);
    cadre_parameter *parameter = counted(strategy);
    cadre_parameter_version version;
    float into[16];
    *fake_version(0, 0) = 9;
    *fake_version(1, 0) = 5;
    *fake_version(2, 0) = 7;
    assert_public_ok(cadre_parameter_pull(parameter, into, &version));
    assert_int_equal(version, 5);
    const int64_t last = 7;
    assert_public_ok(cadre_parameter_gather_rows(parameter, &last, 1, into, &version));
    assert_int_equal(version, 7);
    for (uint32_t server = 0; server < 3; server++) {
        *fake_steps(server, 0) = 4;
    }
    assert_public_ok(cadre_parameter_pull_step(parameter, 4, into));
    fake_end(strategy);
}

static void a_scalar_has_no_rows(void **state)
{
    (void)state;
    cadre_strategy *strategy = fake_begin(1, NULL);
    cadre_parameter *parameter;
    cadre_tensor *rows;
    const int64_t row = 0;
    float value = 1;
    assert_public_ok(cadre_parameter_create(strategy, "s", CADRE_F32, 0, NULL, NULL, &parameter));
    assert_public_error(
        cadre_parameter_slice(parameter, N, N, N, &rows), CADRE_INVALID_ARGUMENT, "is a scalar");
    assert_public_error(
        cadre_parameter_row(parameter, 0, &rows), CADRE_INVALID_ARGUMENT, "is a scalar");
    assert_public_error(cadre_parameter_gather_rows(parameter, &row, 1, &value, NULL),
        CADRE_INVALID_ARGUMENT, "is a scalar");
    assert_public_ok(cadre_parameter_pull(parameter, &value, NULL));
    assert_true(value == 0);
    fake_end(strategy);
}

static void a_lost_server_is_told_by_each(void **state)
{
    (void)state;
    const cadre_partitioner partitioner = fixed(3);
    cadre_strategy *strategy = fake_begin(2, &partitioner);
    cadre_parameter *parameter = counted(strategy);
    cadre_tensor *tensor;
    cadre_tensor *numbers = training_i32(2, (const int32_t[]){7, 0});
    float into[16];
    fault_arm("client.call", 1);
    assert_public_error(cadre_parameter_read(parameter, &tensor, NULL), CADRE_UNAVAILABLE, "'w'");
    assert_null(tensor);
    fault_arm("client.call", 1);
    assert_public_error(cadre_parameter_pull(parameter, into, NULL), CADRE_UNAVAILABLE, "'w'");
    fault_arm("client.call", 1);
    assert_public_error(
        cadre_parameter_gather(parameter, numbers, &tensor, NULL), CADRE_UNAVAILABLE, "'w'");
    fault_arm("client.call", 1);
    assert_public_error(
        cadre_parameter_slice(parameter, N, N, -1, &tensor), CADRE_UNAVAILABLE, "'w'");
    fault_arm("client.call", 1);
    assert_public_error(cadre_parameter_row(parameter, 1, &tensor), CADRE_UNAVAILABLE, "'w'");
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
        cmocka_unit_test(the_version_is_that_of_the_least_changed_shard),
        cmocka_unit_test(a_scalar_has_no_rows),
        cmocka_unit_test(a_lost_server_is_told_by_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
