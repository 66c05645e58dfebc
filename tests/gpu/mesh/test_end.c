/* SPDX-License-Identifier: Apache-2.0
 * The end of a mesh for devices while its work waits on a device: abort, an error that the library
 * finds after the call, a device that fails, an abort that takes long or for ever. */
#include <string.h>

#include "common/base/clock.h"
#include "cuda_runtime_api.h"
#include "nccl.h"
#include "tests/gpu/mesh/placed_buffers.h"
#include "tests/gpu/standin/standin.h"

#define SHORT_US UINT64_C(50000)
#define LONG_US  UINT64_C(20000000)

static const struct world_layout two_and_one = {.name = "2 + 1", .replicas = {2, 1}};

static void open_connected(struct world *world, uint64_t timeout_us)
{
    world_open(world, &two_and_one);
    world->timeout_us = timeout_us;
    placed_connect_all(world);
}

/* All replicas sum, and the device of one does not come to it. */
static uint32_t held = 2;

static cadre_status sum_and_count(struct seat *seat)
{
    float value = 1;
    struct mesh_buffer buffer = placed_buffer(seat, MESH_F32, &value, sizeof value);
    SEAT_CHECK(seat, seat->ops->barrier(seat->mesh, seat->local, NULL, &seat->error) == CADRE_OK);
    if (seat->global == held) {
        standin_device_hold((int)held);
    }
    cadre_status status =
        seat->ops->all_reduce(seat->mesh, seat->local, MESH_SUM, &buffer, 1, NULL, &seat->error);
    atomic_fetch_add(&seat->world->counter, 1);
    if (status == CADRE_OK) {
        status = mesh_device_synchronize(seat->mesh, seat->local, &seat->error);
    }
    placed_buffer_drop(seat, &buffer);
    return status;
}

static bool all_settle(void *data)
{
    const struct world *world = data;
    return atomic_load(&((struct world *)(uintptr_t)world)->counter) == world->replica_count;
}

static void abort_it(struct world *world)
{
    assert_true(test_wait(all_settle, world, LONG_US));
    uint64_t begun_us = clock_monotonic_us();
    world->ops->abort(world->meshes[0], "the test says so");
    assert_true(clock_monotonic_us() - begun_us < LONG_US / 10);
}

static void run_aborted(struct world *world)
{
    struct seat seats[WORLD_REPLICAS_MAX];
    world_run(world, sum_and_count, NULL, seats, abort_it);
    for (uint32_t i = 0; i < world->replica_count; i++) {
        assert_error(seats[i].status, CADRE_ABORTED, &seats[i].error, "the test says so");
    }
    struct cadre_error error;
    void *raw;
    assert_int_equal(mesh_device_synchronize(world->meshes[1], 0, &error), CADRE_ABORTED);
    assert_int_equal(mesh_device_comm(world->meshes[0], 1, &raw, &error), CADRE_ABORTED);
}

static void test_abort(void **state)
{
    (void)state;
    struct world world;
    open_connected(&world, 0);
    run_aborted(&world);
    assert_true(mesh_device_await_idle(world.meshes[0], LONG_US));
    assert_false(mesh_device_await_idle(world.meshes[1], SHORT_US)); /* its device is held */
    /* Memory that is freed in the order of compute is not allocated by others before. */
    struct cadre_error error;
    struct device *device;
    assert_ok(device_open(2, &device, &error), &error);
    assert_int_equal(device->ops->stream_test(device->compute, &error), CADRE_PENDING);
    standin_device_release(2);
    assert_true(mesh_device_await_idle(world.meshes[1], LONG_US));
    world_close_meshes(&world);
    placed_connect_all(&world); /* and the next generation works */
    world_run_ok(&world, placed_sum_small, NULL);
    world_close(&world);
}

static void test_slow_abort(void **state)
{
    (void)state;
    struct world world;
    open_connected(&world, 0);
    standin_fail_from("ncclCommAbort", 1, -150);
    run_aborted(&world);
    standin_device_release(2);
    assert_true(mesh_device_await_idle(world.meshes[0], LONG_US));
    assert_true(mesh_device_await_idle(world.meshes[1], LONG_US));
    standin_heal();
    world_close(&world);
}

/* Last of all: it leaves a thread, and device 0 or 1 standing. */
static void test_stuck_abort(void **state)
{
    (void)state;
    struct world world;
    open_connected(&world, 0);
    standin_fail("ncclCommAbort", 1, -1);
    run_aborted(&world);
    standin_device_release(2);
    bool first = mesh_device_await_idle(world.meshes[0], SHORT_US);
    bool second = mesh_device_await_idle(world.meshes[1], SHORT_US);
    assert_false(first && second);
    world_close(&world); /* comes back */
    standin_heal();
}

static void test_deadline(void **state)
{
    (void)state;
    struct world world;
    struct seat seats[WORLD_REPLICAS_MAX];
    open_connected(&world, 400000);
    world_run(&world, sum_and_count, NULL, seats, NULL);
    for (uint32_t i = 0; i < world.replica_count; i++) {
        assert_error(seats[i].status, CADRE_DEADLINE_EXCEEDED, &seats[i].error,
            "the device of replica 2 (task of rank 1) did not come to a collective of its step "
            "within 400 ms");
    }
    standin_device_release(2);
    world_close(&world);
}

