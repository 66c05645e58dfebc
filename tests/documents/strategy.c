/* SPDX-License-Identifier: Apache-2.0
 * Which strategies there are, and which one a call means: cadre/strategy.h. */
#include "documents.h"

#define CPU "/job:localhost/replica:0/task:0/device:CPU:"

/* --- which there are: each here in a process that is the whole job --- */

/* One replica: the same program without any distribution. */
static void one_device(void **state)
{
    (void)state;
    cadre_strategy *strategy;
    OK(cadre_strategy_one_device("CPU:0", &strategy));
    assert_int_equal(cadre_strategy_num_replicas_in_sync(strategy), 1);
    cadre_strategy_release(strategy);
    REFUSED(cadre_strategy_one_device("zero", &strategy), CADRE_INVALID_ARGUMENT, "neither");
}

/* Several replicas of this process: so many, or one on each device of a list. */
static void mirrored(void **state)
{
    (void)state;
    cadre_strategy *strategy;
    OK(cadre_strategy_mirrored(3, &strategy));
    assert_int_equal(cadre_strategy_local_replicas(strategy), 3);
    cadre_strategy_release(strategy);
    const char *const devices[] = {"CPU:1", "CPU:0"};
    OK(cadre_strategy_mirrored_devices(devices, 2, &strategy));
    assert_int_equal(cadre_strategy_local_replicas(strategy), 2);
    cadre_strategy_release(strategy);
}

/* Replicas in each task of the job: here the job has one. */
static void multi_worker_mirrored(void **state)
{
    (void)state;
    cadre_strategy *strategy;
    OK(cadre_strategy_multi_worker_mirrored(2, &strategy));
    assert_int_equal(cadre_strategy_num_replicas_in_sync(strategy), 2);
    assert_int_equal(cadre_world_size(), 1);
    cadre_strategy_release(strategy);
}

/* Variables are held once, in one place, and replicas compute in others. A strategy says both. */
static void central_storage(void **state)
{
    (void)state;
    const char *const compute[] = {"CPU:1", "CPU:2"};
    const char *const *devices;
    uint32_t count;
    cadre_strategy *strategy;
    OK(cadre_strategy_central_storage(compute, 2, "CPU:0", &strategy));
    OK(cadre_strategy_devices(strategy, CADRE_WORKER_DEVICES, &devices, &count));
    assert_int_equal(count, 2);
    assert_string_equal(devices[0], CPU "1");
    assert_string_equal(devices[1], CPU "2");
    OK(cadre_strategy_devices(strategy, CADRE_PARAMETER_DEVICES, &devices, &count));
    assert_int_equal(count, 1);
    assert_string_equal(devices[0], CPU "0");
    cadre_strategy_release(strategy);
}

/* What people want to know of one. */
static void a_strategy_is_described(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    assert_printed(cadre_describe(strategy, file),
        "MirroredStrategy: 2 replicas in sync, in 1 task\n"
        "  replica 0: " CPU "0\n"
        "  replica 1: " CPU "1\n"
        "  communication: the memory of this process\n"
        "  position: 0 steps\n");
    cadre_strategy_release(strategy);
}

/* --- which one a call means --- */

/* Inside of a scope its strategy is the current one; outside of all there is a default one of a
 * single replica, so that functions written for a strategy work without any. */
static void a_scope_makes_a_strategy_current(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    assert_false(cadre_has_strategy());
    assert_int_equal(cadre_strategy_num_replicas_in_sync(cadre_strategy_current()), 1);
    OK(cadre_scope_enter(strategy));
    assert_true(cadre_has_strategy());
    assert_true(cadre_in_cross_replica_context());
    assert_ptr_equal(cadre_strategy_current(), strategy);
    OK(cadre_scope_leave(strategy));
    assert_false(cadre_in_cross_replica_context());
    cadre_strategy_release(strategy);
}

/* Or it is set for all threads, until another one is, or none. */
static void a_strategy_is_set(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    OK(cadre_strategy_set(strategy));
    assert_ptr_equal(cadre_strategy_current(), strategy);
    OK(cadre_strategy_set(NULL));
    assert_false(cadre_has_strategy());
    cadre_strategy_release(strategy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_strategy_is_described), /* the first one initialises the library */
        cmocka_unit_test(one_device),
        cmocka_unit_test(mirrored),
        cmocka_unit_test(multi_worker_mirrored),
        cmocka_unit_test(central_storage),
        cmocka_unit_test(a_scope_makes_a_strategy_current),
        cmocka_unit_test(a_strategy_is_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
