/* SPDX-License-Identifier: Apache-2.0
 * The table of what assignments do, by hand with 1, 2 and 4 replicas, with central storage, and in
 * jobs of two tasks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"
#include "training.h"
#include "variable_rules.h"

static const char *self;

static void replicas_of_one_process_follow_the_table(void **state)
{
    (void)state;
    static const uint32_t replicas[] = {1, 2, 4};
    for (size_t i = 0; i < 3; i++) {
        cadre_strategy *strategy = training_strategy(replicas[i]);
        assert_public_ok(variable_rules(strategy, true));
        cadre_strategy_release(strategy);
    }
}

static void one_storage_follows_the_table(void **state)
{
    (void)state;
    static const char *const devices[] = {"CPU:0", "CPU:1", "CPU:2", "CPU:3"};
    cadre_strategy_release(training_strategy(1)); /* initialises */
    for (size_t count = 1; count <= 4; count *= 2) {
        cadre_strategy *strategy;
        assert_public_ok(cadre_strategy_central_storage(devices, count, NULL, &strategy));
        cadre_show_progress(strategy, false);
        assert_public_ok(variable_rules(strategy, true));
        cadre_strategy_release(strategy);
    }
}

static void tasks_follow_the_table(void **state)
{
    (void)state;
    job_must_succeed(self, "rules", 2, 1);
    job_must_succeed(self, "rules", 2, 2);
}

/* --- as a task --- */

static int task(void)
{
    cadre_strategy *strategy = job_strategy();
    CADRE_CHECK(variable_rules(strategy, false));
    return cadre_finish(strategy);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replicas_of_one_process_follow_the_table),
        cmocka_unit_test(one_storage_follows_the_table),
        cmocka_unit_test(tasks_follow_the_table),
    };
    setenv("CADRE_VERIFY_STATE", "off", 1); /* components are meant to differ here */
    self = argv[0];
    if (argc > 1 && strcmp(argv[1], "rules") == 0) {
        return task();
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