static void count_own(void *user, uint32_t rank, uint64_t waited_us)
{
    atomic_uint *stalls = user;
    atomic_fetch_add(stalls, waited_us > 0 ? 1 + 100 * rank : 0);
}

static bool has_stalled(void *user)
{
    return atomic_load((atomic_uint *)user) > 0;
}

static void abort_stalled(struct world *world)
{
    assert_true(test_wait(has_stalled, world->stalled_users[held == 2 ? 0 : 1], LONG_US));
    world->ops->abort(world->meshes[0], "the test says so");
}

/* A task whose devices wait for those of others reports that, with its own rank; the task that is
 * waited for does not, nor a task one of whose devices is. */
static void test_who_waits_says_so(void **state)
{
    (void)state;
    for (held = 1; held <= 2; held++) {
        struct world world;
        struct seat seats[WORLD_REPLICAS_MAX];
        world_open(&world, &two_and_one);
        atomic_uint stalls[2] = {0};
        world.stalled = count_own;
        world.stalled_users[0] = &stalls[0];
        world.stalled_users[1] = &stalls[1];
        placed_connect_all(&world);
        world_run(&world, sum_and_count, NULL, seats, abort_stalled);
        assert_int_equal(atomic_load(&stalls[0]), held == 2 ? 1 : 0);
        assert_int_equal(atomic_load(&stalls[1]), held == 2 ? 0 : 101);
        standin_device_release((int)held);
        world_close(&world);
    }
    held = 2;
}

/* One replica's library finds an error after the call: all receive it. */
static void test_asynchronous_error(void **state)
{
    (void)state;
    struct world world;
    struct seat seats[WORLD_REPLICAS_MAX];
    unsigned reported = 0;
    open_connected(&world, 0);
    standin_fail("ncclOperation", 1, ncclRemoteError);
    world_run(&world, placed_sum_small, NULL, seats, NULL);
    for (uint32_t i = 0; i < world.replica_count; i++) {
        assert_true(seats[i].status != CADRE_OK);
        reported += strstr(seats[i].error.text, "lost its work") != NULL ? 1 : 0;
    }
    assert_int_equal(reported, world.replica_count); /* with the one reason */
    standin_heal();
    assert_true(mesh_device_await_idle(world.meshes[0], LONG_US));
    assert_true(mesh_device_await_idle(world.meshes[1], LONG_US));
    world_close_meshes(&world);
    placed_connect_all(&world);
    world_run_ok(&world, placed_sum_small, NULL);
    world_close(&world);
}

/* The call itself fails. */
static void test_call_fails(void **state)
{
    (void)state;
    struct world world;
    struct seat seats[WORLD_REPLICAS_MAX];
    open_connected(&world, 0);
    standin_fail("ncclAllReduce", 1, ncclInternalError);
    world_run(&world, placed_sum_small, NULL, seats, NULL);
    for (uint32_t i = 0; i < world.replica_count; i++) {
        assert_true(seats[i].status != CADRE_OK && seats[i].status != CADRE_INVALID_ARGUMENT);
        assert_non_null(strstr(seats[i].error.text, "could not call NCCL"));
    }
    standin_heal();
    world_close(&world);
}

/* A copy of a mesh that is not connected. */
static cadre_status sum_without_copy(struct seat *seat)
{
    float value = 1;
    struct mesh_buffer buffer = placed_buffer(seat, MESH_F32, &value, sizeof value);
    SEAT_CHECK(seat, seat->ops->barrier(seat->mesh, seat->local, NULL, &seat->error) == CADRE_OK);
    if (seat->global == 0) {
        standin_fail("cudaMemcpyAsync", 1, cudaErrorUnknown);
    }
    SEAT_CHECK(seat, seat->ops->barrier(seat->mesh, seat->local, NULL, &seat->error) == CADRE_OK);
    cadre_status status =
        seat->ops->all_reduce(seat->mesh, seat->local, MESH_SUM, &buffer, 1, NULL, &seat->error);
    placed_buffer_drop(seat, &buffer);
    return status;
}

static void test_copy_fails(void **state)
{
    (void)state;
    struct world world;
    struct seat seats[WORLD_REPLICAS_MAX];
    world_open(&world, &two_and_one);
    world_form(&world);
    world_run_ok(&world, placed_sum_small, NULL);
    world_run(&world, sum_without_copy, NULL, seats, NULL);
    for (uint32_t i = 0; i < world.replica_count; i++) {
        assert_true(seats[i].status != CADRE_OK);
        assert_non_null(strstr(seats[i].error.text, "could not go through the host"));
    }
    standin_heal();
    world_close(&world);
}

#ifdef __SANITIZE_THREAD__
/* Of the thread that test_stuck_abort leaves. */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
    return "report_thread_leaks=0";
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_abort),
        cmocka_unit_test(test_slow_abort),
        cmocka_unit_test(test_deadline),
        cmocka_unit_test(test_who_waits_says_so),
        cmocka_unit_test(test_asynchronous_error),
        cmocka_unit_test(test_call_fails),
        cmocka_unit_test(test_copy_fails),
        cmocka_unit_test(test_stuck_abort),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
