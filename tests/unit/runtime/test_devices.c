/* SPDX-License-Identifier: Apache-2.0
 * Which devices strategies have: names that programs give, and the choice when they give none. */
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

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
    assert_non_null(strstr(error.text, "5 replicas were requested, and there are 4 GPUs"));
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

/* ---- where tensors are ---- */

static cadre_status where_merged(cadre_strategy *strategy, cadre_per_replica *const inputs[],
    cadre_per_replica *outputs[], void *user)
{
    (void)inputs;
    (void)user;
    cadre_tensor *made;
    CADRE_TRY(cadre_tensor_from_f32(1, &made));
    bool right = strcmp(cadre_tensor_device(made), HERE "CPU:0") == 0;
    cadre_status status =
        cadre_values_from_tensors(strategy, (cadre_tensor *const[]){made, made}, 2, &outputs[0]);
    cadre_tensor_release(made);
    return right ? status : cadre_fail(CADRE_INTERNAL, "not the CPU's");
}

/* One that it makes, a view of it, a copy, what a collective makes, and what a merge call made. */
static cadre_status make_tensors(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)user;
    const float values[2] = {1, 2};
    const int64_t dims[1] = {2};
    CADRE_TRY(cadre_tensor_from_data(CADRE_F32, 1, dims, values, &outputs[0]));
    CADRE_TRY(cadre_tensor_view_rows(outputs[0], 1, 1, &outputs[1]));
    CADRE_TRY(cadre_tensor_copy(outputs[0], &outputs[2]));
    CADRE_TRY(cadre_all_gather(replica, &outputs[0], 1, 0, NULL, &outputs[3]));
    return cadre_merge_call(replica, where_merged, NULL, NULL, 0, 1, &outputs[4]);
}

static void tensors_are_on_their_replicas_device(void **state)
{
    (void)state;
    enum { MADE = 5 };
    cadre_strategy *strategy;
    cadre_per_replica *outputs[MADE];
    cadre_tensor *total;
    const char *const names[] = {HERE "CPU:3", HERE "CPU:1"};
    assert_public_ok(cadre_strategy_mirrored_devices(names, 2, &strategy));
    assert_public_ok(cadre_run(strategy, make_tensors, NULL, NULL, MADE, outputs));
    for (uint32_t i = 0; i < MADE; i++) {
        for (uint32_t r = 0; r < 2; r++) {
            assert_string_equal(cadre_tensor_device(cadre_local_results(outputs[i], 0)[r]),
                i < MADE - 1 ? names[r] : HERE "CPU:0");
        }
    }
    assert_public_ok(cadre_reduce(strategy, CADRE_SUM, outputs[0], CADRE_AXIS_NONE, &total));
    assert_string_equal(cadre_tensor_device(total), HERE "CPU:0");
    cadre_tensor_release(total);
    assert_public_ok(cadre_tensor_from_f32(1, &total));
    cadre_strategy_release(strategy);
    assert_string_equal(cadre_tensor_device(total), HERE "CPU:0");
    assert_string_equal(cadre_tensor_device(NULL), "");
    cadre_tensor_release(total);
}

/* ---- all that there are: first of all, since what strategies have had stays ---- */

static void assert_process_has(cadre_device_set set, uint32_t count)
{
    const char *const *devices;
    uint32_t got;
    assert_public_ok(cadre_devices(set, &devices, &got));
    assert_int_equal(got, count);
    for (uint32_t i = 0; i < count; i++) {
        char name[CADRE_DEVICE_NAME_BYTES];
        snprintf(name, sizeof name, HERE "CPU:%u", i);
        assert_string_equal(devices[i], name);
    }
}

static void the_process_lists_its_devices(void **state)
{
    (void)state;
    const char *const *devices;
    const char *const *again;
    uint32_t count;
    const cadre_status bad = CADRE_INVALID_ARGUMENT;
    assert_public_error(cadre_devices(CADRE_PHYSICAL_DEVICES, &devices, &count),
        CADRE_FAILED_PRECONDITION, "before cadre_init");
    cadre_strategy_release(training_strategy(1)); /* initialises the library */
    assert_process_has(CADRE_PHYSICAL_DEVICES, 1);
    assert_process_has(CADRE_LOGICAL_DEVICES, 1);
    cadre_strategy_release(training_strategy(3));
    assert_process_has(CADRE_PHYSICAL_DEVICES, 1);
    assert_process_has(CADRE_LOGICAL_DEVICES, 3);
    cadre_strategy *strategy;
    assert_public_ok(
        cadre_strategy_central_storage((const char *const[]){"CPU:1"}, 1, "CPU:4", &strategy));
    cadre_strategy_release(strategy);
    assert_process_has(CADRE_LOGICAL_DEVICES, 5);
    assert_public_ok(cadre_devices(CADRE_LOGICAL_DEVICES, &devices, &count));
    assert_public_ok(cadre_devices(CADRE_LOGICAL_DEVICES, &again, &count));
    assert_ptr_equal(devices, again);
    assert_public_error(cadre_devices((cadre_device_set)2, &devices, &count), bad, "set 2");
    assert_public_error(cadre_devices(CADRE_LOGICAL_DEVICES, NULL, &count), bad, "'ret_devices'");
    assert_public_error(cadre_devices(CADRE_LOGICAL_DEVICES, &devices, NULL), bad, "'ret_count'");
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
        CADRE_INVALID_ARGUMENT, "list 2; there is no such list");
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
    const char *const *devices;
    uint32_t count = 0;
    CADRE_CHECK(cadre_devices(CADRE_LOGICAL_DEVICES, &devices, &count));
    CADRE_CHECK(cadre_strategy_mirrored(5, &strategies[0]));
    CADRE_CHECK(cadre_strategy_mirrored_devices(names, 3, &strategies[1]));
    CADRE_CHECK(cadre_strategy_central_storage(NULL, 0, NULL, &strategies[2]));
    bool right = count == 3 && strcmp(devices[2], HERE "CPU:2") == 0;
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

