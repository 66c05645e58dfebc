/* SPDX-License-Identifier: Apache-2.0
 * Preemption of a program that was started by hand: the notice, the statuses of calls, what is
 * saved. */
#include <glob.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "training.h"
#include "worker/library/runtime/preemption/notice.h"

#define FEW  20
#define MANY 10000000 /* more than are taken */

static cadre_status add_one(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    float *w = cadre_variable_write(replica, user);
    *w += 1;
    return CADRE_OK;
}

struct program {
    cadre_strategy *strategy;
    cadre_variable *w;
    cadre_distributed_dataset *data;
    int saved;
    int left;
};

/* All programs save into one folder, and may stop at the same step. */
static void forget_saved(void)
{
    char pattern[512];
    snprintf(pattern, sizeof pattern, "%s/checkpoint-*.json", training_folder());
    glob_t saved;
    if (glob(pattern, 0, NULL, &saved) == 0) {
        for (size_t i = 0; i < saved.gl_pathc; i++) {
            assert_int_equal(unlink(saved.gl_pathv[i]), 0);
        }
        globfree(&saved);
    }
}

static struct program begin(int64_t steps)
{
    forget_saved();
    struct program program = {.strategy = training_strategy(1)};
    assert_public_ok(
        cadre_variable_create(program.strategy, "w", CADRE_F32, 0, NULL, NULL, &program.w));
    cadre_dataset *numbers = cadre_dataset_batch(cadre_dataset_range(0, steps, 1), 1, false);
    assert_public_ok(cadre_distribute_dataset(program.strategy, numbers, NULL, &program.data));
    assert_true(cadre_next_epoch(program.data, 1, NULL));
    return program;
}

/* Takes up to so many steps; what ended it. */
static cadre_status take(struct program *program, int steps)
{
    cadre_status status = CADRE_OK;
    cadre_per_replica *batch;
    for (int i = 0; i < steps && (status = cadre_next(program->data, &batch)) == CADRE_OK; i++) {
        assert_public_ok(cadre_run(program->strategy, add_one, program->w, batch, 0, NULL));
    }
    return status;
}

static bool is_saved(uint64_t position)
{
    char path[512];
    snprintf(path, sizeof path, "%s/checkpoint-%llu.json", training_folder(),
        (unsigned long long)position);
    return access(path, R_OK) == 0;
}

/* The step in the message is the one that is saved, and nothing follows. */
static void check_left(struct program *program, int exit_code)
{
    const char *message = cadre_error_message();
    unsigned long long step = 0;
    assert_int_equal(sscanf(message, "preempted: saved at step %llu", &step), 1);
    assert_int_equal(step, cadre_strategy_position(program->strategy));
    assert_int_equal(*(const float *)cadre_variable_read(NULL, program->w), step);
    assert_true(is_saved(step));
    assert_true(cadre_preempted(program->strategy));
    assert_public_ok(cadre_distributed_status(program->data));
    cadre_per_replica *batch;
    assert_public_error(
        cadre_next(program->data, &batch), CADRE_CANCELLED, "preempted: saved at step");
    assert_false(cadre_next_epoch(program->data, 2, NULL));
    assert_public_error(cadre_run(program->strategy, add_one, program->w, NULL, 0, NULL),
        CADRE_CANCELLED, "preempted: saved at step");
    assert_int_equal(cadre_finish(program->strategy), exit_code);
    assert_false(is_saved(step + 1));
}

static void the_program_asks(void **state)
{
    (void)state;
    struct program program = begin(MANY);
    assert_public_ok(cadre_save(program.strategy, true)); /* it may well be that one is there */
    assert_int_equal(take(&program, 3), CADRE_OK);
    assert_public_ok(cadre_preempt(program.strategy));
    assert_public_ok(cadre_preempt(program.strategy)); /* the first decides */
    assert_int_equal(take(&program, MANY), CADRE_CANCELLED);
    check_left(&program, CADRE_EXIT_PREEMPTED);
}

