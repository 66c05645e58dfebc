/* SPDX-License-Identifier: Apache-2.0
 * Row numbers by shards: every row comes to its owner, and back to its place. */
#include <string.h>

#include "common/pure/prng.h"
#include "tests/lib/changer.h"
#include "tests/lib/test.h"
#include "worker/library/runtime/served/row_groups.h"

#define COUNT 100
#define LONG  20000
#define CALLS 200

static void rows_come_to_their_owners_and_back(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct prng prng = {.state = 3};
    for (int round = 0; round < 200; round++) {
        struct partition_layout layout = {.rows = 1 + prng_uniform(&prng, 40)};
        layout.shards = 1 + prng_uniform(&prng, layout.rows);
        int64_t ids[COUNT];
        int64_t grouped[COUNT];
        int64_t back[COUNT];
        size_t count = prng_uniform(&prng, COUNT + 1);
        for (size_t i = 0; i < count; i++) {
            ids[i] = (int64_t)prng_uniform(&prng, layout.rows);
        }
        struct row_groups groups;
        assert_ok(row_groups_make("w", layout, ids, count, &groups, &error), &error);
        for (uint64_t shard = 0; shard < layout.shards; shard++) {
            for (size_t i = groups.begins[shard]; i < groups.begins[shard + 1]; i++) {
                uint64_t row = partition_first(layout, shard) + (uint64_t)groups.ids[i];
                assert_int_equal(partition_owner(layout, row), shard);
                size_t at = groups.positions == NULL ? i : groups.positions[i];
                assert_int_equal(ids[at], row);
            }
        }
        assert_int_equal(groups.begins[layout.shards], count);
        if (groups.positions != NULL) {
            row_groups_gather(&groups, sizeof ids[0], ids, grouped);
            row_groups_scatter(&groups, sizeof ids[0], grouped, back);
            assert_memory_equal(back, ids, count * sizeof ids[0]);
        }
        row_groups_clear(&groups);
    }
}

static void rows_in_order_stay_where_they_are(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct partition_layout layout = {.rows = 8, .shards = 2};
    int64_t ids[] = {3, 0, 7, 4};
    struct row_groups groups;
    assert_ok(row_groups_make("w", layout, ids, 4, &groups, &error), &error);
    assert_null(groups.positions);
    assert_int_equal(groups.ids[3], 0);
    row_groups_clear(&groups);
    ids[1] = 5;
    assert_ok(row_groups_make("w", layout, ids, 4, &groups, &error), &error);
    assert_null(groups.positions);
    row_groups_clear(&groups);
    ids[3] = 1;
    assert_ok(row_groups_make("w", layout, ids, 4, &groups, &error), &error);
    assert_non_null(groups.positions);
    row_groups_clear(&groups);
}

static void rows_that_are_not_there_are_named(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    const int64_t bad[] = {-1, 8, INT64_MIN, INT64_MAX};
    struct partition_layout layout = {.rows = 8, .shards = 3};
    struct row_groups groups;
    for (size_t i = 0; i < 4; i++) {
        int64_t ids[] = {0, bad[i]};
        assert_error(row_groups_make("w", layout, ids, 2, &groups, &error), CADRE_OUT_OF_RANGE,
            &error, "rows 0 to 7");
        row_groups_clear(&groups);
    }
    layout = (struct partition_layout){.rows = 0, .shards = 1};
    assert_error(row_groups_make("w", layout, bad, 1, &groups, &error), CADRE_OUT_OF_RANGE, &error,
        "it has none");
    row_groups_clear(&groups);
}

/* By another thread of the program: what a call was given is read once. */
static void rows_that_change_meanwhile_come_to_some_owner(void **state)
{
    (void)state;
    static int64_t ids[LONG];
    static const struct partition_layout layout = {.rows = 8, .shards = 4};
    static const int64_t others[] = {0, 5, 8, INT64_MIN};
    struct cadre_error error = {0};
    for (size_t k = 0; k < sizeof others / sizeof others[0]; k++) {
        struct changer changer;
        changer_start(&changer, &ids[LONG - 1], 7, others[k]);
        for (int i = 0; i < CALLS; i++) {
            struct row_groups groups;
            cadre_status status = row_groups_make("w", layout, ids, LONG, &groups, &error);
            assert_true(status == CADRE_OK || status == CADRE_OUT_OF_RANGE);
            for (size_t row = 0; status == CADRE_OK && row < LONG; row++) {
                assert_in_range(groups.ids[row], 0, 1);
            }
            row_groups_clear(&groups);
        }
        changer_stop(&changer);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_come_to_their_owners_and_back),
        cmocka_unit_test(rows_in_order_stay_where_they_are),
        cmocka_unit_test(rows_that_are_not_there_are_named),
        cmocka_unit_test(rows_that_change_meanwhile_come_to_some_owner),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
