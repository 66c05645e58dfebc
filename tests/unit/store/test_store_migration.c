/* SPDX-License-Identifier: Apache-2.0
 * A file that version 1, 3, 5 or 7 made: this version reads what it holds, and a migration that
 * fails leaves it as it was. */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/fault.h"
#include "tests/unit/store/store_fixture.h"
#include "tests/unit/store/version_1.h"
#include "tests/unit/store/version_3.h"
#include "tests/unit/store/version_5.h"
#include "tests/unit/store/version_7.h"

/* Job 1 succeeded, job 2 runs, job 3 is queued. */
static const char contents[] =
    "INSERT INTO meta VALUES(1,"
    " x'000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f', 5);"
    "INSERT INTO job VALUES(1, x'6f6e65', 2, 4, 11, 12, 13, 2, 5, 0, 0, 'done');"
    "INSERT INTO job VALUES(2, x'74776f', 1, 0, 21, 22, 0, 1, 1, 0, 0, '');"
    "INSERT INTO job VALUES(3, x'746872', 3, -1, 31, 0, 0, 0, 1, 0, 0, '');"
    "INSERT INTO plan VALUES(1, 1, -2, 0, 0, 0,"
    " x'000000000100000000000000010000000200000000000000');"
    "INSERT INTO plan VALUES(2, 1, 7, 0, 0, 0, x'000000000100000000000000');"
    "INSERT INTO watermark VALUES(1, 1, -2, 60, 1, 2, 40, 20);"
    "INSERT INTO watermark VALUES(2, 1, 7, 5, 1, 0, 0, 0);"
    "INSERT INTO end_of_data VALUES(1, 1, 2, 40, 20);"
    "INSERT INTO checkpoint VALUES(1, 60, 1, -2, 0, 'model.safetensors', 9, x'00');"
    "INSERT INTO done VALUES(1, 1, -2, 60);"
    "INSERT INTO task_exit VALUES(1, 0, 1, 4, 0, 0, '');";

static void make(const char *path, const char *more)
{
    version_1_make(path, contents, more);
}

