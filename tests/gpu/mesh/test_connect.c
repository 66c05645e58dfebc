/* SPDX-License-Identifier: Apache-2.0
 * How devices become one communicator, or do not: the same reason everywhere, and a mesh that works
 * on through the host. */
#include <string.h>

#include "nccl.h"
#include "tests/gpu/mesh/placed_buffers.h"
#include "tests/gpu/standin/standin.h"

static const struct world_layout two_and_one = {.name = "2 + 1", .replicas = {2, 1}};

/* Forms and connects, which must not be possible for a reason that has both parts; then sums. */
static void refuse(const char *part, const char *other_part)
{
    struct world world;
    world_open(&world, &two_and_one);
    world_form(&world);
    world_run_ok(&world, placed_connect, NULL);
    for (uint32_t task = 0; task < world.task_count; task++) {
        const char *reason = mesh_device_reason(world.meshes[task]);
        if (strstr(reason, part) == NULL || strstr(reason, other_part) == NULL) {
            fail_msg("\"%s\" lacks \"%s\" or \"%s\"", reason, part, other_part);
        }
        assert_string_equal(reason, mesh_device_reason(world.meshes[0]));
    }
    void *raw;
    struct cadre_error error;
    assert_error(mesh_device_comm(world.meshes[0], 0, &raw, &error), CADRE_FAILED_PRECONDITION,
        &error, part);
    standin_heal();
    world_run_ok(&world, placed_sum_small, NULL);
    world_close(&world);
}

static void test_refused(void **state)
{
    (void)state;
    standin_fail("ncclCommInitRankConfig", 2, ncclInternalError);
    refuse("task of rank", "this rank was to be refused");
    standin_fail("ncclForm", 3, ncclSystemError);
    refuse("task of rank", "NCCL refused replica");
}

static void test_no_id(void **state)
{
    (void)state;
    standin_fail("ncclGetUniqueId", 1, ncclSystemError);
    refuse("task of rank 0: NCCL made no id", "");
}

static void test_same_device(void **state)
{
    (void)state;
    placed_devices[2] = 1;
    refuse("replicas 1 and 2 use the same GPU", "(");
    placed_devices[2] = PLACED_ON_HOST;
    refuse("replica 2 is not on a GPU", "");
    placed_default_devices();
}

static cadre_status connect_briefly(struct seat *seat)
{
    return mesh_device_connect(seat->mesh, seat->local, 200000, &seat->error);
}

static void test_deadline(void **state)
{
    (void)state;
    struct world world;
    standin_fail_from("ncclInProgress", 1, 1 << 30);
    world_open(&world, &two_and_one);
    world_form(&world);
    world_run_ok(&world, connect_briefly, NULL);
    for (uint32_t task = 0; task < world.task_count; task++) {
        assert_non_null(strstr(mesh_device_reason(world.meshes[task]), "it was not ready after"));
    }
    standin_heal();
    world_run_ok(&world, placed_sum_small, NULL);
    world_close(&world);
}

/* Calls go on in the library for a while. */
static void test_pending(void **state)
{
    (void)state;
    struct world world;
    standin_fail_from("ncclInProgress", 1, 5);
    world_open(&world, &two_and_one);
    placed_connect_all(&world);
    for (unsigned i = 0; i < 5; i++) {
        world_run_ok(&world, placed_sum_small, NULL);
    }
    standin_heal();
    world_close(&world);
}

static void test_generations(void **state)
{
    (void)state;
    struct world world;
    world_open(&world, &two_and_one);
    for (unsigned i = 0; i < 5; i++) {
        placed_connect_all(&world);
        world_run_ok(&world, placed_sum_small, NULL);
        void *raw = NULL;
        struct cadre_error error;
        assert_ok(mesh_device_comm(world.meshes[1], 0, &raw, &error), &error);
        assert_non_null(raw);
        if (i % 2 == 1) { /* some end badly */
            world.ops->abort(world.meshes[0], "the test says so");
        }
        world_close_meshes(&world);
    }
    assert_true(standin_calls("ncclCommDestroy") >= 6); /* the even ones ended in order */
    world_close(&world);
}

/* No task waits for a replica that never comes to connect. */
static cadre_status all_but_one(struct seat *seat)
{
    return seat->global == 1 ? CADRE_OK : connect_briefly(seat);
}

static void test_missing(void **state)
{
    (void)state;
    struct world world;
    struct seat seats[WORLD_REPLICAS_MAX];
    world_open(&world, &two_and_one);
    world_form(&world);
    world_run(&world, all_but_one, NULL, seats, NULL);
    assert_error(seats[0].status, CADRE_DEADLINE_EXCEEDED, &seats[0].error, "did not come");
    assert_error(seats[2].status, CADRE_DEADLINE_EXCEEDED, &seats[2].error, "");
    world_close(&world);
}

static void test_offer(void **state)
{
    (void)state;
    struct device *devices[2];
    struct cadre_error error;
    const char *reason;
    assert_ok(device_open(0, &devices[0], &error), &error);
    assert_ok(device_open(1, &devices[1], &error), &error);
    uint64_t word = mesh_device_offer(devices, 2, &reason);
    assert_true(word != 0);
    assert_string_equal(reason, "");
    assert_true(word == mesh_device_offer(devices, 1, &reason));
    devices[1] = devices[0];
    assert_true(mesh_device_offer(devices, 2, &reason) == 0);
    assert_string_equal(reason, "two replicas of this task are on one device");
    devices[1] = NULL;
    assert_true(mesh_device_offer(devices, 2, &reason) == 0);
    assert_string_equal(reason, "a replica of this task is on the host");
    assert_true(mesh_device_offer(devices, 0, &reason) == 0);
}

/* The calls of a mesh of the host. */
static void test_other_mesh(void **state)
{
    (void)state;
    struct cadre_error error;
    struct mesh mesh = {.ops = &mesh_host_ops};
    void *raw;
    assert_int_equal(mesh_device_synchronize(&mesh, 0, &error), CADRE_OK);
    assert_true(mesh_device_await_idle(&mesh, 0));
    assert_string_equal(mesh_device_reason(&mesh), "");
    assert_int_equal(mesh_device_comm(&mesh, 0, &raw, &error), CADRE_FAILED_PRECONDITION);
    assert_int_equal(mesh_device_connect(&mesh, 0, 1, &error), CADRE_INVALID_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_no_id),
        cmocka_unit_test(test_same_device),
        cmocka_unit_test(test_deadline),
        cmocka_unit_test(test_pending),
        cmocka_unit_test(test_generations),
        cmocka_unit_test(test_missing),
        cmocka_unit_test(test_offer),
        cmocka_unit_test(test_other_mesh),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
