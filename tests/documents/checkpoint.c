/* SPDX-License-Identifier: Apache-2.0
 * What is saved, the notice of a preemption, and reports to the user: cadre/checkpoint.h,
 * cadre/preemption.h, cadre/program.h. To go on from a checkpoint: deploy/examples/digits. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "documents.h"

#define MANY 10000000 /* more than are taken */

static cadre_status add_one(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    *(float *)cadre_variable_write(replica, user) += 1;
    return CADRE_OK;
}

static bool is_there(const char *name)
{
    char path[TEST_PATH_BYTES];
    struct stat file;
    return stat(test_path(path, training_folder(), name), &file) == 0;
}

/* A program saves when it wants to. The newest checkpoint has the number of steps that it holds. */
static void a_program_saves(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_variable *variable = training_variable(strategy);
    assert_true(cadre_checkpoint_latest(strategy) == CADRE_POSITION_NONE);
    on_each_replica(strategy, add_one, variable);
    on_each_replica(strategy, add_one, variable);
    OK(cadre_save(strategy, true)); /* true: until it is on the disk */
    assert_int_equal(cadre_checkpoint_latest(strategy), 2);
    assert_true(is_there("checkpoint-2.safetensors"));
    assert_true(is_there("checkpoint-2.json"));
    cadre_strategy_release(strategy);
}

static void keep_more(cadre_strategy *strategy, void *user)
{
    *(uint64_t *)user = cadre_strategy_position(strategy);
}

/* A program that is preempted saves at one step, and its loop ends; it returns a number that
 * says that it is to be started again. The notice is SIGTERM, or comes from the program itself. */
static void a_program_is_reported_to_leave(void **state)
{
    (void)state;
    uint64_t saved_at = 0;
    const cadre_preemption_options options = {
        .save_function = keep_more, .user = &saved_at, .exit_code = 17};
    cadre_strategy *strategy = training_strategy(1);
    cadre_variable *variable = training_variable(strategy);
    cadre_distributed_dataset *data;
    cadre_per_replica *batch;
    cadre_status status;
    char name[64];
    int steps = 0;
    cadre_dataset *numbers = cadre_dataset_batch(cadre_dataset_range(0, MANY, 1), 1, false);
    OK(cadre_distribute_dataset(strategy, numbers, NULL, &data));
    OK(cadre_preemption_handler_set(strategy, &options));
    assert_true(cadre_next_epoch(data, 1, NULL));
    while ((status = cadre_next(data, &batch)) == CADRE_OK) {
        OK(cadre_run(strategy, add_one, variable, batch, 0, NULL));
        if (++steps == 3) {
            OK(cadre_preempt(strategy));
        }
    }
    assert_int_equal(status, CADRE_CANCELLED);
    assert_true(cadre_preempted(strategy));
    assert_in_range(
        steps, 3, MANY - 1); /* a step soon after it, to which all tasks can still come */
    assert_int_equal(saved_at, steps);
    snprintf(name, sizeof name, "checkpoint-%d.json", steps);
    assert_true(is_there(name));
    assert_int_equal(cadre_finish(strategy), 17);
}

/* Where a program is in its data: the epoch, and the steps of it that are done. */
static void a_program_knows_where_it_is(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(1);
    cadre_variable *variable = training_variable(strategy);
    cadre_distributed_dataset *data;
    cadre_per_replica *batch;
    cadre_dataset *numbers = cadre_dataset_batch(cadre_dataset_range(0, 4, 1), 2, false);
    OK(cadre_distribute_dataset(strategy, numbers, NULL, &data));
    while (cadre_next_epoch(data, 2, NULL)) {
        while (cadre_next(data, &batch) == CADRE_OK) {
            OK(cadre_run(strategy, add_one, variable, batch, 0, NULL));
        }
        assert_int_equal(cadre_step(data), 2);
    }
    assert_int_equal(cadre_epoch(data), 1); /* the second one, from 0 */
    assert_int_equal(cadre_strategy_position(strategy), 4);
    cadre_strategy_release(strategy);
}

/* Numbers for people, under a name. The library that runs has the version of the headers. */
static void people_are_reported(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(1);
    OK(cadre_report(strategy, "loss", 0.25));
    REFUSED(cadre_report(strategy, "", 0.25), CADRE_INVALID_ARGUMENT, "empty");
    assert_string_equal(cadre_version(), CADRE_VERSION_TEXT);
    cadre_strategy_release(strategy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_saves),
        cmocka_unit_test(a_program_is_reported_to_leave),
        cmocka_unit_test(a_program_knows_where_it_is),
        cmocka_unit_test(people_are_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
