/* SPDX-License-Identifier: Apache-2.0
 * A ledger is read part by part, from each store alike. */
#include <stdio.h>

#include "common/pure/assert.h"
#include "tests/unit/store/store_fixture.h"

static struct cadre_error error;

struct reported {
    uint64_t numbers[8];
    size_t count;
    uint64_t newest[8];
    size_t newest_count;
};

static void note_plan(void *user, const struct store_plan *plan)
{
    struct reported *reported = user;
    reported->numbers[reported->count++] = plan->generation.number;
}

static void note_epoch(void *user, const struct store_epoch *epoch)
{
    struct reported *reported = user;
    reported->numbers[reported->count++] = 10 * epoch->cursor.stream + epoch->cursor.epoch;
}

static void note_newest(void *user, const struct store_epoch *epoch)
{
    struct reported *reported = user;
    reported->newest[reported->newest_count++] =
        100 * epoch->cursor.stream + 10 * epoch->cursor.epoch + epoch->consumption.steps;
}

static void note_verified(void *user, const struct verified *verified)
{
    struct reported *reported = user;
    reported->numbers[reported->count++] = 100 * verified->position + verified->digest;
}

static void note_newest_verified(void *user, const struct verified *verified)
{
    struct reported *reported = user;
    reported->newest[reported->newest_count++] = verified->position;
}

static struct reported reported_of(struct store *store, struct store_walk walk)
{
    struct reported reported = {.count = 0};
    walk.user = &reported;
    assert_ok(store->ops->ledger(store, (struct job_id){1}, &walk, &error), &error);
    return reported;
}

#define assert_reported(reported, ...)                                                             \
    do {                                                                                           \
        const uint64_t wanted[] = {__VA_ARGS__};                                                   \
        assert_int_equal((reported).count, CADRE_COUNT_OF(wanted));                                \
        assert_memory_equal((reported).numbers, wanted, sizeof wanted);                            \
    } while (0)

/* From a key on, which need not be there, as many as are asked for. */
static void assert_parts(struct store *store)
{
    assert_ok(COMMIT(store, true, &error, record_job(1, 1), record_job(2, 1), record_plan(1, 1, 0),
                  record_plan(1, 2, 0), record_plan(1, 3, 0), record_consumed(1, 1, 0, 0, 1),
                  record_consumed(1, 1, 2, 2, 1), record_consumed(1, 1, 3, 4, 1),
                  record_consumed(1, 1, 3, 6, 3), record_consumed(1, 3, 0, 8, 2),
                  record_consumed(2, 1, 1, 0, 1), record_consumed(1, 3, 1, 10, 4),
                  record_consumed(2, 4, 1, 0, 1)),
        &error);
    struct reported reported = reported_of(store, (struct store_walk){.plan_row = note_plan});
    assert_reported(reported, 1, 2, 3);
    reported = reported_of(
        store, (struct store_walk){.plan_row = note_plan, .generation = 2, .plans_max = 1});
    assert_reported(reported, 2);
    reported = reported_of(store, (struct store_walk){.plan_row = note_plan, .generation = 4});
    assert_int_equal(reported.count, 0);
    reported = reported_of(store, (struct store_walk){.epoch_row = note_epoch});
    assert_reported(reported, 10, 12, 13, 30, 31);
    reported = reported_of(store,
        (struct store_walk){.epoch_row = note_epoch, .stream = 1, .epoch = 1, .epochs_max = 3});
    assert_reported(reported, 12, 13, 30);
    reported =
        reported_of(store, (struct store_walk){.epoch_row = note_epoch, .stream = 3, .epoch = 1});
    assert_reported(reported, 31);
    reported = reported_of(
        store, (struct store_walk){.newest_row = note_newest, .stream = 2, .epochs_max = 1});
    assert_int_equal(reported.newest_count, 2);
    assert_int_equal(reported.newest[0], 133);
    assert_int_equal(reported.newest[1], 314);
}

static void assert_verified(struct store *store)
{
    struct store_walk walk = {
        .verified_row = note_verified, .newest_verified_row = note_newest_verified};
    struct reported reported = reported_of(store, walk);
    assert_int_equal(reported.count + reported.newest_count, 0);
    assert_ok(COMMIT(store, true, &error, record_verified(2, 9, 1), record_verified(1, 8, 4),
                  record_verified(1, 0, 1), record_verified(1, 2, 2), record_verified(1, 5, 3)),
        &error);
    reported = reported_of(store, walk);
    assert_reported(reported, 1, 202, 503, 804);
    assert_int_equal(reported.newest_count, 1);
    assert_int_equal(reported.newest[0], 8);
    walk.position = 1;
    walk.verified_max = 2;
    reported = reported_of(store, walk);
    assert_reported(reported, 202, 503);
    assert_int_equal(reported.newest[0], 8);
    walk.position = 9;
    reported = reported_of(store, walk);
    assert_int_equal(reported.count, 0);
    assert_int_equal(reported.newest[0], 8);
}

static void in_memory(void **state)
{
    (void)state;
    struct store *store = NULL;
    assert_ok(store_memory_open(&store, &error), &error);
    assert_parts(store);
    assert_verified(store);
    store->ops->close(store);
}

static void in_sqlite(void **state)
{
    (void)state;
    char path[TEST_PATH_BYTES];
    struct store *store = NULL;
    test_path(path, test_temp_dir(), "ledger.db");
    assert_ok(store_sqlite_open(path, &store, &error), &error);
    assert_parts(store);
    assert_verified(store);
    store->ops->close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(in_memory), cmocka_unit_test(in_sqlite)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
