/* SPDX-License-Identifier: Apache-2.0
 * What every store promises, asked of each of them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/store/store_fixture.h"

static cadre_status open_sqlite(struct store **ret_store, struct cadre_error *error)
{
    char path[TEST_PATH_BYTES];
    return store_sqlite_open(test_path(path, test_temp_dir(), "ledger.db"), ret_store, error);
}

struct kind {
    const char *name;
    cadre_status (*open)(struct store **ret_store, struct cadre_error *error);
};

static const struct kind kinds[] = {
    {.name = "memory", .open = store_memory_open}, {.name = "sqlite", .open = open_sqlite}};

struct fixture {
    const struct kind *kind;
    struct store *store;
    struct cadre_error error;
};

static int set_up(void **state)
{
    static struct fixture fixture;
    fixture = (struct fixture){.kind = *state};
    assert_ok(fixture.kind->open(&fixture.store, &fixture.error), &fixture.error);
    assert_string_equal(fixture.store->ops->name, fixture.kind->name);
    *state = &fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    fixture->store->ops->close(fixture->store);
    return 0;
}

static void a_new_one_is_empty(void **state)
{
    struct fixture *fixture = *state;
    assert_store_text(fixture->store, "");
    assert_int_equal(fixture->store->ops->job_id_max(fixture->store), 0);
    assert_ok(fixture->store->ops->commit(fixture->store, NULL, 0, true, &fixture->error),
        &fixture->error);
    fixture->store->ops->close(NULL);
}

static void secrets_differ(void **state)
{
    struct fixture *fixture = *state;
    uint8_t one[STORE_SECRET_BYTES];
    uint8_t again[STORE_SECRET_BYTES];
    uint8_t other[STORE_SECRET_BYTES];
    struct store *second = NULL;
    fixture->store->ops->secret(fixture->store, one);
    fixture->store->ops->secret(fixture->store, again);
    assert_memory_equal(one, again, sizeof one);
    assert_ok(fixture->kind->open(&second, &fixture->error), &fixture->error);
    second->ops->secret(second, other);
    assert_memory_not_equal(one, other, sizeof one);
    second->ops->close(second);
}

static void tells_all_that_was_written(void **state)
{
    struct fixture *fixture = *state;
    for (unsigned i = 0; i < STORY_COMMITS; i++) {
        assert_ok(story_commit(fixture->store, i, &fixture->error), &fixture->error);
    }
    assert_store_text(fixture->store,
        "job 1 spec 18 tasks 2 priority -1 at 1001 1002 1009 incarnations 2 generation "
        "1/fffffffffffffffe position 6 failed code 10 exit 137 \"task 0 failed\" checkpoint "
        "\"10203/step-4\"\n"
        "  task 0.1 exited code 3 signal 0 \"oh\"\n"
        "  task 1.2 exited code 0 signal 9 \"\"\n"
        "job 2 spec 28 tasks 1 priority -2 at 2001 0 0 incarnations 0 generation 0/0 position 0 "
        "queued code 0 exit 0 \"\" checkpoint \"\"\n");
    assert_int_equal(fixture->store->ops->job_id_max(fixture->store), 2);
}

/* Expects the text to hold `part`. */
static void assert_holds(struct store *store, const char *part)
{
    char *text = store_text(store);
    if (strstr(text, part) == NULL) {
        fail_msg("no \"%s\" in: %s", part, text);
    }
    free(text);
}

static void a_plan_cuts_the_ledger(void **state)
{
    struct fixture *fixture = *state;
    struct store *store = fixture->store;
    assert_ok(COMMIT(store, true, &fixture->error, record_job(1, 1), record_plan(1, 1, 0),
                  record_watermark(1, 1, 50), record_plan(1, 2, 40)),
        &fixture->error);
    assert_holds(store, "generation 2/fffffffffffffffd position 40");
    assert_ok(COMMIT(store, false, &fixture->error, record_watermark(1, 2, 41)), &fixture->error);
    assert_holds(store, "generation 2/fffffffffffffffd position 41");
}

