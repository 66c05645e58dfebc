/* SPDX-License-Identifier: Apache-2.0
 * Where the states of a job differed last, and on which workers how often, as both peers keep it.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/store/store_fixture.h"

static struct core_record record_diverged(uint64_t number, uint64_t position)
{
    return (struct core_record){.type = CORE_RECORD_DIVERGED,
        .job = {1},
        .diverged = {.number = number, .position = position}};
}

static struct core_record record_culprit(const char *worker, uint32_t times)
{
    struct core_record record = {.type = CORE_RECORD_CULPRIT, .culprit = {.times = times}};
    memcpy(record.culprit.worker, worker, strlen(worker));
    return record;
}

static cadre_status take_diverged(
    void *user, const struct store_job *job, struct cadre_error *error)
{
    (void)error;
    *(struct core_position *)user = job->restore.diverged;
    return CADRE_OK;
}

static void assert_diverged(struct store *store, uint64_t number, uint64_t position)
{
    struct core_position diverged = {0};
    struct cadre_error error;
    assert_ok(store->ops->load(store, take_diverged, &diverged, &error), &error);
    assert_int_equal(diverged.number, number);
    assert_int_equal(diverged.position, position);
}

static void add_culprit(void *user, const struct core_culprit *culprit)
{
    uint32_t *times = user;
    assert_true(culprit->worker[1] == '\0' && culprit->worker[0] >= 'a');
    times[culprit->worker[0] - 'a'] = culprit->times;
}

static void assert_culprits(struct store *store, uint32_t a, uint32_t b)
{
    uint32_t times[26] = {0};
    struct cadre_error error;
    assert_ok(store->ops->culprits(store, add_culprit, times, &error), &error);
    assert_int_equal(times[0], a);
    assert_int_equal(times[1], b);
}

static void check_store(struct store *store, struct cadre_error *error)
{
    assert_ok(COMMIT(store, true, error, record_job(1, 1), record_started(1, 1),
                  record_plan(1, 1, 0), record_watermark(1, 1, 60)),
        error);
    assert_diverged(store, 0, 0);
    assert_culprits(store, 0, 0);
    assert_ok(COMMIT(store, true, error, record_culprit("a", 1), record_diverged(1, 6)), error);
    assert_diverged(store, 1, 6);
    assert_culprits(store, 1, 0);
    assert_ok(COMMIT(store, true, error, record_plan(1, 2, 0), record_culprit("b", 1),
                  record_culprit("a", 2), record_diverged(2, 9)),
        error);
    assert_diverged(store, 2, 9);
    assert_culprits(store, 2, 1);
    assert_ok(COMMIT(store, true, error, record_culprit("a", 0)), error); /* forgotten */
    assert_culprits(store, 0, 1);
}

static void of_memory(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct store *store = NULL;
    assert_ok(store_memory_open(&store, &error), &error);
    check_store(store, &error);
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
    assert_diverged(store, 2, 9);
    assert_culprits(store, 0, 1);
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
