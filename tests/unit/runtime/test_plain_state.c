/* SPDX-License-Identifier: Apache-2.0
 * States that plain programs save: what comes back, to whom, and which failures are which. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cadre/cadre.h"
#include "common/base/fault.h"
#include "tests/lib/test.h"
#include "tests/unit/runtime/job.h"
#include "tests/unit/runtime/plain_task.h"

static const char *self;

/* --- the program: it counts, and every task saves what it has counted --- */

#define STEPS 6
#define DIES  3 /* the step before which a task is lost in the first attempt */

static int64_t load_count(void)
{
    void *bytes = NULL;
    size_t size = 0;
    uint32_t tasks = 0;
    int64_t count = 0;
    cadre_status status = cadre_plain_load("count", 0, &bytes, &size);
    require(cadre_plain_saved_tasks(&tasks) == CADRE_OK);
    if (status == CADRE_NOT_FOUND) {
        require(tasks == 0);
        return 0;
    }
    require(status == CADRE_OK && size == sizeof count && tasks > 0);
    memcpy(&count, bytes, sizeof count);
    free(bytes);
    for (uint32_t rank = 0; rank < tasks; rank++) { /* one cut through all tasks */
        int64_t other = -1;
        require(cadre_plain_load("count", rank, &bytes, &size) == CADRE_OK);
        memcpy(&other, bytes, sizeof other);
        free(bytes);
        require(other == count);
    }
    return count;
}

static int count_task(const char *how)
{
    require(cadre_plain_init(NULL, NULL) == CADRE_OK);
    const int64_t first = load_count();
    const bool last = cadre_rank() == cadre_world_size() - 1;
    for (int64_t count = first; count < STEPS;) {
        if (strcmp(how, "dies") == 0 && first == 0 && count == DIES && last) {
            raise(SIGKILL);
        }
        count++;
        cadre_status status = cadre_plain_save("count", &count, sizeof count);
        if (status == CADRE_ABORTED) {
            return 1;
        }
        require(status == CADRE_OK);
    }
    printf("went on from %lld\n", (long long)first);
    return cadre_plain_finish();
}

/* --- pieces, large and small, of some tasks --- */

#define LARGE ((size_t)3 * 1024 * 1024 + 17) /* several chunks, and a block that is not full */

static unsigned char byte_at(uint32_t rank, size_t i)
{
    return (unsigned char)(i * 31 + rank * 7 + i / 4096);
}

static void write_pieces(cadre_plain_state *state)
{
    const uint32_t rank = cadre_rank();
    unsigned char piece[5000];
    for (size_t done = 0; done < LARGE; done += sizeof piece) {
        size_t size = LARGE - done < sizeof piece ? LARGE - done : sizeof piece;
        for (size_t i = 0; i < size; i++) {
            piece[i] = byte_at(rank, done + i);
        }
        require(cadre_plain_state_write(state, "large", piece, size) == CADRE_OK);
    }
    require(cadre_plain_state_write(state, "empty", NULL, 0) == CADRE_OK);
}

static int pieces_task(void)
{
    cadre_plain_state *state = NULL;
    require(cadre_plain_init(NULL, NULL) == CADRE_OK);
    require(cadre_plain_state_begin(&state) == CADRE_OK);
    if (cadre_rank() != 1) {
        write_pieces(state);
    }
    require(cadre_plain_state_commit(state) == CADRE_OK);
    require(cadre_plain_state_commit(NULL) == CADRE_OK); /* no task has anything: also a state */
    require(cadre_plain_state_begin(&state) == CADRE_OK);
    write_pieces(state);
    require(cadre_plain_state_commit(cadre_rank() == 2 ? state : NULL) == CADRE_OK);
    if (cadre_rank() != 2) {
        cadre_plain_state_close(state); /* it was not committed */
    }
    return cadre_plain_finish();
}

