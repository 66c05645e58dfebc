/* SPDX-License-Identifier: Apache-2.0
 * The output of tasks, as the coordinator keeps it: the incarnations of a slot follow one another,
 * each byte once, whatever is sent again and however often the coordinator is started again.
 * Threads write it, and what waits for them is bounded. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/fault.h"
#include "common/base/files.h"
#include "coordinator/daemon/logs/log_followers.h"
#include "coordinator/daemon/base/links.h"
#include "coordinator/daemon/base/log_hole.h"
#include "coordinator/daemon/logs/log_read.h"
#include "coordinator/daemon/logs/logs.h"
#include "coordinator/daemon/base/disk.h"
#include "coordinator/daemon/contents/quota.h"
#include "tests/unit/coordinator_daemon/fake_engine.h"

#define LINK       7
#define PIECE      32768
#define ANSWERS    1024
#define LINK_BYTES ((size_t)8 * 1024 * 1024)

static struct engine engine;
static struct daemon stand;
static struct agent_link agent;
static unsigned changes;
static unsigned ends; /* looks at whether a job has ended */
static uint64_t answers[ANSWERS];
static unsigned answer_count;

void log_followers_written(struct daemon *daemon, struct job_id job, uint32_t slot)
{
    assert_ptr_equal(daemon, &stand);
    assert_int_equal(job.n, 1);
    assert_in_range(slot, 0, 1);
    changes++;
}

void log_followers_job_changed(struct daemon *daemon, struct job_id job)
{
    assert_ptr_equal(daemon, &stand);
    assert_int_equal(job.n, 1);
    ends++;
}

struct agent_link *links_find(const struct daemon *daemon, struct link_id link)
{
    assert_ptr_equal(daemon, &stand);
    return link.n == agent.id.n ? &agent : NULL;
}

void links_down(void *user, struct link_id link, const struct agent_down *down)
{
    assert_ptr_equal(user, &stand);
    assert_int_equal(link.n, LINK);
    assert_int_equal(down->type, AGENT_DOWN_LOG_ACK);
    assert_in_range(answer_count, 0, ANSWERS - 1);
    answers[answer_count++] = down->log_ack.offset;
}

void links_refuse(void *user, struct link_id link, cadre_status code, const char *text)
{
    (void)user;
    (void)link;
    (void)code;
    fail_msg("%s", text);
}

static int set_up(void **state)
{
    (void)state;
    engine = (struct engine){0};
    daemon_open(&stand, &engine);
    agent = (struct agent_link){.id = {LINK}};
    changes = 0;
    ends = 0;
    answer_count = 0;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    settle(&stand);
    daemon_close(&stand);
    return 0;
}

static void append(uint64_t incarnation, uint64_t offset, const void *bytes, size_t size)
{
    struct agent_log chunk = {.task = {.job = {1}, .incarnation = incarnation},
        .offset = offset,
        .bytes = bytes,
        .size_bytes = size};
    logs_append(&stand, agent.id, &chunk, true);
}

/* What is acknowledged. */
static uint64_t write_at(uint32_t slot, uint64_t incarnation, uint64_t offset, const char *text)
{
    struct agent_log chunk = {.task = {.job = {1}, .slot = slot, .incarnation = incarnation},
        .offset = offset,
        .bytes = (const uint8_t *)text,
        .size_bytes = strlen(text)};
    answer_count = 0;
    logs_append(&stand, agent.id, &chunk, true);
    assert_int_equal(answer_count, 0); /* nothing is promised before it is written */
    settle(&stand);
    assert_int_equal(answer_count, 1);
    return answers[0];
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

static void the_attempts_of_a_slot_follow_one_another(void **state)
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
static void an_older_attempt_comes_too_late(void **state)
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
        .loop = before.loop,
        .file_pool.loop = before.loop,
        .write_pool.loop = before.loop,
        .contents = before.contents,
        .blob_dir = before.blob_dir,
        .job_dir = before.job_dir,
        .arena = before.arena};
    assert_int_equal(write_at(0, 2, 0, "defghi"), 6); /* the daemon sends all of it again */
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
    /* Shorter than where the incarnation began: it is written behind what is left. */
    assert_int_equal(truncate(path, 2), 0);
    assert_int_equal(write_at(0, 2, 9, "m"), 0);
    assert_int_equal(write_at(0, 2, 0, "def"), 3);
    assert_log(0, "abdef");
}

