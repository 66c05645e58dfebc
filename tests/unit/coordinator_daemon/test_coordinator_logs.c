/* SPDX-License-Identifier: Apache-2.0
 * What tasks write, as the coordinator keeps it: the lives of a slot follow one another, each byte
 * once, whatever is sent again and however often the coordinator is started anew. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/fault.h"
#include "common/base/files.h"
#include "tests/unit/coordinator_daemon/played_engine.h"

static struct engine engine;
static struct daemon stand;
static unsigned changes;

void logs_changed(struct daemon *daemon, struct job_id job)
{
    assert_ptr_equal(daemon, &stand);
    assert_int_equal(job.n, 1);
    changes++;
}

static int set_up(void **state)
{
    (void)state;
    engine = (struct engine){0};
    daemon_open(&stand, &engine);
    changes = 0;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    daemon_close(&stand);
    return 0;
}

/* What is acknowledged. */
static uint64_t write_at(uint32_t slot, uint64_t incarnation, uint64_t offset, const char *text)
{
    uint64_t total = 0;
    struct agent_log chunk = {.task = {.job = {1}, .slot = slot, .incarnation = incarnation},
        .offset = offset,
        .bytes = (const uint8_t *)text,
        .size_bytes = strlen(text)};
    return logs_append(&stand, &chunk, &total);
}

static void assert_log(uint32_t slot, const char *wanted)
{
    struct cadre_error error = {0};
    CADRE_FREE_AT_EXIT char *path = path_of_log(&stand, (struct job_id){1}, slot);
    CADRE_FREE_AT_EXIT char *text = NULL;
    size_t size = 0;
    assert_ok(file_read(path, 1U << 20, &text, &size, &error), &error);
    assert_string_equal(text, wanted);
}

static void the_lives_of_a_slot_follow_one_another(void **state)
{
    (void)state;
    assert_int_equal(write_at(0, 1, 0, "one "), 4);
    assert_int_equal(write_at(1, 2, 0, "other slot"), 10);
    assert_int_equal(write_at(0, 1, 4, "two "), 8);
    assert_int_equal(write_at(0, 5, 0, "three "), 6); /* it begins at its own 0 */
    assert_int_equal(write_at(0, 5, 6, "four "), 11);
    assert_int_equal(write_at(0, 9, 0, "five"), 4);
    assert_log(0, "one two three four five");
    assert_log(1, "other slot");
    assert_int_equal(changes, 6);
}

static void each_byte_is_kept_once(void **state)
{
    (void)state;
    assert_int_equal(write_at(0, 1, 0, "abc"), 3);
    assert_int_equal(write_at(0, 2, 0, "def"), 3);
    assert_int_equal(write_at(0, 2, 0, "def"), 3);   /* again */
    assert_int_equal(write_at(0, 2, 1, "efgh"), 5);  /* known in part */
    assert_int_equal(write_at(0, 2, 9, "later"), 5); /* a gap: from there, please */
    assert_int_equal(write_at(0, 2, 5, "ijklater"), 13);
    assert_log(0, "abcdefghijklater");
}

/* The one before was still collecting when its replacement began to write. */
static void an_older_life_comes_too_late(void **state)
{
    (void)state;
    assert_int_equal(write_at(0, 1, 0, "old "), 4);
    assert_int_equal(write_at(0, 2, 0, "new "), 4);
    assert_int_equal(write_at(0, 1, 4, "rest"), 8); /* acknowledged, so that its daemon may end */
    assert_int_equal(write_at(0, 2, 4, "more"), 8);
    assert_log(0, "old new more");
}

static void a_start_finds_where_each_begins(void **state)
{
    (void)state;
    struct daemon before = stand;
    assert_int_equal(write_at(0, 1, 0, "abc"), 3);
    assert_int_equal(write_at(0, 2, 0, "def"), 3);
    stand = (struct daemon){.options = before.options,
        .engine = before.engine,
        .blob_dir = before.blob_dir,
        .job_dir = before.job_dir,
        .arena = before.arena};
    assert_int_equal(write_at(0, 2, 0, "defghi"), 6); /* the daemon says all of it again */
    assert_int_equal(write_at(0, 1, 0, "abc"), 3);
    assert_int_equal(write_at(0, 3, 0, "j"), 1);
    assert_log(0, "abcdefghij");
}

