/* SPDX-License-Identifier: Apache-2.0
 * Each call of a store fails once: after each failure it holds exactly what was acknowledged, also
 * when it is opened again. */
#include <stdio.h>
#include <stdlib.h>

#include "common/base/fault.h"
#include "tests/unit/store/store_fixture.h"

/* Until the first failure; how many commits were acknowledged. */
static unsigned tell_until_failure(struct store *store)
{
    struct cadre_error error = {0};
    unsigned told = 0;
    while (told < STORY_COMMITS) {
        cadre_status status = story_commit(store, told, &error);
        if (status != CADRE_OK) {
            assert_int_equal(status, CADRE_RESOURCE_EXHAUSTED);
            assert_true(error.text[0] != '\0');
            break;
        }
        told++;
    }
    return told;
}

static void assert_told(struct store *store, unsigned commits)
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
    assert_told(store, STORY_COMMITS);
}

static void memory_holds_what_it_acknowledged(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    for (uint64_t nth = 1;; nth++) {
        struct store *store = NULL;
        assert_ok(store_memory_open(&store, &error), &error);
        fault_arm("store.", nth);
        unsigned told = tell_until_failure(store);
        bool met = fault_disarm();
        assert_told(store, told);
        finish_story(store, told);
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
        unsigned told = 0;
        char name[32];
        snprintf(name, sizeof name, "%u.db", (unsigned)nth);
        test_path(path, folder, name);
        fault_arm("store.", nth);
        if (store_sqlite_open(path, &store, &error) == CADRE_OK) {
            told = tell_until_failure(store);
        }
        bool met = fault_disarm();
        if (store != NULL) {
            assert_told(store, told);
            store->ops->close(store);
        }
        store = NULL;
        assert_ok(store_sqlite_open(path, &store, &error), &error);
        assert_told(store, told);
        finish_story(store, told);
        store->ops->close(store);
        if (!met) {
            assert_true(nth > 20);
            break;
        }
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
    assert_error(store->ops->forget(store, (struct job_id){1}, &error), CADRE_RESOURCE_EXHAUSTED,
        &error, "f.db");
    assert_true(fault_disarm());
    assert_told(store, STORY_COMMITS);
    store->ops->close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(memory_holds_what_it_acknowledged),
        cmocka_unit_test(sqlite_holds_what_it_acknowledged),
        cmocka_unit_test(forgetting_can_fail_too)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
