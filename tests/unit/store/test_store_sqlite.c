/* SPDX-License-Identifier: Apache-2.0
 * What only a store in a file can be asked: opening it again, and everything that can be wrong with
 * the file. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "coordinator/store/sqlite_statements.h"
#include "coordinator/store/sqlite_tables.h"
#include "tests/unit/store/store_fixture.h"

struct fixture {
    char path[TEST_PATH_BYTES];
    struct store *store;
    struct cadre_error error;
};

static int set_up(void **state)
{
    static struct fixture fixture;
    fixture = (struct fixture){0};
    test_path(fixture.path, test_temp_dir(), "ledger.db");
    *state = &fixture;
    return 0;
}

static void reopen(struct fixture *fixture)
{
    if (fixture->store != NULL) {
        fixture->store->ops->close(fixture->store);
    }
    fixture->store = NULL;
    assert_ok(store_sqlite_open(fixture->path, &fixture->store, &fixture->error), &fixture->error);
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    if (fixture->store != NULL) {
        fixture->store->ops->close(fixture->store);
    }
    return 0;
}

static void run_story(struct store *store)
{
    struct cadre_error error;
    for (unsigned i = 0; i < STORY_COMMITS; i++) {
        assert_ok(story_commit(store, i, &error), &error);
    }
}

/* One statement of another program, while the store is closed. */
static void meddle(const char *path, const char *sql)
{
    sqlite3 *database = NULL;
    assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
    assert_int_equal(sqlite3_exec(database, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(database);
}

/* The same, and every checksum is made to fit, as a fault of the program that wrote it would. */
static void meddle_and_sum(const char *path, const char *sql)
{
    sqlite3 *database = NULL;
    assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
    assert_int_equal(checksum_register(database), SQLITE_OK);
    assert_int_equal(sqlite3_exec(database, sql, NULL, NULL, NULL), SQLITE_OK);
    for (size_t i = 0; i <= LEDGER_TABLE_COUNT; i++) {
        const struct ledger_table *table = &ledger_tables[i < LEDGER_TABLE_COUNT ? i : 0];
        char *update = i < LEDGER_TABLE_COUNT
                           ? sqlite3_mprintf("UPDATE %s SET sum = row_sum(%Q, job, %s)",
                                 table->name, table->name, table->columns)
                           : sqlite3_mprintf("UPDATE job SET sum = %s", JOB_SUM);
        assert_int_equal(sqlite3_exec(database, update, NULL, NULL, NULL), SQLITE_OK);
        sqlite3_free(update);
    }
    sqlite3_close(database);
}

static void assert_refused(struct fixture *fixture, cadre_status wanted, const char *part)
{
    struct store *store = NULL;
    assert_error(
        store_sqlite_open(fixture->path, &store, &fixture->error), wanted, &fixture->error, part);
    assert_null(store);
}

static void everything_is_there_again(void **state)
{
    struct fixture *fixture = *state;
    uint8_t secret[STORE_SECRET_BYTES];
    uint8_t again[STORE_SECRET_BYTES];
    reopen(fixture);
    fixture->store->ops->secret(fixture->store, secret);
    run_story(fixture->store);
    reopen(fixture);
    char *wanted = story_text(STORY_COMMITS);
    assert_store_text(fixture->store, wanted);
    free(wanted);
    fixture->store->ops->secret(fixture->store, again);
    assert_memory_equal(secret, again, sizeof secret);
    assert_int_equal(fixture->store->ops->job_id_max(fixture->store), 2);
    assert_ok(COMMIT(fixture->store, true, &fixture->error, record_forgotten(2)), &fixture->error);
    reopen(fixture);
    assert_int_equal(fixture->store->ops->job_id_max(fixture->store), 2); /* never used again */
}

static void a_start_is_counted_for_good(void **state)
{
    struct fixture *fixture = *state;
    struct term before = {0};
    for (uint64_t start = 1; start <= 3; start++) {
        reopen(fixture);
        const struct term term = fixture->store->ops->term(fixture->store);
        assert_int_equal(term.start, start - 1);
        assert_ok(
            COMMIT(fixture->store, true, &fixture->error, record_term(start)), &fixture->error);
        assert_true(before.cluster == 0 || before.cluster == term.cluster);
        assert_true(before.nonce != term.nonce);
        before = term;
    }
}

static void a_killed_process_loses_nothing(void **state)
{
    struct fixture *fixture = *state;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        reopen(fixture);
        run_story(fixture->store);
        raise(SIGKILL);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    reopen(fixture);
    char *wanted = story_text(STORY_COMMITS);
    assert_store_text(fixture->store, wanted);
    free(wanted);
}

static void assert_private(const char *path)
{
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0600);
}

static void no_other_user_may_read_it(void **state)
{
    struct fixture *fixture = *state;
    char wal[TEST_PATH_BYTES + 8];
    mode_t before = umask(0);
    reopen(fixture);
    run_story(fixture->store);
    umask(before);
    assert_private(fixture->path);
    snprintf(wal, sizeof wal, "%s-wal", fixture->path);
    assert_private(wal);
    fixture->store->ops->close(fixture->store);
    fixture->store = NULL;
    assert_int_equal(chmod(fixture->path, 0644), 0); /* as a careless copy would be */
    reopen(fixture);
    assert_private(fixture->path);
}

static void a_second_opener_is_refused(void **state)
{
    struct fixture *fixture = *state;
    reopen(fixture);
    run_story(fixture->store);
    assert_refused(fixture, CADRE_UNAVAILABLE, "another process has it open");
    for (int i = 0; i < 2; i++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            struct store *store = NULL;
            _exit(store_sqlite_open(fixture->path, &store, NULL) == CADRE_UNAVAILABLE ? 0 : 1);
        }
        int status = 0;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    /* And the first one goes on. */
    assert_ok(COMMIT(fixture->store, true, &fixture->error, record_job(3, 1)), &fixture->error);
}

static void another_version_is_refused(void **state)
{
    struct fixture *fixture = *state;
    reopen(fixture);
    fixture->store->ops->close(fixture->store);
    fixture->store = NULL;
    meddle(fixture->path, "UPDATE meta SET version = 9");
    assert_refused(fixture, CADRE_FAILED_PRECONDITION, "has version 9");
    meddle(fixture->path, "UPDATE meta SET version = 0");
    assert_refused(fixture, CADRE_FAILED_PRECONDITION, "has version 0");
    meddle(fixture->path, "UPDATE meta SET version = 2");
    assert_refused(fixture, CADRE_DATA_LOSS, "is damaged (its version, its secret");
    meddle(fixture->path, "UPDATE meta SET version = 5, secret = x'00ff'");
    assert_refused(fixture, CADRE_DATA_LOSS, "is damaged (its version, its secret");
    meddle(fixture->path, "DELETE FROM meta");
    assert_refused(fixture, CADRE_DATA_LOSS, "does not give its version");
}

static void foreign_database_is_refused(void **state)
{
    struct fixture *fixture = *state;
    meddle(fixture->path, "CREATE TABLE recipes(name TEXT)");
    assert_refused(fixture, CADRE_FAILED_PRECONDITION, "of another program");
    meddle(fixture->path, "CREATE TABLE meta(name TEXT)");
    assert_refused(fixture, CADRE_DATA_LOSS, "does not give its version");
}

static void a_row_that_cannot_be_is_found(void **state)
{
    struct fixture *fixture = *state;
    static const char *const damages[] = {"UPDATE job SET state = 77", "UPDATE job SET code = -1",
        "UPDATE job SET tasks = 0", "UPDATE job SET tasks = 123456789",
        "UPDATE job SET tasks_min = 0", "UPDATE job SET tasks_min = 3",
        "INSERT INTO task VALUES(1, 2, 1, 'w', 1, 1, 0)",
        "INSERT INTO ending VALUES(1, 1, 0, 0, '', 0, 0)",
        "INSERT INTO ending VALUES(1, 6, 99, 0, '', 0, 0)",
        "INSERT INTO control VALUES(1, 1, 1, 1, 9, 0, 0)",
        "INSERT INTO task VALUES(1, 0, 0, 'w', 1, 1, 0)", /* a start that was never given out */
        "INSERT INTO task VALUES(1, 0, 5, 'w', 1, 1, 0)",
        /* a slot twice */
        "INSERT INTO task VALUES(1, 0, 1, 'w', 1, 1, 0), (1, 4294967296, 1, 'w', 1, 1, 0)",
        "INSERT INTO roster VALUES(1, zeroblob(36), 0)", /* more members than tasks */
        "INSERT INTO control VALUES(1, 1, 1, 1, 1, 65, 0)",
        "INSERT INTO plan VALUES(1, 1, 7, 0, 0, 0, 0, 1, 0, 0);" /* released beyond the halt */
        " INSERT INTO watermark VALUES(1, 1, 7, 5, 0, 0, 0, 0, 0, 0);"
        " INSERT INTO control VALUES(1, 1, 7, 4, 1, 0, 0)",
        "INSERT INTO plan VALUES(1, 1, 7, 0, 0, -1, 0, 1, 0, 0)",
        /* ahead of its steps */
        ("UPDATE job SET started_us = 1; INSERT INTO plan VALUES(1, 1, 7, 0, 0, 4, 0, 1, 0, 0);"
         " INSERT INTO checkpoint VALUES(1, 5, 1, 7, 0, 'p', 1, x'00', 0, 0)"),
        "UPDATE job SET id = 0"};
    for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
        reopen(fixture);
        (void)story_commit(fixture->store, 0, &fixture->error);
        fixture->store->ops->close(fixture->store);
        fixture->store = NULL;
        meddle(fixture->path,
            "UPDATE job SET state = 1, code = 0, tasks = 2, tasks_min = 1, incarnation_max = 4;"
            " DELETE FROM task; DELETE FROM ending; DELETE FROM control; DELETE FROM roster;"
            " DELETE FROM plan; DELETE FROM watermark; DELETE FROM checkpoint");
        meddle_and_sum(fixture->path, damages[i]);
        reopen(fixture);
        /* No visitor: it is not called for such a row. */
        assert_error(fixture->store->ops->load(fixture->store, NULL, NULL, &fixture->error),
            CADRE_DATA_LOSS, &fixture->error, "it is damaged");
    }
}

