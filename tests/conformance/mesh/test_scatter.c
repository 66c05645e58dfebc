/* SPDX-License-Identifier: Apache-2.0
 * Reduce-scatter, and all-gather of known sizes: against the scalar reference, small and over
 * several chunks, and the calls that are refused. */
#include "tests/conformance/mesh/world.h"

#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/arena/arena.h"

struct scatter {
    enum mesh_op op;
    enum mesh_dtype dtype;
    size_t elements; /* of one part */
    bool arena;
};

static void *get(bool arena, size_t bytes)
{
    return arena ? arena_get(bytes + 64) : malloc(bytes + 64);
}

static void give(bool arena, void *memory, size_t bytes)
{
    if (arena) {
        arena_give(memory, bytes + 64);
    } else {
        free(memory);
    }
}

/* Both ends, and a sample between. */
static size_t step_of(size_t elements)
{
    return elements < 200 ? 1 : elements / 100;
}

static bool is_reduced(const struct seat *seat, const struct scatter *scatter, const uint8_t *part)
{
    size_t size = mesh_dtype_bytes(scatter->dtype);
    size_t step = step_of(scatter->elements);
    for (size_t i = 0; i < scatter->elements; i += step) {
        uint8_t wanted[8];
        size_t at = i + step < scatter->elements ? i : scatter->elements - 1;
        reference_reduce(scatter->op, scatter->dtype, 9, &seat->world->seats,
            seat->global * scatter->elements + at, wanted);
        if (!world_same(seat->world, scatter->op, scatter->dtype, part + at * size, wanted)) {
            return false;
        }
    }
    return true;
}

static cadre_status scatter_once(struct seat *seat)
{
    const struct scatter *scatter = seat->data;
    size_t size = mesh_dtype_bytes(scatter->dtype);
    size_t bytes = scatter->elements * size;
    size_t all = bytes * seat->world->replica_count;
    uint8_t *whole = get(scatter->arena, all);
    uint8_t *part = get(scatter->arena, bytes);
    SEAT_CHECK(seat, whole != NULL && part != NULL);
    for (size_t i = 0; i < scatter->elements * seat->world->replica_count; i++) {
        reference_draw(scatter->dtype, 9, seat->global, i, whole + i * size);
    }
    struct mesh_buffer buffer = {
        .data = part, .bytes = bytes, .dtype = scatter->dtype, .from = whole};
    cadre_status status = seat->ops->reduce_scatter(
        seat->mesh, seat->local, scatter->op, &buffer, NULL, &seat->error);
    bool good = status != CADRE_OK || is_reduced(seat, scatter, part);
    uint8_t first[8] = {0};
    if (scatter->elements > 0) {
        reference_draw(scatter->dtype, 9, seat->global, 0, first);
        good = good && memcmp(first, whole, size) == 0;
    }
    give(scatter->arena, whole, all);
    give(scatter->arena, part, bytes);
    SEAT_CHECK(seat, good);
    return status;
}

static void scatters(struct world *world)
{
    static const struct scatter scatters[] = {
        {MESH_SUM, MESH_F32, 0, false},
        {MESH_SUM, MESH_F32, 1, false},
        {MESH_SUM, MESH_F32, 3, false},
        {MESH_MAX, MESH_F16, 33, false},
        {MESH_SUM, MESH_BF16, 5001, false},
        {MESH_PROD, MESH_I8, 4097, false},
        {MESH_SUM, MESH_F64, WORLD_LARGE(90001), false},
        {MESH_SUM, MESH_F32, WORLD_LARGE(150001), true},
        {MESH_MIN, MESH_F16, WORLD_LARGE(70001), true},
    };
    world_form(world);
    for (size_t i = 0; i < CADRE_COUNT_OF(scatters); i++) {
        world_run_ok(world, scatter_once, &scatters[i]);
    }
}

struct gather {
    size_t base;
    bool even; /* all give the same */
    bool arena;
};

static size_t gather_bytes(const struct gather *gather, uint32_t replica)
{
    return gather->even ? gather->base : (replica % 3 == 1 ? 0 : gather->base * (replica + 1) + 1);
}

static uint8_t pattern(size_t index, uint32_t replica)
{
    return (uint8_t)(index * 5 + (index >> 8) * 3 + replica * 17);
}

