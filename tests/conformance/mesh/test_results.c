/* SPDX-License-Identifier: Apache-2.0
 * The results of collectives: the same bits everywhere, in every split into tasks, against a scalar
 * reference. */
#include "tests/conformance/mesh/world.h"

#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"
#include "common/pure/prng.h"

#define PIECES_MAX 6

/* A list of buffers. `skew` moves every address away from its alignment. */
struct list {
    enum mesh_op op;
    size_t count;
    size_t skew;
    struct {
        enum mesh_dtype dtype;
        size_t elements;
    } pieces[PIECES_MAX];
};

static uint8_t *make_buffers(
    const struct seat *seat, const struct list *list, struct mesh_buffer buffers[PIECES_MAX])
{
    size_t total = 0;
    for (size_t i = 0; i < list->count; i++) {
        total += list->pieces[i].elements * mesh_dtype_bytes(list->pieces[i].dtype) + list->skew;
    }
    uint8_t *memory = malloc(total + 1);
    uint8_t *at = memory;
    for (size_t i = 0; memory != NULL && i < list->count; i++) {
        enum mesh_dtype dtype = list->pieces[i].dtype;
        size_t size = mesh_dtype_bytes(dtype);
        at += list->skew;
        buffers[i] = (struct mesh_buffer){
            .data = at, .bytes = list->pieces[i].elements * size, .dtype = dtype};
        for (size_t k = 0; k < list->pieces[i].elements; k++) {
            reference_draw(dtype, i, seat->global, k, at + k * size);
        }
        at += buffers[i].bytes;
    }
    return memory;
}

/* All elements of small buffers, a sample of large ones, always with both ends. */
static size_t step_of(size_t elements)
{
    return elements < 400 ? 1 : elements / 200;
}

static cadre_status check_reduced(
    struct seat *seat, const struct list *list, const struct mesh_buffer *buffers)
{
    for (size_t i = 0; i < list->count; i++) {
        enum mesh_dtype dtype = list->pieces[i].dtype;
        size_t size = mesh_dtype_bytes(dtype);
        size_t elements = list->pieces[i].elements;
        for (size_t k = 0; k < elements; k += step_of(elements)) {
            uint8_t wanted[8];
            size_t index = k + step_of(elements) < elements ? k : elements - 1;
            reference_reduce(list->op, dtype, i, &seat->world->seats, index, wanted);
            const uint8_t *got = (const uint8_t *)buffers[i].data + index * size;
            SEAT_CHECK(seat, world_same(seat->world, list->op, dtype, got, wanted));
        }
    }
    return CADRE_OK;
}

static cadre_status reduce_list(struct seat *seat)
{
    const struct list *list = seat->data;
    struct mesh_buffer buffers[PIECES_MAX];
    uint8_t *memory = make_buffers(seat, list, buffers);
    SEAT_CHECK(seat, memory != NULL);
    cadre_status status = seat->ops->all_reduce(
        seat->mesh, seat->local, list->op, buffers, list->count, NULL, &seat->error);
    if (status == CADRE_OK) {
        status = check_reduced(seat, list, buffers);
    }
    free(memory);
    return status;
}

static void types_and_operations(struct world *world)
{
    static const size_t sizes[] = {1, 33, 4500};
    world_form(world);
    for (unsigned dtype = MESH_F64; dtype <= MESH_U8; dtype++) {
        for (unsigned op = MESH_SUM; op <= MESH_MAX; op++) {
            for (size_t i = 0; i < CADRE_COUNT_OF(sizes); i++) {
                if (world_peer.few && i != (dtype + op) % CADRE_COUNT_OF(sizes)) {
                    continue; /* all of them, but not with each other */
                }
                struct list list = {.op = (enum mesh_op)op, .count = 1};
                list.pieces[0].dtype = (enum mesh_dtype)dtype;
                list.pieces[0].elements = sizes[i];
                world_run_ok(world, reduce_list, &list);
            }
        }
    }
}

