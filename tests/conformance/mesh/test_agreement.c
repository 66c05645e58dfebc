/* SPDX-License-Identifier: Apache-2.0
 * Calls that do not match, or are wrong by themselves: INVALID_ARGUMENT on every replica of every
 * task, with the same sentence, and a mesh that works on. */
#include "tests/conformance/mesh/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"

/* What one replica calls. */
enum wrong {
    CALL_USUAL, /* all_reduce(sum) of 100 float32 */
    CALL_OTHER_OP,
    CALL_OTHER_DTYPE,
    CALL_OTHER_SIZE,
    CALL_LARGE,
    CALL_OTHER_LAYOUT,
    CALL_BARRIER,
    CALL_BROADCAST,
    CALL_OTHER_ROOT,
    CALL_GATHER,
    CALL_RAGGED,
    CALL_NULL,
    CALL_NO_SUCH_DTYPE,
    CALL_NO_SUCH_OP,
    CALL_NO_SUCH_ROOT,
    CALL_GATHER_TOO_MUCH
};

static float values_of_large[1 << 20];

static cadre_status call(struct seat *seat, enum wrong wrong)
{
    float values[128] = {0};
    size_t sizes[WORLD_REPLICAS_MAX];
    void *gathered = NULL;
    const struct mesh_ops *ops = seat->ops;
    struct mesh *mesh = seat->mesh;
    uint32_t local = seat->local;
    struct cadre_error *error = &seat->error;
    enum mesh_op op = wrong == CALL_OTHER_OP ? MESH_MAX : MESH_SUM;
    struct mesh_buffer buffers[2] = {{.data = values, .bytes = 400, .dtype = MESH_F32}};
    size_t count = 1;
    uint32_t root = wrong == CALL_OTHER_ROOT ? 1 : 0;
    switch (wrong) {
    case CALL_OTHER_DTYPE:
        buffers[0].dtype = MESH_I32;
        break;
    case CALL_OTHER_SIZE:
        buffers[0].bytes = 404;
        break;
    case CALL_LARGE:
        buffers[0] = (struct mesh_buffer){
            .data = values_of_large, .bytes = sizeof values_of_large, .dtype = MESH_F32};
        break;
    case CALL_OTHER_LAYOUT:
        buffers[0].bytes = 396;
        buffers[1] = (struct mesh_buffer){.data = values + 99, .bytes = 4, .dtype = MESH_F32};
        count = 2;
        break;
    case CALL_RAGGED:
        buffers[0].bytes = 399;
        break;
    case CALL_NULL:
        buffers[0].data = NULL;
        break;
    case CALL_NO_SUCH_DTYPE:
        buffers[0].dtype = (enum mesh_dtype)77;
        break;
    case CALL_NO_SUCH_OP:
        op = (enum mesh_op)9;
        break;
    case CALL_NO_SUCH_ROOT:
        root = 1000;
        break;
    case CALL_BARRIER:
        return ops->barrier(mesh, local, NULL, error);
    case CALL_GATHER:
        return mesh_gather_any(
            mesh, local, seat->world->replica_count, values, 8, &gathered, sizes, error);
    case CALL_GATHER_TOO_MUCH:
        return mesh_gather_any(mesh, local, seat->world->replica_count, values,
            MESH_GATHER_BYTES_MAX + 1, &gathered, sizes, error);
    default:
        break;
    }
    if (wrong == CALL_BROADCAST || wrong == CALL_OTHER_ROOT || wrong == CALL_NO_SUCH_ROOT) {
        return ops->broadcast(mesh, local, root, buffers, count, NULL, error);
    }
    return ops->all_reduce(mesh, local, op, buffers, count, NULL, error);
}

/* One replica calls `odd`, the others `even`. */
struct mix {
    enum wrong even;
    enum wrong odd;
    uint32_t odd_one;
    const char *part; /* of the sentence */
    const char *other_part;
};

