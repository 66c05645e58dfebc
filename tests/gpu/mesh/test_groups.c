/* SPDX-License-Identifier: Apache-2.0
 * Communicators of further devices: replicas of two GPUs each, across them and within; what refuses
 * them, and their end with the mesh's own. */
#include <string.h>

#include "cuda_runtime_api.h"
#include "nccl.h"
#include "tests/gpu/mesh/placed_buffers.h"
#include "tests/gpu/standin/standin.h"

#define EACH    2
#define LONG_US UINT64_C(20000000)

static const struct world_layout two_and_one = {.name = "2 + 1", .replicas = {2, 1}};

/* Replica r has devices 2 r and 2 r + 1, unless a test sets another second one. */
static struct device *devices[WORLD_REPLICAS_MAX][EACH];
static const uint32_t first_of[] = {0, 2}; /* replica of each task */

static void open_pairs(struct world *world)
{
    struct cadre_error error;
    for (uint32_t r = 0; r < 3; r++) {
        placed_devices[r] = EACH * r;
        for (uint32_t i = 0; i < EACH; i++) {
            assert_ok(device_open(EACH * r + i, &devices[r][i], &error), &error);
        }
    }
    world_open(world, &two_and_one);
    placed_connect_all(world);
}

static struct mesh_device_group group_of(
    const struct seat *seat, enum mesh_device_group_kind kind, uint32_t number)
{
    return (struct mesh_device_group){
        .kind = kind, .number = number, .each = EACH, .devices = devices[first_of[seat->task]]};
}

static cadre_status form(struct seat *seat, enum mesh_device_group_kind kind)
{
    struct mesh_device_group group = group_of(seat, kind, 1);
    struct mesh_note note = {.key = kind + 1};
    SEAT_CHECK(seat, !mesh_device_formed(seat->mesh, seat->local, &group));
    return mesh_device_form(seat->mesh, seat->local, &group, &note, &seat->error);
}

static cadre_status form_across(struct seat *seat)
{
    return form(seat, MESH_DEVICE_ACROSS);
}

static cadre_status form_within(struct seat *seat)
{
    return form(seat, MESH_DEVICE_WITHIN);
}

static cadre_status handle_of(
    struct seat *seat, enum mesh_device_group_kind kind, uint32_t device, void **ret_comm)
{
    struct mesh_device_group group = group_of(seat, kind, device);
    return mesh_device_group_comm(seat->mesh, seat->local, &group, device, ret_comm, &seat->error);
}

/* --- sums --- */

struct number {
    struct device *device;
    void *at;
};

static cadre_status put(struct seat *seat, uint32_t device, float value, struct number *ret_number)
{
    struct device *on = devices[seat->global][device];
    *ret_number = (struct number){.device = on};
    CADRE_TRY(
        on->ops->memory_get(on->index, sizeof value, on->compute, &ret_number->at, &seat->error));
    return on->ops->copy(ret_number->at, &value, sizeof value, on->compute, &seat->error);
}

/* Takes it back. */
static cadre_status take(struct seat *seat, struct number *number, float wanted)
{
    float value = 0;
    struct device *on = number->device;
    CADRE_TRY(device_copy(&value, NULL, number->at, on, sizeof value, &seat->error));
    on->ops->memory_give(on->index, number->at, on->compute);
    SEAT_CHECK(seat, value == wanted);
    return CADRE_OK;
}

static bool sum(void *comm, const struct number *number)
{
    ncclResult_t result =
        ncclAllReduce(number->at, number->at, 1, ncclFloat, ncclSum, comm, number->device->compute);
    return result == ncclSuccess || result == ncclInProgress;
}

/* Of each replica's second device, then of both devices of each. */
static cadre_status sum_with_handles(struct seat *seat)
{
    void *across;
    void *within[EACH];
    struct number numbers[EACH];
    CADRE_TRY(form_across(seat));
    CADRE_TRY(form_within(seat));
    CADRE_TRY(handle_of(seat, MESH_DEVICE_ACROSS, 1, &across));
    for (uint32_t i = 0; i < EACH; i++) {
        CADRE_TRY(handle_of(seat, MESH_DEVICE_WITHIN, i, &within[i]));
        CADRE_TRY(put(seat, i, (float)(10 * seat->global + i), &numbers[i]));
    }
    SEAT_CHECK(seat, sum(across, &numbers[1]));
    SEAT_CHECK(seat, ncclGroupStart() == ncclSuccess);
    SEAT_CHECK(seat, sum(within[0], &numbers[0]) && sum(within[1], &numbers[1]));
    ncclResult_t ended = ncclGroupEnd();
    SEAT_CHECK(seat, ended == ncclSuccess || ended == ncclInProgress);
    CADRE_TRY(mesh_device_synchronize_all(
        seat->mesh, seat->local, &devices[seat->global][1], 1, &seat->error));
    float wanted = (float)(10 * seat->global) + 33; /* 1 + 11 + 21 of the second devices */
    CADRE_TRY(take(seat, &numbers[0], wanted));
    return take(seat, &numbers[1], wanted);
}

