/* SPDX-License-Identifier: Apache-2.0
 * Cross-device operations: which one, in which order they sum, and where results go. */
#include <stdlib.h>
#include <string.h>

#include "job.h"
#include "training.h"
#include "worker/library/runtime/reductions/cross_device.h"

static const char *self;

static void the_default_follows_from_the_devices(void **state)
{
    (void)state;
    static const struct {
        const char *devices[3];
        uint32_t count;
        uint32_t gpus;
        cadre_dtype dtype;
        cadre_cross_device_kind kind;
        cadre_communication implementation;
    } rows[] = {
        {{"GPU:0", "GPU:1"}, 2, 2, CADRE_F32, CADRE_CROSS_DEVICE_COLLECTIVE,
            CADRE_COMMUNICATION_NCCL},
        {{"/gpu:0", "GPU:1"}, 2, 1, CADRE_F32, CADRE_CROSS_DEVICE_COLLECTIVE,
            CADRE_COMMUNICATION_RING},
        {{"CPU:0", "GPU:0"}, 2, 1, CADRE_F32, CADRE_CROSS_DEVICE_ONE_DEVICE,
            CADRE_COMMUNICATION_AUTO},
        {{"GPU:0", "GPU:1"}, 2, 2, CADRE_I32, CADRE_CROSS_DEVICE_ONE_DEVICE,
            CADRE_COMMUNICATION_AUTO},
        {{"CPU:0", "CPU:1", "CPU:2"}, 3, 0, CADRE_I32, CADRE_CROSS_DEVICE_COLLECTIVE,
            CADRE_COMMUNICATION_RING},
    };
    struct cadre_error error = {0};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cadre_cross_device_ops ops;
        assert_ok(cross_device_default(
                      rows[i].devices, rows[i].count, rows[i].gpus, rows[i].dtype, &ops, &error),
            &error);
        assert_int_equal(ops.kind, rows[i].kind);
        assert_int_equal(ops.implementation, rows[i].implementation);
    }
    cadre_cross_device_ops ops;
    const char *wrong[] = {"GPU:zero"};
    assert_error(cross_device_default(wrong, 1, 0, CADRE_F32, &ops, &error), CADRE_INVALID_ARGUMENT,
        &error, "zero");
    assert_error(cross_device_default(wrong, 0, 0, CADRE_F32, &ops, &error), CADRE_INVALID_ARGUMENT,
        &error, "no devices");
}

/* Values whose sum depends on the order of the additions. */
static const float order[4] = {1, 1e8f, -1e8f, 1};

static cadre_per_replica *in_order(cadre_strategy *strategy)
{
    cadre_tensor *tensors[4];
    cadre_per_replica *value;
    for (int i = 0; i < 4; i++) {
        tensors[i] = training_f32(1, &order[i]);
    }
    assert_public_ok(cadre_values_from_tensors(strategy, tensors, 4, &value));
    for (int i = 0; i < 4; i++) {
        cadre_tensor_release(tensors[i]);
    }
    return value;
}

static float first_of(const cadre_per_replica *value, uint32_t component, uint32_t place)
{
    return *(const float *)cadre_tensor_const_data(cadre_local_results(value, component)[place]);
}

static void each_kind_sums_in_its_order(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(4);
    cadre_per_replica *value = in_order(strategy);
    volatile float line = ((order[0] + order[1]) + order[2]) + order[3];
    volatile float halves = (order[0] + order[1]) + (order[2] + order[3]);
    const struct {
        cadre_cross_device_kind kind;
        float sum;
    } rows[] = {{CADRE_CROSS_DEVICE_ONE_DEVICE, line},
        {CADRE_CROSS_DEVICE_HIERARCHICAL_COPY, halves}, {CADRE_CROSS_DEVICE_COLLECTIVE, halves},
        {CADRE_CROSS_DEVICE_AUTO, halves}};
    assert_true(line != halves);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cadre_per_replica *result;
        assert_public_ok(cadre_strategy_set_cross_device_ops(
            strategy, &(cadre_cross_device_ops){.kind = rows[i].kind}));
        assert_public_ok(cadre_reduce_to(strategy, CADRE_SUM, value, NULL, &result));
        assert_int_equal(cadre_per_replica_count(result), 4);
        for (uint32_t place = 0; place < 4; place++) {
            assert_true(first_of(result, 0, place) == rows[i].sum);
        }
        cadre_per_replica_release(result);
        assert_public_ok(cadre_reduce_to(strategy, CADRE_MEAN, value,
            &(cadre_destinations){
                .devices = (const char *const[]){"CPU:2", "/cpu:0"}, .device_count = 2},
            &result));
        assert_int_equal(cadre_per_replica_count(result), 2);
        assert_true(first_of(result, 0, 1) == rows[i].sum / 4);
        cadre_per_replica_release(result);
    }
    cadre_cross_device_ops ops;
    assert_public_ok(cadre_strategy_cross_device_ops(strategy, CADRE_F32, &ops));
    assert_int_equal(ops.kind, CADRE_CROSS_DEVICE_COLLECTIVE);
    assert_public_error(
        cadre_strategy_set_cross_device_ops(strategy, &(cadre_cross_device_ops){.kind = 77}),
        CADRE_INVALID_ARGUMENT, "77");
    cadre_per_replica_release(value);
    cadre_strategy_release(strategy);
}