static void on_save(cadre_strategy *strategy, void *user)
{
    struct program *program = user;
    program->saved++;
    assert_false(is_saved(cadre_strategy_position(strategy)));
}

/* A step within a step that does not begin; the job leaves all the same, once. */
static void on_save_that_trains(cadre_strategy *strategy, void *user)
{
    struct program *program = user;
    cadre_per_replica *batch;
    assert_public_error(cadre_run(strategy, add_one, program->w, NULL, 0, NULL),
        CADRE_FAILED_PRECONDITION, "cadre_run was called while the save_function");
    assert_public_error(cadre_next(program->data, &batch), CADRE_FAILED_PRECONDITION,
        "cadre_next was called while the save_function");
    on_save(strategy, user);
}

static void on_exit_of_it(cadre_strategy *strategy, void *user)
{
    struct program *program = user;
    program->left++;
    assert_true(is_saved(cadre_strategy_position(strategy)));
}

static void no_step_is_taken_while_it_saves(void **state)
{
    (void)state;
    struct program program = begin(MANY);
    const cadre_preemption_options options = {
        .save_function = on_save_that_trains, .exit_function = on_exit_of_it, .user = &program};
    assert_public_ok(cadre_preemption_handler_set(program.strategy, &options));
    assert_public_ok(cadre_preempt(program.strategy));
    cadre_status status = CADRE_OK;
    while (status == CADRE_OK) {
        status = take(&program, 1);
    }
    assert_int_equal(program.saved, 1);
    assert_int_equal(program.left, 1);
    check_left(&program, CADRE_EXIT_PREEMPTED);
}

static atomic_int former;

static void count_signal(int number)
{
    (void)number;
    atomic_fetch_add(&former, 1);
}

static void on_save_that_ends(cadre_strategy *strategy, void *user)
{
    struct program *program = user;
    assert_int_equal(cadre_finish(strategy), 1);
    assert_non_null(
        strstr(cadre_error_message(), "cadre_finish was called while the save_function"));
    cadre_strategy_release(strategy);
    assert_non_null(strstr(cadre_error_message(), "cadre_strategy_release was called while"));
    assert_int_equal(*(const float *)cadre_variable_read(NULL, program->w),
        cadre_strategy_position(strategy)); /* what it is called for */
    on_save(strategy, user);
}

static void on_exit_that_ends(cadre_strategy *strategy, void *user)
{
    assert_int_equal(cadre_finish(strategy), 1);
    assert_non_null(
        strstr(cadre_error_message(), "cadre_finish was called while the exit_function"));
    on_exit_of_it(strategy, user);
}

static void its_functions_do_not_end_the_strategy(void **state)
{
    (void)state;
    struct program program = begin(MANY);
    const cadre_preemption_options options = {
        .save_function = on_save_that_ends, .exit_function = on_exit_that_ends, .user = &program};
    assert_public_ok(cadre_preemption_handler_set(program.strategy, &options));
    assert_int_equal(take(&program, 3), CADRE_OK);
    assert_public_ok(cadre_preempt(program.strategy));
    assert_int_equal(take(&program, MANY), CADRE_CANCELLED);
    assert_int_equal(program.saved, 1);
    assert_int_equal(program.left, 1);
    check_left(&program, CADRE_EXIT_PREEMPTED);
}

static void sigterm_is_a_notice(void **state)
{
    (void)state;
    const struct sigaction before = {.sa_handler = count_signal};
    struct sigaction after;
    sigaction(SIGTERM, &before, NULL);
    struct program program = begin(MANY);
    const cadre_preemption_options options = {.exit_code = 17,
        .save_function = on_save,
        .exit_function = on_exit_of_it,
        .user = &program};
    assert_public_ok(cadre_preemption_handler_set(program.strategy, &options));
    raise(SIGTERM);
    assert_int_equal(atomic_load(&former), 1); /* the former handler is called, too */
    cadre_status status = CADRE_OK;
    while (status == CADRE_OK) { /* the notice takes its way through a thread */
        status = take(&program, 1);
    }
    assert_int_equal(program.saved, 1);
    assert_int_equal(program.left, 1);
    check_left(&program, 17);
    sigaction(SIGTERM, NULL, &after);
    assert_true(after.sa_handler == count_signal);
    signal(SIGTERM, SIG_DFL);
}

