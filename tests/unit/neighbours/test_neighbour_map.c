/* SPDX-License-Identifier: Apache-2.0
 * Which member has which segment: equal parts, the same for all, and little moves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/pure/prng.h"
#include "worker/library/neighbours/neighbour_map.h"

#define SEGMENTS 20000
#define MEMBERS  64

static void fill(uint64_t *ids, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        ids[i] = i;
    }
}

static uint64_t object_of(uint64_t segment)
{
    static const char *const paths[] = {"s3://b/0", "s3://b/1", "s3://b/2", "s3://c/0"};
    return neighbour_object(paths[segment % 4]);
}

static void equal_parts(void **state)
{
    (void)state;
    for (uint32_t count = 1; count <= MEMBERS; count *= 2) {
        uint64_t ids[MEMBERS];
        uint64_t parts[MEMBERS] = {0};
        fill(ids, count);
        for (uint64_t i = 0; i < SEGMENTS; i++) {
            parts[neighbour_owner(ids, count, object_of(i), i / 4)]++;
        }
        for (uint32_t i = 0; i < count; i++) {
            double mean = (double)SEGMENTS / count;
            assert_true((double)parts[i] > mean * 0.75 && (double)parts[i] < mean * 1.25);
        }
    }
}

/* Small objects have one segment each. */
static void equal_parts_of_small_objects(void **state)
{
    (void)state;
    uint64_t ids[8];
    uint64_t parts[8] = {0};
    char path[] = "s3://bucket/data-0000.tfrecord";
    fill(ids, 8);
    for (int i = 0; i < 8000; i++) {
        path[17] = (char)('0' + i / 1000);
        path[18] = (char)('0' + i / 100 % 10);
        path[19] = (char)('0' + i / 10 % 10);
        path[20] = (char)('0' + i % 10);
        parts[neighbour_owner(ids, 8, neighbour_object(path), 0)]++;
    }
    for (uint32_t i = 0; i < 8; i++) {
        assert_in_range(parts[i], 850, 1150);
    }
}

static void in_any_order(void **state)
{
    (void)state;
    uint64_t ids[MEMBERS];
    uint64_t turned[MEMBERS];
    fill(ids, 10);
    for (uint32_t i = 0; i < 10; i++) {
        turned[i] = ids[(i + 3) % 10];
    }
    for (uint64_t i = 0; i < SEGMENTS; i++) {
        assert_int_equal(ids[neighbour_owner(ids, 10, object_of(i), i)],
            turned[neighbour_owner(turned, 10, object_of(i), i)]);
    }
}

/* One that comes takes its part, and the rest stays; so one that goes gives up its own alone. */
static void little_moves(void **state)
{
    (void)state;
    uint64_t ids[MEMBERS];
    for (uint32_t count = 1; count < 16; count++) {
        uint64_t moved = 0;
        fill(ids, count + 1);
        for (uint64_t i = 0; i < SEGMENTS; i++) {
            uint32_t before = neighbour_owner(ids, count, object_of(i), i);
            uint32_t after = neighbour_owner(ids, count + 1, object_of(i), i);
            assert_true(after == before || after == count);
            moved += after != before;
        }
        double part = (double)SEGMENTS / (count + 1);
        assert_true((double)moved > part * 0.85 && (double)moved < part * 1.15);
    }
}

/* The same on every machine and in every version: tasks of two builds may be one job. */
static void known_ones(void **state)
{
    (void)state;
    uint64_t ids[5];
    struct prng sum = {.state = 0};
    fill(ids, 5);
    assert_int_equal(neighbour_object(""), prng_mix(UINT64_C(0xcbf29ce484222325)));
    for (uint64_t i = 0; i < 1000; i++) {
        sum.state = prng_mix(sum.state ^ neighbour_owner(ids, 5, object_of(i), i));
    }
    assert_int_equal(sum.state, UINT64_C(0x2097d276f1bf1b26));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_parts),
        cmocka_unit_test(equal_parts_of_small_objects),
        cmocka_unit_test(in_any_order),
        cmocka_unit_test(little_moves),
        cmocka_unit_test(known_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