static void a_batch_goes_in_packs(void **state)
{
    (void)state;
    enum { COUNT = 100 };
    cadre_strategy *strategy = training_strategy(2);
    for (uint32_t packs = 0; packs <= COUNT; packs += 7) {
        cadre_per_replica *values[COUNT];
        cadre_per_replica *results[COUNT];
        for (int i = 0; i < COUNT; i++) {
            cadre_tensor *tensors[2] = {
                training_i32((size_t)(i % 3 + 1), (const int32_t[]){i, i, i}),
                training_i32((size_t)(i % 3 + 1), (const int32_t[]){1, 1, 1})};
            assert_public_ok(cadre_values_from_tensors(strategy, tensors, 2, &values[i]));
            cadre_tensor_release(tensors[0]);
            cadre_tensor_release(tensors[1]);
        }
        assert_public_ok(cadre_strategy_set_cross_device_ops(
            strategy, &(cadre_cross_device_ops){.num_packs = packs}));
        assert_public_ok(cadre_batch_reduce_to(
            strategy, CADRE_SUM, (const cadre_per_replica *const *)values, NULL, COUNT, results));
        for (int i = 0; i < COUNT; i++) {
            cadre_tensor *result = cadre_local_results(results[i], 0)[1];
            assert_int_equal(cadre_tensor_count(result), i % 3 + 1);
            assert_int_equal(((const int32_t *)cadre_tensor_const_data(result))[i % 3], i + 1);
            cadre_per_replica_release(results[i]);
            cadre_per_replica_release(values[i]);
        }
    }
    assert_public_ok(cadre_batch_reduce_to(strategy, CADRE_SUM, NULL, NULL, 0, NULL));
    cadre_strategy_release(strategy);
}

static void mirrored_values_stay_what_they_are(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_tensor *tensor = training_f32(1, (const float[]){3});
    cadre_tensor *zero = training_f32(1, (const float[]){0});
    cadre_tensor *same[2] = {tensor, tensor};
    cadre_per_replica *value;
    cadre_per_replica *result;
    assert_public_ok(cadre_values_from_tensors(strategy, same, 2, &value));
    assert_public_ok(cadre_reduce_to(strategy, CADRE_MEAN, value, NULL, &result));
    assert_ptr_equal(cadre_local_results(result, 0)[1], tensor);
    cadre_per_replica_release(result);
    assert_public_error(cadre_reduce_to(strategy, CADRE_SUM, value, NULL, &result),
        CADRE_INVALID_ARGUMENT, "all 2 replicas share");
    assert_null(result);
    cadre_per_replica_release(value);
    same[0] = zero;
    same[1] = zero;
    assert_public_ok(cadre_values_from_tensors(strategy, same, 2, &value));
    assert_public_ok(cadre_reduce_to(strategy, CADRE_SUM, value, NULL, &result));
    assert_true(first_of(result, 0, 0) == 0);
    cadre_per_replica_release(result);
    cadre_per_replica_release(value);
    assert_public_ok(cadre_broadcast_to(strategy, tensor, NULL, &result));
    assert_int_equal(cadre_per_replica_count(result), 2);
    assert_true(cadre_per_replica_is_plain(result, 0));
    cadre_per_replica_release(result);
    cadre_tensor_release(tensor);
    cadre_tensor_release(zero);
    cadre_strategy_release(strategy);
}

