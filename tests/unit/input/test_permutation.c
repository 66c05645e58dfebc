/* SPDX-License-Identifier: Apache-2.0
 * The seeded permutation: one-to-one, uniform over epochs, and the same numbers on every machine.
 */
#include "tests/unit/input/cmocka_unit.h"

#include <string.h>

#include "common/base/cleanup.h"
#include "common/pure/permutation.h"

static void each_value_comes_once(void **state)
{
    (void)state;
    static const uint64_t counts[] = {1, 2, 3, 5, 63, 64, 65, 127, 1000, 1797, 4096, 4097, 100003};
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        uint64_t count = counts[c];
        CADRE_FREE_AT_EXIT unsigned char *seen = calloc(count, 1);
        assert_non_null(seen);
        struct permutation permutation;
        permutation_init(&permutation, count, 7, c);
        for (uint64_t i = 0; i < count; i++) {
            uint64_t value = permutation_at(&permutation, i);
            assert_true(value < count);
            assert_int_equal(seen[value]++, 0);
        }
    }
}

/* Fixed numbers: a change of the function would change the order of every stored run. */
static void numbers_never_change(void **state)
{
    (void)state;
    static const uint64_t expected[10] = {8, 3, 9, 6, 4, 0, 1, 5, 7, 2};
    struct permutation permutation;
    permutation_init(&permutation, 10, 42, 3);
    for (uint64_t i = 0; i < 10; i++) {
        assert_int_equal(permutation_at(&permutation, i), expected[i]);
    }
    permutation_init(&permutation, PERMUTATION_COUNT_MAX, 42, 3);
    assert_true(
        permutation_at(&permutation, PERMUTATION_COUNT_MAX - 1) == UINT64_C(0x1DE749B22DFAC3DA));
}

/* Chi-square of (index, value) and of (value of i, value of i + 1) over many epochs. The bound is
 * the mean plus six standard deviations of the chi-square distribution. */
static double chi_square(const uint32_t *cells, size_t cell_count, double expected)
{
    double sum = 0;
    for (size_t i = 0; i < cell_count; i++) {
        double difference = (double)cells[i] - expected;
        sum += difference * difference / expected;
    }
    return sum;
}

static void check_uniform(uint64_t count)
{
    enum { EPOCHS = 20000, MOST = 40 };
    static uint32_t single[MOST * MOST];
    static uint32_t pair[MOST * MOST];
    assert_true(count <= MOST);
    memset(single, 0, sizeof single);
    memset(pair, 0, sizeof pair);
    for (uint64_t epoch = 0; epoch < EPOCHS; epoch++) {
        struct permutation permutation;
        permutation_init(&permutation, count, 1, epoch);
        uint64_t before = 0;
        for (uint64_t i = 0; i < count; i++) {
            uint64_t value = permutation_at(&permutation, i);
            single[i * count + value]++;
            if (i > 0) {
                /* The pairs (a, b) with b != a, numbered without a gap. */
                pair[before * (count - 1) + (value > before ? value - 1 : value)]++;
            }
            before = value;
        }
    }
    double n = (double)count;
    double freedom = (n - 1) * (n - 1);
    double found = chi_square(single, count * count, EPOCHS / n);
    /* The variance is 2 * freedom; six deviations, compared in squares, and a little room for tiny
     * n. */
    double above = found - freedom;
    if (above > 0 && above * above > 36 * 2 * freedom + 400) {
        fail_msg("n %d: chi-square of places %f for %f", (int)count, found, freedom);
    }
    freedom = n * (n - 1) - 1;
    found = chi_square(pair, count * (count - 1), EPOCHS / n);
    above = found - freedom;
    if (above > 0 && above * above > 36 * 2 * freedom + 400) {
        fail_msg("n %d: chi-square of neighbours %f for %f", (int)count, found, freedom);
    }
}

static void places_and_neighbours_are_uniform(void **state)
{
    (void)state;
    static const uint64_t counts[] = {2, 3, 4, 7, 10, 33, 40};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        check_uniform(counts[i]);
    }
}

/* Of three elements all six orders must come, equally often. */
static void all_orders_come(void **state)
{
    (void)state;
    uint32_t seen[27] = {0};
    for (uint64_t epoch = 0; epoch < 6000; epoch++) {
        struct permutation permutation;
        permutation_init(&permutation, 3, 9, epoch);
        seen[permutation_at(&permutation, 0) * 9 + permutation_at(&permutation, 1) * 3 +
             permutation_at(&permutation, 2)]++;
    }
    uint32_t orders = 0;
    for (size_t i = 0; i < 27; i++) {
        if (seen[i] > 0) {
            orders++;
            assert_in_range(seen[i], 800, 1200);
        }
    }
    assert_int_equal(orders, 6);
}

/* Long sets: no index stays near its place, and different seeds agree in about one place. */
static void seeds_and_epochs_are_unrelated(void **state)
{
    (void)state;
    enum { COUNT = 50000 };
    struct permutation a;
    struct permutation b;
    struct permutation c;
    permutation_init(&a, COUNT, 5, 5);
    permutation_init(&b, COUNT, 5, 6);
    permutation_init(&c, COUNT, 6, 5);
    uint32_t same = 0;
    for (uint64_t i = 0; i < COUNT; i++) {
        uint64_t value = permutation_at(&a, i);
        same += value == i;
        same += value == permutation_at(&b, i);
        same += value == permutation_at(&c, i);
    }
    assert_in_range(same, 0, 20);
}

/* Many at once are the same as one after the other, whatever their number and order. */
static void many_at_once_are_the_same(void **state)
{
    (void)state;
    const uint64_t counts[] = {1, 2, 64, 65, 1000, 1 << 20, (1 << 20) + 1, PERMUTATION_COUNT_MAX};
    for (size_t k = 0; k < sizeof counts / sizeof counts[0]; k++) {
        struct permutation permutation;
        permutation_init(&permutation, counts[k], 17, k);
        for (size_t many = 0; many < 200; many = many < 20 ? many + 1 : many + 37) {
            uint64_t indices[200];
            for (size_t i = 0; i < many; i++) {
                indices[i] = (many * UINT64_C(0x9E3779B97F4A7C15) + i * 7919) % counts[k];
            }
            permutation_at_each(&permutation, indices, many);
            for (size_t i = 0; i < many; i++) {
                uint64_t index = (many * UINT64_C(0x9E3779B97F4A7C15) + i * 7919) % counts[k];
                assert_int_equal(indices[i], permutation_at(&permutation, index));
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_value_comes_once),
        cmocka_unit_test(numbers_never_change),
        cmocka_unit_test(places_and_neighbours_are_uniform),
        cmocka_unit_test(all_orders_come),
        cmocka_unit_test(seeds_and_epochs_are_unrelated),
        cmocka_unit_test(many_at_once_are_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
