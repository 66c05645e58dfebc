/* SPDX-License-Identifier: Apache-2.0
 * The canonical order as programs: which blocks a task reduces to, and that every split gives the
 * same expression. */
#include "worker/mesh/tree.h"

#include <stdio.h>
#include <string.h>

#include "tests/lib/test.h"

static void check_roots(uint32_t replicas, uint32_t first, uint32_t count, const char *wanted)
{
    struct tree tree;
    struct cadre_error error;
    char text[256] = "";
    assert_ok(mesh_tree_over_replicas(&tree, replicas, first, count, &error), &error);
    for (uint32_t i = 0; i < tree.root_count; i++) {
        size_t used = strlen(text);
        snprintf(
            text + used, sizeof text - used, " %u/%u", tree.roots[i].first, tree.roots[i].level);
    }
    assert_string_equal(text, wanted);
    mesh_tree_finish(&tree);
}

static void test_roots(void **state)
{
    (void)state;
    /* first/level: the block of 2^level replicas from first on. */
    check_roots(1, 0, 1, " 0/0");
    check_roots(2, 0, 2, " 0/1");
    check_roots(4, 0, 2, " 0/1");
    check_roots(4, 0, 1, " 0/0");
    check_roots(4, 1, 3, " 1/0 2/1");
    check_roots(4, 0, 3, " 0/1 2/0");
    check_roots(5, 4, 1, " 4/2"); /* alone in its half: lifted */
    check_roots(5, 2, 3, " 2/1 4/2");
    check_roots(5, 0, 5, " 0/3");
    check_roots(6, 1, 2, " 1/0 2/0");
    check_roots(6, 3, 3, " 3/0 4/2");
    check_roots(7, 4, 3, " 4/2");
    check_roots(13, 1, 11, " 1/0 2/1 4/2 8/2");
}

/* The largest mesh, at its most ragged: the deepest stack there can be. */
static void test_the_largest(void **state)
{
    (void)state;
    struct tree tree;
    struct cadre_error error;
    uint32_t replicas = MESH_REPLICAS_MAX;
    assert_ok(mesh_tree_over_replicas(&tree, replicas, 1, replicas - 2, &error), &error);
    assert_int_equal(tree.root_count, 2 * (MESH_TREE_LEVELS_MAX - 1));
    assert_true(tree.depth_max <= MESH_TREE_DEPTH_MAX);
    mesh_tree_finish(&tree);
}

static uint64_t leaf_shape(uint32_t replica)
{
    return UINT64_C(0x9E3779B97F4A7C15) * (replica + 1);
}

/* Not associative and not commutative, so that any other order shows. */
static uint64_t join(uint64_t left, uint64_t right)
{
    return (left * 31) ^ ((right * 1000003) >> 7) ^ (right << 9);
}

static uint64_t by_definition(uint32_t replicas, uint32_t first, uint32_t width)
{
    if (width == 1) {
        return leaf_shape(first);
    }
    uint64_t left = by_definition(replicas, first, width / 2);
    return first + width / 2 >= replicas
               ? left
               : join(left, by_definition(replicas, first + width / 2, width / 2));
}

static uint32_t evaluate(const struct tree *tree, const uint64_t *leaves, uint64_t *roots)
{
    uint32_t depth = 0;
    for (uint32_t i = 0; i < tree->leaf_count; i++) {
        roots[depth++] = leaves[i];
        assert_true(depth <= tree->depth_max);
        for (uint8_t merge = 0; merge < tree->merges[i]; merge++) {
            depth--;
            roots[depth - 1] = join(roots[depth - 1], roots[depth]);
        }
    }
    assert_int_equal(depth, tree->root_count);
    return depth;
}

/* One program a part, then the program over all their roots. */
static uint64_t in_parts(uint32_t replicas, const uint32_t *parts, uint32_t part_count)
{
    struct cadre_error error;
    struct tree_node blocks[128];
    uint64_t values[128];
    uint64_t result[MESH_TREE_DEPTH_MAX];
    uint32_t count = 0;
    uint32_t first = 0;
    for (uint32_t part = 0; part < part_count; part++) {
        struct tree tree;
        uint64_t leaves[64];
        for (uint32_t i = 0; i < parts[part]; i++) {
            leaves[i] = leaf_shape(first + i);
        }
        assert_ok(mesh_tree_over_replicas(&tree, replicas, first, parts[part], &error), &error);
        memcpy(blocks + count, tree.roots, tree.root_count * sizeof blocks[0]);
        count += evaluate(&tree, leaves, values + count);
        first += parts[part];
        mesh_tree_finish(&tree);
    }
    struct tree whole;
    assert_ok(mesh_tree_over_blocks(&whole, replicas, blocks, count, &error), &error);
    assert_int_equal(evaluate(&whole, values, result), 1);
    mesh_tree_finish(&whole);
    return result[0];
}

static void test_every_split_is_the_same(void **state)
{
    (void)state;
    for (uint32_t replicas = 1; replicas <= 40; replicas++) {
        uint64_t wanted = by_definition(replicas, 0, UINT32_C(1) << mesh_tree_root_level(replicas));
        for (uint32_t a = 1; a <= replicas; a++) {
            uint32_t two[2] = {a, replicas - a};
            assert_true(in_parts(replicas, two, a == replicas ? 1 : 2) == wanted);
            for (uint32_t b = 1; a + b < replicas; b++) {
                uint32_t three[3] = {a, b, replicas - a - b};
                assert_true(in_parts(replicas, three, 3) == wanted);
            }
        }
        uint32_t ones[40];
        for (uint32_t i = 0; i < replicas; i++) {
            ones[i] = 1;
        }
        assert_true(in_parts(replicas, ones, replicas) == wanted);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_roots),
        cmocka_unit_test(test_the_largest),
        cmocka_unit_test(test_every_split_is_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
