/* SPDX-License-Identifier: Apache-2.0
 * Which devices strategies have: names that programs give, and the choice when they give none. */
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "training.h"
#include "worker/library/runtime/devices/devices.h"

#define HERE "/job:localhost/replica:0/task:0/device:"

static const struct device_host host = {.job = "worker", .task = 2};

/* strategy_setup/seed_default_devices: all GPUs; else one replica, on the CPU. */
static void gpus_are_the_default_where_there_are_any(void **state)
{
    (void)state;
    struct device_list list;
    struct cadre_error error;
    const struct device_inventory four = {.gpus = 4};
    const struct device_inventory none = {.gpus = 0};
    assert_int_equal(devices_default(&four), 4);
    assert_int_equal(devices_default(&none), 1);
    assert_int_equal(devices_of_count(&four, &host, 3, &list, &error), CADRE_OK);
    assert_int_equal(list.count, 3);
    assert_string_equal(list.pointers[2], "/job:worker/replica:0/task:2/device:GPU:2");
    device_list_clear(&list);
    assert_int_equal(devices_of_count(&none, &host, 2, &list, &error), CADRE_OK);
    assert_string_equal(list.pointers[1], "/job:worker/replica:0/task:2/device:CPU:1");
    device_list_clear(&list);
    assert_int_equal(devices_of_count(&four, &host, 5, &list, &error), CADRE_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "5 replicas were asked for, and there are 4 GPUs"));
    device_list_clear(&list);
}

static void assert_names_refused(const struct device_inventory *inventory,
    const char *const names[], size_t count, cadre_status code, const char *part)
{
    struct device_list list;
    struct cadre_error error;
    assert_int_equal(devices_of_names(inventory, &host, "f", names, count, &list, &error), code);
    if (strstr(error.text, part) == NULL) {
        fail_msg("'%s' is not in: %s", part, error.text);
    }
    assert_null(list.names);
}

static void lists_of_devices_are_checked(void **state)
{
    (void)state;
    struct device_list list;
    struct cadre_error error;
    const struct device_inventory two = {.gpus = 2};
    const char *const good[] = {"/gpu:1", "CPU:7", "/job:worker/task:2/device:GPU:0", "cpu"};
    const char *const canonical[] = {"GPU:1", "CPU:7", "GPU:0", "CPU:0"};
    assert_int_equal(devices_of_names(&two, &host, "f", good, 4, &list, &error), CADRE_OK);
    for (int i = 0; i < 4; i++) {
        assert_non_null(strstr(list.pointers[i], canonical[i]));
        assert_memory_equal(list.pointers[i], "/job:worker/replica:0/task:2/device:", 36);
    }
    device_list_clear(&list);
    const cadre_status bad = CADRE_INVALID_ARGUMENT;
    const cadre_status state_of = CADRE_FAILED_PRECONDITION;
    const char *const remote[] = {"/job:worker/task:2/gpu:0", "/job:worker/task:3/gpu:0"};
    assert_names_refused(&two, good, 0, bad, "f was given an empty list");
    assert_names_refused(&two, NULL, 2, bad, "empty list");
    assert_names_refused(&two, (const char *const[]){"CPU:0", NULL}, 2, bad, "device 1");
    assert_names_refused(&two, (const char *const[]){"cpu:0", "/CPU:0"}, 2, bad, "twice");
    assert_names_refused(&two, (const char *const[]){"CPU:zero"}, 1, bad, "'CPU:zero'");
    assert_names_refused(&two, (const char *const[]){"TPU:0"}, 1, bad, "neither a CPU");
    assert_names_refused(&two, (const char *const[]){"CPU:256"}, 1, bad, "beyond CPU:255");
    assert_names_refused(&two, remote, 2, state_of, "of another task than this one");
    assert_names_refused(
        &two, (const char *const[]){"GPU:2"}, 1, state_of, "this process can use 2 GPUs");
    const char *many[257];
    for (int i = 0; i < 257; i++) {
        many[i] = "CPU:0";
    }
    assert_names_refused(&two, many, 257, bad, "at most 256");
}

