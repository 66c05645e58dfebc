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
#include "coordinator/daemon/log_gap.h"
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

/* Writes `count` lines of ten bytes each, "line 0017\n", from `first`; returns where it ends. */
static uint64_t write_lines(uint64_t at, unsigned first, unsigned count)
{
    for (unsigned i = first; i < first + count; i++) {
        char line[16];
        snprintf(line, sizeof line, "line %04u\n", i);
        assert_int_equal(write_at(0, 1, at, line), at + 10);
        at += 10;
    }
    return at;
}

static char *read_log(size_t *ret_size)
{
    struct cadre_error error = {0};
    CADRE_FREE_AT_EXIT char *path = path_of_log(&stand, (struct job_id){1}, 0);
    char *text = NULL;
    assert_ok(file_read(path, 1U << 20, &text, ret_size, &error), &error);
    return text;
}

/* Beginning and newest end are kept, whole lines, at the offsets where they were written. */
static void a_long_log_loses_its_middle(void **state)
{
    (void)state;
    stand.options.log_limit_bytes = 800;
    size_t size = 0;
    CADRE_FREE_AT_EXIT char *path = path_of_log(&stand, (struct job_id){1}, 0);
    uint64_t end = write_lines(0, 0, 80);
    struct log_gap gap = log_gap_read(path);
    assert_true(log_gap_bytes(&gap) > 0); /* it is full to the brim: room is made at once */
    end = write_lines(end, 80, 1000);
    CADRE_FREE_AT_EXIT char *text = read_log(&size);
    gap = log_gap_read(path);
    assert_int_equal(size, end);
    assert_int_equal(gap.from, 100); /* an eighth */
    assert_int_equal(gap.to % 10, 0);
    assert_in_range(size - log_gap_bytes(&gap), 600, 800);
    assert_memory_equal(text, "line 0000\n", 10);
    assert_memory_equal(text + 90, "line 0009\n", 10);
    assert_memory_equal(text + size - 10, "line 1079\n", 10);
    char first_kept[16];
    snprintf(first_kept, sizeof first_kept, "line %04u\n", (unsigned)(gap.to / 10));
    assert_memory_equal(text + gap.to, first_kept, 10);
    for (uint64_t i = gap.from; i < gap.to; i++) {
        assert_int_equal(text[i], 0);
    }
    /* What is said again is known, and what comes next goes on. */
    assert_int_equal(write_at(0, 1, 50, "line 0005\n"), end);
    (void)write_lines(end, 1080, 1);
}

/* A piece that is larger than all that may be kept. */
static void a_large_piece_is_cut_at_once(void **state)
{
    (void)state;
    static char piece[20001];
    stand.options.log_limit_bytes = 1024;
    memset(piece, 'x', sizeof piece - 1);
    size_t size = 0;
    CADRE_FREE_AT_EXIT char *path = path_of_log(&stand, (struct job_id){1}, 0);
    assert_int_equal(write_at(0, 1, 0, piece), 20000);
    struct log_gap gap = log_gap_read(path);
    CADRE_FREE_AT_EXIT char *text = read_log(&size);
    assert_int_equal(size, 20000);
    assert_in_range(size - log_gap_bytes(&gap), 700, 1024);
    assert_int_equal(text[0], 'x');
    assert_int_equal(text[19999], 'x');
}

/* The file system knows no holes: then the rest is dropped, and nothing is asked for again. */
static void without_holes_it_ends_at_the_limit(void **state)
{
    (void)state;
    stand.options.log_limit_bytes = 1024;
    CADRE_FREE_AT_EXIT char *path = path_of_log(&stand, (struct job_id){1}, 0);
    uint64_t end = write_lines(0, 0, 102);
    fault_arm("log_gap.punch", 1);
    assert_int_equal(write_at(0, 1, end, "line 0102\n"), end + 10);
    assert_true(fault_disarm());
    struct log_gap gap = log_gap_read(path);
    assert_int_equal(log_gap_bytes(&gap), 0);
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_size, 1024);
    fault_arm("log_gap.punch", 1);
    assert_int_equal(write_at(0, 1, end + 10, "line 0103\n"), end + 20);
    assert_true(fault_disarm());
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_size, 1024);
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
        TEST(a_long_log_loses_its_middle), TEST(a_large_piece_is_cut_at_once),
        TEST(without_holes_it_ends_at_the_limit), TEST(a_link_in_its_place_is_not_followed),
        TEST(a_failure_costs_only_what_it_met)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
