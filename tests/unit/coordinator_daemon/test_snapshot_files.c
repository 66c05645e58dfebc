/* SPDX-License-Identifier: Apache-2.0
 * Snapshots of the ledger as files that several coordinators make and read. The store's copy is a
 * file that the test writes, and a thread's work is done when the test says so. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/files.h"
#include "common/base/sha256.h"
#include "coordinator/daemon/shared/snapshot_files.h"
#include "tests/lib/test.h"

/* A coordinator. */
struct maker {
    struct snapshot_files *files;
    const char *content; /* of its ledger */
    struct replica_snapshot made;
    unsigned made_count, fetched_count;
    cadre_status status; /* of the newest answer */
};

static struct file_work *at_work; /* NULL: none */
static const char *ledger;        /* what the store has, as of: */
static uint64_t ledger_index;
static uv_loop_t loop;
static struct file_work_pool pool;
static char contents[TEST_PATH_BYTES], states[2][TEST_PATH_BYTES];
static struct maker makers[2];

void file_work_start(struct file_work *work, struct file_work_pool *of,
    void (*in_thread)(void *user), void (*done)(void *user), void *user)
{
    (void)of;
    assert_null(at_work);
    assert_false(work->running);
    work->in_thread = in_thread;
    work->done = done;
    work->user = user;
    work->running = true;
    at_work = work;
}

static void finish(struct file_work *work)
{
    work->in_thread(work->user);
    work->running = false;
    work->done(work->user);
}

static void finish_work(void)
{
    struct file_work *work = at_work;
    assert_non_null(work);
    at_work = NULL;
    finish(work);
}

uv_loop_t *rpc_loop_uv(struct rpc_loop *of)
{
    (void)of;
    return &loop;
}

cadre_status store_sqlite_copy_begin(
    struct store *store, const char *path, struct store_copy **ret_copy, struct cadre_error *error)
{
    *ret_copy = (struct store_copy *)(void *)store; /* not NULL */
    return file_write_atomic(path, ledger, strlen(ledger), 0600, error);
}

cadre_status store_sqlite_copy_step(
    struct store_copy *copy, unsigned pages, bool *ret_whole, struct cadre_error *error)
{
    (void)error;
    assert_non_null(copy);
    assert_true(pages > 0);
    *ret_whole = true;
    return CADRE_OK;
}

void store_sqlite_copy_end(struct store_copy *copy)
{
    (void)copy;
}

static void position(const struct store *store, struct store_position *ret_position)
{
    (void)store;
    *ret_position = (struct store_position){.index = ledger_index, .term = 1};
}

static void on_made(
    void *user, const struct replica_snapshot *snapshot, const struct cadre_error *error)
{
    struct maker *maker = user;
    maker->made = *snapshot;
    maker->made_count++;
    maker->status = error->code;
}

static void on_fetched(void *user, const struct replica_snapshot *snapshot, const char *path,
    const struct cadre_error *error)
{
    struct maker *maker = user;
    (void)snapshot;
    maker->fetched_count++;
    maker->status = error->code;
    if (error->code == CADRE_OK) {
        char text[64] = "";
        FILE *file = fopen(path, "r");
        assert_non_null(file);
        assert_non_null(fgets(text, sizeof text, file));
        fclose(file);
        assert_string_equal(text, maker->content);
    }
}