static int pieces_back_task(void)
{
    cadre_plain_state *state = NULL;
    uint64_t size = 0;
    size_t count = 0;
    unsigned char piece[70001];
    require(cadre_plain_init(NULL, NULL) == CADRE_OK);
    require(cadre_plain_state_open("empty", 2, &state, &size) == CADRE_OK && size == 0);
    require(cadre_plain_state_read(state, NULL, 0, &count) == CADRE_OK && count == 0);
    require(cadre_plain_state_write(state, "x", "x", 1) == CADRE_FAILED_PRECONDITION);
    cadre_plain_state_close(state);
    require(cadre_plain_state_open("large", 2, &state, &size) == CADRE_OK && size == LARGE);
    for (size_t done = 0; done < LARGE; done += count) {
        require(cadre_plain_state_read(state, piece, sizeof piece, &count) == CADRE_OK);
        require(count == (LARGE - done < sizeof piece ? LARGE - done : sizeof piece));
        for (size_t i = 0; i < count; i++) {
            require(piece[i] == byte_at(2, done + i));
        }
    }
    require(cadre_plain_state_read(state, piece, 1, &count) == CADRE_OK && count == 0);
    cadre_plain_state_close(state);
    require(cadre_plain_state_open("large", 0, &state, &size) == CADRE_INVALID_ARGUMENT);
    require(expected_text("no part large of rank 0"));
    require(cadre_plain_state_open("large", 3, &state, &size) == CADRE_INVALID_ARGUMENT);
    require(expected_text("the state is of 3 tasks") && expected_text("give 0 to 2"));
    return cadre_plain_finish();
}

/* --- mistakes --- */

static int mistakes_task(void)
{
    void *bytes = NULL;
    size_t size = 0;
    cadre_plain_state *state = NULL;
    require(cadre_plain_save("a", NULL, 0) == CADRE_FAILED_PRECONDITION);
    require(expected_text("before the job was joined"));
    require(cadre_plain_init(NULL, NULL) == CADRE_OK);
    require(cadre_plain_load("a", 0, &bytes, &size) == CADRE_NOT_FOUND);
    require(expected_text("has saved no state"));
    require(cadre_plain_load(NULL, 0, &bytes, &size) == CADRE_INVALID_ARGUMENT);
    require(cadre_plain_load("a", 0, NULL, &size) == CADRE_INVALID_ARGUMENT);

    /* one task's mistake is the error of all, and names it */
    const bool wrong = cadre_rank() == 1;
    require(cadre_plain_save(wrong ? "" : "a", "x", 1) == CADRE_INVALID_ARGUMENT);
    require(expected_text("task 1: "));
    require(cadre_plain_save("a", wrong ? NULL : "x", 1) == CADRE_INVALID_ARGUMENT);
    require(expected_text("task 1: ") && expected_text("bytes"));

    require(cadre_plain_state_begin(&state) == CADRE_OK);
    require(cadre_plain_state_write(state, "a", "x", 1) == CADRE_OK);
    require(cadre_plain_state_write(state, "b", "x", 1) == CADRE_OK);
    if (wrong) {
        require(cadre_plain_state_write(state, "a", "x", 1) == CADRE_INVALID_ARGUMENT);
        require(expected_text("was ended by the part b"));
        require(cadre_plain_state_write(state, "c", "x", 1) == CADRE_INVALID_ARGUMENT);
    }
    require(cadre_plain_state_commit(state) == CADRE_INVALID_ARGUMENT);
    require(expected_text("task 1: ") && expected_text("was ended by the part b"));

    /* all is usable afterwards */
    require(cadre_plain_save("a", "x", 1) == CADRE_OK);
    return cadre_plain_finish();
}

/* Every point at which the file can fail, one after the other: all tasks get the error, and the
 * state before still counts. */
static int faults_task(void)
{
    require(cadre_plain_init(NULL, NULL) == CADRE_OK);
    require(cadre_plain_save("a", "first", 5) == CADRE_OK);
    uint32_t failures = 0;
    uint8_t hit = 1;
    for (uint64_t nth = 1; hit != 0; nth++) {
        if (cadre_rank() == 0) {
            fault_arm("checkpoint.", nth);
        }
        cadre_status status = cadre_plain_save("a", "again", 5);
        hit = fault_disarm();
        require(status == CADRE_OK || expected_text("task 0: "));
        failures += status != CADRE_OK;
        require(cadre_plain_broadcast(&hit, 1, CADRE_U8, 0) == CADRE_OK);
    }
    require(failures > 2);
    return cadre_plain_finish();
}

/* --- the tests --- */

