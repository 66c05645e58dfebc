/* SPDX-License-Identifier: Apache-2.0
 * Calls of replicas on devices: those that differ, replicas on the host among them, lists that are
 * packed, large data that are staged in pieces, types that go no other way. */
#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"
#include "tests/gpu/mesh/placed_buffers.h"
#include "tests/gpu/standin/standin.h"

static const struct world_layout two_and_one = {.name = "2 + 1", .replicas = {2, 1}};
static const struct world_layout two_hosts = {
    .name = "2 and 1 on 2 hosts", .replicas = {2, 1}, .hosts = {0, 1}};

/* --- calls that differ --- */

enum odd { OTHER_OP, OTHER_TYPE, OTHER_SIZE, ON_HOST, BARRIER, CAST, GATHER, MIXED, FOREIGN, LIST };

struct difference {
    enum odd odd;
    uint32_t who;
    const char *part;
    const char *other_part;
};

static cadre_status call_odd(struct seat *seat, enum odd odd, struct mesh_buffer buffer)
{
    struct mesh *mesh = seat->mesh;
    uint32_t local = seat->local;
    float on_host[32] = {0};
    struct mesh_buffer both[2] = {buffer, {.data = on_host, .bytes = 32, .dtype = MESH_F32}};
    struct mesh_note there = {.on = buffer.on};
    switch (odd) {
    case OTHER_OP:
        return seat->ops->all_reduce(mesh, local, MESH_MAX, &buffer, 1, NULL, &seat->error);
    case OTHER_TYPE:
        buffer.dtype = MESH_I32;
        return seat->ops->all_reduce(mesh, local, MESH_SUM, &buffer, 1, NULL, &seat->error);
    case OTHER_SIZE:
        buffer.bytes = 60;
        return seat->ops->all_reduce(mesh, local, MESH_SUM, &buffer, 1, NULL, &seat->error);
    case ON_HOST:
        both[1].bytes = 64;
        return seat->ops->all_reduce(mesh, local, MESH_SUM, &both[1], 1, NULL, &seat->error);
    case BARRIER:
        return seat->ops->barrier(mesh, local, NULL, &seat->error);
    case CAST:
        return seat->ops->broadcast(mesh, local, 0, &buffer, 1, NULL, &seat->error);
    case GATHER:
        return seat->ops->all_gather(
            mesh, local, buffer.data, 16, NULL, buffer.data, &there, &seat->error);
    case MIXED:
        return seat->ops->all_reduce(mesh, local, MESH_SUM, both, 2, NULL, &seat->error);
    case FOREIGN:
        CADRE_ASSERT(device_open(9, &buffer.on, &seat->error) == CADRE_OK);
        return seat->ops->all_reduce(mesh, local, MESH_SUM, &buffer, 1, NULL, &seat->error);
    default:
        both[1] = buffer;
        both[0].bytes = 32;
        both[1].bytes = 32;
        both[1].data = (uint8_t *)buffer.data + 32;
        return seat->ops->all_reduce(mesh, local, MESH_SUM, both, 2, NULL, &seat->error);
    }
}

static cadre_status differ(struct seat *seat)
{
    const struct difference *difference = seat->data;
    float values[16] = {1, 2, 3};
    float after[16];
    struct mesh_buffer buffer = placed_buffer(seat, MESH_F32, values, sizeof values);
    cadre_status status = seat->global == difference->who
                              ? call_odd(seat, difference->odd, buffer)
                              : seat->ops->all_reduce(seat->mesh, seat->local, MESH_SUM, &buffer, 1,
                                    NULL, &seat->error);
    placed_buffer_read(seat, &buffer, after);
    placed_buffer_drop(seat, &buffer);
    SEAT_CHECK(seat, status != CADRE_INVALID_ARGUMENT || memcmp(values, after, sizeof after) == 0);
    return status;
}

static void refuse(struct world *world, struct difference difference)
{
    struct seat seats[WORLD_REPLICAS_MAX];
    for (difference.who = 0; difference.who < world->replica_count; difference.who++) {
        world_run(world, differ, &difference, seats, NULL);
        for (uint32_t i = 0; i < world->replica_count; i++) {
            assert_error(seats[i].status, CADRE_INVALID_ARGUMENT, &seats[i].error, difference.part);
            assert_error(
                seats[i].status, CADRE_INVALID_ARGUMENT, &seats[i].error, difference.other_part);
            assert_string_equal(seats[i].error.text, seats[0].error.text);
        }
        world_run_ok(world, placed_sum_small, NULL);
    }
}

