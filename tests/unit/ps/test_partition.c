/* SPDX-License-Identifier: Apache-2.0
 * How variables are cut, and which server has what. */
#include "tests/lib/test.h"
#include "worker/library/ps/partition.h"

static uint64_t count_of(struct partition_rule rule, int64_t rows, int64_t columns, uint64_t bytes)
{
    const int64_t dims[] = {rows, columns};
    struct cadre_error error = {0};
    assert_ok(partition_rule_check(&rule, &error), &error);
    return partition_count(&rule, dims, 2, 0, bytes);
}

static void a_fixed_number_is_at_most_the_rows(void **state)
{
    (void)state;
    const struct partition_rule fixed = {.kind = PARTITION_FIXED, .shards = 4};
    assert_int_equal(count_of(fixed, 11, 3, 4), 4);
    assert_int_equal(count_of(fixed, 3, 11, 4), 3);
    assert_int_equal(count_of(fixed, 1, 11, 4), 1);
    assert_int_equal(count_of(fixed, 0, 11, 4), 1);
    assert_int_equal(partition_count(&fixed, NULL, 0, 0, 4), 1);
}

static void sizes_decide(void **state)
{
    (void)state;
    const struct partition_rule least = {.kind = PARTITION_MIN_SIZE, .shards = 8, .bytes = 16};
    assert_int_equal(count_of(least, 10, 1, 4), 3); /* of 16, 12 and 12 bytes */
    assert_int_equal(count_of(least, 4, 1, 4), 1);
    assert_int_equal(count_of(least, 100, 1, 4), 8);
    assert_int_equal(count_of(least, 5, 0, 4), 1);
    const struct partition_rule whole = {.kind = PARTITION_MIN_SIZE, .shards = 1, .bytes = 16};
    assert_int_equal(count_of(whole, 100, 1, 4), 1);
    const struct partition_rule most = {.kind = PARTITION_MAX_SIZE, .bytes = 30};
    assert_int_equal(count_of(most, 7, 3, 4), 4);  /* two rows of 12 bytes each */
    assert_int_equal(count_of(most, 7, 10, 4), 7); /* a row is larger than a shard may be */
    assert_int_equal(count_of(most, 7, 0, 4), 1);
    const struct partition_rule capped = {.kind = PARTITION_MAX_SIZE, .bytes = 30, .shards = 3};
    assert_int_equal(count_of(capped, 7, 3, 4), 3);
    /* More bytes than there are numbers for. */
    assert_int_equal(count_of(most, INT64_MAX, INT64_MAX, 8), INT64_MAX);
    assert_int_equal(count_of(least, INT64_MAX, INT64_MAX, 8), 8);
}

static void rules_that_are_none(void **state)
{
    (void)state;
    static const struct {
        struct partition_rule rule;
        const char *part;
    } cases[] = {
        {{.kind = PARTITION_FIXED}, "a fixed number of 0 shards"},
        {{.kind = PARTITION_MIN_SIZE, .bytes = 1}, "at most 0 shards"},
        {{.kind = PARTITION_MIN_SIZE, .shards = 1}, "0 bytes"},
        {{.kind = PARTITION_MAX_SIZE}, "0 bytes"},
        {{.kind = (enum partition_kind)7}, "partitioner 7"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct cadre_error error = {0};
        assert_error(partition_rule_check(&cases[i].rule, &error), CADRE_INVALID_ARGUMENT, &error,
            cases[i].part);
    }
}

static void what_a_function_gives_is_checked(void **state)
{
    (void)state;
    const int64_t dims[] = {5, 6};
    struct cadre_error error = {0};
    uint64_t shards = 0;
    assert_ok(partition_from_counts((const int64_t[]){3, 1}, 2, dims, 2, &shards, &error), &error);
    assert_int_equal(shards, 3);
    assert_ok(partition_from_counts((const int64_t[]){9, 1}, 2, dims, 2, &shards, &error), &error);
    assert_int_equal(shards, 5);
    assert_error(partition_from_counts((const int64_t[]){3}, 1, dims, 2, &shards, &error),
        CADRE_INVALID_ARGUMENT, &error, "1 numbers of pieces for 2 axes");
    assert_error(partition_from_counts(NULL, 0, dims, 2, &shards, &error), CADRE_INVALID_ARGUMENT,
        &error, "0 numbers");
    assert_error(partition_from_counts((const int64_t[]){0, 1}, 2, dims, 2, &shards, &error),
        CADRE_INVALID_ARGUMENT, &error, "axis 0 into 0 pieces");
    assert_error(partition_from_counts((const int64_t[]){2, 2}, 2, dims, 2, &shards, &error),
        CADRE_INVALID_ARGUMENT, &error, "axis 1 into 2 pieces");
}

/* For all layouts that are small: shards are where the one before ends, and own their rows. */
static void rows_are_in_shards_in_order(void **state)
{
    (void)state;
    for (uint64_t rows = 0; rows <= 40; rows++) {
        for (uint64_t shards = 1; shards <= (rows == 0 ? 1 : rows); shards++) {
            const struct partition_layout layout = {.rows = rows, .shards = shards};
            uint64_t next = 0;
            for (uint64_t shard = 0; shard < shards; shard++) {
                uint64_t has = partition_rows(layout, shard);
                assert_int_equal(partition_first(layout, shard), next);
                assert_true(shard == 0 || has <= partition_rows(layout, shard - 1));
                assert_true(has + 1 >= partition_rows(layout, 0));
                for (uint64_t row = next; row < next + has; row++) {
                    assert_int_equal(partition_owner(layout, row), shard);
                }
                next += has;
            }
            assert_int_equal(next, rows);
            assert_int_equal(partition_first(layout, shards), rows);
        }
    }
}

/* Scalars a and b, then c in 4 shards, then d. */
static void servers_take_turns(void **state)
{
    (void)state;
    static const uint32_t wanted[] = {0, 1, 2, 0, 1, 2, 0};
    uint64_t counter = 0;
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        assert_int_equal(partition_next_server(&counter, 3), wanted[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fixed_number_is_at_most_the_rows),
        cmocka_unit_test(sizes_decide),
        cmocka_unit_test(rules_that_are_none),
        cmocka_unit_test(what_a_function_gives_is_checked),
        cmocka_unit_test(rows_are_in_shards_in_order),
        cmocka_unit_test(servers_take_turns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
