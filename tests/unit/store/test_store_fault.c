/* SPDX-License-Identifier: Apache-2.0
 * Each call of a store fails once: after each failure it holds exactly what was acknowledged, also
 * when it is opened again. */
#include <stdio.h>
#include <stdlib.h>

#include "common/base/fault.h"
#include "tests/unit/store/store_fixture.h"

/* Until the first failure; how many commits were acknowledged. */
static unsigned run_until_failure(struct store *store)
{
    struct cadre_error error = {0};
    unsigned reported = 0;
    while (reported < STORY_COMMITS) {
        cadre_status status = story_commit(store, reported, &error);
        if (status != CADRE_OK) {
            assert_int_equal(status, CADRE_RESOURCE_EXHAUSTED);
            assert_true(error.text[0] != '\0');
            break;
        }
        reported++;
    }
    return reported;
}

static void assert_reported(struct store *store, unsigned commits)
{
    char *wanted = story_text(commits);
    assert_store_text(store, wanted);
    free(wanted);
}

static void finish_story(struct store *store, unsigned from)
{
    struct cadre_error error = {0};
    for (unsigned i = from; i < STORY_COMMITS; i++) {
        assert_ok(story_commit(store, i, &error), &error);
    }
    assert_reported(store, STORY_COMMITS);
}

static void memory_holds_what_it_acknowledged(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    for (uint64_t nth = 1;; nth++) {
        struct store *store = NULL;
        assert_ok(store_memory_open(&store, &error), &error);
        fault_arm("store.", nth);
        unsigned reported = run_until_failure(store);
        bool met = fault_disarm();
        assert_reported(store, reported);
        finish_story(store, reported);
        store->ops->close(store);
        if (!met) {
            assert_true(nth > 4);
            break;
        }
    }
}

static void sqlite_holds_what_it_acknowledged(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    const char *folder = test_temp_dir();
    char path[TEST_PATH_BYTES];
    for (uint64_t nth = 1;; nth++) {
        struct store *store = NULL;
        unsigned reported = 0;
        char name[32];
        snprintf(name, sizeof name, "%u.db", (unsigned)nth);
        test_path(path, folder, name);
        fault_arm("store.", nth);
        if (store_sqlite_open(path, &store, &error) == CADRE_OK) {
            reported = run_until_failure(store);
        }
        bool met = fault_disarm();
        if (store != NULL) {
            assert_reported(store, reported);
            store->ops->close(store);
        }
        store = NULL;
        assert_ok(store_sqlite_open(path, &store, &error), &error);
        assert_reported(store, reported);
        finish_story(store, reported);
        store->ops->close(store);
        if (!met) {
            assert_true(nth > 20);
            break;
        }
    }
}

/* What is asked of one job. */
static void count_exit(void *user, const struct store_task_exit *exit)
{
    (void)exit;
    ++*(unsigned *)user;
}

static void count_plan(void *user, const struct store_plan *plan)
{
    (void)plan;
    ++*(unsigned *)user;
}

static void count_stream(void *user, const struct store_stream *stream)
{
    (void)stream;
    ++*(unsigned *)user;
}

static void count_epoch(void *user, const struct store_epoch *epoch)
{
    (void)epoch;
    ++*(unsigned *)user;
}

static void count_checkpoint(void *user, const struct core_checkpoint *checkpoint)
{
    (void)checkpoint;
    ++*(unsigned *)user;
}

static cadre_status count_job(void *user, const struct store_job *job, struct cadre_error *error)
{
    (void)job;
    (void)error;
    ++*(unsigned *)user;
    return CADRE_OK;
}

static cadre_status read_all(struct store *store, unsigned *ret_rows, struct cadre_error *error)
{
    const struct store_ops *ops = store->ops;
    struct job_id job = {1};
    *ret_rows = 0;
    CADRE_TRY(ops->load(store, count_job, ret_rows, error));
    CADRE_TRY(ops->task_exits(store, job, count_exit, ret_rows, error));
    const struct store_walk walk = {.plan_row = count_plan,
        .stream_row = count_stream,
        .epoch_row = count_epoch,
        .newest_row = count_epoch,
        .user = ret_rows};
    CADRE_TRY(ops->ledger(store, job, &walk, error));
    return ops->checkpoints(store, job, count_checkpoint, ret_rows, error);
}

static struct store *open_reported(bool sqlite)
{
    struct cadre_error error = {0};
    struct store *store = NULL;
    char path[TEST_PATH_BYTES];
    assert_ok(sqlite ? store_sqlite_open(test_path(path, test_temp_dir(), "t.db"), &store, &error)
                     : store_memory_open(&store, &error),
        &error);
    finish_story(store, 0);
    return store;
}

/* A failure to read is returned and changes nothing; the next read returns all. */
static void a_failure_to_read_is_reported(void **state)
{
    (void)state;
    for (int sqlite = 0; sqlite < 2; sqlite++) {
        struct store *store = open_reported(sqlite);
        struct cadre_error error = {0};
        unsigned all = 0;
        assert_ok(read_all(store, &all, &error), &error);
        assert_int_equal(all, 2 + 2 + 2 + 2 + 2 + 2 + 2); /* two of each */
        for (uint64_t nth = 1;; nth++) {
            unsigned rows = 0;
            error = (struct cadre_error){0};
            fault_arm("store.", nth);
            cadre_status status = read_all(store, &rows, &error);
            bool met = fault_disarm();
            assert_int_equal(status, met ? CADRE_RESOURCE_EXHAUSTED : CADRE_OK);
            assert_int_equal(error.text[0] != '\0', met);
            assert_true(met ? rows < all : rows == all);
            assert_reported(store, STORY_COMMITS);
            if (!met) {
                assert_true(nth > (sqlite ? 15 : 1));
                break;
            }
        }
        store->ops->close(store);
    }
}

/* It is there or it is not, whichever call fails. */
static void dropping_a_checkpoint_can_fail(void **state)
{
    (void)state;
    for (int sqlite = 0; sqlite < 2; sqlite++) {
        struct store *store = open_reported(sqlite);
        struct cadre_error error = {0};
        cadre_status status;
        unsigned failures = 0;
        unsigned before = 0;
        unsigned after = 0;
        assert_ok(read_all(store, &before, &error), &error);
        do {
            fault_arm("store.", failures + 1);
            status = COMMIT(store, false, &error, record_dropped(1, 4));
            failures += fault_disarm() ? 1 : 0;
            if (status != CADRE_OK) {
                assert_reported(store, STORY_COMMITS);
            }
        } while (status != CADRE_OK);
        assert_true(failures > 0);
        assert_ok(read_all(store, &after, &error), &error);
        assert_int_equal(after, before - 1);
        store->ops->close(store);
    }
}

static void forgetting_can_fail_too(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct store *store = NULL;
    char path[TEST_PATH_BYTES];
    assert_ok(store_sqlite_open(test_path(path, test_temp_dir(), "f.db"), &store, &error), &error);
    finish_story(store, 0);
    fault_arm("store.", 1);
    assert_error(
        COMMIT(store, true, &error, record_forgotten(1)), CADRE_RESOURCE_EXHAUSTED, &error, "f.db");
    assert_true(fault_disarm());
    assert_reported(store, STORY_COMMITS);
    store->ops->close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(memory_holds_what_it_acknowledged),
        cmocka_unit_test(sqlite_holds_what_it_acknowledged),
        cmocka_unit_test(a_failure_to_read_is_reported),
        cmocka_unit_test(dropping_a_checkpoint_can_fail),
        cmocka_unit_test(forgetting_can_fail_too)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