static void destinations_are_of_this_task(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_variable *variable;
    cadre_tensor *tensor = training_f32(1, (const float[]){3});
    cadre_per_replica *result;
    const int64_t dims[1] = {1};
    assert_public_ok(cadre_variable_create(strategy, "w", CADRE_F32, 1, dims, NULL, &variable));
    assert_public_ok(
        cadre_broadcast_to(strategy, tensor, &(cadre_destinations){.variable = variable}, &result));
    assert_int_equal(cadre_per_replica_count(result), 2);
    cadre_per_replica_release(result);
    static const struct {
        const char *device;
        const char *part;
    } wrong[] = {{"CPU:2", "none of this task's"}, {"GPU:0", "none of this task's"},
        {"/job:worker/task:3/cpu:0", "none of this task's"}, {"disk:x", "x"}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        const cadre_destinations to = {.devices = &wrong[i].device, .device_count = 1};
        assert_public_error(cadre_broadcast_to(strategy, tensor, &to, &result),
            CADRE_INVALID_ARGUMENT, wrong[i].part);
    }
    const char *here = "CPU:0";
    assert_public_error(
        cadre_broadcast_to(strategy, tensor,
            &(cadre_destinations){.variable = variable, .devices = &here, .device_count = 1},
            &result),
        CADRE_INVALID_ARGUMENT, "one of the two");
    cadre_strategy_release(strategy);
    strategy = training_strategy(2);
    assert_public_error(
        cadre_broadcast_to(strategy, tensor, &(cadre_destinations){.variable = variable}, &result),
        CADRE_FAILED_PRECONDITION, "has ended");
    cadre_tensor_release(tensor);
    cadre_strategy_release(strategy);
}

static void what_was_asked_can_be_set_again(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_cross_device_ops ops = {
        .kind = CADRE_CROSS_DEVICE_ONE_DEVICE, .reduce_to_device = "CPU:1"};
    for (uint32_t packs = 1; packs <= 2; packs++) {
        ops.num_packs = packs;
        assert_public_ok(cadre_strategy_set_cross_device_ops(strategy, &ops));
        assert_public_ok(cadre_strategy_cross_device_ops(strategy, CADRE_F32, &ops));
        assert_int_equal(ops.num_packs, packs);
        assert_string_equal(ops.reduce_to_device, "CPU:1");
    }
    cadre_strategy_release(strategy);
}

/* --- several tasks --- */

static int task(void)
{
    cadre_strategy *strategy = job_strategy();
    cadre_tensor *own;
    cadre_per_replica *value;
    cadre_per_replica *result;
    CADRE_CHECK(cadre_tensor_from_f32((float)(1 + cadre_rank()), &own));
    CADRE_CHECK(cadre_values_from_tensors(strategy, &own, 1, &value));
    CADRE_CHECK(cadre_reduce_to(strategy, CADRE_SUM, value, NULL, &result));
    if (first_of(result, 0, 0) != 6) {
        return 1;
    }
    cadre_per_replica_release(result);
    cadre_per_replica_release(value);
    cadre_tensor_release(own);
    static const cadre_cross_device_kind here[] = {CADRE_CROSS_DEVICE_ONE_DEVICE,
        CADRE_CROSS_DEVICE_HIERARCHICAL_COPY, CADRE_CROSS_DEVICE_OWN};
    for (size_t i = 0; i < sizeof here / sizeof here[0]; i++) {
        cadre_status status = cadre_strategy_set_cross_device_ops(
            strategy, &(cadre_cross_device_ops){.kind = here[i]});
        if (status != CADRE_FAILED_PRECONDITION) {
            return 1;
        }
    }
    return cadre_finish(strategy);
}

static void tasks_reduce_by_a_collective(void **state)
{
    (void)state;
    job_must_succeed(self, "reduce", 3, 1);
}

int main(int argc, char **argv)
{
    if (argc == 2 && getenv("CADRE_SOCKET") != NULL) {
        return task();
    }
    self = argv[0];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_default_follows_from_the_devices),
        cmocka_unit_test(each_kind_sums_in_its_order),
        cmocka_unit_test(a_batch_goes_in_packs),
        cmocka_unit_test(mirrored_values_stay_what_they_are),
        cmocka_unit_test(destinations_are_of_this_task),
        cmocka_unit_test(what_was_asked_can_be_set_again),
        cmocka_unit_test(tasks_reduce_by_a_collective),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