static void large(struct world *world)
{
    struct list list = {.op = MESH_SUM, .count = 1};
    list.pieces[0].dtype = MESH_F32;
    list.pieces[0].elements = WORLD_LARGE(600001); /* over a chunk, and an odd number */
    world_form(world);
    world_run_ok(world, reduce_list, &list);
}

static void lists(struct world *world)
{
    static const struct list list = {
        .op = MESH_SUM,
        .count = 6,
        .skew = 3,
        .pieces = {{MESH_U8, 7}, {MESH_F32, 0}, {MESH_F32, 1001}, {MESH_I8, 3}, {MESH_BF16, 5},
            {MESH_F64, 999}},
    };
    static const struct list long_list = {
        .op = MESH_MAX,
        .count = 5,
        .skew = 1,
        .pieces = {{MESH_I8, WORLD_LARGE(300003)}, {MESH_F64, WORLD_LARGE(170001)}, {MESH_F16, 11},
            {MESH_I64, 1}, {MESH_F32, WORLD_LARGE(200007)}},
    };
    static const struct list empty = {.op = MESH_SUM, .count = 0};
    static const struct list nothing = {.op = MESH_PROD, .count = 1, .pieces = {{MESH_F32, 0}}};
    world_form(world);
    world_run_ok(world, reduce_list, &list);
    world_run_ok(world, reduce_list, &empty);
    world_run_ok(world, reduce_list, &nothing);
    world_run_ok(world, reduce_list, &long_list);
}

/* Byte `index` of what replica `replica` has: cheap, and without a short period. */
static uint8_t pattern(size_t index, uint32_t replica)
{
    return (uint8_t)(index * 7 + (index >> 8) * 3 + replica * 13);
}

struct cast {
    uint32_t root;
    size_t bytes;
};

static cadre_status broadcast_once(struct seat *seat)
{
    const struct cast *cast = seat->data;
    uint8_t *memory = malloc(cast->bytes + 4);
    SEAT_CHECK(seat, memory != NULL);
    for (size_t i = 0; i < cast->bytes + 4; i++) {
        memory[i] = pattern(i, seat->global);
    }
    struct mesh_buffer buffers[] = {
        {.data = memory, .bytes = cast->bytes / 2, .dtype = MESH_U8},
        {.data = memory + cast->bytes / 2,
            .bytes = cast->bytes - cast->bytes / 2,
            .dtype = MESH_I8},
    };
    cadre_status status =
        seat->ops->broadcast(seat->mesh, seat->local, cast->root, buffers, 2, NULL, &seat->error);
    bool same = true;
    for (size_t i = 0; status == CADRE_OK && i < cast->bytes + 4; i++) {
        uint32_t from = i < cast->bytes ? cast->root : seat->global;
        same = same && memory[i] == pattern(i, from);
    }
    free(memory);
    SEAT_CHECK(seat, same);
    return status;
}

static void broadcasts(struct world *world)
{
    static const size_t sizes[] = {0, 1, 1000, WORLD_LARGE(50001)};
    world_form(world);
    for (size_t i = 0; i < CADRE_COUNT_OF(sizes); i++) {
        for (uint32_t root = 0; root < world->replica_count; root++) {
            struct cast cast = {.root = root, .bytes = sizes[i]};
            world_run_ok(world, broadcast_once, &cast);
        }
    }
    /* Over a chunk, from the middle. */
    struct cast large_cast = {.root = world->replica_count / 2, .bytes = WORLD_LARGE(2500001)};
    world_run_ok(world, broadcast_once, &large_cast);
}

/* The bytes that replica `replica` gives to an all_gather of `base`: some give none. */
static size_t gather_bytes(size_t base, uint32_t replica)
{
    return replica % 3 == 1 ? 0 : base * replica + replica;
}