struct reported_damage {
    unsigned jobs;
    unsigned damaged;
    char what[512];
};

static cadre_status note_damage(void *user, const struct store_job *job, struct cadre_error *error)
{
    (void)error;
    struct reported_damage *reported = user;
    reported->jobs++;
    if (job->damage != NULL) {
        assert_int_equal(job->restore.job.n, 1);
        reported->damaged++;
        snprintf(reported->what, sizeof reported->what, "%s", job->damage);
    }
    return CADRE_OK;
}

static void note_checked(void *user, struct job_id job, const char *what)
{
    assert_int_equal(job.n, 1);
    assert_string_equal(what, ((struct reported_damage *)user)->what);
}

static void a_changed_row_is_named(void **state)
{
    struct fixture *fixture = *state;
    static const struct {
        const char *sql;
        const char *what;
    } damages[] = {{"UPDATE plan SET resume = 5 WHERE job = 1 AND number = 2",
                       "its generations (generation 2)"},
        {"UPDATE feed SET samples = samples + 1 WHERE job = 1 AND stream = 1",
            "which samples it consumed (dataset 1, epoch 0)"},
        {"UPDATE checkpoint SET path = 'other' WHERE job = 1", "its checkpoints (step 4)"},
        {"UPDATE done SET position = 7", "at which step it was done"},
        {"UPDATE task_exit SET text = 'no'", "how its tasks ended (task 0)"},
        {"UPDATE job SET spec = x'00' WHERE id = 1", "its submission and how it ended"}};
    for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
        struct reported_damage reported = {0};
        unlink(fixture->path);
        reopen(fixture);
        run_story(fixture->store);
        fixture->store->ops->close(fixture->store);
        fixture->store = NULL;
        meddle(fixture->path, damages[i].sql);
        reopen(fixture);
        assert_ok(
            fixture->store->ops->load(fixture->store, note_damage, &reported, &fixture->error),
            &fixture->error);
        assert_int_equal(reported.jobs, 2);
        assert_int_equal(reported.damaged, 1);
        assert_non_null(strstr(reported.what, damages[i].what));
        assert_ok(
            fixture->store->ops->check(fixture->store, note_checked, &reported, &fixture->error),
            &fixture->error);
        /* A record that changes a part of it does not make it right. */
        bool own = i == sizeof damages / sizeof damages[0] - 1;
        cadre_status status =
            COMMIT(fixture->store, true, &fixture->error, record_ended(1, JOB_CANCELLED, ""));
        assert_int_equal(status, own ? CADRE_DATA_LOSS : CADRE_OK);
        /* And it can be forgotten. */
        assert_ok(
            COMMIT(fixture->store, true, &fixture->error, record_forgotten(1)), &fixture->error);
    }
}

