/* SPDX-License-Identifier: Apache-2.0
 * Plain programs that lose a task and may begin again: all tasks do, and go on from the checkpoint
 * that the program wrote itself. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cadre/cadre.h"
#include "tests/lib/test.h"
#include "tests/unit/runtime/job.h"

#define STEPS 6
#define DIES  3 /* the step in which a task is lost */

static const char *self;

/* --- the program: it adds up ranks, and counts its attempts in a file of each task. An attempt is
 * one in which all tasks met: one that is started alone, while the others are still being ended,
 * begins again with them. --- */

struct saved {
    int64_t step;
    int64_t sum;
};

static int stop(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, cadre_error_message());
    return 1;
}

static long count_attempt(const char *folder)
{
    char path[TEST_PATH_BYTES];
    char name[32];
    snprintf(name, sizeof name, "lives-%s", getenv("CADRE_SLOT"));
    int fd = open(test_path(path, folder, name), O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (fd < 0 || write(fd, "x", 1) != 1) {
        exit(8);
    }
    long attempts = (long)lseek(fd, 0, SEEK_END);
    close(fd);
    return attempts;
}

/* Whole or not at all: a task may be ended at any time. */
static void save(const char *path, const struct saved *saved)
{
    char beside[TEST_PATH_BYTES + 8];
    snprintf(beside, sizeof beside, "%s.new", path);
    FILE *file = fopen(beside, "wb");
    if (file == NULL || fwrite(saved, sizeof *saved, 1, file) != 1 || fclose(file) != 0 ||
        rename(beside, path) != 0) {
        exit(8);
    }
}

/* A task whose program does not look at its statuses is lost in its own way. */
static int give_up(const char *how)
{
    if (strcmp(how, "stays") == 0) {
        for (;;) {
            pause(); /* until it is made to end */
        }
    }
    return strcmp(how, "leaves") == 0 ? 0 : stop("it is over");
}

static bool dies_now(const char *how, int64_t step, long attempt)
{
    return step == DIES && cadre_rank() == cadre_world_size() - 1 &&
           (attempt == 1 || strcmp(how, "always") == 0);
}

static int task(const char *how, const char *folder)
{
    char path[TEST_PATH_BYTES];
    struct saved saved = {0};
    test_path(path, folder, "saved");
    if (cadre_plain_init(NULL, NULL) != CADRE_OK) {
        return stop("cadre_plain_init");
    }
    const long attempt = count_attempt(folder);
    FILE *file = cadre_rank() == 0 ? fopen(path, "rb") : NULL;
    if (file != NULL) {
        if (fread(&saved, sizeof saved, 1, file) != 1) {
            return 8;
        }
        fclose(file);
    }
    if (cadre_plain_broadcast(&saved, sizeof saved, CADRE_U8, 0) != CADRE_OK) {
        return give_up(how);
    }
    for (; saved.step < STEPS; saved.step++) {
        if (dies_now(how, saved.step, attempt)) {
            raise(SIGKILL);
        }
        int64_t ranks = cadre_rank() + 1;
        if (cadre_plain_all_reduce(NULL, &ranks, 1, CADRE_I64, CADRE_SUM) != CADRE_OK) {
            return give_up(how);
        }
        saved.sum += ranks;
        if (cadre_rank() == 0) {
            save(path, &(struct saved){.step = saved.step + 1, .sum = saved.sum});
        }
    }
    if (cadre_rank() == 0) {
        printf("sum %lld\n", (long long)saved.sum);
    }
    return cadre_plain_finish();
}

/* --- the tests --- */

static void run(
    const char *how, const char *folder, uint32_t tasks, uint32_t restarts, struct job_end *ret_end)
{
    const char *arguments[] = {how, folder};
    const struct local_options options = {.program = self,
        .arguments = arguments,
        .argument_count = 2,
        .tasks = tasks,
        .max_restarts = restarts,
        .output = folder,
        .grace_us = 300000};
    job_run(&options, ret_end);
}

static size_t attempts(const char *folder, uint32_t slot)
{
    char path[TEST_PATH_BYTES];
    char name[32];
    char text[64];
    snprintf(name, sizeof name, "lives-%u", slot);
    FILE *file = fopen(test_path(path, folder, name), "rb");
    assert_non_null(file);
    size_t count = fread(text, 1, sizeof text, file);
    fclose(file);
    return count;
}

static void check_restarted(const char *how, uint32_t tasks)
{
    const char *folder = test_temp_dir();
    struct job_end end;
    char wanted[64];
    run(how, folder, tasks, 1, &end);
    if (end.exit_code != 0) {
        job_wrong(how, &end);
    }
    snprintf(wanted, sizeof wanted, "sum %u", STEPS * tasks * (tasks + 1) / 2);
    assert_non_null(strstr(end.printed, wanted));
    for (uint32_t slot = 0; slot < tasks; slot++) {
        assert_int_equal(attempts(folder, slot), 2); /* all of them, and once */
    }
}

static void all_begin_again(void **state)
{
    (void)state;
    check_restarted("fails", 1);
    check_restarted("fails", 2);
    check_restarted("fails", 3);
}

static void also_those_that_do_not_end(void **state)
{
    (void)state;
    check_restarted("stays", 2);
}

static void also_those_that_say_all_went_well(void **state)
{
    (void)state;
    check_restarted("leaves", 3);
}

static void the_budget_is_counted_once_for_all(void **state)
{
    (void)state;
    const char *folder = test_temp_dir();
    struct job_end end;
    run("always", folder, 3, 2, &end);
    assert_int_equal(end.exit_code, 128 + SIGKILL);
    assert_non_null(strstr(end.message, "task 2"));
    assert_non_null(strstr(end.message, "restarted 2 times"));
    for (uint32_t slot = 0; slot < 3; slot++) {
        assert_int_equal(attempts(folder, slot), 3);
    }
}

int main(int argc, char **argv)
{
    if (argc == 3 && getenv("CADRE_SOCKET") != NULL) {
        return task(argv[1], argv[2]);
    }
    self = argv[0];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_begin_again),
        cmocka_unit_test(also_those_that_do_not_end),
        cmocka_unit_test(also_those_that_say_all_went_well),
        cmocka_unit_test(the_budget_is_counted_once_for_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