static cadre_status gather_once(struct seat *seat)
{
    size_t base = *(const size_t *)seat->data;
    size_t bytes = gather_bytes(base, seat->global);
    size_t sizes[WORLD_REPLICAS_MAX];
    void *gathered = NULL;
    uint8_t *own = bytes > 0 ? malloc(bytes) : NULL;
    for (size_t i = 0; i < bytes; i++) {
        own[i] = pattern(i, seat->global);
    }
    cadre_status status = mesh_gather_any(seat->mesh, seat->local, seat->world->replica_count, own,
        bytes, &gathered, sizes, &seat->error);
    const uint8_t *at = gathered;
    bool same = status != CADRE_OK || gathered != NULL;
    for (uint32_t replica = 0; status == CADRE_OK && replica < seat->world->replica_count;
         replica++) {
        same = same && sizes[replica] == gather_bytes(base, replica);
        for (size_t i = 0; same && i < sizes[replica]; i++) {
            same = at[i] == pattern(i, replica);
        }
        at += same ? sizes[replica] : 0;
    }
    free(own);
    free(gathered);
    SEAT_CHECK(seat, same);
    return status;
}

static void gathers(struct world *world)
{
    static const size_t bases[] = {0, 13, WORLD_LARGE(200003)};
    world_form(world);
    for (size_t i = 0; i < CADRE_COUNT_OF(bases); i++) {
        world_run_ok(world, gather_once, &bases[i]);
    }
}

static cadre_status cross_barriers(struct seat *seat)
{
    struct world *world = seat->world;
    for (unsigned round = 0; round < world_rounds(100); round++) {
        atomic_fetch_add(&world->counter, 1);
        cadre_status status = seat->ops->barrier(seat->mesh, seat->local, NULL, &seat->error);
        if (status != CADRE_OK) {
            return status;
        }
        /* No replica left before all came; none is more than a round ahead. */
        unsigned seen = atomic_load(&world->counter);
        SEAT_CHECK(seat, seen >= (round + 1) * world->replica_count);
        SEAT_CHECK(seat, seen <= (round + 2) * world->replica_count);
    }
    return CADRE_OK;
}

static void barriers(struct world *world)
{
    world_form(world);
    world_run_ok(world, cross_barriers, NULL);
}

/* A long row of collectives of every kind and size, without a pause in between. */
static cadre_status mix(struct seat *seat)
{
    float values[6000];
    for (uint32_t round = 0; round < world_rounds(60); round++) {
        uint32_t elements = (uint32_t)prng_mix(round) % 6000;
        uint32_t root = round % seat->world->replica_count;
        for (uint32_t i = 0; i < elements; i++) {
            values[i] = (float)(seat->global + i);
        }
        struct mesh_buffer buffer = {
            .data = values, .bytes = elements * sizeof values[0], .dtype = MESH_F32};
        cadre_status status =
            seat->ops->broadcast(seat->mesh, seat->local, root, &buffer, 1, NULL, &seat->error);
        if (status == CADRE_OK) {
            status = seat->ops->all_reduce(
                seat->mesh, seat->local, MESH_SUM, &buffer, 1, NULL, &seat->error);
        }
        if (status == CADRE_OK && round % 7 == 0) {
            status = seat->ops->barrier(seat->mesh, seat->local, NULL, &seat->error);
        }
        if (status != CADRE_OK) {
            return status;
        }
        for (uint32_t i = 0; i < elements; i++) {
            SEAT_CHECK(seat, values[i] == (float)((root + i) * seat->world->replica_count));
        }
    }
    return CADRE_OK;
}

static void mixed_rows(struct world *world)
{
    world_form(world);
    world_run_ok(world, mix, NULL);
}

#define EACH_LAYOUT(name)                                                                          \
    static void test_##name(void **state)                                                          \
    {                                                                                              \
        (void)state;                                                                               \
        world_each(name, false);                                                                   \
    }

EACH_LAYOUT(types_and_operations)
EACH_LAYOUT(large)
EACH_LAYOUT(lists)
EACH_LAYOUT(broadcasts)
EACH_LAYOUT(gathers)
EACH_LAYOUT(barriers)
EACH_LAYOUT(mixed_rows)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types_and_operations),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_broadcasts),
        cmocka_unit_test(test_gathers),
        cmocka_unit_test(test_barriers),
        cmocka_unit_test(test_mixed_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