static void ignore_plan(void *user, const struct store_plan *plan)
{
    (void)user;
    (void)plan;
}

static void a_changed_row_is_not_read(void **state)
{
    struct fixture *fixture = *state;
    reopen(fixture);
    run_story(fixture->store);
    fixture->store->ops->close(fixture->store);
    fixture->store = NULL;
    meddle(fixture->path, "UPDATE plan SET resume = 5 WHERE job = 1 AND number = 2");
    reopen(fixture);
    const struct store_walk walk = {.plan_row = ignore_plan};
    assert_error(
        fixture->store->ops->ledger(fixture->store, (struct job_id){1}, &walk, &fixture->error),
        CADRE_DATA_LOSS, &fixture->error, "it lost its generations (generation 2)");
    assert_ok(
        fixture->store->ops->ledger(fixture->store, (struct job_id){2}, &walk, &fixture->error),
        &fixture->error);
}

static void ignore_epoch(void *user, const struct store_epoch *epoch)
{
    (void)user;
    (void)epoch;
}

/* What a part of the ledger does not tell does not spoil it. */
static void a_changed_epoch_is_not_read(void **state)
{
    struct fixture *fixture = *state;
    static const char *const changes[] = {"UPDATE feed SET samples = 5 WHERE epoch = 1",
        "UPDATE feed SET samples = 5 WHERE epoch = 1 AND start = 2",
        "UPDATE end_of_data SET steps = 6 WHERE epoch = 1"};
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        reopen(fixture);
        struct cadre_error *error = &fixture->error;
        assert_ok(COMMIT(fixture->store, true, error, record_job(1 + i, 1),
                      record_consumed(1 + i, 1, 0, 0, 1), record_consumed(1 + i, 1, 1, 2, 1),
                      record_consumed(1 + i, 1, 1, 4, 2), record_end_of_data(1 + i, 1),
                      record_consumed(1 + i, 1, 2, 6, 1)),
            error);
        fixture->store->ops->close(fixture->store);
        fixture->store = NULL;
        meddle(fixture->path, changes[i]);
        reopen(fixture);
        const struct store_ops *ops = fixture->store->ops;
        struct job_id job = {1 + i};
        struct store_walk walk = {.stream = 1, .epoch = 1, .epoch_row = ignore_epoch};
        assert_error(ops->ledger(fixture->store, job, &walk, error), CADRE_DATA_LOSS, error,
            "(dataset 1, epoch 1)");
        walk.epoch = 2;
        walk.newest_row = ignore_epoch;
        assert_ok(ops->ledger(fixture->store, job, &walk, error), error);
        walk.epoch = 0;
        walk.epochs_max = 1;
        assert_ok(ops->ledger(fixture->store, job, &walk, error), error);
    }
}