static void refuse_all(struct world *world, bool connected)
{
    static const struct difference differences[] = {
        {OTHER_OP, 0, "(sum,", "(max,"},
        {OTHER_TYPE, 0, "float32", "int32"},
        {OTHER_SIZE, 0, "64 bytes", "60 bytes"},
        {BARRIER, 0, "barrier", "all_reduce"},
        {CAST, 0, "broadcast", "all_reduce"},
        {GATHER, 0, "all_gather", "all_reduce"},
        {MIXED, 0, "called all_reduce with buffers in more than one memory", "replica"},
        {FOREIGN, 0, "called all_reduce with buffers on a device that is not", "replica"},
        {LIST, 0, "1 buffers", "2 buffers"},
    };
    for (size_t i = 0; i < CADRE_COUNT_OF(differences); i++) {
        refuse(world, differences[i]);
    }
    if (connected) {
        refuse(world, (struct difference){ON_HOST, 0, ", on a device", "all_reduce"});
    }
}

static void test_differences(void **state)
{
    (void)state;
    struct world world;
    world_open(&world, &two_hosts);
    placed_connect_all(&world);
    refuse_all(&world, true);
    world_close_meshes(&world);
    world_form(&world);
    refuse_all(&world, false);
    world_close(&world);
}

/* --- replicas of the host among others --- */

/* Elements repeat after so many, which divides no piece: looking at all of them is cheap. */
#define PERIOD 4099u

struct meeting {
    size_t elements;
    size_t count;
    enum mesh_dtype dtype;
};

static cadre_status meet(struct seat *seat)
{
    const struct meeting *meeting = seat->data;
    size_t size = mesh_dtype_bytes(meeting->dtype);
    size_t bytes = meeting->elements * size;
    struct mesh_buffer *buffers = calloc(meeting->count, sizeof *buffers);
    uint8_t *memory = malloc(bytes);
    CADRE_ASSERT(buffers != NULL && memory != NULL);
    for (size_t i = 0; i < meeting->count; i++) {
        for (size_t k = 0; k < meeting->elements && k < PERIOD; k++) {
            reference_draw(meeting->dtype, i, seat->global, k, memory + k * size);
        }
        for (size_t at = PERIOD * size; at < bytes; at += PERIOD * size) {
            size_t left = bytes - at;
            memcpy(memory + at, memory, left < PERIOD * size ? left : PERIOD * size);
        }
        buffers[i] = placed_buffer(seat, meeting->dtype, memory, bytes);
    }
    cadre_status status = seat->ops->all_reduce(
        seat->mesh, seat->local, MESH_SUM, buffers, meeting->count, NULL, &seat->error);
    if (status == CADRE_OK) {
        status = mesh_device_synchronize(seat->mesh, seat->local, &seat->error);
    }
    bool same = true;
    size_t step = meeting->elements < 500 ? 1 : meeting->elements / 250;
    for (size_t i = 0; status == CADRE_OK && i < meeting->count; i++) {
        placed_buffer_read(seat, &buffers[i], memory);
        for (size_t k = 0; k < meeting->elements; k += step) {
            uint8_t wanted[8];
            reference_reduce(MESH_SUM, meeting->dtype, i, &seat->world->seats, k % PERIOD, wanted);
            same = same && memcmp(memory + k * size, wanted, size) == 0;
        }
    }
    for (size_t i = 0; i < meeting->count; i++) {
        placed_buffer_drop(seat, &buffers[i]);
    }
    free(buffers);
    free(memory);
    SEAT_CHECK(seat, same);
    return status;
}

/* Over 8 MiB: pieces, of which some end within a vector. */
static void test_meeting(void **state)
{
    (void)state;
    static const struct meeting meetings[] = {
        {77, 3, MESH_F32}, {1000, 30, MESH_BF16}, {800001, 3, MESH_F32}, {4300001, 1, MESH_I16}};
    struct world world;
    world_open(&world, &two_hosts);
    for (uint32_t on_host = 0; on_host < 4; on_host++) { /* 3: none */
        placed_default_devices();
        placed_devices[on_host] = PLACED_ON_HOST;
        world_form(&world);
        for (size_t i = 0; i < CADRE_COUNT_OF(meetings); i++) {
            if (i < 2 || (i == 2 && on_host == 3) || on_host == 0) {
                world_run_ok(&world, meet, &meetings[i]);
            }
        }
        world_close_meshes(&world);
    }
    for (unsigned i = 0; i < 3; i++) { /* and all: nothing is in pieces */
        placed_devices[i] = PLACED_ON_HOST;
    }
    world_form(&world);
    world_run_ok(&world, meet, &meetings[2]);
    world_close(&world);
    placed_default_devices();
}