static cadre_status sum_both_ways(struct seat *seat)
{
    cadre_status status = sum_with_handles(seat);
    struct cadre_error error;
    (void)mesh_device_comm_returned(seat->mesh, seat->local, true, &error);
    return status;
}

static void test_sums(void **state)
{
    (void)state;
    struct world world;
    open_pairs(&world);
    for (unsigned i = 0; i < 3; i++) { /* generations */
        uint64_t destroyed = standin_calls("ncclCommDestroy");
        world_run_ok(&world, sum_both_ways, NULL);
        world_run_ok(&world, placed_sum_small, NULL);
        world_close_meshes(&world);
        assert_int_equal(standin_calls("ncclCommDestroy") - destroyed, 3 + 3 + 6);
        placed_connect_all(&world);
    }
    world_close(&world);
}

/* The replicas' own needs no forming. */
static cadre_status own_is_there(struct seat *seat)
{
    void *own = NULL;
    void *other = NULL;
    struct mesh_device_group group = group_of(seat, MESH_DEVICE_ACROSS, 0);
    SEAT_CHECK(seat, mesh_device_formed(seat->mesh, seat->local, &group));
    CADRE_TRY(handle_of(seat, MESH_DEVICE_ACROSS, 0, &own));
    CADRE_TRY(mesh_device_comm(seat->mesh, seat->local, &other, &seat->error));
    SEAT_CHECK(seat, own == other && own != NULL);
    CADRE_TRY(
        mesh_device_comm_returned(seat->mesh, seat->local, false, &seat->error)); /* all is well */
    SEAT_CHECK(seat, handle_of(seat, MESH_DEVICE_WITHIN, 1, &own) == CADRE_FAILED_PRECONDITION);
    SEAT_CHECK(seat, strstr(seat->error.text, "it was not formed") != NULL && own == NULL);
    return CADRE_OK;
}

static void test_own(void **state)
{
    (void)state;
    struct world world;
    open_pairs(&world);
    world_run_ok(&world, own_is_there, NULL);
    world_close(&world);
}

/* --- where there is none --- */

struct refusal {
    enum mesh_device_group_kind kind;
    const char *part;
};

/* All have the reason, from then on. */
static cadre_status be_refused(struct seat *seat)
{
    const struct refusal *refusal = seat->data;
    void *comm;
    struct mesh_device_group group = group_of(seat, refusal->kind, 1);
    CADRE_TRY(form(seat, refusal->kind));
    SEAT_CHECK(seat, mesh_device_formed(seat->mesh, seat->local, &group));
    SEAT_CHECK(seat, handle_of(seat, refusal->kind, 1, &comm) == CADRE_FAILED_PRECONDITION);
    SEAT_CHECK(seat, strstr(seat->error.text, refusal->part) != NULL);
    return CADRE_OK;
}

/* The rest works, and ends in order. */
static void refuse(struct world *world, enum mesh_device_group_kind kind, const char *part)
{
    const struct refusal refusal = {.kind = kind, .part = part};
    world_run_ok(world, be_refused, &refusal);
    standin_heal();
    world_run_ok(world, placed_sum_small, NULL);
    uint64_t destroyed = standin_calls("ncclCommDestroy");
    world_close_meshes(world);
    assert_int_equal(standin_calls("ncclCommDestroy") - destroyed, 3);
    world_close(world);
}

static void test_refused(void **state)
{
    (void)state;
    struct world world;
    for (unsigned i = 0; i < 2; i++) {
        enum mesh_device_group_kind kind = i == 0 ? MESH_DEVICE_ACROSS : MESH_DEVICE_WITHIN;
        open_pairs(&world);
        standin_fail("ncclForm", 2, ncclSystemError);
        refuse(&world, kind, "NCCL refused replica");
        open_pairs(&world);
        standin_fail("ncclGetUniqueId", 1, ncclSystemError);
        refuse(&world, kind, "no name for a communicator");
    }
    open_pairs(&world);
    devices[2][1] = devices[1][1];
    refuse(&world, MESH_DEVICE_ACROSS, "replicas 1 and 2 use the same GPU");
}

static cadre_status form_differently(struct seat *seat)
{
    return seat->global == 1 ? form_within(seat) : form_across(seat);
}

static void test_differs(void **state)
{
    (void)state;
    struct world world;
    struct seat seats[WORLD_REPLICAS_MAX];
    open_pairs(&world);
    world_run(&world, form_differently, NULL, seats, NULL);
    for (uint32_t i = 0; i < world.replica_count; i++) {
        assert_int_equal(seats[i].status, CADRE_INVALID_ARGUMENT);
    }
    world_run_ok(&world, sum_both_ways, NULL); /* nothing was left of it */
    world_close(&world);
}