static cadre_status name_device(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    const char **names = user;
    names[cadre_replica_local_id(replica)] = cadre_replica_device(replica);
    return CADRE_OK;
}

static void each_replica_has_its_device(void **state)
{
    (void)state;
    cadre_strategy_release(training_strategy(1)); /* initialises the library */
    cadre_strategy *strategy;
    const char *const *devices;
    const char *names[2];
    uint32_t count;
    assert_public_ok(
        cadre_strategy_mirrored_devices((const char *const[]){"CPU:3", "/cpu:1"}, 2, &strategy));
    assert_int_equal(cadre_strategy_num_replicas_in_sync(strategy), 2);
    assert_public_ok(cadre_strategy_devices(strategy, CADRE_WORKER_DEVICES, &devices, &count));
    assert_int_equal(count, 2);
    assert_string_equal(devices[0], HERE "CPU:3");
    assert_string_equal(devices[1], HERE "CPU:1");
    assert_public_ok(cadre_run(strategy, name_device, names, NULL, 0, NULL));
    assert_ptr_equal(names[0], devices[0]);
    assert_ptr_equal(names[1], devices[1]);
    cadre_strategy_release(strategy);
    assert_public_error(cadre_strategy_devices(strategy, CADRE_WORKER_DEVICES, &devices, &count),
        CADRE_FAILED_PRECONDITION, "after the strategy had ended");
    assert_public_error(cadre_strategy_devices(NULL, CADRE_WORKER_DEVICES, &devices, &count),
        CADRE_FAILED_PRECONDITION, "without a strategy");
    assert_string_equal(cadre_replica_device(NULL), "");
}

static void one_device_is_one_replica(void **state)
{
    (void)state;
    cadre_strategy *strategy;
    const char *const *devices;
    uint32_t count;
    assert_public_ok(cadre_strategy_one_device("cpu:0", &strategy));
    assert_int_equal(cadre_strategy_num_replicas_in_sync(strategy), 1);
    assert_public_ok(cadre_strategy_devices(strategy, CADRE_WORKER_DEVICES, &devices, &count));
    assert_string_equal(devices[0], HERE "CPU:0");
    cadre_strategy_release(strategy);
    assert_public_error(
        cadre_strategy_one_device(NULL, &strategy), CADRE_INVALID_ARGUMENT, "'device'");
    assert_null(strategy);
    assert_public_error(cadre_strategy_one_device("GPU:0", &strategy), CADRE_FAILED_PRECONDITION,
        "CADRE_DEVICES is cpu");
    assert_public_error(cadre_strategy_one_device("/job:worker/task:1/cpu:0", &strategy),
        CADRE_FAILED_PRECONDITION, "another task");
    assert_public_error(
        cadre_strategy_one_device("CPU:0", NULL), CADRE_INVALID_ARGUMENT, "'ret_strategy'");
}

static void mirrored_strategies_have_lists(void **state)
{
    (void)state;
    cadre_strategy *strategy;
    assert_public_error(cadre_strategy_mirrored_devices(NULL, 0, &strategy), CADRE_INVALID_ARGUMENT,
        "cadre_strategy_mirrored_devices was given an empty list");
    assert_public_error(
        cadre_strategy_mirrored_devices((const char *const[]){"CPU:0", "CPU:0"}, 2, &strategy),
        CADRE_INVALID_ARGUMENT, "twice, at 0 and 1");
    assert_null(strategy);
}

static void assert_devices(const cadre_strategy *strategy, cadre_device_list which, uint32_t count,
    const char *const names[])
{
    const char *const *devices;
    uint32_t got;
    assert_public_ok(cadre_strategy_devices(strategy, which, &devices, &got));
    assert_int_equal(got, count);
    for (uint32_t i = 0; i < count; i++) {
        assert_string_equal(devices[i], names[i]);
    }
}

