/* SPDX-License-Identifier: Apache-2.0
 * The events of jobs, as both peers keep them: numbered, paged, bounded, removed with their job. */
#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/store/store_fixture.h"
#include "tests/unit/store/version_6.h"

static struct history_event event_of(enum history_kind kind, uint64_t position)
{
    return (struct history_event){.time_us = 1000 + position,
        .kind = kind,
        .position = position,
        .slot = HISTORY_SLOT_NONE,
        .worker = "",
        .roster = "",
        .text = ""};
}

static void add_event(struct store *store, uint64_t job, const struct history_event *event)
{
    struct cadre_error error = {0};
    const struct store_record record = {.event = event, .job = {job}};
    assert_ok(store->ops->commit(store, &record, 1, false, &error), &error);
}

/* ---- what is read ---- */

struct page {
    size_t count;
    uint64_t first;
    uint64_t last_number;
    uint64_t last; /* of the job */
    char text[4096];
    size_t length;
};

static void take_event(void *user, const struct history_event *event)
{
    struct page *page = user;
    page->first = page->count == 0 ? event->number : page->first;
    assert_true(event->number > page->last_number);
    page->last_number = event->number;
    page->count++;
    int bytes = snprintf(page->text + page->length, sizeof page->text - page->length,
        "%" PRIu64 " %" PRIu64 " %s g%" PRIu64 " at %" PRIu64 " task %d.%" PRIu64 " tasks %" PRIu32
        " undone %" PRIu64 "%s waited %" PRIu64 " exit %d/%d %s code %d %s [%s] %s\n",
        event->number, event->time_us, history_kind_name(event->kind), event->generation,
        event->position, event->slot == HISTORY_SLOT_NONE ? -1 : (int)event->slot,
        event->incarnation, event->tasks, event->undone, event->restarted ? " restarted" : "",
        event->waited_us, (int)event->exit_code, (int)event->exit_signal,
        job_state_name(event->state), (int)event->code, event->worker, event->roster, event->text);
    if (bytes > 0 && page->length + (size_t)bytes < sizeof page->text) {
        page->length += (size_t)bytes;
    }
}

static struct page read_page(struct store *store, uint64_t job, uint64_t after, size_t max)
{
    struct page page = {0};
    struct cadre_error error = {0};
    assert_ok(store->ops->history(
                  store, (struct job_id){job}, after, max, take_event, &page, &page.last, &error),
        &error);
    return page;
}

static void check_values(struct store *store)
{
    struct cadre_error error = {0};
    struct page page;
    const struct core_record job = record_job(1, 1);
    const struct history_event all = {.number = 77, /* the store numbers it */
        .time_us = 123456,
        .kind = HISTORY_GENERATION,
        .generation = 2,
        .position = LIMIT_POSITION,
        .slot = LIMIT_TASKS_PER_JOB - 1,
        .incarnation = UINT64_MAX,
        .tasks = 3,
        .undone = 12,
        .restarted = true,
        .waited_us = 99,
        .exit_code = 255,
        .exit_signal = 9,
        .state = JOB_FAILED,
        .code = CADRE_ABORTED,
        .worker = "w",
        .roster = "0-2",
        .text = "why"};
    const struct history_event submitted = event_of(HISTORY_SUBMITTED, 0);
    const struct store_record both[] = {
        {.record = &job, .wall_us = 5, .spec = "s", .spec_bytes = 1},
        {.event = &submitted, .job = {1}}, {.event = &all, .job = {1}}};
    assert_ok(store->ops->commit(store, both, 3, true, &error), &error);
    page = read_page(store, 1, 0, 100);
    assert_string_equal(page.text,
        "1 1000 submitted g0 at 0 task -1.0 tasks 0 undone 0 waited 0 exit 0/0 unknown code 0  [] "
        "\n"
        "2 123456 generation g2 at 4611686018427387904 task 16383.18446744073709551615 tasks 3 "
        "undone 12 restarted waited 99 exit 255/9 failed code 10 w [0-2] why\n");
    assert_int_equal(page.last, 2);
}

static void check_pages(struct store *store)
{
    for (uint64_t position = 3; position <= 10; position++) {
        const struct history_event event = event_of(HISTORY_CHECKPOINT, position);
        add_event(store, 1, &event);
    }
    struct page page = read_page(store, 1, 2, 3);
    assert_int_equal(page.first, 3);
    assert_int_equal(page.count, 3);
    assert_int_equal(page.last, 10);
    page = read_page(store, 1, 5, 100);
    assert_int_equal(page.first, 6);
    assert_int_equal(page.last_number, 10);
    page = read_page(store, 1, 10, 100);
    assert_int_equal(page.count, 0);
    assert_int_equal(page.last, 10);
}

static void check_bound(struct store *store)
{
    for (uint64_t position = 11; position <= LIMIT_EVENTS + 100; position++) {
        const struct history_event event = event_of(HISTORY_CHECKPOINT, position);
        add_event(store, 1, &event);
    }
    struct page page = read_page(store, 1, 0, 2 * LIMIT_EVENTS);
    assert_int_equal(page.count, LIMIT_EVENTS);
    assert_int_equal(page.first, 1);
    assert_int_equal(page.last, LIMIT_EVENTS + 100);
    page = read_page(store, 1, LIMIT_EVENTS_FIRST - 1, 2);
    assert_int_equal(page.first, LIMIT_EVENTS_FIRST);
    assert_int_equal(page.last_number, LIMIT_EVENTS_FIRST + 101); /* 100 are not kept */
}

