/* SPDX-License-Identifier: Apache-2.0
 * A replica that hangs inside a task of several: it is named, and the process ends at the time of a
 * collective, by hand and in a job, which starts the task again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cadre/cadre.h"
#include "common/base/clock.h"
#include "tests/lib/program.h"
#include "tests/lib/test.h"
#include "tests/unit/runtime/job.h"

#define STEPS    4
#define HANGS_AT 2

static const char *self;

/* --- the program --- */

struct wish {
    const char *how;
    uint32_t replica; /* that hangs */
    bool others;      /* or rather all but that one */
    bool hangs;
};

static void hang(void)
{
    for (;;) {
        pause();
    }
}

static cadre_status meet(cadre_strategy *strategy, cadre_per_replica *const inputs[],
    cadre_per_replica *outputs[], void *user)
{
    (void)strategy;
    (void)inputs;
    (void)outputs;
    (void)user;
    return CADRE_OK;
}

static cadre_status step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    const struct wish *wish = user;
    cadre_tensor *one;
    CADRE_TRY(cadre_tensor_from_i64(1, &one));
    cadre_status status = cadre_all_reduce(replica, CADRE_SUM, &one, 1, NULL);
    bool chosen = (cadre_replica_local_id(replica) == wish->replica) != wish->others;
    bool hangs = wish->hangs && chosen &&
                 cadre_strategy_position(cadre_replica_strategy(replica)) == HANGS_AT;
    if (hangs) {
        hang();
    }
    if (status == CADRE_OK && strcmp(wish->how, "collective") == 0) {
        status = cadre_all_reduce(replica, CADRE_SUM, &one, 1, NULL);
    } else if (status == CADRE_OK && strcmp(wish->how, "merge") == 0) {
        status = cadre_merge_call(replica, meet, NULL, NULL, 0, 0, NULL);
    }
    cadre_tensor_release(one);
    return status;
}

static int program(const char *how)
{
    cadre_strategy *strategy;
    CADRE_CHECK(cadre_init(NULL, NULL));
    CADRE_CHECK(cadre_strategy_default(&strategy));
    const char *attempt = getenv("HANGS_IN");
    const char *dash = strchr(how, '-');
    struct wish wish = {.how = dash + 1,
        .replica = (uint32_t)(dash[-1] - '0'),
        .others = how[0] == '!',
        .hangs = attempt == NULL || access(attempt, F_OK) != 0};
    while (cadre_strategy_position(strategy) < STEPS) {
        if (attempt != NULL && cadre_strategy_position(strategy) == HANGS_AT) {
            FILE *mark = fopen(attempt, "w"); /* only the first attempt hangs */
            if (mark == NULL || fclose(mark) != 0) {
                return 9;
            }
        }
        CADRE_CHECK(cadre_run(strategy, step, &wish, NULL, 0, NULL));
    }
    return cadre_finish(strategy);
}

/* --- by hand --- */

static void start(const char *how, const char *limit, struct program *ret_program)
{
    char output[TEST_PATH_BYTES + 32];
    char timeout[64];
    snprintf(output, sizeof output, "CADRE_OUTPUT_DIR=%s", test_temp_dir());
    snprintf(timeout, sizeof timeout, "CADRE_COLLECTIVE_TIMEOUT_S=%s", limit);
    const char *environment[] = {output, timeout, "CADRE_REPLICAS=2", NULL};
    const char *argv[] = {self, how, NULL};
    program_start(&(struct program_spec){.argv = argv, .environment = environment}, ret_program);
}

static void the_process_ends_at_the_time_of_a_collective(void **state)
{
    static const struct {
        const char *how;
        const char *reported;
    } cases[] = {{"1-collective", "replica 1 has not come to collective 2 of step 2 within 3 s"},
        {"0-collective", "replica 0 has not come to collective 2 of step 2 within 3 s"},
        {"1-return", "replica 1 has not returned from its function in step 2 within 3 s"},
        {"0-return", "replica 0 has not returned from its function in step 2 within 3 s"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct program program;
        struct program_result result;
        start(cases[i].how, "3", &program);
        uint64_t began_us = clock_monotonic_us();
        program_finish(&program, PROGRAM_DEADLINE_US, &result);
        bool late = clock_monotonic_us() - began_us > UINT64_C(3000000);
        if (result.timed_out || !late || result.exit_code != 1 ||
            strstr(result.err, cases[i].reported) == NULL) {
            fail_msg("%s: exit code %d, timed out %d\n%s", cases[i].how, result.exit_code,
                result.timed_out, result.err);
        }
        program_result_free(&result);
    }
}

/* Without a limit, too. */
static void it_is_named_after_ten_seconds(void **state)
{
    struct program program;
    (void)state;
    start("1-collective", "0", &program);
    uint64_t began_us = clock_monotonic_us();
    bool reported = program_wait_text(&program, true,
        "warning: replica 1 has not come to collective 2 of step 2 for 10 s, and the other "
        "replicas of its task wait for it",
        UINT64_C(120000000));
    bool late = clock_monotonic_us() - began_us >= UINT64_C(10000000);
    program_close(&program);
    assert_true(reported);
    assert_true(late);
}

/* --- in a job --- */

static void run_job(
    const char *how, uint32_t tasks, uint32_t replicas, const char *limit, struct job_end *ret_end)
{
    char mark[TEST_PATH_BYTES];
    const struct local_options options = {.program = self,
        .arguments = &how,
        .argument_count = 1,
        .tasks = tasks,
        .replicas = replicas,
        .max_restarts = 3,
        .output = test_temp_dir(),
        .grace_us = 1000000};
    setenv("CADRE_COLLECTIVE_TIMEOUT_S", limit, 1);
    setenv("HANGS_IN", test_path(mark, test_temp_dir(), "hung"), 1);
    unlink(mark);
    job_run(&options, ret_end);
    if (ret_end->exit_code != 0 ||
        strstr(ret_end->printed, "(CADRE_COLLECTIVE_TIMEOUT_S)") == NULL) {
        job_wrong(how, ret_end);
    }
}

static void a_job_starts_the_task_again(void **state)
{
    struct job_end end;
    (void)state;
    run_job("1-collective", 1, 2, "3", &end);
    run_job("1-collective", 2, 2, "3", &end);
}

static void the_coordinator_names_it(void **state)
{
    static const struct {
        const char *how;
        uint32_t replicas;
        const char *reported;
    } cases[] = {
        {"1-collective", 2, ": replica 1 of task 0 on worker local has not come to collective 2\n"},
        {"0-merge", 3, ": replica 0 of task 0 on worker local has not come to cadre_merge_call\n"},
        {"!0-return", 3,
            ": replica 1 of task 0 on worker local and 1 other of its replicas have not returned "
            "from their functions\n"},
    };
    struct job_end end;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        run_job(cases[i].how, 1, cases[i].replicas, "14", &end);
        if (strstr(end.messages, cases[i].reported) == NULL ||
            strstr(end.messages, "step 2 has not ended for 1") == NULL) {
            fail_msg("%s: %s\n%s", cases[i].how, end.messages, end.printed);
        }
    }
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        return program(argv[1]);
    }
    self = argv[0];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_process_ends_at_the_time_of_a_collective),
        cmocka_unit_test(it_is_named_after_ten_seconds),
        cmocka_unit_test(a_job_starts_the_task_again),
        cmocka_unit_test(the_coordinator_names_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
