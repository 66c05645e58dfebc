/* SPDX-License-Identifier: Apache-2.0
 * A store that is the copy of a log that coordinators share: entries come with their positions, and
 * what is known of the cluster stays. Asked of each store; then what only one in a file can be
 * asked. */
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/fault.h"
#include "tests/unit/store/entries_store.h"
#include "tests/unit/store/store_fixture.h"

struct kind {
    const char *name;
    cadre_status (*open)(struct store **ret_store, struct cadre_error *error);
};

static const struct kind kinds[] = {{"memory", store_memory_open}, {"sqlite", open_sqlite},
    {"memory of entries", open_memory_of_entries}, {"sqlite of entries", open_sqlite_of_entries}};

static struct store_position position_at(uint64_t index)
{
    return (struct store_position){
        .index = index, .term = 1 + index / 4, .hash = {(uint8_t)index, 0xff, 0, 9}};
}

static struct store_cluster cluster_of(uint64_t term_seen)
{
    return (struct store_cluster){.id_high = 0xfedcba9876543210,
        .id_low = 0x8000000000000001,
        .etcd_id = UINT64_MAX,
        .term_seen = term_seen,
        .hash = {0, 1, 2, 0xff},
        .secret = {7, 0, 8}};
}

#define APPLY(store, index, error, ...)                                                            \
    apply((store), (index), (const struct core_record[]){__VA_ARGS__},                             \
        sizeof((const struct core_record[]){__VA_ARGS__}) / sizeof(struct core_record), (error))

/* An entry of these records, of which none needs more than the record itself. */
static cadre_status apply(struct store *store, uint64_t index, const struct core_record *records,
    size_t count, struct cadre_error *error)
{
    struct store_record stored[8];
    const struct store_position at = position_at(index);
    assert_true(count <= sizeof stored / sizeof stored[0]);
    for (size_t i = 0; i < count; i++) {
        stored[i] = (struct store_record){
            .record = &records[i], .wall_us = 5, .spec = "spec", .spec_bytes = 4};
    }
    return store->ops->apply(store, stored, count, &at, error);
}

static void assert_position(const struct store *store, uint64_t index)
{
    const struct store_position wanted =
        index > 0 ? position_at(index) : (struct store_position){0};
    struct store_position position;
    memset(&position, 0x5a, sizeof position);
    store->ops->position(store, &position);
    assert_memory_equal(&position, &wanted, sizeof position);
}

/* term_seen 0: none is known. */
static void assert_cluster(const struct store *store, uint64_t term_seen)
{
    const struct store_cluster wanted =
        term_seen > 0 ? cluster_of(term_seen) : (struct store_cluster){0};
    struct store_cluster cluster;
    memset(&cluster, 0x5a, sizeof cluster);
    store->ops->cluster(store, &cluster);
    assert_memory_equal(&cluster, &wanted, sizeof cluster);
    if (term_seen > 0) {
        uint8_t secret[STORE_SECRET_BYTES];
        store->ops->secret(store, secret);
        assert_memory_equal(secret, wanted.secret, sizeof secret);
        assert_true(store->ops->term(store).cluster == wanted.id_low);
    }
}

static struct store *open_kind(void **state)
{
    const struct kind *kind = *state;
    struct cadre_error error;
    struct store *store = NULL;
    assert_ok(kind->open(&store, &error), &error);
    return store;
}

static void an_entry_comes_with_its_position(void **state)
{
    struct store *store = open_kind(state);
    struct cadre_error error;
    assert_position(store, 0);
    assert_ok(APPLY(store, 1, &error, record_job(1, 1), record_term(4)), &error);
    assert_position(store, 1);
    assert_int_equal(store->ops->term(store).start, 4);
    assert_int_equal(store->ops->job_id_max(store), 1);
    assert_ok(apply(store, 2, NULL, 0, &error), &error); /* an entry without records */
    assert_position(store, 2);
    assert_ok(APPLY(store, 9, &error, record_watermark(1, 1, 3)), &error); /* several at once */
    assert_position(store, 9);
    store->ops->close(store);
}

static void an_entry_is_not_applied_twice(void **state)
{
    struct store *store = open_kind(state);
    struct cadre_error error;
    assert_error(apply(store, 0, NULL, 0, &error), CADRE_INTERNAL, &error, "entry 0 ");
    assert_ok(APPLY(store, 3, &error, record_job(1, 1)), &error);
    char *before = store_text(store);
    assert_error(APPLY(store, 3, &error, record_job(2, 1)), CADRE_INTERNAL, &error, "up to 3");
    assert_error(APPLY(store, 2, &error, record_job(2, 1)), CADRE_INTERNAL, &error, "entry 2 ");
    assert_store_text(store, before);
    assert_position(store, 3);
    free(before);
    store->ops->close(store);
}

