/* SPDX-License-Identifier: Apache-2.0
 * Merge calls in a job whose tasks lose each other at any moment, many times, from outside: a step
 * is done again as a whole, whether its replicas were in a collective, in a meeting, or one here
 * and one there. The tasks are this test, run again. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shaker.h"
#include "stage.h"
#include "training.h"
#include "worker/library/runtime/strategy/strategy.h"

#define STEPS    150
#define PAUSE_MS 4  /* between two shakes, below */
#define SHAKES   60 /* generations of each task that are shaken, at most */
#define EVERY    30 /* so many steps are not taken without one that is */
#define TIMES    4  /* the whole, with different layouts */

/* --- the program --- */

static cadre_strategy *strategy;
static cadre_variable *total;
static bool is_shaken;

static cadre_status mix_in(
    cadre_variable *variable, cadre_tensor *const inputs[], cadre_tensor **ret_output, void *user)
{
    (void)ret_output;
    (void)user;
    uint64_t mixed = *(const uint64_t *)cadre_variable_read(NULL, variable) * 1000003 +
                     (uint64_t) * (const int64_t *)cadre_tensor_const_data(inputs[0]);
    cadre_tensor *value;
    CADRE_TRY(cadre_tensor_from_i64((int64_t)mixed, &value));
    cadre_status status = cadre_variable_assign(NULL, variable, CADRE_ASSIGN, value);
    cadre_tensor_release(value);
    return status;
}

static cadre_status merge(cadre_strategy *current, cadre_per_replica *const inputs[],
    cadre_per_replica *outputs[], void *user)
{
    (void)user;
    outputs[0] = cadre_per_replica_retain(inputs[0]);
    return cadre_variable_update(current, total, mix_in, NULL, inputs[0], NULL);
}

/* A share of 840, which is there for 1 to 8 replicas; two meetings, each after a collective. */
static cadre_status step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    int64_t number = *(const int64_t *)user;
    int64_t share = number * 840 / cadre_replica_count(replica);
    if (is_shaken) { /* a fast machine takes all steps before it is shaken */
        shaker_await((uint32_t)(number / EVERY));
    }
    for (int i = 0; i < 2; i++) {
        cadre_tensor *sum;
        cadre_tensor *merged;
        CADRE_TRY(cadre_tensor_from_i64(share, &sum));
        cadre_status status = cadre_all_reduce(replica, CADRE_SUM, &sum, 1, NULL);
        if (status == CADRE_OK) {
            status = cadre_merge_call(replica, merge, NULL, &sum, 1, 1, &merged);
        }
        bool same = status != CADRE_OK || merged == sum;
        cadre_tensor_release(sum);
        CADRE_TRY(status);
        cadre_tensor_release(merged);
        if (!same) {
            return cadre_fail(CADRE_UNKNOWN, "a replica got what was another's");
        }
    }
    return CADRE_OK;
}

static int program(void)
{
    CADRE_CHECK(cadre_init(NULL, NULL));
    CADRE_CHECK(cadre_strategy_default(&strategy));
    is_shaken = getenv("SHAKEN") != NULL;
    if (is_shaken && !shaker_start(strategy->task, PAUSE_MS, SHAKES)) {
        return 1;
    }
    CADRE_CHECK(cadre_variable_create(strategy, "total", CADRE_I64, 0, NULL, NULL, &total));
    for (int64_t i = 1; i <= STEPS; i++) {
        CADRE_CHECK(cadre_run(strategy, step, &i, NULL, 0, NULL));
    }
    if (is_shaken) {
        shaker_stop();
    }
    printf("%" PRIu64 " after %" PRIu64 "\n", *(const uint64_t *)cadre_variable_read(NULL, total),
        cadre_strategy_position(strategy));
    fflush(stdout);
    return cadre_finish(strategy);
}

/* --- the test --- */

static const char *self;

static void run_job(const struct stage_job *job, const char *wanted, char ret_said[64])
{
    struct stage_end end;
    stage_run(job, &end);
    bool good = end.done;
    for (uint32_t i = 0; i < end.started; i++) {
        snprintf(ret_said, 64, "%s", end.printed[i]);
        good = good && end.exit_code[i] == 0 && (wanted == NULL || strcmp(wanted, ret_said) == 0);
        if (!good) {
            print_error("wanted %s, exit code %d: %s%s\n", wanted == NULL ? "any" : wanted,
                end.exit_code[i], end.printed[i], end.erred[i]);
        }
    }
    bool shaken = job->environment == NULL || end.generations > STEPS / EVERY;
    stage_end_free(&end);
    assert_true(good);
    assert_true(shaken); /* else nothing was tried */
}

static void steps_with_meetings_are_done_again(void **state)
{
    (void)state;
    static const char *const shaken[] = {"SHAKEN=1", NULL};
    char wanted[64];
    char printed[64];
    struct stage_job job = {.self = self, .what = "shaken", .tasks = 1, .replicas = 1};
    run_job(&job, NULL, wanted);
    job.environment = shaken;
    for (uint32_t i = 0; i < TIMES; i++) {
        job.tasks = 2;
        job.replicas = 1 + (i + 1) % 3;
        job.rotates = i % 2 == 1;
        run_job(&job, wanted, printed);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_with_meetings_are_done_again),
    };
    if (argc > 1 && strcmp(argv[1], "shaken") == 0) {
        return program();
    }
    self = argv[0];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