static cadre_status call_mixed(struct seat *seat)
{
    const struct mix *mix = seat->data;
    return call(seat, seat->global == mix->odd_one ? mix->odd : mix->even);
}

static cadre_status sum_of_ones(struct seat *seat)
{
    double one[3] = {1.0, 1.0, 1.0};
    struct mesh_buffer buffer = {.data = one, .bytes = sizeof one, .dtype = MESH_F64};
    cadre_status status =
        seat->ops->all_reduce(seat->mesh, seat->local, MESH_SUM, &buffer, 1, NULL, &seat->error);
    SEAT_CHECK(seat, status != CADRE_OK || one[2] == (double)seat->world->replica_count);
    return status;
}

static void refuse(struct world *world, const struct mix *mix)
{
    struct seat seats[WORLD_REPLICAS_MAX];
    world_run(world, call_mixed, mix, seats, NULL);
    for (uint32_t i = 0; i < world->replica_count; i++) {
        assert_error(seats[i].status, CADRE_INVALID_ARGUMENT, &seats[i].error, mix->part);
        assert_error(seats[i].status, CADRE_INVALID_ARGUMENT, &seats[i].error, mix->other_part);
        assert_string_equal(seats[i].error.text, seats[0].error.text);
    }
    world_run_ok(world, sum_of_ones, NULL);
}

static void mismatches(struct world *world)
{
    static const struct mix mixes[] = {
        {CALL_USUAL, CALL_OTHER_OP, 0, "(sum,", "(max,"},
        {CALL_USUAL, CALL_OTHER_DTYPE, 0, "float32", "int32"},
        {CALL_USUAL, CALL_OTHER_SIZE, 0, "400 bytes", "404 bytes"},
        {CALL_USUAL, CALL_LARGE, 0, "400 bytes", "4194304 bytes"},
        {CALL_LARGE, CALL_USUAL, 0, "400 bytes", "4194304 bytes"},
        {CALL_USUAL, CALL_OTHER_LAYOUT, 0, "1 buffers", "2 buffers"},
        {CALL_USUAL, CALL_BARRIER, 0, "all_reduce", "barrier"},
        {CALL_BARRIER, CALL_USUAL, 0, "all_reduce", "barrier"},
        {CALL_USUAL, CALL_BROADCAST, 0, "all_reduce", "broadcast"},
        {CALL_BROADCAST, CALL_OTHER_ROOT, 0, "replica 0", "replica 1"},
        {CALL_GATHER, CALL_BARRIER, 0, "all_gather", "barrier"},
        {CALL_BROADCAST, CALL_GATHER, 0, "all_gather", "broadcast"},
    };
    if (world->replica_count == 1) {
        return;
    }
    world_form(world);
    for (size_t i = 0; i < CADRE_COUNT_OF(mixes); i++) {
        for (uint32_t odd = 0; odd < world->replica_count; odd += world->replica_count - 1) {
            struct mix mix = mixes[i];
            mix.odd_one = odd;
            refuse(world, &mix);
        }
    }
}

static void wrong_by_themselves(struct world *world)
{
    static const struct mix mixes[] = {
        {CALL_USUAL, CALL_RAGGED, 0, "399 bytes", "whole number of float32"},
        {CALL_USUAL, CALL_NULL, 0, "called all_reduce with", "NULL"},
        {CALL_USUAL, CALL_NO_SUCH_DTYPE, 0, "element type 77", "does not exist"},
        {CALL_USUAL, CALL_NO_SUCH_OP, 0, "operation 9", "does not exist"},
        {CALL_BROADCAST, CALL_NO_SUCH_ROOT, 0, "root 1000", "called broadcast"},
        {CALL_GATHER, CALL_GATHER_TOO_MUCH, 0, "the limit is", "called all_gather"},
    };
    world_form(world);
    for (size_t i = 0; i < CADRE_COUNT_OF(mixes); i++) {
        struct mix mix = mixes[i];
        char who[32];
        mix.odd_one = world->replica_count - 1;
        snprintf(who, sizeof who, "replica %u called", mix.odd_one);
        refuse(world, &mix);
        mix.other_part = who;
        refuse(world, &mix);
    }
}