static void an_entry_that_is_refused_changes_nothing(void **state)
{
    struct store *store = open_kind(state);
    struct cadre_error error;
    assert_ok(APPLY(store, 1, &error, record_job(1, 1), record_term(2)), &error);
    char *before = store_text(store);
    assert_int_equal(APPLY(store, 2, &error, record_job(2, 1), record_term(3),
                         record_watermark(1, 1, 3), record_done(9, 1)),
        CADRE_INTERNAL);
    assert_store_text(store, before);
    assert_position(store, 1);
    assert_int_equal(store->ops->term(store).start, 2);
    assert_int_equal(store->ops->job_id_max(store), 1);
    assert_ok(APPLY(store, 2, &error, record_job(2, 1)), &error);
    free(before);
    store->ops->close(store);
}

static void what_is_known_of_the_cluster_stays(void **state)
{
    struct store *store = open_kind(state);
    struct cadre_error error;
    const struct term own = store->ops->term(store);
    assert_cluster(store, 0);
    assert_ok(APPLY(store, 1, &error, record_term(1)), &error);
    assert_cluster(store, 0);
    assert_true(store->ops->term(store).cluster == own.cluster);
    for (uint64_t seen = 5; seen < 8; seen++) {
        const struct store_cluster cluster = cluster_of(seen);
        assert_ok(store->ops->note_cluster(store, &cluster, &error), &error);
        assert_cluster(store, seen);
        assert_position(store, 1);
    }
    assert_int_equal(store->ops->term(store).start, 1);
    assert_true(store->ops->term(store).nonce == own.nonce);
    assert_ok(APPLY(store, 2, &error, record_job(1, 1)), &error);
    assert_cluster(store, 7);
    store->ops->close(store);
}

/* The position goes with the rows, and what is known of the cluster is never lost. */
static void memory_loses_entries_with_their_positions(void **state)
{
    (void)state;
    struct cadre_error error;
    struct store *store = NULL;
    const struct store_cluster cluster = cluster_of(6);
    assert_ok(store_memory_open(&store, &error), &error);
    assert_ok(APPLY(store, 1, &error, record_job(1, 1)), &error);
    assert_ok(store->ops->note_cluster(store, &cluster, &error), &error);
    char *synced = store_text(store);
    assert_ok(APPLY(store, 2, &error, record_job(2, 1)), &error);
    store_memory_lose_tail(store);
    assert_position(store, 1);
    assert_cluster(store, 6);
    assert_store_text(store, synced);
    assert_ok(APPLY(store, 2, &error, record_job(2, 1)), &error);
    assert_ok(store->ops->commit(store, NULL, 0, true, &error), &error);
    store_memory_lose_tail(store);
    assert_position(store, 2);
    free(synced);
    store->ops->close(store);
}

/* ---- in a file ---- */

static char path[TEST_PATH_BYTES];

static struct store *open_path(void)
{
    struct cadre_error error;
    struct store *store = NULL;
    assert_ok(store_sqlite_open(path, &store, &error), &error);
    return store;
}

static int new_path(void **state)
{
    (void)state;
    test_path(path, test_temp_dir(), "ledger.db");
    return 0;
}

static void fill(struct store *store)
{
    struct cadre_error error;
    const struct store_cluster cluster = cluster_of(3);
    const struct store_cluster newer = cluster_of(4);
    assert_ok(store->ops->note_cluster(store, &cluster, &error), &error);
    assert_ok(APPLY(store, 1, &error, record_job(1, 1), record_term(2)), &error);
    assert_ok(store->ops->note_cluster(store, &newer, &error), &error);
    assert_ok(APPLY(store, 2, &error, record_job(2, 1)), &error);
}

static void assert_filled(struct store *store)
{
    assert_position(store, 2);
    assert_cluster(store, 4);
    assert_int_equal(store->ops->term(store).start, 2);
    assert_int_equal(store->ops->job_id_max(store), 2);
}

static void it_is_there_again(void **state)
{
    (void)state;
    struct store *store = open_path();
    fill(store);
    for (int opened = 0; opened < 2; opened++) {
        store->ops->close(store);
        store = open_path();
        assert_filled(store);
    }
    store->ops->close(store);
}

static void a_killed_process_loses_nothing(void **state)
{
    (void)state;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        fill(open_path());
        raise(SIGKILL);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    struct store *store = open_path();
    assert_filled(store);
    store->ops->close(store);
}

