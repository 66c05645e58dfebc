/* SPDX-License-Identifier: Apache-2.0
 * A disk that fills up while the store writes: a commit is refused as a whole, and what was
 * acknowledged is there when the store is opened again. */
#include <stdlib.h>
#include <unistd.h>

#include "tests/unit/store/small_disk.h"
#include "tests/unit/store/store_fixture.h"

static const char *disk;

static void a_full_disk_spoils_nothing(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct store *store = NULL;
    char path[TEST_PATH_BYTES];
    assert_ok(store_sqlite_open(test_path(path, disk, "ledger.db"), &store, &error), &error);
    uint64_t jobs = 0;
    cadre_status status;
    do {
        status = COMMIT(store, jobs % 2 == 0, &error, record_job(jobs + 1, 1),
            record_ended(jobs + 1, JOB_FAILED, "a text that takes room on the disk"));
        jobs += status == CADRE_OK ? 1 : 0;
    } while (status == CADRE_OK && jobs < 10000);
    assert_int_equal(status, CADRE_RESOURCE_EXHAUSTED);
    assert_true(jobs > 0);
    char *before = store_text(store);
    store->ops->close(store);
    store = NULL;
    /* Opening needs a little room: an operator makes some. */
    small_disk_grow("1m");
    assert_ok(store_sqlite_open(path, &store, &error), &error);
    assert_store_text(store, before);
    assert_int_equal(store->ops->job_id_max(store), jobs);
    assert_ok(COMMIT(store, true, &error, record_job(jobs + 1, 1)), &error);
    store->ops->close(store);
    free(before);
}

static void a_disk_that_is_full_from_the_start_is_reported(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct store *store = NULL;
    char path[TEST_PATH_BYTES];
    small_disk_keep_free(0);
    cadre_status status = store_sqlite_open(test_path(path, disk, "second.db"), &store, &error);
    assert_int_equal(status, CADRE_RESOURCE_EXHAUSTED);
    assert_null(store);
    assert_int_equal(unlink(test_path(path, disk, "filler")), 0);
    assert_ok(store_sqlite_open(test_path(path, disk, "second.db"), &store, &error), &error);
    store->ops->close(store);
}

static void a_copy_that_does_not_fit_leaves_nothing(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct store *store = NULL;
    char path[TEST_PATH_BYTES];
    char copy[TEST_PATH_BYTES];
    assert_ok(store_sqlite_open(test_path(path, disk, "third.db"), &store, &error), &error);
    assert_ok(COMMIT(store, true, &error, record_job(1, 1)), &error);
    small_disk_keep_free(16384);
    assert_error(store_sqlite_copy(store, test_path(copy, disk, "copy.db"), &error),
        CADRE_RESOURCE_EXHAUSTED, &error, "copy.db");
    assert_int_equal(count_names(disk, "copy.db"), 0);
    assert_int_equal(unlink(test_path(copy, disk, "filler")), 0);
    assert_ok(COMMIT(store, true, &error, record_job(2, 1)), &error);
    store->ops->close(store);
}

int main(void)
{
    disk = small_disk_open("192k");
    if (disk == NULL) {
        test_skip("this user may not mount a small file system of its own");
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_full_disk_spoils_nothing),
        cmocka_unit_test(a_disk_that_is_full_from_the_start_is_reported),
        cmocka_unit_test(a_copy_that_does_not_fit_leaves_nothing)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    small_disk_close();
    return failed;
}
