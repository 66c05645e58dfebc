/* SPDX-License-Identifier: Apache-2.0
 * Slices: what Python makes of them, step by step. */
#include <stdlib.h>

#include "tests/lib/test.h"
#include "worker/library/runtime/variables/slice.h"

#define N SLICE_NONE

static void they_are_pythons(void **state)
{
    (void)state;
    static const struct {
        int64_t length;
        int64_t begin;
        int64_t end;
        int64_t step;
        int64_t first;
        int64_t count;
    } rows[] = {
        {8, N, 2, 1, 0, 2},
        {8, -10, 2, 1, 0, 2},
        {8, 5, -1, 1, 5, 2},
        {8, N, N, 3, 0, 3},
        {8, 1, N, 6, 1, 2},
        {8, 2, 7, 2, 2, 3},
        {8, 2, 7, 3, 2, 2},
        {8, N, N, -1, 7, 8},
        {8, N, N, -3, 7, 3},
        {8, 6, 1, -2, 6, 3},
        {8, 100, -100, -7, 7, 2},
        {8, -1, N, -1, 7, 8},
        {8, 2, 2, 1, 0, 0},
        {8, 5, 2, 1, 0, 0},
        {8, 2, 5, -1, 0, 0},
        {8, 8, N, 1, 0, 0},
        {8, N, -9, 1, 0, 0},
        {0, N, N, 1, 0, 0},
        {0, N, N, -1, 0, 0},
        {1, N, N, -5, 0, 1},
        {8, INT64_MIN + 1, INT64_MAX, INT64_MAX, 0, 1},
        {8, INT64_MAX, INT64_MIN + 1, INT64_MIN, 7, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct slice slice = slice_of(rows[i].length, rows[i].begin, rows[i].end, rows[i].step);
        if (slice.first != rows[i].first || slice.count != rows[i].count ||
            slice.step != rows[i].step) {
            fail_msg("row %zu: first %lld, count %lld", i, (long long)slice.first,
                (long long)slice.count);
        }
    }
}

/* Against the definition: items begin, begin + step, ... while they are before the end. */
static void all_short_ones_are_as_defined(void **state)
{
    (void)state;
    for (int64_t length = 0; length < 6; length++) {
        for (int64_t begin = -8; begin <= 8; begin++) {
            for (int64_t end = -8; end <= 8; end++) {
                for (int64_t step = -4; step <= 4; step++) {
                    if (step == 0) {
                        continue;
                    }
                    int64_t at = begin < 0 ? begin + length : begin;
                    int64_t stop = end < 0 ? end + length : end;
                    /* Walks in from outside, and counts what is inside. */
                    int64_t clipped =
                        step > 0 ? (at < 0 ? 0 : at) : (at > length - 1 ? length - 1 : at);
                    int64_t count = 0;
                    int64_t first = 0;
                    for (int64_t item = clipped; step > 0 ? item < stop : item > stop;
                         item += step) {
                        if (item < 0 || item >= length) {
                            break;
                        }
                        first = count == 0 ? item : first;
                        count++;
                    }
                    struct slice slice = slice_of(length, begin, end, step);
                    assert_int_equal(slice.count, count);
                    assert_int_equal(slice.first, first);
                }
            }
        }
    }
}

static void items_count_from_both_ends(void **state)
{
    (void)state;
    int64_t item;
    assert_true(slice_item(3, -1, &item));
    assert_int_equal(item, 2);
    assert_true(slice_item(3, 0, &item));
    assert_int_equal(item, 0);
    assert_false(slice_item(3, 3, &item));
    assert_false(slice_item(3, -4, &item));
    assert_false(slice_item(0, 0, &item));
    assert_false(slice_item(3, INT64_MIN, &item));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(they_are_pythons),
        cmocka_unit_test(all_short_ones_are_as_defined),
        cmocka_unit_test(items_count_from_both_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