static void meddle(const char *sql)
{
    sqlite3 *database = NULL;
    assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
    assert_int_equal(sqlite3_exec(database, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(database);
}

static void a_damaged_row_is_refused(void **state)
{
    (void)state;
    static const char *const damages[] = {"UPDATE shared_log SET applied = 3",
        "UPDATE shared_log SET applied_hash = x'00'", "UPDATE shared_log SET term_seen = 3",
        "UPDATE shared_log SET one = 2", "DELETE FROM shared_log"};
    for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
        struct cadre_error error;
        unlink(path);
        struct store *store = open_path();
        fill(store);
        store->ops->close(store);
        store = NULL;
        meddle(damages[i]);
        assert_error(store_sqlite_open(path, &store, &error), CADRE_DATA_LOSS, &error,
            "is damaged (which entries of the shared log it has)");
        assert_null(store);
    }
}

/* Whichever write fails: the store holds what was acknowledged, also when it is opened again. */
static void a_write_that_fails_changes_nothing(void **state)
{
    (void)state;
    struct cadre_error error;
    uint64_t applied = 0;
    uint64_t seen = 0;
    unsigned failures = 0;
    struct store *store = open_path();
    for (uint64_t nth = 1; nth <= 24; nth++) {
        const struct store_cluster cluster = cluster_of(nth);
        fault_arm("store.", nth);
        cadre_status noted = store->ops->note_cluster(store, &cluster, &error);
        cadre_status status = APPLY(store, nth, &error, record_job(nth, 1), record_term(nth));
        failures += fault_disarm() ? 1 : 0;
        seen = noted == CADRE_OK ? nth : seen;
        applied = status == CADRE_OK ? nth : applied;
        for (int opened = 0; opened < 2; opened++) {
            assert_position(store, applied);
            assert_cluster(store, seen);
            assert_int_equal(store->ops->job_id_max(store), applied);
            assert_int_equal(store->ops->term(store).start, applied);
            store->ops->close(store);
            store = open_path();
        }
    }
    assert_true(failures >= 10 && failures < 24); /* the last ones meet no fault */
    assert_true(applied == 24 && seen == 24);
    store->ops->close(store);
}

/* ---- a copy ---- */

static void a_copy_is_a_store_of_its_own(void **state)
{
    (void)state;
    struct cadre_error error;
    char copy[TEST_PATH_BYTES];
    const char *folder = test_temp_dir();
    struct store *store = open_path();
    struct store *copied = NULL;
    struct stat facts;
    test_path(copy, folder, "copy.db");
    for (unsigned i = 0; i < STORY_COMMITS; i++) {
        assert_ok(story_commit(store, i, &error), &error);
    }
    const struct store_cluster cluster = cluster_of(4);
    assert_ok(store->ops->note_cluster(store, &cluster, &error), &error);
    for (uint64_t index = 1; index <= 2; index++) { /* the second one replaces the first */
        assert_ok(APPLY(store, index, &error, record_job(10 + index, 1)), &error);
        char *text = store_text(store);
        assert_ok(store_sqlite_copy(store, copy, &error), &error);
        assert_int_equal(count_names(folder, "copy.db"), 1);
        assert_int_equal(stat(copy, &facts), 0);
        assert_int_equal(facts.st_mode & 07777, 0600);
        /* What comes later is not in the copy, and the store goes on. */
        assert_ok(COMMIT(store, true, &error, record_job(20 + index, 1)), &error);
        assert_ok(store_sqlite_open(copy, &copied, &error), &error);
        assert_store_text(copied, text);
        assert_position(copied, index);
        assert_cluster(copied, 4);
        assert_ok(APPLY(copied, index + 1, &error, record_job(30, 1)), &error);
        copied->ops->close(copied);
        free(text);
    }
    store->ops->close(store);
}

/* Entries come in between, into pages that were copied and into others. */
static void a_copy_in_steps_has_what_came_meanwhile(void **state)
{
    (void)state;
    struct cadre_error error;
    char steps_path[TEST_PATH_BYTES];
    struct store *store = open_path();
    struct store *copied = NULL;
    struct store_copy *copy = NULL;
    bool whole = false;
    uint64_t index = 0;
    test_path(steps_path, test_temp_dir(), "steps.db");
    for (; index < 40; index++) {
        assert_ok(APPLY(store, index + 1, &error, record_job(index + 1, 1)), &error);
    }
    assert_ok(store_sqlite_copy_begin(store, steps_path, &copy, &error), &error);
    unsigned steps = 0;
    for (; !whole; steps++) {
        assert_ok(store_sqlite_copy_step(copy, 3, &whole, &error), &error);
        if (!whole && steps < 12) {
            index++;
            assert_ok(APPLY(store, index, &error, record_job(index, 1)), &error);
        }
    }
    assert_true(steps > 3);
    store_sqlite_copy_end(copy);
    char *text = store_text(store);
    assert_ok(APPLY(store, index + 1, &error, record_job(index + 1, 1)), &error);
    assert_ok(store_sqlite_open(steps_path, &copied, &error), &error);
    assert_store_text(copied, text);
    assert_position(copied, index);
    copied->ops->close(copied);
    free(text);
    store->ops->close(store);
}

static void a_copy_in_steps_that_ends_early_is_not_there(void **state)
{
    (void)state;
    struct cadre_error error;
    char steps_path[TEST_PATH_BYTES];
    const char *folder = test_temp_dir();
    struct store *store = open_path();
    fill(store);
    test_path(steps_path, folder, "steps.db");
    for (int fails = 0; fails <= 1; fails++) {
        struct store_copy *copy = NULL;
        bool whole = false;
        assert_ok(store_sqlite_copy_begin(store, steps_path, &copy, &error), &error);
        assert_ok(store_sqlite_copy_step(copy, 1, &whole, &error), &error);
        assert_false(whole);
        if (fails) {
            fault_arm("store.run", 1);
            assert_int_not_equal(store_sqlite_copy_step(copy, 1, &whole, &error), CADRE_OK);
            assert_true(fault_disarm());
        }
        store_sqlite_copy_end(copy);
        assert_int_equal(count_names(folder, "steps.db"), 0);
        assert_ok(
            APPLY(store, 3 + (uint64_t)fails, &error, record_job(50 + (uint64_t)fails, 1)), &error);
    }
    store_sqlite_copy_end(NULL);
    store->ops->close(store);
}

static void a_copy_that_fails_leaves_nothing(void **state)
{
    (void)state;
    struct cadre_error error;
    char copy[TEST_PATH_BYTES];
    const char *folder = test_temp_dir();
    struct store *store = open_path();
    fill(store);
    test_path(copy, folder, "copy.db");
    assert_ok(store_sqlite_copy(store, copy, &error), &error);
    assert_ok(APPLY(store, 3, &error, record_job(3, 1)), &error);
    static const char *const points[] = {"store.run", "file.fsync", "file.rename"};
    for (size_t i = 0; i < sizeof points / sizeof points[0]; i++) {
        struct store *copied = NULL;
        fault_arm(points[i], 1);
        assert_int_not_equal(store_sqlite_copy(store, copy, &error), CADRE_OK);
        assert_true(fault_disarm());
        assert_int_equal(count_names(folder, "copy.db"), 1);
        assert_ok(store_sqlite_open(copy, &copied, &error), &error); /* the one before */
        assert_filled(copied);
        copied->ops->close(copied);
    }
    test_path(copy, folder, "none/copy.db");
    assert_error(store_sqlite_copy(store, copy, &error), CADRE_NOT_FOUND, &error, "none/copy.db");
    store->ops->close(store);
}

#define OF(kind, number, test)                                                                     \
    {                                                                                              \
        .name = #test "/" kind, .test_func = (test),                                               \
        .initial_state = (void *)(uintptr_t)&kinds[number]                                         \
    }
#define EACH(test)                                                                                 \
    OF("memory", 0, test), OF("sqlite", 1, test), OF("memory of entries", 2, test),                \
        OF("sqlite of entries", 3, test)
#define FILE_TEST(test) cmocka_unit_test_setup(test, new_path)

int main(void)
{
    const struct CMUnitTest tests[] = {EACH(an_entry_comes_with_its_position),
        EACH(an_entry_is_not_applied_twice), EACH(an_entry_that_is_refused_changes_nothing),
        EACH(what_is_known_of_the_cluster_stays),
        cmocka_unit_test(memory_loses_entries_with_their_positions), FILE_TEST(it_is_there_again),
        FILE_TEST(a_killed_process_loses_nothing), FILE_TEST(a_damaged_row_is_refused),
        FILE_TEST(a_write_that_fails_changes_nothing), FILE_TEST(a_copy_is_a_store_of_its_own),
        FILE_TEST(a_copy_in_steps_has_what_came_meanwhile),
        FILE_TEST(a_copy_in_steps_that_ends_early_is_not_there),
        FILE_TEST(a_copy_that_fails_leaves_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