static void run(const char *what, const char *folder, uint32_t tasks, uint32_t restarts,
    const char *restore, struct job_end *ret_end)
{
    const char *arguments[] = {what};
    const struct local_options options = {.program = self,
        .arguments = arguments,
        .argument_count = 1,
        .tasks = tasks,
        .max_restarts = restarts,
        .output = folder,
        .restore_path = restore,
        .grace_us = 300000};
    job_run(&options, ret_end);
}

static void must_succeed(
    const char *what, const char *folder, uint32_t tasks, uint32_t restarts, const char *restore)
{
    struct job_end end;
    run(what, folder, tasks, restarts, restore, &end);
    if (end.exit_code != 0) {
        job_wrong(what, &end);
    }
}

static void a_restart_goes_on_from_the_newest(void **state)
{
    (void)state;
    for (uint32_t tasks = 1; tasks <= 3; tasks++) {
        struct job_end end;
        run("dies", test_temp_dir(), tasks, 1, NULL, &end);
        if (end.exit_code != 0) {
            job_wrong("dies", &end);
        }
        assert_non_null(strstr(end.printed, "went on from 3"));
    }
}

static void a_checkpoint_starts_another_job(void **state)
{
    (void)state;
    char path[TEST_PATH_BYTES];
    const char *folder = test_temp_dir();
    struct job_end end;
    must_succeed("counts", folder, 3, 0, NULL);
    test_path(path, folder, "0/checkpoint-6.json");
    run("counts", test_temp_dir(), 2, 0, path, &end);
    assert_int_equal(end.exit_code, 0);
    assert_non_null(strstr(end.printed, "went on from 6"));
    test_path(path, folder, "0/checkpoint-3.json");
    assert_int_not_equal(access(path, F_OK), 0); /* three are kept */
}

static void pieces_of_all_sizes(void **state)
{
    (void)state;
    char path[TEST_PATH_BYTES];
    const char *folder = test_temp_dir();
    must_succeed("pieces", folder, 3, 0, NULL);
    must_succeed(
        "pieces_back", test_temp_dir(), 2, 0, test_path(path, folder, "0/checkpoint-3.json"));
}

static void mistakes_are_errors_of_all(void **state)
{
    (void)state;
    must_succeed("mistakes", test_temp_dir(), 2, 0, NULL);
}

static void each_failure_leaves_the_state_before(void **state)
{
    (void)state;
    must_succeed("faults", test_temp_dir(), 2, 0, NULL);
}

static void flip(const char *path, off_t at)
{
    char byte = 0;
    int fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, &byte, 1, at), 1);
    byte ^= 1;
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    close(fd);
}

/* Damage is never taken for a job without a state. */
static void damage_is_no_beginning(void **state)
{
    (void)state;
    char tensors[TEST_PATH_BYTES];
    char manifest[TEST_PATH_BYTES];
    const char *folder = test_temp_dir();
    struct job_end end;
    must_succeed("counts", folder, 2, 0, NULL);
    test_path(tensors, folder, "0/checkpoint-6.safetensors");
    test_path(manifest, folder, "0/checkpoint-6.json");
    flip(tensors, 100);
    run("counts", test_temp_dir(), 2, 0, manifest, &end);
    assert_int_not_equal(end.exit_code, 0);
    assert_null(strstr(end.printed, "went on from"));
    assert_true(job_reported(&end, "damaged"));
}

static int task(const char *what)
{
    if (strcmp(what, "pieces") == 0) {
        return pieces_task();
    }
    if (strcmp(what, "pieces_back") == 0) {
        return pieces_back_task();
    }
    if (strcmp(what, "mistakes") == 0) {
        return mistakes_task();
    }
    return strcmp(what, "faults") == 0 ? faults_task() : count_task(what);
}

int main(int argc, char **argv)
{
    if (argc == 2 && getenv("CADRE_SOCKET") != NULL) {
        return task(argv[1]);
    }
    self = argv[0];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_restart_goes_on_from_the_newest),
        cmocka_unit_test(a_checkpoint_starts_another_job),
        cmocka_unit_test(pieces_of_all_sizes),
        cmocka_unit_test(mistakes_are_errors_of_all),
        cmocka_unit_test(each_failure_leaves_the_state_before),
        cmocka_unit_test(damage_is_no_beginning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
