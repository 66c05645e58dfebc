/* SPDX-License-Identifier: Apache-2.0
 * Joining call records: the same result in any grouping. */
#include <stdio.h>
#include <string.h>

#include "common/pure/prng.h"
#include "tests/lib/test.h"
#include "worker/library/mesh/agreement.h"

#define REPLICAS 9

static struct agreement alone(uint32_t replica, uint64_t bytes, bool wrong)
{
    struct agreement agreement = {.first = {.replica = replica,
                                      .wrong = wrong,
                                      .shape = {.kind = MESH_ALL_REDUCE, .bytes = bytes}}};
    if (wrong) {
        snprintf(agreement.first.text, sizeof agreement.first.text, "replica %u is wrong", replica);
    }
    return agreement;
}

/* Folds [low, high) as a balanced tree does, or one by one. */
static struct agreement fold(const struct agreement *leaves, uint32_t low, uint32_t high)
{
    struct agreement agreement = leaves[low];
    for (uint32_t i = low + 1; i < high; i++) {
        mesh_agreement_join(&agreement, &leaves[i]);
    }
    return agreement;
}

static void test_any_grouping(void **state)
{
    (void)state;
    struct prng prng = {.state = 5};
    for (unsigned round = 0; round < 2000; round++) {
        struct agreement leaves[REPLICAS];
        uint32_t lowest = REPLICAS;
        for (uint32_t i = 0; i < REPLICAS; i++) {
            bool odd = prng_next(&prng) % 4 == 0;
            bool wrong = odd && prng_next(&prng) % 2 == 0;
            leaves[i] = alone(i, odd ? 8 + prng_next(&prng) % 2 * 8 : 16, wrong);
        }
        for (uint32_t i = REPLICAS; i-- > 1;) {
            bool same = !leaves[i].first.wrong && !leaves[0].first.wrong &&
                        leaves[i].first.shape.bytes == leaves[0].first.shape.bytes;
            lowest = same ? lowest : i;
        }
        struct agreement whole = fold(leaves, 0, REPLICAS);
        uint32_t cut = 1 + (uint32_t)(prng_next(&prng) % (REPLICAS - 1));
        struct agreement left = fold(leaves, 0, cut);
        struct agreement right = fold(leaves, cut, REPLICAS);
        mesh_agreement_join(&left, &right);
        assert_int_equal(whole.differs, lowest < REPLICAS);
        assert_int_equal(left.differs, whole.differs);
        assert_int_equal(left.first.replica, 0);
        if (whole.differs) {
            assert_int_equal(whole.other.replica, lowest);
            assert_int_equal(left.other.replica, lowest);
        }
        assert_int_equal(mesh_agreement_holds(&whole), !whole.differs && !whole.first.wrong);
    }
}

static void test_sentences(void **state)
{
    (void)state;
    char text[400];
    struct agreement agreement = alone(0, 8, false);
    struct agreement other = alone(2, 16, false);
    mesh_agreement_join(&agreement, &other);
    mesh_agreement_explain(&agreement, text, sizeof text);
    assert_string_equal(text, "replica 2 called all_reduce(sum, float64, 0 buffers, 16 bytes), but "
                              "replica 0 called all_reduce(sum, float64, 0 buffers, 8 bytes)");
    snprintf(agreement.other.text, sizeof agreement.other.text, "replica 2 called X");
    mesh_agreement_explain(&agreement, text, sizeof text);
    assert_string_equal(text, "replica 2 called X, but replica 0 called all_reduce(sum, float64, 0 "
                              "buffers, 8 bytes)");
    agreement = alone(0, 8, false);
    other = alone(1, 8, false);
    other.first.shape.key = 1;
    mesh_agreement_join(&agreement, &other);
    mesh_agreement_explain(&agreement, text, sizeof text);
    assert_non_null(strstr(text, "8 bytes) of other sizes or types"));
    agreement = alone(0, 8, false);
    other = alone(3, 8, true);
    mesh_agreement_join(&agreement, &other);
    mesh_agreement_explain(&agreement, text, sizeof text);
    assert_string_equal(text, "replica 3 is wrong");
    agreement = alone(0, 8, true);
    mesh_agreement_join(&agreement, &other);
    mesh_agreement_explain(&agreement, text, sizeof text);
    assert_string_equal(text, "replica 0 is wrong");
    assert_false(mesh_agreement_holds(&agreement));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_grouping),
        cmocka_unit_test(test_sentences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
