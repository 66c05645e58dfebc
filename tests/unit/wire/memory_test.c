/* SPDX-License-Identifier: Apache-2.0
 * The arena and the buffer by themselves, and the rule for names in one folder. */
#include <stdlib.h>
#include <string.h>

#include "common/pure/prng.h"
#include "common/wire/arena.h"
#include "common/wire/check.h"
#include "tests/lib/test.h"

static void takes_do_not_overlap(void **state)
{
    (void)state;
    struct wire_arena *arena = wire_arena_new(8 * 1024 * 1024);
    struct prng prng = {.state = 1};
    uint8_t *taken[500];
    size_t sizes[500];
    assert_non_null(arena);
    for (size_t round = 0; round < 20; round++) {
        for (size_t i = 0; i < 500; i++) {
            sizes[i] = prng_uniform(&prng, prng_chance(&prng, 1, 50) ? 100000 : 200);
            taken[i] = wire_arena_alloc(arena, sizes[i]);
            assert_non_null(taken[i]);
            assert_int_equal((uintptr_t)taken[i] % 8, 0);
            assert_int_equal(wire_arena_size_of(taken[i]), sizes[i]);
            memset(taken[i], (int)(i % 251), sizes[i]);
        }
        for (size_t i = 0; i < 500; i++) {
            for (size_t j = 0; j < sizes[i]; j++) {
                assert_int_equal(taken[i][j], i % 251);
            }
        }
        wire_arena_reset(arena);
    }
    wire_arena_free(arena);
    wire_arena_free(NULL);
}

static void the_budget_is_a_limit(void **state)
{
    (void)state;
    struct wire_arena *arena = wire_arena_new(1000);
    assert_non_null(arena);
    assert_non_null(wire_arena_alloc(arena, 500));
    assert_false(wire_arena_is_spent(arena));
    assert_null(wire_arena_alloc(arena, 500));
    assert_true(wire_arena_is_spent(arena));
    assert_null(wire_arena_alloc(arena, SIZE_MAX));
    assert_null(wire_arena_alloc(arena, SIZE_MAX - 8));
    assert_non_null(wire_arena_alloc(arena, 400));
    wire_arena_reset(arena);
    assert_false(wire_arena_is_spent(arena));
    assert_non_null(wire_arena_alloc(arena, 992));
    wire_arena_free(arena);
}

static void the_newest_take_can_be_given_back(void **state)
{
    (void)state;
    struct wire_arena *arena = wire_arena_new(1000);
    ProtobufCAllocator *allocator = wire_arena_allocator(arena);
    for (size_t i = 0; i < 100; i++) {
        void *taken = allocator->alloc(allocator->allocator_data, 900);
        assert_non_null(taken);
        allocator->free(allocator->allocator_data, taken);
    }
    void *first = allocator->alloc(allocator->allocator_data, 100);
    void *second = allocator->alloc(allocator->allocator_data, 100);
    memset(second, 5, 100);
    allocator->free(allocator->allocator_data, first);
    void *third = allocator->alloc(allocator->allocator_data, 100);
    memset(third, 6, 100);
    assert_int_equal(*(uint8_t *)second, 5);
    wire_arena_free(arena);
}

static void a_buffer_grows_by_doubling(void **state)
{
    (void)state;
    struct wire_buffer buffer = {0};
    size_t moves = 0;
    size_t capacity = 0;
    for (size_t i = 0; i < 100000; i++) {
        assert_true(wire_buffer_reserve(&buffer, 3));
        memcpy(buffer.bytes + buffer.size, "abc", 3);
        buffer.size += 3;
        moves += buffer.capacity != capacity;
        capacity = buffer.capacity;
    }
    assert_true(moves < 12);
    assert_false(wire_buffer_reserve(&buffer, SIZE_MAX));
    assert_int_equal(buffer.size, 300000);
    wire_buffer_clear(&buffer);
    assert_int_equal(buffer.capacity, capacity);
    wire_buffer_free(&buffer);
    assert_null(buffer.bytes);
}

/* Against the obvious way: every pair. */
static bool pair_clashes(const char *a, const char *b)
{
    size_t size = strlen(a);
    return strncmp(a, b, size) == 0 && (b[size] == '\0' || b[size] == '/');
}

static void names_clash_as_every_pair_says(void **state)
{
    (void)state;
    static const char letters[] = "ab-/";
    struct prng prng = {.state = 3};
    size_t clashes = 0;
    for (size_t round = 0; round < 5000; round++) {
        char texts[6][8];
        const char *names[6];
        bool expected = false;
        for (size_t i = 0; i < 6; i++) {
            size_t size = 1 + prng_uniform(&prng, 6);
            for (size_t j = 0; j < size; j++) {
                texts[i][j] = letters[prng_uniform(&prng, 4)];
            }
            texts[i][size] = '\0';
            names[i] = texts[i];
        }
        for (size_t i = 0; i < 6; i++) {
            for (size_t j = 0; j < 6; j++) {
                expected = expected || (i != j && pair_clashes(texts[i], texts[j]));
            }
        }
        const char *first = NULL;
        const char *second = NULL;
        bool found = check_names_clash(names, 6, &first, &second);
        assert_int_equal(found, expected);
        assert_true(!found || pair_clashes(first, second));
        clashes += found;
    }
    assert_true(clashes > 500 && clashes < 4500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_do_not_overlap),
        cmocka_unit_test(the_budget_is_a_limit),
        cmocka_unit_test(the_newest_take_can_be_given_back),
        cmocka_unit_test(a_buffer_grows_by_doubling),
        cmocka_unit_test(names_clash_as_every_pair_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
