/* SPDX-License-Identifier: Apache-2.0
 * One replica of several devices: cadre/logical_device.h. Tensors that are split over them:
 * deploy/examples/tour/logical_devices.c. */
#include <stdatomic.h>

#include "documents.h"

/* The four devices of a mesh [2, 2] as two replicas of two: each gets a row. */
static cadre_device_assignment *two_of_two(void)
{
    const cadre_topology mesh = {.rank = 2, .shape = {2, 2}};
    const cadre_assignment_options options = {
        .rank = 2, .computation_shape = {1, 2}, .num_replicas = 2};
    cadre_device_assignment *assignment;
    OK(cadre_device_assignment_build(&mesh, &options, &assignment));
    return assignment;
}

static void devices_are_assigned(void **state)
{
    (void)state;
    int32_t coordinates[CADRE_TOPOLOGY_RANK_MAX];
    cadre_device_assignment *assignment = two_of_two();
    OK(cadre_device_assignment_coordinates(assignment, 1, 0, coordinates));
    assert_int_equal(coordinates[0], 1);
    assert_int_equal(coordinates[1], 0);
    REFUSED(cadre_device_assignment_coordinates(assignment, 2, 0, coordinates),
        CADRE_INVALID_ARGUMENT, "");
    cadre_device_assignment_release(assignment);
}

struct work {
    atomic_uint devices; /* that have run */
    cadre_status nccl;
};

static cadre_status count_device(cadre_replica *replica, uint32_t logical_device, void *user)
{
    struct work *work = user;
    (void)replica;
    atomic_fetch_or(&work->devices, 1u << logical_device);
    return CADRE_OK;
}

static cadre_status step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    struct work *work = (struct work *)user + cadre_replica_id(replica);
    const int64_t dims[] = {2};
    void *comm;
    cadre_tensor *there;
    if (cadre_logical_devices(replica) != 2) {
        return cadre_fail(CADRE_INTERNAL, "a replica has two devices here");
    }
    /* a function on one of them, and on all at once: each has a thread */
    CADRE_TRY(cadre_logical_run(replica, 1, count_device, work));
    if (atomic_load(&work->devices) != 2) {
        return cadre_fail(CADRE_INTERNAL, "device 1 alone has run");
    }
    CADRE_TRY(cadre_logical_run_all(replica, count_device, work));
    /* memory there, and a copy in it: on processors that is the host's memory for all */
    CADRE_TRY(cadre_tensor_create_on_logical(replica, 1, CADRE_F32, 1, dims, &there));
    ((float *)cadre_tensor_data(there))[1] = 5;
    cadre_status status = cadre_tensor_copy_to_logical(replica, 0, there, &outputs[0]);
    cadre_tensor_release(there);
    /* streams and communicators are of GPUs */
    if (cadre_logical_stream(replica, 1) != NULL) {
        return cadre_fail(CADRE_INTERNAL, "a processor has a stream");
    }
    work->nccl = cadre_logical_nccl_comm(replica, 1, CADRE_LOGICAL_ACROSS_REPLICAS, &comm);
    return status;
}

static cadre_status name_device(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    char(*names)[CADRE_DEVICE_NAME_BYTES] = user;
    return cadre_logical_device_name(replica, 1, names[cadre_replica_id(replica)]);
}

/* The strategy's replicas have them in a step. */
static void replicas_run_on_their_devices(void **state)
{
    (void)state;
    struct work work[2] = {{.nccl = CADRE_OK}, {.nccl = CADRE_OK}};
    char names[2][CADRE_DEVICE_NAME_BYTES];
    cadre_device_assignment *assignment = two_of_two();
    cadre_strategy *strategy = training_strategy(2);
    cadre_per_replica *output;
    OK(cadre_strategy_set_device_assignment(strategy, assignment));
    cadre_device_assignment_release(assignment);
    on_each_replica(strategy, name_device, names);
    assert_string_equal(names[0], "/job:localhost/replica:0/task:0/device:CPU:1");
    assert_string_equal(names[1], "/job:localhost/replica:0/task:0/device:CPU:3");
    OK(cadre_run(strategy, step, work, NULL, 1, &output));
    assert_replicas(output, 0, "[0 5] [0 5]");
    for (int r = 0; r < 2; r++) {
        assert_int_equal(atomic_load(&work[r].devices), 3);
        assert_int_equal(work[r].nccl, CADRE_FAILED_PRECONDITION);
    }
    cadre_strategy_release(strategy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_are_assigned),
        cmocka_unit_test(replicas_run_on_their_devices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
