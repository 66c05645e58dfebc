/* SPDX-License-Identifier: Apache-2.0
 * A program is killed at each system call of the writer in turn. Whenever that happens, what was
 * published can be loaded, so can whatever has a manifest, and the next writer clears away the
 * rest. This test brings fault points of its own: a fault here is a kill. */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/fault.h"
#include "training.h"
#include "worker/library/runtime/state/checkpoint/checkpoint.h"
#include "worker/library/runtime/state/checkpoint/checkpointer.h"
#include "worker/library/runtime/state/layout/state_part.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/variables/variable.h"

#define STEPS 4

static unsigned calls_left; /* until the kill; 0: none comes */

atomic_bool fault_armed = true;

bool fault_hits(const char *name)
{
    if (strncmp(name, "checkpoint.", strlen("checkpoint.")) == 0 && calls_left > 0 &&
        --calls_left == 0) {
        raise(SIGKILL);
    }
    return false;
}

void fault_arm(const char *prefix, uint64_t nth)
{
    (void)prefix;
    (void)nth;
}

bool fault_disarm(void)
{
    return false;
}

/* --- in children --- */

/* A child has no test to fail: it ends with the line instead. */
#define CHILD_REQUIRE(condition)                                                                   \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            print_error("%s:%d: %s: %s\n", __FILE__, __LINE__, #condition, cadre_error_message()); \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

static cadre_variable *start(const char *folder, cadre_strategy **ret_strategy)
{
    cadre_variable *variable;
    setenv("CADRE_OUTPUT_DIR", folder, 1);
    setenv("CADRE_CHECKPOINTS_KEPT", "1", 1);
    CHILD_REQUIRE(cadre_init(NULL, NULL) == CADRE_OK);
    CHILD_REQUIRE(cadre_strategy_mirrored(1, ret_strategy) == CADRE_OK);
    cadre_show_progress(*ret_strategy, false);
    CHILD_REQUIRE(cadre_variable_create(
                      *ret_strategy, "steps", CADRE_I64, 0, NULL, NULL, &variable) == CADRE_OK);
    return variable;
}

static cadre_status count_step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    int64_t *value = cadre_variable_write(replica, user);
    *value += 1;
    return CADRE_OK;
}

/* Prints each position that is published. */
static void train(const char *folder, unsigned calls, int send_line)
{
    cadre_strategy *strategy;
    cadre_variable *variable = start(folder, &strategy);
    calls_left = calls;
    for (int i = 0; i < STEPS; i++) {
        CHILD_REQUIRE(cadre_run(strategy, count_step, variable, NULL, 0, NULL) == CADRE_OK);
        CHILD_REQUIRE(cadre_save(strategy, true) == CADRE_OK);
        uint64_t published = cadre_checkpoint_latest(strategy);
        CHILD_REQUIRE(write(send_line, &published, sizeof published) == sizeof published);
    }
    cadre_strategy_release(strategy);
    _exit(0);
}

/* Loads all that has a manifest; one at least is what was published last, or newer: the kill may
 * come between its publication and its report, when the reported one is already being deleted. Then
 * writes once more. */
static void look(const char *folder, uint64_t published)
{
    cadre_strategy *strategy;
    struct cadre_error error = {0};
    cadre_variable *variable = start(folder, &strategy);
    DIR *dir = opendir(folder);
    const struct dirent *entry;
    uint64_t newest = 0;
    while ((entry = readdir(dir)) != NULL) {
        uint64_t position = 0;
        char path[TEST_PATH_BYTES];
        size_t length = strlen(entry->d_name);
        if (entry->d_name[0] == '.' || strcmp(entry->d_name + length - 5, ".json") != 0) {
            continue;
        }
        test_path(path, folder, entry->d_name);
        strategy->state = STATE_RESTORES;
        if (checkpoint_load(strategy, path, &position, &error) != CADRE_OK) {
            /* Old ones lose their tensors first, when they are deleted. */
            if (error.code != CADRE_NOT_FOUND || published == 0) {
                print_error("%s: %s\n", entry->d_name, error.text);
                _exit(1);
            }
            continue;
        }
        CHILD_REQUIRE(*(const int64_t *)cadre_variable_read(NULL, variable) == (int64_t)position);
        newest = position > newest ? position : newest;
    }
    closedir(dir);
    CHILD_REQUIRE(newest >= published);
    strategy->state = STATE_PRESENT;
    strategy->state_part->checkpointer->restored_at = POSITION_NONE;
    CHILD_REQUIRE(cadre_save(strategy, true) == CADRE_OK);
    cadre_strategy_release(strategy);
    _exit(0);
}

/* --- the test --- */

static int end_of(pid_t child)
{
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static bool has_temporary(const char *folder)
{
    DIR *dir = opendir(folder);
    const struct dirent *entry;
    bool found = false;
    while ((entry = readdir(dir)) != NULL) {
        found = found || strncmp(entry->d_name, ".checkpoint-", strlen(".checkpoint-")) == 0;
    }
    closedir(dir);
    return found;
}

/* False when the program ended before so many calls. */
static bool kill_at(unsigned calls, bool *left_temporary)
{
    static const char *base;
    char name[16];
    char folder[TEST_PATH_BYTES];
    int pipe_fds[2];
    base = base == NULL ? test_temp_dir() : base;
    snprintf(name, sizeof name, "%u", calls);
    assert_int_equal(mkdir(test_path(folder, base, name), 0700), 0);
    assert_int_equal(pipe(pipe_fds), 0);
    pid_t child = fork();
    if (child == 0) {
        train(folder, calls, pipe_fds[1]);
    }
    close(pipe_fds[1]);
    uint64_t published = 0;
    uint64_t newer;
    while (read(pipe_fds[0], &newer, sizeof newer) == sizeof newer) {
        published = newer;
    }
    close(pipe_fds[0]);
    int status = end_of(child);
    bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    assert_true(killed || status == 0);
    *left_temporary = *left_temporary || has_temporary(folder);
    child = fork();
    if (child == 0) {
        look(folder, published);
    }
    status = end_of(child);
    if (status != 0) {
        fail_msg("killed at call %u, with %llu published", calls, (unsigned long long)published);
    }
    assert_false(has_temporary(folder));
    return killed;
}

static void a_kill_at_any_moment_leaves_what_was_published(void **state)
{
    (void)state;
    bool left_temporary = false;
    unsigned calls = 1;
    while (kill_at(calls, &left_temporary)) {
        calls += calls < 24 ? 1 : 5; /* later rounds differ by what is deleted */
    }
    assert_true(calls > 30);
    assert_true(left_temporary); /* or this proves little */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kill_at_any_moment_leaves_what_was_published),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