static void a_file_that_is_no_database_is_refused(void **state)
{
    struct fixture *fixture = *state;
    char text[4096];
    memset(text, 'z', sizeof text);
    text[sizeof text - 1] = '\0';
    test_write(fixture->path, text);
    assert_refused(fixture, CADRE_DATA_LOSS, "not a database");
}

static void a_damaged_file_is_refused(void **state)
{
    struct fixture *fixture = *state;
    reopen(fixture);
    run_story(fixture->store);
    fixture->store->ops->close(fixture->store);
    fixture->store = NULL;
    int fd = open(fixture->path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    uint8_t noise[4096 - 100];
    memset(noise, 0xa5, sizeof noise);
    assert_int_equal(pwrite(fd, noise, sizeof noise, 100), sizeof noise); /* the list of tables */
    close(fd);
    assert_refused(fixture, CADRE_DATA_LOSS, "ledger.db");
}

static void an_empty_file_is_a_new_store(void **state)
{
    struct fixture *fixture = *state;
    test_write(fixture->path, "");
    reopen(fixture);
    assert_store_text(fixture->store, "");
}

static void paths_that_hold_no_file_are_refused(void **state)
{
    struct fixture *fixture = *state;
    char folder[TEST_PATH_BYTES];
    snprintf(folder, sizeof folder, "%s", fixture->path);
    test_write(fixture->path, "a file");
    snprintf(fixture->path, sizeof fixture->path, "%.400s/ledger.db", folder);
    assert_refused(fixture, CADRE_NOT_FOUND, "cannot open the store"); /* its folder is a file */
    assert_int_equal(unlink(folder), 0);
    assert_refused(fixture, CADRE_NOT_FOUND, "cannot open the store");
    snprintf(fixture->path, sizeof fixture->path, "%.400s", folder);
    assert_int_equal(mkdir(fixture->path, 0700), 0);
    assert_refused(fixture, CADRE_FAILED_PRECONDITION, "is no regular file");
    assert_int_equal(rmdir(fixture->path), 0);
    assert_int_equal(symlink("/etc/passwd", fixture->path), 0);
    assert_refused(fixture, CADRE_FAILED_PRECONDITION, "is no regular file");
    assert_int_equal(unlink(fixture->path), 0);
    assert_int_equal(mkfifo(fixture->path, 0600), 0);
    assert_refused(fixture, CADRE_FAILED_PRECONDITION, "is no regular file");
}

static rlim_t open_descriptors(void)
{
    rlim_t count = 0;
    DIR *folder = opendir("/proc/self/fd");
    assert_non_null(folder);
    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        count += entry->d_name[0] != '.' ? 1 : 0;
    }
    closedir(folder);
    return count - 1; /* the folder itself */
}