static cadre_status gather_once(struct seat *seat)
{
    const struct gather *gather = seat->data;
    size_t sizes[WORLD_REPLICAS_MAX];
    size_t total = 0;
    for (uint32_t i = 0; i < seat->world->replica_count; i++) {
        sizes[i] = gather_bytes(gather, i);
        total += sizes[i];
    }
    size_t bytes = sizes[seat->global];
    uint8_t *own = get(gather->arena, bytes);
    uint8_t *into = get(gather->arena, total);
    SEAT_CHECK(seat, own != NULL && into != NULL);
    for (size_t i = 0; i < bytes; i++) {
        own[i] = pattern(i, seat->global);
    }
    cadre_status status = seat->ops->all_gather(
        seat->mesh, seat->local, own, bytes, gather->even ? NULL : sizes, into, NULL, &seat->error);
    const uint8_t *at = into;
    bool same = true;
    for (uint32_t replica = 0; status == CADRE_OK && replica < seat->world->replica_count;
         replica++) {
        for (size_t i = 0; i < sizes[replica]; i++) {
            same = same && at[i] == pattern(i, replica);
        }
        at += sizes[replica];
    }
    give(gather->arena, own, bytes);
    give(gather->arena, into, total);
    SEAT_CHECK(seat, same);
    return status;
}

static void gathers(struct world *world)
{
    static const struct gather gathers[] = {{0, true, false}, {1, true, false}, {7, false, false},
        {5000, true, false}, {5000, false, false}, {WORLD_LARGE(150001), true, false},
        {WORLD_LARGE(150001), false, false}, {WORLD_LARGE(90007), true, true},
        {WORLD_LARGE(90007), false, true}};
    world_form(world);
    for (size_t i = 0; i < CADRE_COUNT_OF(gathers); i++) {
        world_run_ok(world, gather_once, &gathers[i]);
    }
}

/* Replica 0 has a wrong size for the last one. */
static cadre_status misjudge(struct seat *seat)
{
    size_t sizes[WORLD_REPLICAS_MAX] = {0};
    uint8_t own[8] = {0};
    uint8_t into[WORLD_REPLICAS_MAX * 8];
    uint32_t last = seat->world->replica_count - 1;
    sizes[last] = seat->global == 0 ? 7 : 8;
    return seat->ops->all_gather(seat->mesh, seat->local, own, seat->global == last ? 8 : 0, sizes,
        into, NULL, &seat->error);
}

/* Its own list has another size. */
static cadre_status contradict(struct seat *seat)
{
    size_t sizes[WORLD_REPLICAS_MAX] = {0};
    uint8_t own[8] = {0};
    return seat->ops->all_gather(
        seat->mesh, seat->local, own, seat->global == 0 ? 8 : 0, sizes, own, NULL, &seat->error);
}

static cadre_status scatter_nothing(struct seat *seat)
{
    float part[4] = {0};
    struct mesh_buffer buffer = {.data = part, .bytes = sizeof part, .dtype = MESH_F32};
    return seat->ops->reduce_scatter(
        seat->mesh, seat->local, MESH_SUM, &buffer, NULL, &seat->error);
}

static void refuse(struct world *world, world_body *body, const char *part)
{
    struct seat seats[WORLD_REPLICAS_MAX];
    world_run(world, body, NULL, seats, NULL);
    for (uint32_t i = 0; i < world->replica_count; i++) {
        assert_error(seats[i].status, CADRE_INVALID_ARGUMENT, &seats[i].error, part);
        assert_string_equal(seats[i].error.text, seats[0].error.text);
    }
    world_run_ok(world, world_sum_of_ones, NULL);
}

static void refusals(struct world *world)
{
    world_form(world);
    if (world->replica_count > 1) {
        refuse(world, misjudge, "all_gather");
    }
    refuse(world, contradict, "replica 0 called all_gather with 8 bytes where its own list");
    refuse(world, scatter_nothing, "replica 0 called reduce_scatter with a vector at NULL");
}

#define EACH_LAYOUT(name)                                                                          \
    static void test_##name(void **state)                                                          \
    {                                                                                              \
        (void)state;                                                                               \
        world_each(name, false);                                                                   \
    }

EACH_LAYOUT(scatters)
EACH_LAYOUT(gathers)
EACH_LAYOUT(refusals)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scatters),
        cmocka_unit_test(test_gathers),
        cmocka_unit_test(test_refusals),
    };
    struct cadre_error error;
    return arena_open(&error) != CADRE_OK ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