static void check_store(struct store *store)
{
    struct cadre_error error = {0};
    struct page page = {0};
    check_values(store);
    check_pages(store);
    check_bound(store);
    const struct history_event event = event_of(HISTORY_STARTED, 0);
    const struct store_record unknown = {.event = &event, .job = {9}};
    assert_int_equal(store->ops->commit(store, &unknown, 1, false, &error), CADRE_INTERNAL);
    const struct core_record other = record_job(2, 1);
    assert_ok(commit(store, true, &other, 1, &error), &error);
    add_event(store, 2, &event);
    page = read_page(store, 2, 0, 100);
    assert_int_equal(page.last, 1); /* each job has numbers of its own */
    assert_ok(COMMIT(store, false, &error, record_forgotten(1)), &error);
    assert_int_equal(
        store->ops->history(store, (struct job_id){1}, 0, 1, take_event, &page, &page.last, &error),
        CADRE_NOT_FOUND);
    page = read_page(store, 2, 0, 100);
    assert_int_equal(page.count, 1);
}

static void of_memory(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct store *store = NULL;
    assert_ok(store_memory_open(&store, &error), &error);
    check_store(store);
    const struct history_event event = event_of(HISTORY_STARTED, 0);
    add_event(store, 2, &event); /* not synced */
    store_memory_lose_tail(store);
    assert_int_equal(read_page(store, 2, 0, 100).count, 0);
    store->ops->close(store);
}

static sqlite3 *open_database(const char *path)
{
    sqlite3 *database = NULL;
    assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
    return database;
}

static void execute(const char *path, const char *sql)
{
    sqlite3 *database = open_database(path);
    assert_int_equal(sqlite3_exec(database, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(database);
}

static void of_sqlite(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct store *store = NULL;
    char path[TEST_PATH_BYTES];
    test_path(path, test_temp_dir(), "ledger.db");
    assert_ok(store_sqlite_open(path, &store, &error), &error);
    check_store(store);
    store->ops->close(store);
    assert_ok(store_sqlite_open(path, &store, &error), &error); /* its checksums are right */
    assert_int_equal(read_page(store, 2, 0, 100).count, 1);
    store->ops->close(store);
    sqlite3_stmt *count = NULL;
    sqlite3 *database = open_database(path);
    assert_int_equal(
        sqlite3_prepare_v2(database, "SELECT count(*) FROM event", -1, &count, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(count), SQLITE_ROW);
    assert_int_equal(sqlite3_column_int(count, 0), 1); /* of job 1 nothing is left */
    sqlite3_finalize(count);
    sqlite3_close(database);
    execute(path, "UPDATE event SET text = 'changed'");
    assert_ok(store_sqlite_open(path, &store, &error), &error);
    struct page page = {0};
    assert_error(
        store->ops->history(store, (struct job_id){2}, 0, 9, take_event, &page, &page.last, &error),
        CADRE_DATA_LOSS, &error, "its history (event 1)");
    assert_int_equal(page.count, 0);
    store->ops->close(store);
}

/* ---- an old ledger ---- */

/* What it recorded with a time: the submission, the start, generations, the end. */
static void of_version_6(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct store *store = NULL;
    char path[TEST_PATH_BYTES];
    test_path(path, test_temp_dir(), "ledger.db");
    (void)remove(path);
    assert_ok(store_sqlite_open(path, &store, &error), &error);
    assert_ok(
        COMMIT(store, true, &error, record_job(1, 2), record_started(1, 1), record_plan(1, 1, 0),
            record_plan(1, 2, 40), record_job(2, 1), record_ended(1, JOB_FAILED, "it broke")),
        &error);
    store->ops->close(store);
    version_6_make(path);
    for (int opened = 0; opened < 2; opened++) {
        assert_ok(store_sqlite_open(path, &store, &error), &error);
        struct page page = read_page(store, 1, 0, 100);
        assert_int_equal(page.count, 5);
        assert_int_equal(page.last, 5);
        assert_non_null(strstr(page.text, "1 1001 submitted g0 at 0 task -1.0 tasks 2 "));
        assert_non_null(strstr(page.text, "2 1002 started g0 at 0 task -1.0 tasks 2 "));
        assert_non_null(strstr(page.text, "3 1004 generation g1 at 0 task -1.0 tasks 1 "));
        assert_non_null(strstr(page.text, "4 1004 generation g2 at 40 task -1.0 tasks 1 "));
        assert_non_null(strstr(page.text, " ended g0 at 0 task -1.0 tasks 0 undone 0"
                                          " waited 0 exit 0/0 failed code "));
        assert_non_null(strstr(page.text, "it broke"));
        assert_int_equal(read_page(store, 2, 0, 100).count, 1);
        assert_int_equal(store->ops->job_id_max(store), 2);
        store->ops->close(store);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_memory),
        cmocka_unit_test(of_sqlite),
        cmocka_unit_test(of_version_6),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