static int version_of(const char *path)
{
    sqlite3 *database = NULL;
    sqlite3_stmt *row = NULL;
    assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
    assert_int_equal(
        sqlite3_prepare_v2(database, "SELECT version FROM meta", -1, &row, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(row), SQLITE_ROW);
    int version = sqlite3_column_int(row, 0);
    sqlite3_finalize(row);
    sqlite3_close(database);
    return version;
}

/* Its end has the time of the migration, which is not known beforehand. */
static cadre_status check_times(void *user, const struct store_job *job, struct cadre_error *error)
{
    (void)user;
    (void)error;
    assert_int_equal(job->ended_us > 1000, job->restore.job.n == 2);
    return CADRE_OK;
}

static void assert_migrated(struct store *store)
{
    struct cadre_error error;
    uint8_t secret[STORE_SECRET_BYTES];
    store->ops->secret(store, secret);
    for (uint8_t i = 0; i < STORE_SECRET_BYTES; i++) {
        assert_int_equal(secret[i], i);
    }
    assert_int_equal(store->ops->job_id_max(store), 5);
    assert_ok(store->ops->load(store, check_times, NULL, &error), &error);
    assert_ok(COMMIT(store, true, &error, record_forgotten(2)), &error);
    assert_store_text(store,
        "job 1 one3 tasks 2-2 priority 4 restarts 0 wait 0 stall 0 at 11 12 13 incarnations 2 "
        "position 60 succeeded started code 0 exit 0 \"done\"\n"
        "  restarts 0 generation 1/fffffffffffffffe of 2 resume 0 released 60 (1,2: first 40 begin "
        "40 "
        "steps 20)\n"
        "  done at 60\n"
        "  at stream 1 epoch 2 steps 20 applied 0\n"
        "  task 0.1 exited code 0 signal 0 \"\"\n"
        "  plan 1/fffffffffffffffe after 0/0 resume 0 members 2 at 0\n"
        "job 3 thr3 tasks 3-3 priority -1 restarts 0 wait 0 stall 0 at 31 0 0 incarnations 0 "
        "position 0 queued code 0 exit 0 \"\"\n"
        "  restarts 0 generation 0/0 of 0 resume 0 released 0 (0,0: first 0 begin 0 steps 0)\n");
}

static void everything_of_version_1_is_reported(void **state)
{
    (void)state;
    char path[TEST_PATH_BYTES];
    struct cadre_error error;
    struct store *store = NULL;
    make(test_path(path, test_temp_dir(), "ledger.db"), "");
    assert_ok(store_sqlite_open(path, &store, &error), &error);
    char *text = store_text(store);
    assert_non_null(strstr(text, " failed started code 14 exit 1 \"it ran while the coordinator"));
    free(text);
    assert_migrated(store);
    /* And everything new fits in. */
    assert_ok(COMMIT(store, true, &error, record_forgotten(1)), &error);
    assert_ok(COMMIT(store, true, &error, record_forgotten(3)), &error);
    for (unsigned i = 0; i < STORY_COMMITS; i++) {
        assert_ok(story_commit(store, i, &error), &error);
    }
    char *story = story_text(STORY_COMMITS);
    assert_store_text(store, story);
    store->ops->close(store);
    store = NULL;
    assert_ok(store_sqlite_open(path, &store, &error), &error);
    assert_store_text(store, story);
    store->ops->close(store);
    assert_int_equal(version_of(path), STORE_VERSION);
    free(story);
}

/* As a cluster of version 1 left it. */
static void a_ledger_of_a_cluster_is_reported(void **state)
{
    (void)state;
    char path[TEST_PATH_BYTES];
    struct cadre_error error;
    struct store *store = NULL;
    version_1_make(test_path(path, test_temp_dir(), "ledger.db"), version_1_ledger, "");
    assert_ok(store_sqlite_open(path, &store, &error), &error);
    char *text = store_text(store);
    static const char *const parts[] = {
        " position 20 succeeded started code 0 exit 0 \"finished after 20 steps\"\n",
        "  done at 20\n  at stream 1 epoch 0 steps 20 applied 0\n",
        " failed started code 10 exit 1 \"task 0 on worker w1 exited with status 1\"\n",
        " position 0 cancelled started code 1 exit 130 \"cancelled\"\n",
        "  task 1.2 exited code 1 signal 0 \"tests/integration/trainer.c:68: cadre_run(",
        " failed started code 14 exit 1 \"it ran while the coordinator was replaced",
        " tasks 2-2 priority -2 ", " incarnations 0 position 0 queued code 0 exit 0 \"\"\n"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (strstr(text, parts[i]) == NULL) {
            fail_msg("no \"%s\" in %s", parts[i], text);
        }
    }
    free(text);
    store->ops->close(store);
}

static void a_migration_that_fails_changes_nothing(void **state)
{
    (void)state;
    struct cadre_error error;
    unsigned failures = 0;
    for (uint64_t nth = 1;; nth++) {
        char path[TEST_PATH_BYTES];
        char name[32];
        struct store *store = NULL;
        snprintf(name, sizeof name, "%u.db", (unsigned)nth);
        make(test_path(path, test_temp_dir(), name), "");
        fault_arm("store.run", nth);
        cadre_status status = store_sqlite_open(path, &store, &error);
        bool met = fault_disarm();
        if (status != CADRE_OK) {
            assert_true(met);
            assert_int_equal(version_of(path), 1);
            assert_ok(store_sqlite_open(path, &store, &error), &error);
            failures++;
        }
        assert_migrated(store);
        store->ops->close(store);
        if (!met) {
            break;
        }
    }
    assert_true(failures >= 6);
}

static cadre_status check_first(void *user, const struct store_job *job, struct cadre_error *error)
{
    (void)error;
    assert_true(job->first_us == job->started_us);
    *(unsigned *)user += job->started_us > 0 ? 1 : 0;
    return CADRE_OK;
}

/* A job that was started has, for its limit on time, run since then. */
static void everything_of_version_3_is_reported(void **state)
{
    (void)state;
    char newer[TEST_PATH_BYTES];
    char path[TEST_PATH_BYTES];
    struct cadre_error error;
    struct store *store = NULL;
    assert_ok(
        store_sqlite_open(test_path(newer, test_temp_dir(), "newer.db"), &store, &error), &error);
    for (unsigned i = 0; i < STORY_COMMITS; i++) {
        assert_ok(story_commit(store, i, &error), &error);
    }
    store->ops->close(store);
    version_3_make(test_path(path, test_temp_dir(), "ledger.db"), newer);
    assert_int_equal(version_of(path), 3);
    char *story = story_text(STORY_COMMITS);
    for (int opened = 0; opened < 2; opened++) {
        unsigned started = 0;
        assert_ok(store_sqlite_open(path, &store, &error), &error);
        assert_store_text(store, story);
        assert_ok(store->ops->load(store, check_first, &started, &error), &error);
        assert_int_equal(started, 1);
        assert_int_equal(store->ops->job_id_max(store), 2);
        store->ops->close(store);
        assert_int_equal(version_of(path), STORE_VERSION);
    }
    free(story);
}

static void execute(const char *path, const char *sql)
{
    sqlite3 *database = NULL;
    assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
    assert_int_equal(sqlite3_exec(database, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(database);
}

/* Damaged jobs are reported. */
static void count_damages(void *user, struct job_id job, const char *what)
{
    assert_int_equal(job.n, 7);
    assert_non_null(strstr(what, "its checkpoints (step 40)"));
    ++*(unsigned *)user;
}

/* Its rows have checksums: those that are whole get new ones, and what is damaged stays damaged. */
static void everything_of_version_5_is_reported(void **state)
{
    (void)state;
    char path[TEST_PATH_BYTES];
    struct cadre_error error;
    struct store *store = NULL;
    unsigned damages = 0;
    test_path(path, test_temp_dir(), "ledger.db");
    assert_ok(store_sqlite_open(path, &store, &error), &error);
    for (unsigned i = 0; i < STORY_COMMITS; i++) {
        assert_ok(story_commit(store, i, &error), &error);
    }
    assert_ok(COMMIT(store, true, &error, record_restoring_job(7, 1, 33), record_started(7, 1),
                  record_checkpoint(7, 40, "forty"), record_checkpoint(7, 60, "sixty")),
        &error);
    char *text = store_text(store);
    store->ops->close(store);
    version_5_make(path);
    assert_int_equal(version_of(path), 5);
    for (int opened = 0; opened < 2; opened++) {
        assert_ok(store_sqlite_open(path, &store, &error), &error);
        assert_store_text(store, text);
        store->ops->close(store);
        assert_int_equal(version_of(path), STORE_VERSION);
    }
    free(text);
    version_5_make(path);
    execute(path, "UPDATE checkpoint SET manifest_bytes = 78 WHERE job = 7 AND position = 40");
    assert_ok(store_sqlite_open(path, &store, &error), &error);
    assert_ok(store->ops->check(store, count_damages, &damages, &error), &error);
    assert_int_equal(damages, 1);
    store->ops->close(store);
}

/* It is a copy of no log; a migration that fails leaves it of version 7. */
static void everything_of_version_7_is_reported(void **state)
{
    (void)state;
    char path[TEST_PATH_BYTES];
    struct cadre_error error;
    struct store *store = NULL;
    uint8_t secret[STORE_SECRET_BYTES];
    uint8_t again[STORE_SECRET_BYTES];
    unsigned failures = 0;
    test_path(path, test_temp_dir(), "ledger.db");
    assert_ok(store_sqlite_open(path, &store, &error), &error);
    for (unsigned i = 0; i < STORY_COMMITS; i++) {
        assert_ok(story_commit(store, i, &error), &error);
    }
    store->ops->secret(store, secret);
    const struct term term = store->ops->term(store);
    store->ops->close(store);
    version_7_make(path);
    cadre_status status;
    do {
        assert_int_equal(version_of(path), 7);
        fault_arm("store.run", failures + 1);
        status = store_sqlite_open(path, &store, &error);
        failures += fault_disarm() ? 1 : 0;
    } while (status != CADRE_OK);
    assert_true(failures >= 5);
    struct store_position position;
    struct store_cluster cluster;
    char *story = story_text(STORY_COMMITS);
    assert_store_text(store, story);
    store->ops->secret(store, again);
    assert_memory_equal(secret, again, sizeof secret);
    assert_true(store->ops->term(store).cluster == term.cluster);
    store->ops->position(store, &position);
    store->ops->cluster(store, &cluster);
    assert_int_equal(position.index, 0);
    assert_true(cluster.id_high == 0 && cluster.id_low == 0);
    store->ops->close(store);
    assert_int_equal(version_of(path), STORE_VERSION);
    free(story);
}

/* A damaged file of version 1 stays of version 1. */
static void what_cannot_be_migrated_is_reported(void **state)
{
    (void)state;
    char path[TEST_PATH_BYTES];
    struct cadre_error error;
    struct store *store = NULL;
    make(test_path(path, test_temp_dir(), "ledger.db"), "DROP TABLE plan");
    assert_int_not_equal(store_sqlite_open(path, &store, &error), CADRE_OK);
    assert_non_null(strstr(error.text, "migrate it from version 1"));
    assert_int_equal(version_of(path), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(everything_of_version_1_is_reported),
        cmocka_unit_test(a_ledger_of_a_cluster_is_reported),
        cmocka_unit_test(everything_of_version_3_is_reported),
        cmocka_unit_test(everything_of_version_5_is_reported),
        cmocka_unit_test(everything_of_version_7_is_reported),
        cmocka_unit_test(a_migration_that_fails_changes_nothing),
        cmocka_unit_test(what_cannot_be_migrated_is_reported)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
