/* SPDX-License-Identifier: Apache-2.0
 * The small tables under the core (common/pure: map, heap, list) against plain models of
 * themselves. */
#include "tests/lib/test.h"

#include "common/pure/heap.h"
#include "common/pure/list.h"
#include "common/pure/map.h"

#define ITEMS 60

static void map_matches_a_plain_table(void **state)
{
    (void)state;
    struct map_entry entries[128];
    bool there[ITEMS] = {false};
    struct map map;
    struct prng prng = {.state = 1};
    assert_int_equal(map_capacity(ITEMS), 128);
    map_init(&map, entries, map_capacity(ITEMS));
    for (int i = 0; i < 100000; i++) {
        /* Few keys, so that one key stands for several values and runs are long. */
        uint32_t value = (uint32_t)prng_uniform(&prng, ITEMS);
        uint64_t key = value % 17;
        if (there[value]) {
            map_remove(&map, key, value);
        } else {
            map_add(&map, key, value);
        }
        there[value] = !there[value];
        uint32_t asked = (uint32_t)prng_uniform(&prng, 17);
        uint32_t found = 0;
        for (uint32_t at = map_first(&map, asked); at != MAP_NONE; at = map_next(&map, asked, at)) {
            assert_true(there[map.entries[at].value]);
            assert_int_equal(map.entries[at].value % 17, asked);
            found++;
        }
        uint32_t expected = 0;
        for (uint32_t v = asked; v < ITEMS; v += 17) {
            expected += there[v];
        }
        assert_int_equal(found, expected);
        assert_true((map_get(&map, asked) == MAP_NONE) == (expected == 0));
    }
}

static void heap_gives_the_earliest(void **state)
{
    (void)state;
    struct heap_entry entries[ITEMS];
    uint32_t places[ITEMS];
    uint64_t due[ITEMS] = {0}; /* 0: none */
    struct heap heap;
    struct prng prng = {.state = 2};
    heap_init(&heap, entries, places, ITEMS);
    for (int i = 0; i < 100000; i++) {
        uint32_t item = (uint32_t)prng_uniform(&prng, ITEMS);
        if (prng_chance(&prng, 1, 3)) {
            heap_remove(&heap, item);
            due[item] = 0;
        } else {
            due[item] = 1 + prng_uniform(&prng, 50);
            heap_set(&heap, item, due[item]);
        }
        struct heap_entry expected = {.item = HEAP_NONE};
        for (uint32_t k = 0; k < ITEMS; k++) {
            if (due[k] != 0 && (expected.item == HEAP_NONE || due[k] < expected.due_us)) {
                expected = (struct heap_entry){.due_us = due[k], .item = k};
            }
        }
        struct heap_entry top;
        assert_true(heap_top(&heap, &top) == (expected.item != HEAP_NONE));
        if (expected.item != HEAP_NONE) {
            assert_int_equal(top.item, expected.item);
            assert_int_equal(top.due_us, expected.due_us);
        }
    }
}

static void list_keeps_its_order(void **state)
{
    (void)state;
    struct list_node nodes[4];
    struct list list;
    list_init(&list, nodes);
    assert_int_equal(list_take(&list), LIST_NONE);
    list_append(&list, 2);
    list_append(&list, 0);
    list_insert(&list, 0, 3);
    list_insert(&list, 2, 1);
    assert_int_equal(list.count, 4); /* 1 2 3 0 */
    list_remove(&list, 3);
    assert_int_equal(list_take(&list), 1);
    assert_int_equal(list_take(&list), 2);
    assert_int_equal(list_take(&list), 0);
    assert_int_equal(list.count, 0);
    assert_int_equal(list.first, LIST_NONE);
    assert_int_equal(list.last, LIST_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(map_matches_a_plain_table),
        cmocka_unit_test(heap_gives_the_earliest),
        cmocka_unit_test(list_keeps_its_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