static int set_up(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    assert_int_equal(uv_loop_init(&loop), 0);
    test_path(contents, test_temp_dir(), "contents");
    for (size_t i = 0; i < 2; i++) {
        test_path(states[i], test_temp_dir(), i == 0 ? "one" : "two");
        makers[i] = (struct maker){.content = ""};
        const struct snapshot_files_owner owner = {
            .made = on_made, .fetched = on_fetched, .user = &makers[i]};
        assert_ok(folder_make_durable(states[i], 0700, &error), &error);
        assert_ok(snapshot_files_open(contents, states[i], &pool, &owner, &makers[i].files, &error),
            &error);
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    if (at_work != NULL) {
        finish_work();
    }
    snapshot_files_close(makers[0].files);
    snapshot_files_close(makers[1].files);
    uv_run(&loop, UV_RUN_DEFAULT);
    return uv_loop_close(&loop);
}

static void make(struct maker *maker, uint64_t index, const char *content)
{
    static const struct store_ops ops = {.position = position};
    static struct store store = {.ops = &ops};
    ledger = maker->content = content;
    ledger_index = index;
    snapshot_files_make(maker->files, &store);
    uv_run(&loop, UV_RUN_DEFAULT); /* to the end of the copy */
}

static void fetch(struct maker *maker, const struct replica_snapshot *snapshot, const char *content)
{
    maker->content = content;
    snapshot_files_fetch(maker->files, snapshot);
    finish_work();
}

static void what_is_made_is_fetched(void **state)
{
    (void)state;
    make(&makers[0], 7, "seven");
    finish_work();
    assert_int_equal(makers[0].status, CADRE_OK);
    assert_int_equal(makers[0].made.at.index, 7);
    assert_int_equal(makers[0].made.size, 5);
    fetch(&makers[1], &makers[0].made, "seven");
    assert_int_equal(makers[1].status, CADRE_OK);
    assert_int_equal(makers[1].fetched_count, 1);
}

/* An older leader that is slow to end makes one of the very entry of which --reseed has made one.
 * That one stays. */
static void two_make_one_of_the_same_entry(void **state)
{
    (void)state;
    make(&makers[1], 7, "of the older leader");
    struct file_work *slow = at_work;
    at_work = NULL;
    make(&makers[0], 7, "named");
    finish_work();
    const struct replica_snapshot named = makers[0].made;
    finish(slow);
    assert_int_equal(makers[1].status, CADRE_OK);
    fetch(&makers[1], &named, "named");
    assert_int_equal(makers[1].status, CADRE_OK);
}

static void one_that_is_asked_for_meanwhile_fails(void **state)
{
    (void)state;
    make(&makers[0], 7, "seven");
    finish_work();
    snapshot_files_remove_older(makers[0].files, 7);
    make(&makers[0], 8, "eight");
    assert_int_equal(makers[0].made_count, 2);
    assert_int_equal(makers[0].status, CADRE_UNAVAILABLE);
    finish_work();
    make(&makers[0], 8, "eight");
    finish_work();
    assert_int_equal(makers[0].status, CADRE_OK);
}

static void older_ones_are_removed(void **state)
{
    (void)state;
    for (uint64_t index = 6; index <= 8; index++) {
        make(&makers[0], index, "the same");
        finish_work();
    }
    const struct replica_snapshot eighth = makers[0].made;
    snapshot_files_remove_older(makers[0].files, 8);
    finish_work();
    fetch(&makers[1], &eighth, "the same");
    assert_int_equal(makers[1].status, CADRE_OK);
    struct replica_snapshot seventh = eighth;
    seventh.at.index = 7;
    fetch(&makers[1], &seventh, "");
    assert_int_equal(makers[1].status, CADRE_NOT_FOUND);
}

static void one_that_was_changed_is_refused(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    char hex[SHA256_HEX_BYTES];
    char path[2 * TEST_PATH_BYTES];
    struct sha256 hash;
    make(&makers[0], 7, "seven");
    finish_work();
    memcpy(hash.bytes, makers[0].made.sha256, sizeof hash.bytes);
    sha256_hex(&hash, hex);
    snprintf(path, sizeof path, "%s/snapshots/0000000000000007-%s.db", contents, hex);
    assert_ok(file_write_atomic(path, "eight", 5, 0600, &error), &error);
    fetch(&makers[1], &makers[0].made, "");
    assert_int_equal(makers[1].status, CADRE_DATA_LOSS);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_made_is_fetched),
        TEST(two_make_one_of_the_same_entry),
        TEST(one_that_is_asked_for_meanwhile_fails),
        TEST(older_ones_are_removed),
        TEST(one_that_was_changed_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