static void the_newest_checkpoint_counts(void **state)
{
    struct fixture *fixture = *state;
    struct store *store = fixture->store;
    assert_ok(COMMIT(store, true, &fixture->error, record_job(1, 1), record_checkpoint(1, 20, "b"),
                  record_checkpoint(1, 10, "a")),
        &fixture->error);
    assert_holds(store, "checkpoint \"10203/b\"");
    assert_ok(
        COMMIT(store, true, &fixture->error, record_checkpoint(1, 20, "b/again")), &fixture->error);
    assert_holds(store, "checkpoint \"10203/b/again\"");
}

static void the_newest_incarnation_counts(void **state)
{
    struct fixture *fixture = *state;
    struct store *store = fixture->store;
    assert_ok(
        COMMIT(store, true, &fixture->error, record_job(1, 3), record_task_exit(1, 2, 5, 1, "five"),
            record_task_exit(1, 0, 7, 99, "lost"), record_task_exit(1, 2, 4, 2, "four")),
        &fixture->error);
    assert_ok(
        COMMIT(store, false, &fixture->error, record_task_exit(1, 0, 8, 3, "")), &fixture->error);
    assert_holds(store,
        "\n  task 0.8 exited code 3 signal 0 \"\"\n  task 2.5 exited code 1 signal 0 \"five\"\n");
}

static void jobs_come_in_order_of_id(void **state)
{
    struct fixture *fixture = *state;
    struct store *store = fixture->store;
    assert_ok(
        COMMIT(store, true, &fixture->error, record_job(7, 1), record_job(3, 1)), &fixture->error);
    assert_ok(COMMIT(store, true, &fixture->error, record_job(5, 1)), &fixture->error);
    char *text = store_text(store);
    const char *three = strstr(text, "job 3");
    const char *five = strstr(text, "job 5");
    const char *seven = strstr(text, "job 7");
    assert_true(three != NULL && five != NULL && seven != NULL && three < five && five < seven);
    free(text);
    assert_int_equal(store->ops->job_id_max(store), 7);
}

static void texts_fill_their_room(void **state)
{
    struct fixture *fixture = *state;
    struct store *store = fixture->store;
    char text[LIMIT_TEXT_BYTES];
    char path[LIMIT_FILE_NAME_BYTES];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    memset(path, 'y', sizeof path);
    path[sizeof path - 1] = '\0';
    assert_ok(COMMIT(store, true, &fixture->error, record_job(1, 1), record_checkpoint(1, 1, path),
                  record_task_exit(1, 0, 1, 1, text), record_ended(1, JOB_CANCELLED, text)),
        &fixture->error);
    assert_holds(store, text);
    assert_holds(store, path);
}

static void a_bad_record_spoils_its_whole_commit(void **state)
{
    struct fixture *fixture = *state;
    struct store *store = fixture->store;
    struct cadre_error *error = &fixture->error;
    assert_ok(COMMIT(store, true, error, record_job(1, 2)), error);
    char *before = store_text(store);
    const struct core_record bad[] = {record_job(1, 2), record_started(9, 1), record_plan(9, 1, 0),
        record_watermark(9, 1, 1), record_end_of_data(9, 1), record_checkpoint(9, 1, "p"),
        record_done(9, 1), record_task_exit(9, 0, 1, 1, ""), record_ended(9, JOB_FAILED, "")};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(
            COMMIT(store, i % 2 == 0, error, record_job(2, 1), record_task_exit(2, 0, 1, 1, "x"),
                record_started(1, 8), record_watermark(1, 1, 3), bad[i]),
            CADRE_INTERNAL);
        assert_store_text(store, before);
        assert_int_equal(store->ops->job_id_max(store), 1);
    }
    assert_ok(COMMIT(store, true, error, record_job(2, 1)), error);
    free(before);
}