/* Rows: an all_gather and a reduce_scatter of more than a piece. */
static cadre_status rows(struct seat *seat)
{
    uint32_t replicas = seat->world->replica_count;
    size_t sizes[WORLD_REPLICAS_MAX];
    size_t elements = 900001;
    size_t total = 0;
    for (uint32_t i = 0; i < replicas; i++) {
        sizes[i] = i == 1 ? 5 : 4000000 + 3 * i;
        total += sizes[i];
    }
    size_t most = elements * replicas * sizeof(int32_t);
    uint8_t *memory = malloc(most > total ? most : total);
    CADRE_ASSERT(memory != NULL);
    memset(memory, (int)seat->global + 1, most > total ? most : total);
    struct mesh_buffer own = placed_buffer(seat, MESH_U8, memory, sizes[seat->global]);
    struct mesh_buffer all = placed_buffer(seat, MESH_U8, memory, total);
    struct mesh_note note = {.on = placed_device(seat)};
    cadre_status status = seat->ops->all_gather(
        seat->mesh, seat->local, own.data, own.bytes, sizes, all.data, &note, &seat->error);
    bool same = true;
    if (status == CADRE_OK) {
        status = mesh_device_synchronize(seat->mesh, seat->local, &seat->error);
        placed_buffer_read(seat, &all, memory);
    }
    for (size_t i = 0, at = 0; status == CADRE_OK && i < replicas; at += sizes[i++]) {
        for (size_t k = 0; k < sizes[i]; k += 1 + sizes[i] / 1000) {
            same = same && memory[at + k] == i + 1;
        }
        same = same && memory[at + sizes[i] - 1] == i + 1;
    }
    for (size_t i = 0; i < elements * replicas; i++) {
        int32_t value = (int32_t)(i + seat->global);
        memcpy(memory + i * sizeof value, &value, sizeof value);
    }
    struct mesh_buffer whole = placed_buffer(seat, MESH_I32, memory, most);
    struct mesh_buffer part = placed_buffer(seat, MESH_I32, memory, elements * sizeof(int32_t));
    part.from = whole.data;
    if (status == CADRE_OK) {
        status =
            seat->ops->reduce_scatter(seat->mesh, seat->local, MESH_SUM, &part, NULL, &seat->error);
    }
    if (status == CADRE_OK) {
        status = mesh_device_synchronize(seat->mesh, seat->local, &seat->error);
        placed_buffer_read(seat, &part, memory);
    }
    for (size_t i = 0; status == CADRE_OK && i < elements; i++) {
        int32_t value;
        memcpy(&value, memory + i * sizeof value, sizeof value);
        size_t index = seat->global * elements + i;
        same = same && value == (int32_t)(index * replicas + replicas * (replicas - 1) / 2);
    }
    placed_buffer_drop(seat, &own);
    placed_buffer_drop(seat, &all);
    placed_buffer_drop(seat, &whole);
    placed_buffer_drop(seat, &part);
    free(memory);
    SEAT_CHECK(seat, same);
    return status;
}

static void test_rows(void **state)
{
    (void)state;
    struct world world;
    world_open(&world, &two_and_one);
    placed_devices[1] = PLACED_ON_HOST;
    world_form(&world);
    world_run_ok(&world, rows, NULL);
    world_close_meshes(&world);
    placed_default_devices();
    placed_connect_all(&world);
    world_run_ok(&world, rows, NULL);
    world_close(&world);
}

/* --- packs --- */

#define SMALL_ONES 40u