/* --- the end --- */

static atomic_uint begun; /* replicas whose part before the abort is over */

static cadre_status form_counted(struct seat *seat)
{
    atomic_fetch_add(&begun, 1);
    return form_across(seat);
}

static uint64_t ranks_wanted; /* that have begun to join, at least */

static bool all_have_begun(void *data)
{
    struct world *world = data;
    return atomic_load(&begun) == world->replica_count &&
           standin_calls("ncclCommInitRankConfig") >= ranks_wanted;
}

static void abort_it(struct world *world)
{
    assert_true(test_wait(all_have_begun, world, LONG_US));
    world->ops->abort(world->meshes[1], "the test says so");
}

/* While the library forms them, which takes for ever. */
static void test_abort_while_forming(void **state)
{
    (void)state;
    struct world world;
    struct seat seats[WORLD_REPLICAS_MAX];
    open_pairs(&world);
    standin_fail_from("ncclInProgress", 1, 1 << 30);
    atomic_store(&begun, 0);
    ranks_wanted = standin_calls("ncclCommInitRankConfig") + world.replica_count;
    world_run(&world, form_counted, NULL, seats, abort_it);
    for (uint32_t i = 0; i < world.replica_count; i++) {
        assert_error(seats[i].status, CADRE_ABORTED, &seats[i].error, "the test says so");
    }
    standin_heal();
    assert_true(mesh_device_await_idle(world.meshes[0], LONG_US));
    assert_true(mesh_device_await_idle(world.meshes[1], LONG_US));
    world_close_meshes(&world);
    placed_connect_all(&world);
    world_run_ok(&world, sum_both_ways, NULL);
    world_close(&world);
}

static uint64_t aborted; /* communicators, before the test */

static bool all_have_looked(void *data)
{
    struct world *world = data;
    return atomic_load(&world->counter) == world->replica_count;
}

static bool others_are_ahead(void *data)
{
    struct world *world = data;
    return atomic_load(&begun) == 2 && atomic_load(&world->counter) == 1;
}

/* The second devices of all but replica 2 wait in a sum that it never comes to. The handles are
 * good until the last replica has returned its own. Replica 1 is the last to get its handle: the
 * abort must not come before that, although replica 2 has looked already. */
static cadre_status stand(struct seat *seat)
{
    void *comm;
    struct number number;
    CADRE_TRY(form_across(seat));
    SEAT_CHECK(seat, seat->global != 1 || test_wait(others_are_ahead, seat->world, LONG_US));
    CADRE_TRY(handle_of(seat, MESH_DEVICE_ACROSS, 1, &comm));
    CADRE_TRY(put(seat, 1, 1, &number));
    if (seat->global != 2) {
        SEAT_CHECK(seat, sum(comm, &number));
    }
    atomic_fetch_add(&begun, 1);
    cadre_status status = seat->global == 2 ? CADRE_OK
                                            : mesh_device_synchronize_all(seat->mesh, seat->local,
                                                  &devices[seat->global][1], 1, &seat->error);
    if (status == CADRE_ABORTED) { /* the program may still be inside of a call */
        SEAT_CHECK(seat, standin_calls("ncclCommAbort") == aborted);
        SEAT_CHECK(seat, sum(comm, &number));
    }
    atomic_fetch_add(&seat->world->counter, 1);
    SEAT_CHECK(seat, test_wait(all_have_looked, seat->world, LONG_US));
    struct cadre_error error;
    cadre_status ended = mesh_device_comm_returned(seat->mesh, seat->local, false, &error);
    SEAT_CHECK(seat, ended == status || seat->global == 2);
    number.device->ops->memory_give(number.device->index, number.at, number.device->compute);
    return status;
}

static void test_abort_of_a_call(void **state)
{
    (void)state;
    struct world world;
    struct seat seats[WORLD_REPLICAS_MAX];
    open_pairs(&world);
    aborted = standin_calls("ncclCommAbort");
    atomic_store(&begun, 0);
    world_run(&world, stand, NULL, seats, abort_it);
    for (uint32_t i = 0; i < 2; i++) {
        assert_error(seats[i].status, CADRE_ABORTED, &seats[i].error, "the test says so");
        struct cadre_error error;
        assert_int_equal(
            device_wait_stream(devices[i][1], devices[i][1]->compute, LONG_US, NULL, NULL, &error),
            CADRE_OK); /* the communicator that it waited in was ended */
    }
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_own),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_differs),
        cmocka_unit_test(test_abort_while_forming),
        cmocka_unit_test(test_abort_of_a_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