/* The coordinator lost power: the tail of the log is gone, or who wrote it. */
static void a_lost_tail_comes_again(void **state)
{
    (void)state;
    assert_int_equal(write_at(0, 1, 0, "abc"), 3);
    assert_int_equal(write_at(0, 2, 0, "defghi"), 6);
    CADRE_FREE_AT_EXIT char *path = path_of_log(&stand, (struct job_id){1}, 0);
    assert_int_equal(truncate(path, 5), 0);
    assert_int_equal(write_at(0, 2, 6, "jkl"), 2); /* from there, please */
    assert_int_equal(write_at(0, 2, 2, "fghijkl"), 9);
    assert_log(0, "abcdefghijkl");
    /* Shorter than where the life began: it is written behind what is left. */
    assert_int_equal(truncate(path, 2), 0);
    assert_int_equal(write_at(0, 2, 9, "m"), 0);
    assert_int_equal(write_at(0, 2, 0, "def"), 3);
    assert_log(0, "abdef");
}

static void it_ends_at_the_limit(void **state)
{
    (void)state;
    stand.options.log_limit_bytes = 6;
    assert_int_equal(write_at(0, 1, 0, "abcd"), 4);
    assert_int_equal(write_at(0, 1, 4, "efgh"), 8); /* acknowledged, and dropped */
    assert_int_equal(write_at(0, 2, 0, "ij"), 2);
    assert_log(0, "abcdef");
}

static void a_link_in_its_place_is_not_followed(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    char other[TEST_PATH_BYTES];
    CADRE_FREE_AT_EXIT char *path = path_of_log(&stand, (struct job_id){1}, 0);
    char folder[TEST_PATH_BYTES];
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
    assert_ok(folder_make(folder, 0700, &error), &error);
    test_write(test_path(other, stand.job_dir, "other"), "");
    assert_int_equal(symlink(other, path), 0);
    (void)write_at(0, 1, 0, "abc");
    struct stat status;
    assert_int_equal(stat(other, &status), 0);
    assert_int_equal(status.st_size, 0);
}

/* Each call fails once: what was kept is kept, nothing is there twice, and a life that goes on
 * after the failure has its beginning where it began. */
static void a_failure_costs_only_what_it_met(void **state)
{
    (void)state;
    for (uint64_t nth = 1;; nth++) {
        struct cadre_error error = {0};
        CADRE_FREE_AT_EXIT char *path = path_of_log(&stand, (struct job_id){1}, 0);
        CADRE_FREE_AT_EXIT char *text = NULL;
        size_t size = 0;
        paths_forget_job(&stand, (struct job_id){1});
        assert_int_equal(write_at(0, 1, 0, "abc"), 3);
        fault_arm("logs.", nth);
        (void)write_at(0, 2, 0, "def");
        bool met = fault_disarm();
        /* The daemon says again what is not acknowledged, or what it is asked for. */
        uint64_t asked = write_at(0, 2, 3, "ghi");
        if (asked < 6) {
            assert_int_equal(asked, 0);
            assert_int_equal(write_at(0, 2, 0, "defghi"), 6);
        }
        assert_ok(file_read(path, 1000, &text, &size, &error), &error);
        assert_string_equal(text, "abcdefghi");
        if (!met) {
            assert_true(nth > 3);
            break;
        }
    }
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(the_lives_of_a_slot_follow_one_another),
        TEST(each_byte_is_kept_once), TEST(an_older_life_comes_too_late),
        TEST(a_start_finds_where_each_begins), TEST(a_lost_tail_comes_again),
        TEST(it_ends_at_the_limit), TEST(a_link_in_its_place_is_not_followed),
        TEST(a_failure_costs_only_what_it_met)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