static void a_forgotten_job_leaves_nothing(void **state)
{
    struct fixture *fixture = *state;
    struct store *store = fixture->store;
    struct cadre_error *error = &fixture->error;
    for (unsigned i = 0; i < STORY_COMMITS; i++) {
        assert_ok(story_commit(store, i, error), error);
    }
    assert_error(store->ops->forget(store, (struct job_id){9}, error), CADRE_NOT_FOUND, error, "9");
    assert_ok(store->ops->forget(store, (struct job_id){1}, error), error);
    assert_error(store->ops->forget(store, (struct job_id){1}, error), CADRE_NOT_FOUND, error, "1");
    assert_store_text(store, "job 2 spec 28 tasks 1 priority -2 at 2001 0 0 incarnations 0 "
                             "generation 0/0 position 0 queued code 0 exit 0 \"\" checkpoint "
                             "\"\"\n");
    assert_ok(store->ops->forget(store, (struct job_id){2}, error), error);
    assert_store_text(store, "");
    assert_int_equal(store->ops->job_id_max(store), 2);
}

static cadre_status refuse_the_second(
    void *user, const struct store_job *job, struct cadre_error *error)
{
    unsigned *seen = user;
    ++*seen;
    return job->id.n == 2 ? cadre_error_set(error, CADRE_ABORTED, "enough") : CADRE_OK;
}

static void a_visitor_may_stop_the_walk(void **state)
{
    struct fixture *fixture = *state;
    struct store *store = fixture->store;
    unsigned seen = 0;
    assert_ok(
        COMMIT(store, true, &fixture->error, record_job(1, 1), record_job(2, 1), record_job(3, 1)),
        &fixture->error);
    assert_error(store->ops->load(store, refuse_the_second, &seen, &fixture->error), CADRE_ABORTED,
        &fixture->error, "enough");
    assert_int_equal(seen, 2);
    assert_ok(COMMIT(store, true, &fixture->error, record_job(4, 1)), &fixture->error);
}

static void memory_loses_what_was_not_synced(void **state)
{
    struct fixture *fixture = *state;
    struct store *store = fixture->store;
    struct cadre_error *error = &fixture->error;
    if (strcmp(fixture->kind->name, "memory") != 0) {
        return;
    }
    assert_ok(
        COMMIT(store, true, error, record_job(1, 3), record_task_exit(1, 1, 1, 1, "a")), error);
    assert_ok(COMMIT(store, false, error, record_task_exit(1, 2, 1, 1, "b")), error);
    assert_ok(COMMIT(store, true, error, record_watermark(1, 1, 5)), error);
    char *synced = store_text(store);
    assert_ok(COMMIT(store, false, error, record_job(2, 1), record_watermark(1, 1, 6),
                  record_task_exit(1, 0, 1, 1, "c"), record_task_exit(1, 1, 2, 1, "d"),
                  record_ended(1, JOB_FAILED, "e"), record_checkpoint(1, 6, "f")),
        error);
    store_memory_lose_tail(store);
    assert_store_text(store, synced);
    assert_int_equal(store->ops->job_id_max(store), 1);
    store_memory_lose_tail(store);
    assert_store_text(store, synced);
    free(synced);
}

#define OF(kind, test)                                                                             \
    {                                                                                              \
        .name = #test "/" kind, .test_func = (test), .setup_func = set_up,                         \
        .teardown_func = tear_down, .initial_state = (void *)(uintptr_t)&kinds[kind[0] == 's']     \
    }
#define BOTH(test) OF("memory", test), OF("sqlite", test)

int main(void)
{
    const struct CMUnitTest tests[] = {BOTH(a_new_one_is_empty), BOTH(secrets_differ),
        BOTH(tells_all_that_was_written), BOTH(a_plan_cuts_the_ledger),
        BOTH(the_newest_checkpoint_counts), BOTH(the_newest_incarnation_counts),
        BOTH(jobs_come_in_order_of_id), BOTH(texts_fill_their_room),
        BOTH(a_bad_record_spoils_its_whole_commit), BOTH(a_forgotten_job_leaves_nothing),
        BOTH(a_visitor_may_stop_the_walk), OF("memory", memory_loses_what_was_not_synced)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