/* Saves at once, goes on, and saves again. */
static void a_time_of_grace(void **state)
{
    (void)state;
    struct program program = begin(MANY);
    const cadre_preemption_options options = {.grace_seconds = 0.05};
    assert_public_ok(cadre_preemption_handler_set(program.strategy, &options));
    assert_public_ok(cadre_preempt(program.strategy));
    uint64_t first = CADRE_POSITION_NONE;
    cadre_status status = CADRE_OK;
    while (status == CADRE_OK) {
        status = take(&program, 1);
        if (first == CADRE_POSITION_NONE) {
            first = cadre_checkpoint_latest(program.strategy);
        }
    }
    assert_int_equal(status, CADRE_CANCELLED);
    assert_true(first < cadre_strategy_position(program.strategy));
    check_left(&program, CADRE_EXIT_PREEMPTED);
}

static void bad_options(void **state)
{
    (void)state;
    struct program program = begin(MANY);
    cadre_preemption_options options = {.grace_seconds = -1};
    assert_public_error(cadre_preemption_handler_set(program.strategy, &options),
        CADRE_INVALID_ARGUMENT, "grace_seconds is -1");
    options = (cadre_preemption_options){.exit_code = 256};
    assert_public_error(cadre_preemption_handler_set(program.strategy, &options),
        CADRE_INVALID_ARGUMENT, "exit_code is 256");
    assert_public_error(
        cadre_preemption_handler_set(NULL, NULL), CADRE_INVALID_ARGUMENT, "strategy");
    options = (cadre_preemption_options){.off = true};
    assert_public_ok(cadre_preemption_handler_set(program.strategy, &options));
    assert_public_ok(cadre_preempt(program.strategy));
    assert_int_equal(take(&program, MANY), CADRE_CANCELLED);
    check_left(&program, CADRE_EXIT_PREEMPTED);
    assert_public_error(
        cadre_preempt(program.strategy), CADRE_FAILED_PRECONDITION, "nothing is left to save");
}

/* One that ends before the step just ends. */
static void *watch_often(void *unused)
{
    (void)unused;
    for (int i = 0; i < 2000; i++) {
        struct cadre_error error;
        struct notice notice = {.task = NULL};
        if (notice_watch(&notice, 0, &error) != CADRE_OK) {
            return "a notice was not watched";
        }
        notice_unwatch(&notice);
    }
    return NULL;
}

/* Each may be the first, and the last. */
static void threads_begin_and_end_to_watch_at_once(void **state)
{
    (void)state;
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, watch_often, NULL), 0);
    }
    for (int i = 0; i < 2; i++) {
        void *failure;
        assert_int_equal(pthread_join(threads[i], &failure), 0);
        assert_null(failure);
    }
}

static void too_late(void **state)
{
    (void)state;
    struct program program = begin(FEW);
    assert_int_equal(take(&program, FEW), CADRE_OK);
    assert_public_ok(cadre_preempt(program.strategy));
    assert_int_equal(take(&program, 1), CADRE_OUT_OF_RANGE);
    assert_false(cadre_next_epoch(program.data, 1, NULL));
    assert_int_equal(cadre_finish(program.strategy), 0);
    assert_true(is_saved(FEW));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_program_asks),
        cmocka_unit_test(sigterm_is_a_notice),
        cmocka_unit_test(no_step_is_taken_while_it_saves),
        cmocka_unit_test(its_functions_do_not_end_the_strategy),
        cmocka_unit_test(a_time_of_grace),
        cmocka_unit_test(bad_options),
        cmocka_unit_test(threads_begin_and_end_to_watch_at_once),
        cmocka_unit_test(too_late),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
