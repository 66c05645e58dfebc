/* SPDX-License-Identifier: Apache-2.0
 * By hand a program leaves no files unless that is set. */
#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "training.h"

static int files_here(void)
{
    int count = 0;
    DIR *folder = opendir(".");
    assert_non_null(folder);
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        count += entry->d_name[0] == '.' ? 0 : 1;
    }
    closedir(folder);
    return count;
}

static cadre_strategy *trained(void)
{
    cadre_strategy *strategy;
    assert_public_ok(cadre_strategy_default(&strategy));
    training_variable(strategy);
    assert_public_ok(cadre_run(strategy, training_nothing, NULL, NULL, 0, NULL));
    return strategy;
}

static void no_checkpoint_wanted(void **state)
{
    (void)state;
    assert_int_equal(cadre_finish(trained()), 0);
    assert_int_equal(files_here(), 0);
}

static void a_folder_that_takes_none_is_no_trouble(void **state)
{
    (void)state;
    assert_int_equal(mkdir("gone", 0700), 0);
    assert_int_equal(chdir("gone"), 0);
    assert_int_equal(rmdir("../gone"), 0);
    assert_int_equal(cadre_finish(trained()), 0);
}

static void the_program_saved(void **state)
{
    (void)state;
    cadre_strategy *strategy = trained();
    assert_public_ok(cadre_save(strategy, true));
    assert_public_ok(cadre_run(strategy, training_nothing, NULL, NULL, 0, NULL));
    assert_int_equal(cadre_finish(strategy), 0);
    assert_int_equal(access("checkpoint-1.safetensors", R_OK), 0);
    assert_int_equal(access("checkpoint-2.safetensors", R_OK), 0);
    assert_int_equal(access("checkpoint-2.json", R_OK), 0);
}

int main(void)
{
    static const char *const names[] = {"CADRE_OUTPUT_DIR", "CADRE_CHECKPOINT_DIR",
        "CADRE_CHECKPOINT_EVERY", "CADRE_RESTORE", "CADRE_SOCKET", "CADRE_TASKS", "CADRE_REPLICAS"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        unsetenv(names[i]);
    }
    if (chdir(test_temp_dir()) != 0 || cadre_init(NULL, NULL) != CADRE_OK) {
        return 1;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_checkpoint_wanted),
        cmocka_unit_test(the_program_saved),
        cmocka_unit_test(a_folder_that_takes_none_is_no_trouble),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
