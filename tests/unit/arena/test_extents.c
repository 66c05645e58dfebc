/* SPDX-License-Identifier: Apache-2.0
 * Free extents against a map of units that are free or not. */
#include "worker/library/arena/extents.h"

#include <string.h>

#include "tests/lib/test.h"

enum { UNITS = 512, BLOCKS_MAX = 512 };

struct model {
    struct extents extents;
    bool is_free[UNITS];
};

static void begin(struct model *model)
{
    uint64_t first = 0;
    uint64_t end = 0;
    *model = (struct model){.extents = {.bytes = 0}};
    assert_true(extents_ready(&model->extents, BLOCKS_MAX + 1));
    extents_put(&model->extents, 0, UNITS, &first, &end);
    assert_int_equal(first, 0);
    assert_int_equal(end, UNITS);
    memset(model->is_free, true, sizeof model->is_free);
}

/* The offset of the first `count` free units; UNITS: none. */
static uint64_t first_fit(const struct model *model, uint64_t count)
{
    uint64_t run = 0;
    for (uint64_t unit = 0; unit < UNITS; unit++) {
        run = model->is_free[unit] ? run + 1 : 0;
        if (run == count) {
            return unit + 1 - count;
        }
    }
    return UNITS;
}

static void mark(struct model *model, uint64_t offset, uint64_t count, bool is_free)
{
    for (uint64_t unit = offset; unit < offset + count; unit++) {
        assert_true(model->is_free[unit] != is_free);
        model->is_free[unit] = is_free;
    }
}

static void put(struct model *model, uint64_t offset, uint64_t count)
{
    uint64_t first = 0;
    uint64_t end = 0;
    mark(model, offset, count, true);
    extents_put(&model->extents, offset, count, &first, &end);
    assert_true(first <= offset && offset + count <= end);
    assert_true(first == 0 || !model->is_free[first - 1]);
    assert_true(end == UNITS || !model->is_free[end]);
    for (uint64_t unit = first; unit < end; unit++) {
        assert_true(model->is_free[unit]);
    }
}

static void test_any_order_of_calls(void **state)
{
    (void)state;
    static struct model model;
    struct {
        uint64_t offset, count;
    } blocks[BLOCKS_MAX];
    size_t block_count = 0;
    struct prng prng = {.state = 7};
    begin(&model);
    for (int step = 0; step < 20000; step++) {
        bool grows = prng_uniform(&prng, 1000) < (uint64_t)(step / 100 % 2 == 0 ? 700 : 300);
        if (grows && block_count < BLOCKS_MAX) {
            uint64_t count = 1 + prng_uniform(&prng, prng_uniform(&prng, 40) + 1);
            uint64_t wanted = first_fit(&model, count);
            uint64_t offset = UNITS;
            assert_int_equal(extents_take(&model.extents, count, &offset), wanted < UNITS ? 1 : 0);
            assert_int_equal(offset, wanted);
            if (wanted < UNITS) {
                mark(&model, offset, count, false);
                blocks[block_count].offset = offset;
                blocks[block_count++].count = count;
            }
        } else if (block_count > 0) {
            size_t chosen = prng_uniform(&prng, block_count);
            put(&model, blocks[chosen].offset, blocks[chosen].count);
            blocks[chosen] = blocks[--block_count];
        }
    }
    while (block_count > 0) {
        block_count--;
        put(&model, blocks[block_count].offset, blocks[block_count].count);
    }
    assert_int_equal(model.extents.bytes, UNITS);
    assert_int_equal(model.extents.root->bytes, UNITS);
}

static void test_cut_out_of_the_middle(void **state)
{
    (void)state;
    static struct model model;
    begin(&model);
    static const struct {
        uint64_t offset, count;
    } cuts[] = {{100, 50}, {0, 10}, {500, 12}, {150, 350}, {10, 90}};
    for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
        extents_cut(&model.extents, cuts[i].offset, cuts[i].count);
        mark(&model, cuts[i].offset, cuts[i].count, false);
        uint64_t offset = UNITS;
        uint64_t wanted = first_fit(&model, 5);
        assert_int_equal(extents_take(&model.extents, 5, &offset), wanted < UNITS ? 1 : 0);
        assert_int_equal(offset, wanted);
        if (wanted < UNITS) {
            mark(&model, offset, 5, false);
            put(&model, offset, 5);
        }
    }
    assert_null(model.extents.root);
    assert_int_equal(model.extents.bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_order_of_calls),
        cmocka_unit_test(test_cut_out_of_the_middle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
