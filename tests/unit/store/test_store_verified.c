/* SPDX-License-Identifier: Apache-2.0
 * Which states were found equal, as both peers keep it: of checkpoints, and each position of a job
 * that is recorded, until a plan cuts it off. */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/store/store_fixture.h"

static bool holds(struct store *store, const char *part)
{
    char *text = store_text(store);
    bool found = strstr(text, part) != NULL;
    free(text);
    return found;
}

static void check_store(struct store *store, struct cadre_error *error)
{
    assert_ok(COMMIT(store, true, error, record_job(1, 1), record_started(1, 1),
                  record_plan(1, 1, 0), record_watermark(1, 1, 60)),
        error);
    assert_false(holds(store, "  verified "));
    assert_ok(COMMIT(store, true, error, record_verified(1, 0, 5)), error);
    assert_true(holds(store, "  verified 0 5\n"));
    assert_ok(COMMIT(store, true, error, record_verified(1, 30, UINT64_MAX - 1)), error);
    assert_true(holds(store, "  verified 30 fffffffffffffffe\n"));
    /* What is newer of the two counts. */
    assert_ok(COMMIT(store, true, error, record_checkpoint_of(1, 20, "twenty", UINT64_MAX)), error);
    assert_true(holds(store, "newest:  checkpoint at 20 \"twenty\""));
    assert_true(holds(store, " digest ffffffffffffffff\n"));
    assert_true(holds(store, "  verified 30 fffffffffffffffe\n"));
    assert_ok(COMMIT(store, true, error, record_checkpoint_of(1, 40, "forty", 7)), error);
    assert_true(holds(store, "  verified 40 7\n"));
    assert_ok(COMMIT(store, true, error, record_checkpoint(1, 50, "fifty")), error);
    assert_true(holds(store, "  verified 40 7\n"));
    assert_true(holds(store, "  equal at 0 5\n"
                             "  equal at 20 ffffffffffffffff\n"
                             "  equal at 30 fffffffffffffffe\n"
                             "  equal at 40 7\n"
                             "  checkpoint at 20 "));
    /* What is kept of files is another matter. */
    assert_ok(COMMIT(store, true, error, record_dropped(1, 40)), error);
    assert_true(holds(store, "  verified 40 7\n"));
    /* A plan cuts off what lies beyond its beginning. */
    assert_ok(COMMIT(store, true, error, record_plan(1, 2, 30), record_watermark(1, 2, 60)), error);
    assert_true(holds(store, "  verified 30 fffffffffffffffe\n"));
    assert_ok(COMMIT(store, true, error, record_plan(1, 3, 29), record_watermark(1, 3, 60)), error);
    assert_true(holds(store, "  verified 20 ffffffffffffffff\n"));
    assert_ok(COMMIT(store, true, error, record_verified(1, 29, 8)), error);
    assert_ok(COMMIT(store, true, error, record_verified(1, 29, 9)), error); /* once more */
    assert_true(holds(store, "  verified 29 9\n"));
    assert_true(holds(store, "  equal at 0 5\n"
                             "  equal at 20 ffffffffffffffff\n"
                             "  equal at 29 9\n"
                             "  checkpoint at 20 "));
}

static void of_memory(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct store *store = NULL;
    assert_ok(store_memory_open(&store, &error), &error);
    check_store(store, &error);
    /* Its fsync may lag: then it is not there. */
    assert_ok(COMMIT(store, false, &error, record_verified(1, 31, 8)), &error);
    assert_true(holds(store, "  verified 31 8\n"));
    store_memory_lose_tail(store);
    assert_true(holds(store, "  verified 29 9\n"));
    store->ops->close(store);
}

static void of_sqlite(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct store *store = NULL;
    char path[TEST_PATH_BYTES];
    assert_ok(
        store_sqlite_open(test_path(path, test_temp_dir(), "ledger.db"), &store, &error), &error);
    check_store(store, &error);
    store->ops->close(store);
    assert_ok(store_sqlite_open(path, &store, &error), &error); /* its checksums are right */
    assert_true(holds(store, "  verified 29 9\n"));
    assert_true(holds(store, " digest ffffffffffffffff\n"));
    assert_ok(COMMIT(store, true, &error, record_forgotten(1)), &error);
    assert_store_text(store, "");
    store->ops->close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_memory),
        cmocka_unit_test(of_sqlite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