/* With one descriptor more at each try, until it opens: no try leaves one open. */
static void it_is_reported_when_descriptors_run_out(void **state)
{
    struct fixture *fixture = *state;
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    rlim_t used = open_descriptors();
    bool opened = false;
    for (rlim_t extra = 0; !opened; extra++) {
        assert_true(extra < 10);
        struct rlimit tight = {.rlim_cur = used + extra, .rlim_max = before.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
        cadre_status status = store_sqlite_open(fixture->path, &fixture->store, &fixture->error);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
        opened = status == CADRE_OK;
        if (!opened) {
            assert_int_equal(status, CADRE_RESOURCE_EXHAUSTED);
            assert_non_null(strstr(fixture->error.text, "Too many open files"));
            assert_int_equal(open_descriptors(), used);
        }
    }
    run_story(fixture->store);
    fixture->store->ops->close(fixture->store);
    fixture->store = NULL;
    assert_int_equal(open_descriptors(), used);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(everything_is_there_again),
        TEST(a_start_is_counted_for_good), TEST(a_killed_process_loses_nothing),
        TEST(no_other_user_may_read_it), TEST(a_second_opener_is_refused),
        TEST(another_version_is_refused), TEST(foreign_database_is_refused),
        TEST(a_row_that_cannot_be_is_found), TEST(a_changed_row_is_named),
        TEST(a_changed_row_is_not_read), TEST(a_changed_epoch_is_not_read),
        TEST(a_file_that_is_no_database_is_refused), TEST(a_damaged_file_is_refused),
        TEST(an_empty_file_is_a_new_store), TEST(paths_that_hold_no_file_are_refused),
        TEST(it_is_reported_when_descriptors_run_out)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
