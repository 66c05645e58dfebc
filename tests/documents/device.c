/* SPDX-License-Identifier: Apache-2.0
 * Devices by name, and which there are: cadre/device.h, cadre/gpu.h. */
#include <string.h>

#include "documents.h"

/* A name is taken apart: what it does not say is "" and -1. */
static void a_name_is_taken_apart(void **state)
{
    (void)state;
    cadre_device_spec spec;
    OK(cadre_device_parse("/job:worker/task:1/gpu:0", &spec));
    assert_string_equal(spec.job, "worker");
    assert_int_equal(spec.task, 1);
    assert_int_equal(spec.replica, -1);
    assert_string_equal(spec.type, "GPU");
    assert_int_equal(spec.index, 0);
    REFUSED(cadre_device_parse("gpu:many", &spec), CADRE_INVALID_ARGUMENT, "many");
}

/* Made whole: what it does not say another name does, or it is the processor of this task. */
static void a_name_is_made_whole(void **state)
{
    (void)state;
    char name[CADRE_DEVICE_NAME_BYTES];
    OK(cadre_device_canonical("gpu:1", NULL, name));
    assert_string_equal(name, "/job:localhost/replica:0/task:0/device:GPU:1");
    OK(cadre_device_canonical("gpu:1", "/job:worker/task:2", name));
    assert_string_equal(name, "/job:worker/replica:0/task:2/device:GPU:1");
}

/* The devices of this process: what there really is, and what strategies may name. */
static void devices_are_listed(void **state)
{
    (void)state;
    const char *const *devices;
    const char *reason;
    uint32_t count;
    cadre_strategy *strategy = training_strategy(3);
    OK(cadre_devices(CADRE_PHYSICAL_DEVICES, &devices, &count));
    assert_string_equal(devices[0], "/job:localhost/replica:0/task:0/device:CPU:0");
    uint32_t gpus = cadre_gpu_count(&reason);
    assert_int_equal(count, 1 + gpus);
    assert_true((gpus == 0) == (reason[0] != '\0')); /* why there is none */
    OK(cadre_devices(CADRE_LOGICAL_DEVICES, &devices, &count));
    assert_int_equal(count, 3 + gpus); /* the processor as three */
    assert_string_equal(devices[2], "/job:localhost/replica:0/task:0/device:CPU:2");
    cadre_strategy_release(strategy);
}

static cadre_status look(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    void *comm;
    (void)inputs;
    (void)outputs;
    assert_int_equal(cadre_replica_gpu(replica), -1);
    assert_null(cadre_replica_stream(replica));
    *(cadre_status *)user = cadre_replica_nccl_comm(replica, &comm);
    return CADRE_OK;
}

/* A replica on the processor has no GPU and no stream, and its job no communicator of NCCL: the
 * same program asks, and takes the other way. (With GPUs: deploy/examples/gpt.) */
static void a_replica_without_a_gpu(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(1);
    cadre_status status = CADRE_OK;
    on_each_replica(strategy, look, &status);
    assert_int_equal(status, CADRE_FAILED_PRECONDITION);
    cadre_strategy_release(strategy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_is_taken_apart),
        cmocka_unit_test(a_name_is_made_whole),
        cmocka_unit_test(devices_are_listed),
        cmocka_unit_test(a_replica_without_a_gpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
