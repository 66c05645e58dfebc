/* SPDX-License-Identifier: Apache-2.0
 * The term of the coordinator that a worker accepted is in its state directory when it answers, and
 * outlives the daemon (rule HA10). */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/fault.h"
#include "common/base/files.h"
#include "tests/lib/test.h"
#include "worker/host/daemon/daemon.h"
#include "worker/host/daemon/link.h"

static struct daemon stand;
static struct agent *const no_agent = NULL;
static struct term reported; /* by every hello from now on */
static uint64_t reported_index;
static bool occupied;

void agent_set_term(struct agent *agent, const struct term *term, uint64_t log_index)
{
    assert_ptr_equal(agent, no_agent);
    reported = *term;
    reported_index = log_index;
}

bool agent_is_occupied(const struct agent *agent)
{
    (void)agent;
    return occupied;
}

/* A daemon that is started again with the same state directory. */
static void start_again(void)
{
    struct cadre_error error = {0};
    char *state_dir = stand.options.state_dir;
    stand = (struct daemon){.options = {.state_dir = state_dir, .coordinator = "h1:7070"}};
    reported = (struct term){0};
    reported_index = 0;
    occupied = false;
    assert_ok(term_load(&stand, &error), &error);
    assert_memory_equal(&reported, &stand.term, sizeof reported);
    assert_int_equal(reported_index, stand.log_index);
}

static int set_up(void **state)
{
    (void)state;
    stand.options.state_dir = (char *)(uintptr_t)test_temp_dir();
    start_again();
    assert_int_equal(stand.term.cluster, 0);
    return 0;
}

static cadre_status welcome(
    uint64_t start, uint64_t nonce, uint64_t log_index, struct cadre_error *error)
{
    const struct agent_welcome message = {
        .term = {.cluster = 9, .start = start, .nonce = nonce}, .log_index = log_index};
    return term_accept(&stand, &message, error);
}

static void assert_known(uint64_t start, uint64_t nonce, uint64_t log_index)
{
    const struct term term = {.cluster = 9, .start = start, .nonce = nonce};
    assert_memory_equal(&reported, &term, sizeof term);
    assert_memory_equal(&stand.term, &term, sizeof term);
    assert_int_equal(reported_index, log_index);
}

static void what_was_accepted_outlives_the_daemon(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    assert_ok(welcome(4, 77, 100, &error), &error);
    assert_known(4, 77, 100);
    start_again(); /* without an orderly end */
    assert_known(4, 77, 100);
    assert_error(welcome(3, 77, 200, &error), CADRE_FAILED_PRECONDITION, &error,
        "it has seen start 4, so another one runs");
    assert_error(welcome(4, 78, 200, &error), CADRE_FAILED_PRECONDITION, &error,
        "two run with copies of one state directory");
    assert_known(4, 77, 100);
    assert_ok(welcome(6, 1, 90, &error), &error);
    assert_known(6, 1, 90); /* another term counts from its own entries */
    start_again();
    assert_known(6, 1, 90);
    assert_error(welcome(5, 2, 300, &error), CADRE_FAILED_PRECONDITION, &error, "seen start 6");
}

static void the_highest_index_of_a_term_is_reported(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    assert_ok(welcome(4, 77, 100, &error), &error);
    term_note_index(&stand, 120);
    assert_known(4, 77, 120);
    term_note_index(&stand, 110);
    assert_ok(welcome(4, 77, 115, &error), &error); /* the same one again */
    assert_known(4, 77, 120);
    assert_ok(welcome(4, 77, 130, &error), &error);
    assert_known(4, 77, 130);
    start_again(); /* the index is as old as the term, and the term is what counts */
    assert_known(4, 77, 100);
}

static void another_cluster_is_met_with_empty_hands(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    const struct agent_welcome other = {.term = {.cluster = 8, .start = 1, .nonce = 5}};
    assert_ok(welcome(4, 77, 100, &error), &error);
    occupied = true;
    assert_error(
        term_accept(&stand, &other, &error), CADRE_FAILED_PRECONDITION, &error, "another cluster");
    assert_known(4, 77, 100);
    occupied = false;
    assert_ok(term_accept(&stand, &other, &error), &error);
    start_again();
    assert_int_equal(reported.cluster, 8);
    assert_int_equal(reported_index, 0);
}

/* Each call of a write fails once: where the file cannot be replaced it is written over. */
static void a_disk_without_room_has_room_for_a_term(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    assert_ok(welcome(1, 77, 1, &error), &error);
    uint64_t start = 1;
    bool met = true;
    for (uint64_t nth = 1; met; nth++) {
        start++;
        fault_arm("file.", nth);
        assert_ok(welcome(start, 77, start, &error), &error);
        met = fault_disarm();
        start_again();
        assert_known(start, 77, start);
    }
    assert_true(start > 4);
}

/* Of a worker before there was an index. */
static void a_file_of_an_earlier_version_is_read(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    char path[TEST_PATH_BYTES];
    test_write(test_path(path, stand.options.state_dir, "coordinator"),
        "cluster 0000000000000009 start 12 nonce 00000000000000ff\n");
    start_again();
    assert_known(12, 255, 0);
    assert_error(welcome(11, 255, 5, &error), CADRE_FAILED_PRECONDITION, &error, "seen start 12");
    test_write(path, "cluster 9 start\n");
    assert_error(term_load(&stand, &error), CADRE_DATA_LOSS, &error,
        "is damaged: it names the coordinator that this worker joined last");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(what_was_accepted_outlives_the_daemon, set_up),
        cmocka_unit_test_setup(the_highest_index_of_a_term_is_reported, set_up),
        cmocka_unit_test_setup(another_cluster_is_met_with_empty_hands, set_up),
        cmocka_unit_test_setup(a_disk_without_room_has_room_for_a_term, set_up),
        cmocka_unit_test_setup(a_file_of_an_earlier_version_is_read, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