static void not_formed_or_no_replica(struct world *world)
{
    struct cadre_error error;
    world->generation++;
    for (uint32_t task = 0; task < world->task_count; task++) {
        struct mesh_config config = world_config(world, task);
        assert_ok(world->ops->form_post(&config, &world->meshes[task], &error), &error);
        assert_error(world->ops->barrier(world->meshes[task], 0, NULL, &error),
            CADRE_FAILED_PRECONDITION, &error, "before form_test returned OK");
    }
    world_finish_forming(world);
    assert_error(world->ops->barrier(world->meshes[0], world->members[0].replicas, NULL, &error),
        CADRE_INVALID_ARGUMENT, &error, "local replica");
    world_run_ok(world, sum_of_ones, NULL);
}

static void test_mismatches(void **state)
{
    (void)state;
    world_each(mismatches, false);
}

static void test_wrong_by_themselves(void **state)
{
    (void)state;
    world_each(wrong_by_themselves, false);
}

static void test_not_formed_or_no_replica(void **state)
{
    (void)state;
    world_each(not_formed_or_no_replica, false);
}

/* form_post refuses what can never form. */
static void test_configurations(void **state)
{
    (void)state;
    struct cadre_error error;
    struct mesh *mesh = NULL;
    struct world world;
    world_open(&world, &(struct world_layout){.name = "configurations", .replicas = {1, 1}});
    struct mesh_config config = world_config(&world, 1);

    config.rank = 2;
    assert_error(world.ops->form_post(&config, &mesh, &error), CADRE_INVALID_ARGUMENT, &error,
        "rank 2 in a mesh of 2");
    config = world_config(&world, 1);
    config.member_count = 0;
    assert_error(
        world.ops->form_post(&config, &mesh, &error), CADRE_INVALID_ARGUMENT, &error, "0 tasks");
    config.member_count = MESH_MEMBERS_MAX + 1;
    assert_error(
        world.ops->form_post(&config, &mesh, &error), CADRE_INVALID_ARGUMENT, &error, "tasks");
    config = world_config(&world, 1);
    config.listener = NULL;
    assert_error(world.ops->form_post(&config, &mesh, &error), CADRE_INVALID_ARGUMENT, &error,
        "needs a listener");
    config = world_config(&world, 1);
    world.members[0].replicas = 0;
    assert_error(world.ops->form_post(&config, &mesh, &error), CADRE_INVALID_ARGUMENT, &error,
        "rank 0 has no replica");
    world.members[0].replicas = MESH_REPLICAS_MAX;
    assert_error(world.ops->form_post(&config, &mesh, &error), CADRE_RESOURCE_EXHAUSTED, &error,
        "replicas; at most");
    world.members[0].replicas = 1;
    static const char *const addresses[] = {"", "localhost:1", "127.0.0.1", "127.0.0.1:0",
        "127.0.0.1:65536", "1.2.3:4x", ":1", "[::1]"};
    for (size_t i = 0; i < CADRE_COUNT_OF(addresses); i++) {
        snprintf(world.members[0].address, sizeof world.members[0].address, "%s", addresses[i]);
        assert_error(world.ops->form_post(&config, &mesh, &error), CADRE_INVALID_ARGUMENT, &error,
            "the task of rank 0");
        assert_null(mesh);
    }
    /* 64 bytes without an end are cut, not followed. */
    memset(world.members[0].address, '1', sizeof world.members[0].address);
    assert_error(world.ops->form_post(&config, &mesh, &error), CADRE_INVALID_ARGUMENT, &error,
        "the task of rank 0");
    world_close(&world);
    world.ops->close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mismatches),
        cmocka_unit_test(test_wrong_by_themselves),
        cmocka_unit_test(test_not_formed_or_no_replica),
        cmocka_unit_test(test_configurations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
