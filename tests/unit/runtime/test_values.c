/* SPDX-License-Identifier: Apache-2.0
 * Values of several components, joined arguments, reduce over them and gather: in one process, and
 * in jobs of several tasks (this test, run again). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"
#include "training.h"

static const char *self;

static cadre_tensor *i64_tensor(uint32_t rank, const int64_t dims[], int64_t first)
{
    cadre_tensor *tensor;
    CADRE_CHECK(cadre_tensor_create(CADRE_I64, rank, dims, &tensor));
    int64_t *values = cadre_tensor_data(tensor);
    for (int64_t i = 0; i < cadre_tensor_count(tensor); i++) {
        values[i] = first + i;
    }
    return tensor;
}

/* --- the values of tasks and replicas, by id --- */

/* Two components: a matrix [2, 1 + id] that counts from 100 * id on, and a vector of length id. */
static cadre_status make_ragged(
    const cadre_value_context *context, cadre_element *ret_value, void *user)
{
    (void)user;
    int64_t id = context->replica_id_in_sync_group;
    ret_value->count = 2;
    ret_value->tensors[0] = i64_tensor(2, (const int64_t[]){2, 1 + id}, 100 * id);
    ret_value->tensors[1] = i64_tensor(1, (const int64_t[]){id}, 10 * id);
    return CADRE_OK;
}

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("%s:%d: %s\n", __FILE__, __LINE__, #condition);                                 \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static void check_gathered_columns(const cadre_tensor *all, int64_t replicas)
{
    int64_t width = replicas * (replicas + 1) / 2;
    REQUIRE(cadre_tensor_rank(all) == 2 && cadre_tensor_dim(all, 0) == 2);
    REQUIRE(cadre_tensor_dim(all, 1) == width);
    const int64_t *at = cadre_tensor_const_data(all);
    for (int64_t row = 0; row < 2; row++) {
        for (int64_t id = 0; id < replicas; id++) {
            for (int64_t i = 0; i <= id; i++) {
                REQUIRE(*at++ == 100 * id + row * (1 + id) + i);
            }
        }
    }
}

/* What must hold at any number of tasks and replicas. */
static void check_strategy(cadre_strategy *strategy)
{
    int64_t replicas = cadre_strategy_num_replicas_in_sync(strategy);
    cadre_per_replica *values = NULL;
    cadre_tensor *results[2] = {NULL};
    CADRE_CHECK(cadre_values_from_function(strategy, make_ragged, NULL, &values));
    uint32_t locals = cadre_strategy_local_replicas(strategy);
    cadre_per_replica *matrix = NULL;
    cadre_per_replica *vector = NULL;
    CADRE_CHECK(
        cadre_values_from_tensors(strategy, cadre_local_results(values, 0), locals, &matrix));
    CADRE_CHECK(
        cadre_values_from_tensors(strategy, cadre_local_results(values, 1), locals, &vector));
    CADRE_CHECK(cadre_gather(strategy, matrix, 1, &results[0]));
    CADRE_CHECK(cadre_gather(strategy, vector, 0, &results[1]));
    check_gathered_columns(results[0], replicas);
    REQUIRE(cadre_tensor_count(results[1]) == replicas * (replicas - 1) / 2);
    const int64_t *at = cadre_tensor_const_data(results[1]);
    for (int64_t id = 0; id < replicas; id++) {
        for (int64_t i = 0; i < id; i++) {
            REQUIRE(*at++ == 10 * id + i);
        }
    }
    cadre_tensor_release(results[0]);
    cadre_tensor_release(results[1]);

    /* Sums of all entries of both, in one call. */
    int64_t sums[2] = {0};
    int64_t counts[2] = {0};
    for (int64_t id = 0; id < replicas; id++) {
        for (int64_t i = 0; i < 2 * (1 + id); i++, counts[0]++) {
            sums[0] += 100 * id + i;
        }
        for (int64_t i = 0; i < id; i++, counts[1]++) {
            sums[1] += 10 * id + i;
        }
    }
    cadre_tensor *sum = NULL;
    CADRE_CHECK(
        cadre_reduce_values(strategy, CADRE_SUM, matrix, (const int32_t[]){1, -2}, 2, &sum));
    REQUIRE(*(const int64_t *)cadre_tensor_const_data(sum) == sums[0]);
    cadre_tensor_release(sum);
    CADRE_CHECK(
        cadre_reduce_values(strategy, CADRE_MEAN, matrix, (const int32_t[]){0, 1}, 2, &sum));
    double mean = (double)sums[0] / (double)counts[0];
    REQUIRE(*(const double *)cadre_tensor_const_data(sum) == mean);
    cadre_tensor_release(sum);
    CADRE_CHECK(cadre_reduce_values(
        strategy, CADRE_SUM, values, (const int32_t[]){-1}, 1, results)); /* rows of the first */
    REQUIRE(cadre_tensor_count(results[0]) == 2 && cadre_tensor_rank(results[1]) == 0);
    REQUIRE(*(const int64_t *)cadre_tensor_const_data(results[1]) == sums[1]);
    cadre_tensor_release(results[0]);
    cadre_tensor_release(results[1]);
    cadre_per_replica_release(matrix);
    cadre_per_replica_release(vector);
    cadre_per_replica_release(values);
}

/* A plain tensor: the replicas of one task share it, tasks have one each. */
static void check_plain(cadre_strategy *strategy)
{
    cadre_tensor *own = i64_tensor(1, (const int64_t[]){3}, 1 + cadre_rank());
    cadre_tensor *result = NULL;
    int64_t tasks = cadre_world_size();
    CADRE_CHECK(cadre_reduce_tensor(strategy, CADRE_SUM, own, NULL, 0, &result));
    int64_t first = tasks * (tasks + 1) / 2;
    REQUIRE(((const int64_t *)cadre_tensor_const_data(result))[2] == first + 2 * tasks);
    cadre_tensor_release(result);
    CADRE_CHECK(cadre_reduce_tensor(strategy, CADRE_MEAN, own, (const int32_t[]){0}, 1, &result));
    double mean = (double)(3 * first + 3 * tasks) / (double)(3 * tasks);
    REQUIRE(*(const double *)cadre_tensor_const_data(result) == mean);
    cadre_tensor_release(result);
    cadre_tensor_release(own);
}

/* Gathered: one of each task, of another length in each, whatever replicas a task has. */
static void check_plain_gathered(cadre_strategy *strategy)
{
    int64_t rank = cadre_rank();
    int64_t tasks = cadre_world_size();
    cadre_tensor *own = i64_tensor(2, (const int64_t[]){1, 1 + rank}, 10 * rank);
    cadre_tensor *result = NULL;
    CADRE_CHECK(cadre_gather_tensor(strategy, own, 1, &result));
    REQUIRE(cadre_tensor_rank(result) == 2 && cadre_tensor_dim(result, 0) == 1);
    REQUIRE(cadre_tensor_dim(result, 1) == tasks * (tasks + 1) / 2);
    const int64_t *at = cadre_tensor_const_data(result);
    for (int64_t task = 0; task < tasks; task++) {
        for (int64_t i = 0; i <= task; i++) {
            REQUIRE(*at++ == 10 * task + i);
        }
    }
    cadre_tensor_release(result);
    bool alike = tasks == 1;
    REQUIRE((cadre_gather_tensor(strategy, own, 0, &result) == CADRE_OK) == alike);
    REQUIRE((result != NULL) == alike);
    REQUIRE(cadre_gather_tensor(strategy, own, -1, &result) == CADRE_INVALID_ARGUMENT);
    cadre_tensor_release(own);
}

/* The sum of nothing, over axes whose sizes multiply to more than can be counted. */
static void check_countless(cadre_strategy *strategy)
{
    const int64_t dims[3] = {INT64_C(1) << 31, INT64_C(1) << 32, 0};
    cadre_tensor *value = NULL;
    cadre_tensor *result = NULL;
    CADRE_CHECK(cadre_tensor_create(CADRE_F32, 3, dims, &value));
    cadre_status status =
        cadre_reduce_tensor(strategy, CADRE_MEAN, value, (const int32_t[]){0, 1}, 2, &result);
    REQUIRE(status == CADRE_INVALID_ARGUMENT && result == NULL);
    REQUIRE(strstr(cadre_error_message(), "more entries than 64 bits can count") != NULL);
    cadre_tensor_release(value);
}

/* However many sums of nothing there are, they take no time. */
static void check_empty(cadre_strategy *strategy)
{
    const int64_t dims[3] = {INT64_C(1) << 40, 2, 0};
    cadre_tensor *value = NULL;
    cadre_tensor *result = NULL;
    CADRE_CHECK(cadre_tensor_create(CADRE_I64, 3, dims, &value));
    CADRE_CHECK(cadre_reduce_tensor(strategy, CADRE_SUM, value, (const int32_t[]){1}, 1, &result));
    REQUIRE(cadre_tensor_rank(result) == 2 && cadre_tensor_count(result) == 0);
    REQUIRE(cadre_tensor_dim(result, 0) == dims[0]);
    cadre_tensor_release(result);
    cadre_tensor_release(value);
}

/* Tasks that bring other shapes get the error, all of them, and it does no harm. */
static void check_refused(cadre_strategy *strategy)
{
    const int64_t dims[2] = {2, cadre_rank() == 1 ? 3 : 4};
    cadre_tensor *tensors[8];
    uint32_t locals = cadre_strategy_local_replicas(strategy);
    for (uint32_t i = 0; i < locals; i++) {
        tensors[i] = i64_tensor(2, dims, 0);
    }
    cadre_per_replica *values = NULL;
    cadre_tensor *result = NULL;
    CADRE_CHECK(cadre_values_from_tensors(strategy, tensors, locals, &values));
    REQUIRE(cadre_gather(strategy, values, 0, &result) == CADRE_INVALID_ARGUMENT);
    REQUIRE(result == NULL);
    REQUIRE(cadre_reduce(strategy, CADRE_SUM, values, CADRE_AXIS_NONE, &result) ==
            CADRE_INVALID_ARGUMENT);
    CADRE_CHECK(cadre_gather(strategy, values, 1, &result));
    REQUIRE(cadre_tensor_dim(result, 1) == ((int64_t)cadre_world_size() * 4 - 1) * locals);
    cadre_tensor_release(result);
    cadre_per_replica_release(values);
    for (uint32_t i = 0; i < locals; i++) {
        cadre_tensor_release(tensors[i]);
    }
}

static int task(void)
{
    cadre_strategy *strategy = job_strategy();
    for (int i = 0; i < 3; i++) {
        check_strategy(strategy);
        check_plain(strategy);
        check_plain_gathered(strategy);
        check_countless(strategy);
        check_empty(strategy);
        check_refused(strategy);
    }
    return cadre_finish(strategy);
}

static void tasks_reduce_and_gather(void **state)
{
    (void)state;
    job_must_succeed(self, "all", 2, 1);
    job_must_succeed(self, "all", 3, 2);
}

/* --- by hand --- */

static void replicas_reduce_and_gather(void **state)
{
    (void)state;
    for (uint32_t replicas = 1; replicas <= 4; replicas++) {
        cadre_strategy *strategy = training_strategy(replicas);
        check_strategy(strategy);
        cadre_strategy_release(strategy);
    }
}

static void a_plain_tensor_is_the_same_for_all(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_tensor *own = i64_tensor(1, (const int64_t[]){3}, 5);
    cadre_tensor *zero = i64_tensor(0, NULL, 0);
    cadre_tensor *result;
    assert_public_ok(cadre_reduce_tensor(strategy, CADRE_MEAN, own, NULL, 0, &result));
    assert_ptr_equal(result, own);
    cadre_tensor_release(result);
    assert_public_ok(
        cadre_reduce_tensor(strategy, CADRE_MEAN, own, (const int32_t[]){-1}, 1, &result));
    assert_true(*(const double *)cadre_tensor_const_data(result) == 6);
    cadre_tensor_release(result);
    assert_public_error(cadre_reduce_tensor(strategy, CADRE_SUM, own, NULL, 0, &result),
        CADRE_INVALID_ARGUMENT, "no per-replica value");
    assert_public_ok(cadre_reduce_tensor(strategy, CADRE_SUM, zero, NULL, 0, &result));
    assert_int_equal(*(const int64_t *)cadre_tensor_const_data(result), 0);
    cadre_tensor_release(result);
    assert_public_ok(cadre_gather_tensor(strategy, own, 0, &result));
    assert_ptr_equal(result, own);
    cadre_tensor_release(result);
    assert_public_error(cadre_gather_tensor(strategy, zero, 0, &result), CADRE_INVALID_ARGUMENT,
        "scalars, which cannot be gathered");
    assert_null(result);
    cadre_tensor_release(zero);
    cadre_tensor_release(own);
    cadre_strategy_release(strategy);
}

static void what_does_not_fit_is_named(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_per_replica *values;
    cadre_per_replica *other;
    cadre_tensor *results[2];
    assert_public_ok(cadre_values_from_function(strategy, make_ragged, NULL, &values));
    assert_public_error(cadre_gather(strategy, values, 2, results), CADRE_INVALID_ARGUMENT,
        "axis 2 is outside of [0, 2)");
    assert_public_error(
        cadre_gather(strategy, values, 0, results), CADRE_INVALID_ARGUMENT, "[2, 1]");
    assert_public_error(
        cadre_reduce_values(strategy, CADRE_SUM, values, (const int32_t[]){1, -1}, 2, results),
        CADRE_INVALID_ARGUMENT, "axis 1 is given twice");
    assert_public_error(cadre_reduce_values(strategy, CADRE_SUM, values, NULL, 1, results),
        CADRE_INVALID_ARGUMENT, "without a list");
    assert_public_error(
        cadre_reduce(strategy, CADRE_SUM, values, 0, results), CADRE_INVALID_ARGUMENT, "has 2");
    cadre_tensor *words[2];
    for (int i = 0; i < 2; i++) {
        assert_public_ok(cadre_tensor_create(CADRE_STRING, 1, (const int64_t[]){1}, &words[i]));
    }
    assert_public_ok(cadre_values_from_tensors(strategy, words, 2, &other));
    assert_public_error(
        cadre_gather(strategy, other, 0, results), CADRE_INVALID_ARGUMENT, "strings");
    cadre_per_replica_release(other);
    cadre_tensor *scalars[2] = {i64_tensor(0, NULL, 0), i64_tensor(0, NULL, 1)};
    assert_public_ok(cadre_values_from_tensors(strategy, scalars, 2, &other));
    assert_public_error(
        cadre_gather(strategy, other, 0, results), CADRE_INVALID_ARGUMENT, "scalars");
    assert_public_error(cadre_reduce(strategy, CADRE_SUM, other, 0, results),
        CADRE_INVALID_ARGUMENT,
        "component 0 of the value holds scalars, which cannot be reduced along an axis; give no "
        "axis (cadre_reduce: CADRE_AXIS_NONE)");
    cadre_per_replica_release(other);
    assert_public_error(cadre_values_from_tensors(strategy, scalars, 3, &other),
        CADRE_INVALID_ARGUMENT, "3 tensors were given for the 2 replicas");
    for (int i = 0; i < 2; i++) {
        cadre_tensor_release(words[i]);
        cadre_tensor_release(scalars[i]);
    }
    cadre_per_replica_release(values);
    cadre_strategy_release(strategy);
}

/* --- joined arguments --- */

struct received {
    int64_t rows;
    int64_t rate;
    uint32_t count;
};

static cadre_status receive_inputs(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    struct received *received = &((struct received *)user)[cadre_replica_id(replica)];
    received->rows = cadre_tensor_dim(inputs[0], 0);
    received->rate = *(const int64_t *)cadre_tensor_const_data(inputs[1]);
    received->count = cadre_replica_input_count(replica);
    outputs[0] = cadre_tensor_retain(inputs[1]);
    outputs[1] = cadre_tensor_retain(inputs[2]);
    return CADRE_OK;
}

static void a_batch_is_joined_with_others(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_distributed_dataset *data;
    cadre_per_replica *batch;
    cadre_per_replica *ids;
    cadre_per_replica *joined;
    cadre_per_replica *outputs[2];
    cadre_tensor *rate = i64_tensor(0, NULL, 7);
    cadre_tensor *numbers[2] = {i64_tensor(0, NULL, 0), i64_tensor(0, NULL, 1)};
    assert_public_ok(cadre_values_from_tensors(strategy, numbers, 2, &ids));
    assert_public_ok(cadre_distribute_dataset(
        strategy, cadre_dataset_batch(cadre_dataset_range(0, 10, 1), 4, false), NULL, &data));
    int64_t steps = 0;
    int64_t rows = 0;
    assert_true(cadre_next_epoch(data, 1, NULL));
    while (cadre_next(data, &batch) == CADRE_OK) {
        struct received received[2] = {{0}};
        const cadre_argument arguments[] = {{.values = batch}, {.tensor = rate}, {.values = ids}};
        assert_public_ok(cadre_values_join(strategy, arguments, 3, &joined));
        assert_int_equal(cadre_per_replica_components(joined), 3);
        assert_ptr_equal(cadre_local_results(joined, 0), cadre_local_results(batch, 0));
        assert_true(cadre_per_replica_is_plain(joined, 1));
        assert_false(cadre_per_replica_is_plain(joined, 2));
        assert_false(cadre_per_replica_is_plain(joined, 3));
        assert_public_ok(cadre_run(strategy, receive_inputs, received, joined, 2, outputs));
        assert_true(cadre_per_replica_is_plain(outputs[0], 0));
        assert_false(cadre_per_replica_is_plain(outputs[1], 0));
        for (int i = 0; i < 2; i++) {
            rows += received[i].rows;
            assert_int_equal(received[i].rate, 7);
            assert_int_equal(received[i].count, 3);
        }
        cadre_per_replica_release(joined);
        steps++;
    }
    assert_int_equal(steps, 3);
    assert_int_equal(rows, 10); /* so the batch was consumed, and the end was found */
    assert_int_equal(cadre_step(data), 3);
    cadre_per_replica_release(ids);
    cadre_tensor_release(rate);
    cadre_tensor_release(numbers[0]);
    cadre_tensor_release(numbers[1]);
    cadre_strategy_release(strategy);
}

static void arguments_that_cannot_be_joined(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_distributed_dataset *data;
    cadre_per_replica *batch;
    cadre_per_replica *joined;
    cadre_tensor *rate = i64_tensor(0, NULL, 7);
    assert_public_ok(cadre_distribute_dataset(
        strategy, cadre_dataset_batch(cadre_dataset_range(0, 10, 1), 4, false), NULL, &data));
    assert_true(cadre_next_epoch(data, 1, NULL));
    assert_public_ok(cadre_next(data, &batch));
    const cadre_argument neither[] = {{.tensor = rate}, {0}};
    assert_public_error(cadre_values_join(strategy, neither, 2, &joined), CADRE_INVALID_ARGUMENT,
        "argument 1 of a step has neither");
    const cadre_argument both[] = {{.tensor = rate, .values = batch}};
    assert_public_error(cadre_values_join(strategy, both, 1, &joined), CADRE_INVALID_ARGUMENT,
        "argument 0 of a step has both");
    cadre_distributed_dataset *another;
    cadre_per_replica *other;
    assert_public_ok(cadre_distribute_dataset(
        strategy, cadre_dataset_batch(cadre_dataset_range(0, 10, 1), 4, false), NULL, &another));
    assert_true(cadre_next_epoch(another, 1, NULL));
    assert_public_ok(cadre_next(another, &other));
    const cadre_argument two[] = {{.values = batch}, {.values = other}};
    assert_public_error(cadre_values_join(strategy, two, 2, &joined), CADRE_INVALID_ARGUMENT,
        "argument 1 of a step is a batch of another dataset");
    cadre_argument many[CADRE_ELEMENT_TENSORS_MAX + 1];
    for (int i = 0; i <= CADRE_ELEMENT_TENSORS_MAX; i++) {
        many[i] = (cadre_argument){.tensor = rate};
    }
    assert_public_error(cadre_values_join(strategy, many, CADRE_ELEMENT_TENSORS_MAX + 1, &joined),
        CADRE_INVALID_ARGUMENT, "65 arguments");
    assert_public_error(
        cadre_values_join(strategy, many, 0, &joined), CADRE_INVALID_ARGUMENT, "0 arguments");
    assert_public_ok(cadre_values_join(strategy, many, CADRE_ELEMENT_TENSORS_MAX, &joined));
    const cadre_argument more[] = {{.values = joined}, {.tensor = rate}};
    cadre_per_replica *further;
    assert_public_error(
        cadre_values_join(strategy, more, 2, &further), CADRE_INVALID_ARGUMENT, "have 65 tensors");
    cadre_per_replica_release(joined);
    cadre_tensor_release(rate);
    cadre_strategy_release(strategy);
}

int main(int argc, char **argv)
{
    if (argc == 2 && getenv("CADRE_SOCKET") != NULL) {
        return task();
    }
    self = argv[0];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replicas_reduce_and_gather),
        cmocka_unit_test(tasks_reduce_and_gather),
        cmocka_unit_test(a_plain_tensor_is_the_same_for_all),
        cmocka_unit_test(what_does_not_fit_is_named),
        cmocka_unit_test(a_batch_is_joined_with_others),
        cmocka_unit_test(arguments_that_cannot_be_joined),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