static void variables_have_devices(void **state)
{
    (void)state;
    cadre_strategy *strategy;
    const char *const *devices;
    uint32_t count;
    const char *const two[] = {HERE "CPU:2", HERE "CPU:1"};
    assert_public_ok(cadre_strategy_mirrored_devices(two, 2, &strategy));
    assert_devices(strategy, CADRE_PARAMETER_DEVICES, 2, two);
    assert_public_error(cadre_strategy_devices(strategy, (cadre_device_list)2, &devices, &count),
        CADRE_INVALID_ARGUMENT, "list 2, which is none");
    cadre_strategy_release(strategy);
    assert_public_ok(cadre_strategy_central_storage(two, 2, "cpu:3", &strategy));
    assert_devices(strategy, CADRE_WORKER_DEVICES, 2, two);
    assert_devices(strategy, CADRE_PARAMETER_DEVICES, 1, (const char *const[]){HERE "CPU:3"});
    cadre_strategy_release(strategy);
}

static void central_storage_replicates_the_computation(void **state)
{
    (void)state;
    cadre_strategy *strategy;
    const char *const two[] = {"CPU:0", "CPU:1"};
    assert_public_ok(cadre_strategy_central_storage(two, 2, NULL, &strategy));
    assert_int_equal(cadre_strategy_num_replicas_in_sync(strategy), 2);
    cadre_strategy_release(strategy);
    assert_public_ok(cadre_strategy_central_storage(NULL, 0, "CPU:0", &strategy));
    assert_int_equal(cadre_strategy_num_replicas_in_sync(strategy), 1);
    cadre_strategy_release(strategy);
    assert_public_error(cadre_strategy_central_storage(two, 0, NULL, &strategy),
        CADRE_INVALID_ARGUMENT, "empty list");
    assert_public_error(cadre_strategy_central_storage(two, 2, "GPU:0", &strategy),
        CADRE_FAILED_PRECONDITION, "CADRE_DEVICES is cpu");
    assert_null(strategy);
}

/* ---- a program that was started with a number of replicas: this test, run again ---- */

static bool is_refused(cadre_status status, const char *part)
{
    return status == CADRE_FAILED_PRECONDITION && strstr(cadre_error_message(), part) != NULL;
}

static int program(void)
{
    static const char *const names[] = {"CPU:0", "CPU:1", "CPU:2"};
    cadre_strategy *strategies[3];
    cadre_strategy *none;
    CADRE_CHECK(cadre_init(NULL, NULL));
    CADRE_CHECK(cadre_strategy_mirrored(5, &strategies[0]));
    CADRE_CHECK(cadre_strategy_mirrored_devices(names, 3, &strategies[1]));
    CADRE_CHECK(cadre_strategy_central_storage(NULL, 0, NULL, &strategies[2]));
    bool right = true;
    for (int i = 0; i < 3; i++) {
        right = right && cadre_strategy_local_replicas(strategies[i]) == 3;
    }
    right = right &&
            is_refused(cadre_strategy_mirrored_devices(names, 2, &none),
                "2 devices, and the job was started with 3 replicas") &&
            is_refused(cadre_strategy_one_device("CPU:0", &none),
                "1 device, and the job was started with 3 replicas");
    return right ? 0 : 1;
}

static void the_number_that_was_asked_for_at_the_start_counts(void **state)
{
    (void)state;
    char *const arguments[] = {(char[]){"program"}, (char[]){"program"}, NULL};
    char *const environment[] = {(char[]){"CADRE_REPLICAS=3"}, NULL};
    pid_t pid;
    int status;
    assert_int_equal(posix_spawn(&pid, "/proc/self/exe", NULL, NULL, arguments, environment), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(int argc, char **argv)
{
    (void)argv;
    if (argc > 1) {
        return program();
    }
    setenv("CADRE_DEVICES", "cpu", 1); /* whatever this machine has */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gpus_are_the_default_where_there_are_any),
        cmocka_unit_test(lists_of_devices_are_checked),
        cmocka_unit_test(each_replica_has_its_device),
        cmocka_unit_test(one_device_is_one_replica),
        cmocka_unit_test(mirrored_strategies_have_lists),
        cmocka_unit_test(variables_have_devices),
        cmocka_unit_test(central_storage_replicates_the_computation),
        cmocka_unit_test(the_number_that_was_asked_for_at_the_start_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