/* This program as `as`, with this setting and stderr. Returns its status. */
static int run_again(const char *as, const char *setting, int errors)
{
    char *const arguments[] = {(char *)(uintptr_t)as, (char *)(uintptr_t)as, NULL};
    char *const environment[] = {(char *)(uintptr_t)setting, (char[]){"CADRE_DEVICES=cpu"}, NULL};
    posix_spawn_file_actions_t actions;
    pid_t pid;
    int status;
    assert_int_equal(posix_spawn_file_actions_init(&actions), 0);
    assert_int_equal(posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO), 0);
    assert_int_equal(
        posix_spawn(&pid, "/proc/self/exe", &actions, NULL, arguments, environment), 0);
    posix_spawn_file_actions_destroy(&actions);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void the_number_that_was_asked_for_at_the_start_counts(void **state)
{
    (void)state;
    assert_int_equal(run_again("program", "CADRE_REPLICAS=3", STDERR_FILENO), 0);
}

/* ---- what is printed of them: to a terminal, once, when a strategy is made ---- */

static int teller(void)
{
    static const char *const names[] = {"CPU:1", "/cpu:0"};
    cadre_strategy *strategies[3];
    CADRE_CHECK(cadre_init(NULL, NULL));
    CADRE_CHECK(cadre_strategy_mirrored_devices(names, 2, &strategies[0]));
    CADRE_CHECK(cadre_strategy_central_storage(names, 2, "CPU:3", &strategies[1]));
    CADRE_CHECK(cadre_strategy_mirrored(11, &strategies[2]));
    CADRE_CHECK(cadre_run(strategies[2], training_nothing, NULL, NULL, 0, NULL));
    return 0;
}

/* All that was written to the other end, which is closed. */
static void read_all(int from, char *text, size_t size)
{
    size_t used = 0;
    ssize_t got;
    while (used + 1 < size && (got = read(from, text + used, size - 1 - used)) > 0) {
        used += (size_t)got;
    }
    text[used] = '\0';
    close(from);
}

static void a_terminal_is_reported_the_devices(void **state)
{
    (void)state;
    char printed[4096];
    int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(terminal >= 0);
    assert_int_equal(grantpt(terminal), 0);
    assert_int_equal(unlockpt(terminal), 0);
    int inside = open(ptsname(terminal), O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(inside >= 0);
    assert_int_equal(run_again("teller", "NO=1", inside), 0);
    close(inside);
    read_all(terminal, printed, sizeof printed);
    static const char *const lines[] = {
        "cadre: a mirrored strategy: its replicas here are on CPU:1, CPU:0\r\n",
        "cadre: a strategy with central storage: its replicas here are on CPU:1, CPU:0, its "
        "variables on CPU:3\r\n",
        "cadre: a mirrored strategy: its replicas here are on CPU:0, CPU:1, CPU:2, CPU:3, CPU:4, "
        "CPU:5, CPU:6, CPU:7 and 3 others\r\n"};
    const char *at = printed;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        const char *line = strstr(at, lines[i]);
        if (line == NULL) {
            fail_msg("'%s' is not in: %s", lines[i], at);
        }
        at = line + strlen(lines[i]);
    }
    assert_null(strstr(at, "its replicas here"));
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(run_again("teller", "NO=1", ends[1]), 0);
    close(ends[1]);
    read_all(ends[0], printed, sizeof printed);
    assert_null(strstr(printed, "its replicas here"));
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        return strcmp(argv[1], "teller") == 0 ? teller() : program();
    }
    setenv("CADRE_DEVICES", "cpu", 1); /* whatever this machine has */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_process_lists_its_devices),
        cmocka_unit_test(gpus_are_the_default_where_there_are_any),
        cmocka_unit_test(lists_of_devices_are_checked),
        cmocka_unit_test(each_replica_has_its_device),
        cmocka_unit_test(one_device_is_one_replica),
        cmocka_unit_test(mirrored_strategies_have_lists),
        cmocka_unit_test(tensors_are_on_their_replicas_device),
        cmocka_unit_test(variables_have_devices),
        cmocka_unit_test(central_storage_replicates_the_computation),
        cmocka_unit_test(the_number_that_was_asked_for_at_the_start_counts),
        cmocka_unit_test(a_terminal_is_reported_the_devices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
