/* SPDX-License-Identifier: Apache-2.0
 * A program that says itself where its checkpoints go, and how many are kept: cadre/checkpoint.h.
 * That a second run goes on from them: tests/unit/runtime/test_checkpoint_manager.c. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "documents.h"

static cadre_status add_one(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    *(float *)cadre_variable_write(replica, user) += 1;
    return CADRE_OK;
}

/* It says so between cadre_init and its strategy. Of three checkpoints the two newest stay, and the
 * program may ask which. */
static void the_newest_are_kept(void **state)
{
    (void)state;
    char folder[TEST_PATH_BYTES];
    char path[TEST_PATH_BYTES];
    struct stat file;
    cadre_strategy *strategy;
    cadre_variable *variable;
    uint64_t positions[4];
    uint32_t count = 0;
    test_path(folder, test_temp_dir(), "checkpoints"); /* it is made */
    const cadre_checkpoint_options options = {.directory = folder, .max_to_keep = 2};
    OK(cadre_init(NULL, NULL));
    OK(cadre_checkpoint_manager(&options));
    REFUSED(cadre_checkpoint_manager(&options), CADRE_FAILED_PRECONDITION, "second");
    OK(cadre_strategy_mirrored(1, &strategy));
    variable = training_variable(strategy);
    for (int step = 0; step < 3; step++) {
        on_each_replica(strategy, add_one, variable);
        OK(cadre_save(strategy, true));
    }
    OK(cadre_checkpoints(strategy, positions, 4, &count));
    assert_int_equal(count, 2);
    assert_int_equal(positions[0], 2); /* the oldest first */
    assert_int_equal(positions[1], 3);
    assert_int_equal(stat(test_path(path, folder, "checkpoint-3.safetensors"), &file), 0);
    cadre_strategy_release(strategy);
}

int main(void)
{
    static const char *const daemons[] = {"CADRE_SOCKET", "CADRE_TASKS", "CADRE_CHECKPOINT_DIR",
        "CADRE_CHECKPOINTS_KEPT", "CADRE_RESTORE"};
    for (size_t i = 0; i < sizeof daemons / sizeof daemons[0]; i++) {
        unsetenv(daemons[i]);
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_newest_are_kept)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