/* Writes `count` lines of ten bytes each, "line 0017\n", from `first`; returns where it ends. */
static uint64_t write_lines(uint64_t at, unsigned first, unsigned count)
{
    for (unsigned i = first; i < first + count; i++) {
        char line[24];
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
    struct log_hole hole = log_hole_read(path);
    assert_true(log_hole_bytes(&hole) > 0); /* it is full to the brim: room is made at once */
    end = write_lines(end, 80, 1000);
    CADRE_FREE_AT_EXIT char *text = read_log(&size);
    hole = log_hole_read(path);
    assert_int_equal(size, end);
    assert_int_equal(hole.from, 100); /* an eighth */
    assert_int_equal(hole.to % 10, 0);
    assert_in_range(size - log_hole_bytes(&hole), 600, 800);
    assert_memory_equal(text, "line 0000\n", 10);
    assert_memory_equal(text + 90, "line 0009\n", 10);
    assert_memory_equal(text + size - 10, "line 1079\n", 10);
    char first_byte_kept[16];
    snprintf(first_byte_kept, sizeof first_byte_kept, "line %04u\n", (unsigned)(hole.to / 10));
    assert_memory_equal(text + hole.to, first_byte_kept, 10);
    for (uint64_t i = hole.from; i < hole.to; i++) {
        assert_int_equal(text[i], 0);
    }
    /* A repeated chunk is not written again, and the next one is appended. */
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
    struct log_hole hole = log_hole_read(path);
    CADRE_FREE_AT_EXIT char *text = read_log(&size);
    assert_int_equal(size, 20000);
    assert_in_range(size - log_hole_bytes(&hole), 700, 1024);
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
    fault_arm("log_hole.punch", 1);
    assert_int_equal(write_at(0, 1, end, "line 0102\n"), end + 10);
    assert_true(fault_disarm());
    struct log_hole hole = log_hole_read(path);
    assert_int_equal(log_hole_bytes(&hole), 0);
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_size, 1024);
    fault_arm("log_hole.punch", 1);
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

/* Each call fails once: what was kept is kept, nothing is there twice, and an incarnation that goes
 * on after the failure keeps its offsets. */
static void a_failure_costs_only_what_it_met(void **state)
{
    (void)state;
    for (uint64_t nth = 1;; nth++) {
        struct cadre_error error = {0};
        CADRE_FREE_AT_EXIT char *path = path_of_log(&stand, (struct job_id){1}, 0);
        CADRE_FREE_AT_EXIT char *text = NULL;
        size_t size = 0;
        paths_remove_job(&stand, (struct job_id){1});
        settle(&stand);
        assert_int_equal(write_at(0, 1, 0, "abc"), 3);
        fault_arm("logs.", nth);
        (void)write_at(0, 2, 0, "def");
        bool met = fault_disarm();
        /* The daemon sends again what is not acknowledged, or what is requested. */
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

/* ---- what waits for a thread ---- */

static void what_waits_is_answered_in_order(void **state)
{
    (void)state;
    append(1, 0, "abc", 3);
    append(1, 3, "def", 3);
    append(1, 6, "", 0);
    append(1, 9, "too far", 7);
    append(2, 0, "gh", 2);
    append(1, 6, "too late", 8);
    append(2, 2, "i", 1);
    assert_int_equal(answer_count, 0);
    assert_true(logs_are_unwritten(&stand, (struct job_id){1}, 0));
    assert_false(logs_are_unwritten(&stand, (struct job_id){1}, 1));
    settle(&stand);
    const uint64_t wanted[] = {3, 6, 6, 6, 2, 14, 3};
    assert_int_equal(answer_count, 7);
    assert_memory_equal(answers, wanted, sizeof wanted);
    assert_log(0, "abcdefghi");
    assert_int_equal(changes, 2); /* the first, then all that waited */
    assert_int_equal(ends, 1);
}

/* It was wanted when the chunk before it came. */
static void what_is_unwanted_waits_for_what_is_not(void **state)
{
    (void)state;
    struct agent_log chunk = {.task = {.job = {1}, .incarnation = 1}, .offset = 3};
    chunk.bytes = (const uint8_t *)"defg";
    chunk.size_bytes = 4;
    logs_append(&stand, agent.id, &chunk, false);
    assert_int_equal(answer_count, 1); /* nothing is before it */
    append(1, 0, "abc", 3);
    logs_append(&stand, agent.id, &chunk, false);
    assert_int_equal(answer_count, 1);
    settle(&stand);
    const uint64_t wanted[] = {7, 3, 7};
    assert_int_equal(answer_count, 3);
    assert_memory_equal(answers, wanted, sizeof wanted);
    assert_log(0, "abc");
}

/* However much comes while a disk is slow: what is refused is said to be missing, and comes again.
 */
static void a_worker_cannot_make_it_grow(void **state)
{
    (void)state;
    static uint8_t piece[PIECE];
    stand.options.log_limit_bytes = UINT64_MAX;
    unsigned sent = 600; /* 20 MB */
    for (unsigned i = 0; i < sent; i++) {
        memset(piece, (int)('a' + i % 26), sizeof piece);
        append(1, (uint64_t)i * PIECE, piece, PIECE);
        assert_in_range(agent.log_bytes, 1, LINK_BYTES);
    }
    assert_in_range(agent.log_bytes, LINK_BYTES - 2 * PIECE, LINK_BYTES);
    settle(&stand);
    assert_int_equal(answer_count, sent);
    uint64_t stored = answers[sent - 1];
    assert_int_equal(stored % PIECE, 0);
    assert_in_range(stored, PIECE, LINK_BYTES);
    for (unsigned i = 0; i < sent; i++) {
        uint64_t end = (uint64_t)(i + 1) * PIECE;
        assert_true(answers[i] <= stored && (end <= stored) == (answers[i] >= end));
    }
    memset(piece, (int)('a' + stored / PIECE % 26), sizeof piece);
    append(1, stored, piece, PIECE);
    settle(&stand);
    CADRE_FREE_AT_EXIT char *path = path_of_log(&stand, (struct job_id){1}, 0);
    CADRE_FREE_AT_EXIT char *text = NULL;
    struct cadre_error error = {0};
    size_t size = 0;
    assert_ok(file_read(path, 4 * LINK_BYTES, &text, &size, &error), &error);
    assert_int_equal(size, stored + PIECE);
    for (size_t i = 0; i < size; i++) {
        assert_int_equal(text[i], 'a' + i / PIECE % 26);
    }
}

static void a_full_disk_is_said_in_order(void **state)
{
    (void)state;
    append(1, 0, "abc", 3);
    fake_disk_full = true;
    append(1, 3, "def", 3);
    append(1, 6, "ghi", 3);
    append(1, 0, "ab", 2);
    fake_disk_full = false;
    append(1, 3, "defghi", 6);
    settle(&stand);
    const uint64_t wanted[] = {3, 3, 3, 3, 9};
    assert_int_equal(answer_count, 5);
    assert_memory_equal(answers, wanted, sizeof wanted);
    assert_log(0, "abcdefghi");
}

/* A thread that is at work when the job is forgotten would make its folder again. */
static void nothing_stays_of_a_forgotten_job(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    assert_ok(quota_open(&stand, &error), &error);
    char folder[TEST_PATH_BYTES];
    (void)test_path(folder, stand.job_dir, "1");
    for (int round = 0; round < 50; round++) {
        answer_count = 0;
        append(1, 0, "abc", 3);
        append(1, 3, "def", 3);
        logs_forget(&stand, (struct job_id){1});
        paths_remove_job(&stand, (struct job_id){1});
        settle(&stand);
        quota_forget_job(stand.quota, (struct job_id){1});
        settle(&stand);
        assert_int_equal(answer_count, 2);
        assert_int_equal(access(folder, F_OK), -1);
        assert_int_equal(quota_sizes(&stand).logs_bytes, 0);
    }
}

/* What no thread has in hand at the end is not written, and not promised. */
static void the_end_does_not_wait_for_all(void **state)
{
    (void)state;
    append(1, 0, "abc", 3);
    append(1, 3, "def", 3);
    logs_close(&stand);
    settle(&stand);
    assert_int_equal(answer_count, 2);
    assert_int_equal(answers[0], 3);
    assert_int_equal(answers[1], 3);
    assert_log(0, "abc");
}

static void what_is_kept_is_counted(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    stand.options.log_limit_bytes = 800;
    assert_ok(quota_open(&stand, &error), &error);
    (void)write_lines(0, 0, 200);
    CADRE_FREE_AT_EXIT char *path = path_of_log(&stand, (struct job_id){1}, 0);
    struct log_hole hole = log_hole_read(path);
    assert_int_equal(quota_sizes(&stand).logs_bytes, 2000 - log_hole_bytes(&hole));
    assert_int_equal(engine.log_bytes, 2000);
}

/* ---- who reads ---- */

static struct logs_request request; /* of the readers */

static struct log_read *new_read(uint64_t *offsets, uint64_t tail_bytes)
{
    request = (struct logs_request){.tail_bytes = tail_bytes};
    struct log_read *read = calloc(1, sizeof *read);
    assert_non_null(read);
    read->daemon = &stand;
    read->job = (struct job_id){1};
    read->offsets = offsets;
    read->request = &request;
    read->slots[0] = 0;
    read->slots[1] = 1;
    read->slots[2] = 5; /* never wrote anything */
    read->slot_count = 3;
    return read;
}

static void all_slots_are_read_in_one_part(void **state)
{
    (void)state;
    uint64_t offsets[6] = {2, LOG_READ_BEGIN, 0, 0, 0, LOG_READ_BEGIN};
    (void)write_at(0, 1, 0, "abcd");
    (void)write_at(1, 2, 0, "efghij");
    CADRE_FREE_AT_EXIT struct log_read *read = new_read(offsets, 4);
    log_read(read);
    assert_int_equal(read->slots_done, 3);
    assert_int_equal(read->piece_count, 2);
    assert_int_equal(read->pieces[0].offset, 2);
    assert_int_equal(read->pieces[1].slot, 1);
    assert_int_equal(read->pieces[1].offset, 2);
    assert_int_equal(read->size, 6);
    assert_memory_equal(read->bytes, "cdghij", 6);
    assert_int_equal(offsets[0], 4);
    assert_int_equal(offsets[1], 6);
    assert_int_equal(offsets[5], 0);
}

static void a_part_ends_when_it_is_full(void **state)
{
    (void)state;
    static uint8_t piece[3 * PIECE];
    uint64_t offsets[6] = {0};
    stand.options.log_limit_bytes = UINT64_MAX;
    memset(piece, 'x', sizeof piece);
    append(1, 0, piece, sizeof piece);
    append(1, sizeof piece, piece, sizeof piece);
    settle(&stand);
    (void)write_at(1, 2, 0, "y");
    CADRE_FREE_AT_EXIT struct log_read *read = new_read(offsets, 0);
    log_read(read);
    assert_int_equal(read->slots_done, 0);
    assert_int_equal(read->size, LOG_READ_BYTES);
    assert_int_equal(offsets[0], LOG_READ_BYTES);
    CADRE_FREE_AT_EXIT struct log_read *rest = new_read(offsets, 0);
    log_read(rest);
    assert_int_equal(rest->slots_done, 3);
    assert_int_equal(rest->size, 2 * sizeof piece - LOG_READ_BYTES + 1);
    assert_int_equal(offsets[0], 2 * sizeof piece);
}

/* No reader gets zeros of the removed middle. */
static void who_reads_skips_the_hole(void **state)
{
    (void)state;
    stand.options.log_limit_bytes = 800;
    uint64_t end = write_lines(0, 0, 200);
    CADRE_FREE_AT_EXIT char *path = path_of_log(&stand, (struct job_id){1}, 0);
    struct log_hole hole = log_hole_read(path);
    uint64_t begins[] = {0, hole.from, hole.from + 5, hole.to - 1, hole.to};
    for (size_t i = 0; i < sizeof begins / sizeof begins[0]; i++) {
        uint64_t offsets[6] = {begins[i]};
        CADRE_FREE_AT_EXIT struct log_read *read = new_read(offsets, 0);
        log_read(read);
        assert_int_equal(offsets[0], end);
        assert_int_equal(read->piece_count, i == 0 ? 2 : 1);
        assert_int_equal(read->pieces[0].offset, i == 0 ? 0 : hole.to);
        assert_int_equal(read->pieces[read->piece_count - 1].offset, hole.to);
        assert_int_equal(read->size, end - hole.to + (i == 0 ? hole.from : 0));
        assert_null(memchr(read->bytes, 0, read->size));
    }
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(the_attempts_of_a_slot_follow_one_another),
        TEST(each_byte_is_kept_once), TEST(an_older_attempt_comes_too_late),
        TEST(a_start_finds_where_each_begins), TEST(a_lost_tail_comes_again),
        TEST(a_long_log_loses_its_middle), TEST(a_large_piece_is_cut_at_once),
        TEST(without_holes_it_ends_at_the_limit), TEST(a_link_in_its_place_is_not_followed),
        TEST(a_failure_costs_only_what_it_met), TEST(what_waits_is_answered_in_order),
        TEST(what_is_unwanted_waits_for_what_is_not), TEST(a_worker_cannot_make_it_grow),
        TEST(a_full_disk_is_said_in_order), TEST(nothing_stays_of_a_forgotten_job),
        TEST(the_end_does_not_wait_for_all), TEST(what_is_kept_is_counted),
        TEST(all_slots_are_read_in_one_part), TEST(a_part_ends_when_it_is_full),
        TEST(who_reads_skips_the_hole)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