/* 40 small vectors of two types and one large one: three calls of the library, not 41. */
static cadre_status packed(struct seat *seat)
{
    bool broadcast = *(const bool *)seat->data;
    struct mesh_buffer buffers[SMALL_ONES + 1];
    struct mesh_buffer results[SMALL_ONES + 1];
    static const size_t large = 100000;
    float *values = malloc(large * sizeof *values);
    CADRE_ASSERT(values != NULL);
    for (size_t i = 0; i <= SMALL_ONES; i++) {
        size_t count = i == SMALL_ONES ? large : i * 7;
        enum mesh_dtype dtype = i % 2 == 0 ? MESH_F32 : MESH_I32;
        for (size_t k = 0; k < count; k++) {
            int32_t whole = (int32_t)(k % 1000 + i + seat->global);
            float number = (float)whole;
            memcpy(&values[k], dtype == MESH_F32 ? (void *)&number : (void *)&whole, sizeof number);
        }
        buffers[i] = placed_buffer(seat, dtype, values, count * sizeof *values);
        results[i] = buffers[i];
        if (i % 3 == 0) { /* out of place */
            results[i] = placed_buffer(seat, dtype, values, count * sizeof *values);
            results[i].from = buffers[i].data;
        }
    }
    cadre_status status = broadcast ? seat->ops->broadcast(seat->mesh, seat->local, 1, results,
                                          SMALL_ONES + 1, NULL, &seat->error)
                                    : seat->ops->all_reduce(seat->mesh, seat->local, MESH_SUM,
                                          results, SMALL_ONES + 1, NULL, &seat->error);
    if (status == CADRE_OK) {
        status = mesh_device_synchronize(seat->mesh, seat->local, &seat->error);
    }
    bool same = true;
    for (size_t i = 0; status == CADRE_OK && i <= SMALL_ONES; i++) {
        placed_buffer_read(seat, &results[i], values);
        for (size_t k = 0; k < results[i].bytes / sizeof *values; k++) {
            int32_t first = (int32_t)(k % 1000 + i);
            int32_t wanted = broadcast ? first + 1 : 3 * first + 3;
            float number = (float)wanted;
            same = same && memcmp(&values[k],
                               results[i].dtype == MESH_F32 ? (void *)&number : (void *)&wanted,
                               sizeof number) == 0;
        }
    }
    for (size_t i = 0; i <= SMALL_ONES; i++) {
        placed_buffer_drop(seat, &buffers[i]);
        if (i % 3 == 0) {
            placed_buffer_drop(seat, &results[i]);
        }
    }
    free(values);
    SEAT_CHECK(seat, same);
    return status;
}

static void test_packs(void **state)
{
    (void)state;
    struct world world;
    world_open(&world, &two_and_one);
    placed_connect_all(&world);
    uint64_t before = standin_calls("ncclAllReduce");
    bool broadcast = false;
    world_run_ok(&world, packed, &broadcast);
    assert_int_equal(standin_calls("ncclAllReduce") - before, 3 * world.replica_count);
    before = standin_calls("ncclBroadcast");
    broadcast = true;
    world_run_ok(&world, packed, &broadcast);
    assert_int_equal(standin_calls("ncclBroadcast") - before, 2 * world.replica_count);
    world_close(&world);
}

/* --- no replica leaves before all of its task have launched --- */

#define LAUNCHES 60u

static cadre_status launch(struct seat *seat)
{
    const uint64_t before = *(const uint64_t *)seat->data;
    float value = 1;
    struct mesh_buffer buffer = placed_buffer(seat, MESH_F32, &value, sizeof value);
    cadre_status status = CADRE_OK;
    bool all = true;
    for (uint64_t i = 1; i <= LAUNCHES && status == CADRE_OK; i++) {
        status = seat->ops->all_reduce(
            seat->mesh, seat->local, MESH_MAX, &buffer, 1, NULL, &seat->error);
        all = all && standin_calls("ncclAllReduce") - before >= i * seat->world->replica_count;
    }
    if (status == CADRE_OK) {
        status = mesh_device_synchronize(seat->mesh, seat->local, &seat->error);
    }
    placed_buffer_drop(seat, &buffer);
    SEAT_CHECK(seat, all);
    return status;
}

static void test_launches(void **state)
{
    (void)state;
    static const struct world_layout two = {.name = "one task of 2", .replicas = {2}};
    struct world world;
    world_open(&world, &two);
    placed_connect_all(&world);
    uint64_t before = standin_calls("ncclAllReduce");
    world_run_ok(&world, launch, &before);
    world_close(&world);
}

/* What the library does not reduce goes through the host, the bits of which it has. */
static void test_narrow_types(void **state)
{
    (void)state;
    static const struct meeting meetings[] = {{2001, 2, MESH_I16}, {4300001, 1, MESH_I16}};
    struct world world;
    world_open(&world, &two_and_one);
    placed_connect_all(&world);
    for (size_t i = 0; i < CADRE_COUNT_OF(meetings); i++) {
        world_run_ok(&world, meet, &meetings[i]);
    }
    world_run_ok(&world, placed_sum_small, NULL);
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_differences),
        cmocka_unit_test(test_meeting),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_packs),
        cmocka_unit_test(test_launches),
        cmocka_unit_test(test_narrow_types),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
