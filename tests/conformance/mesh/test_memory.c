/* SPDX-License-Identifier: Apache-2.0
 * The memory of data and results: memory that the host's tasks share or not, or one of each; out of
 * place; in lists that are longer than one post. The same bits everywhere. */
#include "tests/conformance/mesh/world.h"

#include <stdlib.h>
#include <string.h>

#include "worker/library/arena/arena.h"

/* Which replicas' buffers are in the arena. */
enum where { PRIVATE, ARENA, EVERY_OTHER };

struct vectors {
    enum where where;
    enum mesh_dtype dtype;
    size_t count;    /* of buffers */
    size_t elements; /* of each; every fifth buffer has none */
    bool apart;      /* out of place */
    bool broadcast;
};

static size_t elements_of(const struct vectors *vectors, size_t index)
{
    return vectors->count > 4 && index % 5 == 2 ? 0 : vectors->elements;
}

/* One block for all sources, or all results. */
struct block {
    uint8_t *memory;
    size_t bytes;
    bool arena;
};

static struct block take(const struct seat *seat, const struct vectors *vectors)
{
    struct block block = {
        .bytes = vectors->count * vectors->elements * mesh_dtype_bytes(vectors->dtype) + 64,
        .arena =
            vectors->where == ARENA || (vectors->where == EVERY_OTHER && seat->global % 2 == 0),
    };
    block.memory = block.arena ? arena_get(block.bytes) : malloc(block.bytes);
    return block;
}

static void leave(struct block *block)
{
    if (block->arena) {
        arena_give(block->memory, block->bytes);
    } else {
        free(block->memory);
    }
}

static void fill(
    const struct seat *seat, const struct vectors *vectors, uint8_t *memory, uint32_t as)
{
    (void)seat;
    size_t size = mesh_dtype_bytes(vectors->dtype);
    for (size_t i = 0; i < vectors->count * vectors->elements; i++) {
        reference_draw(vectors->dtype, 4, as, i, memory + i * size);
    }
}

static bool check(const struct seat *seat, const struct vectors *vectors, const uint8_t *memory)
{
    size_t size = mesh_dtype_bytes(vectors->dtype);
    size_t total = vectors->count * vectors->elements;
    size_t step = total < 3000 ? 1 : total / 1000;
    for (size_t i = 0; i < total; i += step) {
        uint8_t wanted[8];
        size_t at = i + step < total ? i : total - 1;
        if (elements_of(vectors, at / vectors->elements) == 0) {
            continue;
        }
        if (vectors->broadcast) {
            reference_draw(vectors->dtype, 4, seat->world->replica_count - 1, at, wanted);
        } else {
            reference_reduce(MESH_SUM, vectors->dtype, 4, &seat->world->seats, at, wanted);
        }
        enum mesh_op op = vectors->broadcast ? MESH_MAX : MESH_SUM;
        if (!world_same(seat->world, op, vectors->dtype, memory + at * size, wanted)) {
            return false;
        }
    }
    return true;
}

static cadre_status call(struct seat *seat, const struct vectors *vectors, struct block *source,
    struct block *result, struct mesh_buffer *buffers)
{
    size_t bytes = vectors->elements * mesh_dtype_bytes(vectors->dtype);
    for (size_t i = 0; i < vectors->count; i++) {
        buffers[i] = (struct mesh_buffer){
            .data = (vectors->apart ? result : source)->memory + i * bytes,
            .from = vectors->apart ? source->memory + i * bytes : NULL,
            .bytes = elements_of(vectors, i) == 0 ? 0 : bytes,
            .dtype = vectors->dtype,
        };
    }
    return vectors->broadcast
               ? seat->ops->broadcast(seat->mesh, seat->local, seat->world->replica_count - 1,
                     buffers, vectors->count, NULL, &seat->error)
               : seat->ops->all_reduce(seat->mesh, seat->local, MESH_SUM, buffers, vectors->count,
                     NULL, &seat->error);
}

static cadre_status run(struct seat *seat)
{
    const struct vectors *vectors = seat->data;
    struct block source = take(seat, vectors);
    struct block result = take(seat, vectors);
    struct mesh_buffer *buffers = calloc(vectors->count, sizeof *buffers);
    SEAT_CHECK(seat, source.memory != NULL && result.memory != NULL && buffers != NULL);
    fill(seat, vectors, source.memory, seat->global);
    cadre_status status = call(seat, vectors, &source, &result, buffers);
    bool good =
        status != CADRE_OK || check(seat, vectors, vectors->apart ? result.memory : source.memory);
    if (status == CADRE_OK && vectors->apart) {
        fill(seat, vectors, result.memory, seat->global);
        size_t bytes = vectors->count * vectors->elements * mesh_dtype_bytes(vectors->dtype);
        good = good && memcmp(source.memory, result.memory, bytes) == 0; /* untouched */
    }
    leave(&source);
    leave(&result);
    free(buffers);
    SEAT_CHECK(seat, good);
    return status;
}

static void everywhere(struct world *world, struct vectors vectors)
{
    for (unsigned where = PRIVATE; where <= EVERY_OTHER; where++) {
        for (unsigned apart = 0; apart < 2; apart++) {
            vectors.where = (enum where)where;
            vectors.apart = apart == 1;
            world_run_ok(world, run, &vectors);
        }
    }
}

static void small(struct world *world)
{
    world_form(world);
    everywhere(world, (struct vectors){.dtype = MESH_F32, .count = 3, .elements = 21});
    everywhere(
        world, (struct vectors){.dtype = MESH_F16, .count = 1, .elements = 77, .broadcast = true});
}

static void large(struct world *world)
{
    world_form(world);
    everywhere(
        world, (struct vectors){.dtype = MESH_F32, .count = 1, .elements = WORLD_LARGE(120001)});
    everywhere(
        world, (struct vectors){.dtype = MESH_BF16, .count = 2, .elements = WORLD_LARGE(70001)});
    everywhere(world,
        (struct vectors){
            .dtype = MESH_I16, .count = 1, .elements = WORLD_LARGE(200001), .broadcast = true});
}

static void long_lists(struct world *world)
{
    world_form(world);
    everywhere(world, (struct vectors){.dtype = MESH_F32, .count = 700, .elements = 111});
    everywhere(world,
        (struct vectors){.dtype = MESH_F16, .count = 257, .elements = 33, .broadcast = true});
}

#define EACH_LAYOUT(name)                                                                          \
    static void test_##name(void **state)                                                          \
    {                                                                                              \
        (void)state;                                                                               \
        world_each(name, false);                                                                   \
    }

EACH_LAYOUT(small)
EACH_LAYOUT(large)
EACH_LAYOUT(long_lists)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_long_lists),
    };
    struct cadre_error error;
    return arena_open(&error) != CADRE_OK ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
