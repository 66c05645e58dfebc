/* SPDX-License-Identifier: Apache-2.0
 * A job whose tasks lose each other at any moment, many times, from outside: whatever it was doing,
 * its result is that of a job to which nothing happens. The tasks are this test, run again. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shaker.h"
#include "stage.h"
#include "training.h"
#include "worker/library/runtime/strategy/strategy.h"

#define EPOCHS        3
#define SHAKES        120 /* generations of each task that are shaken, at most */
#define PAUSE_MS      4   /* between two of them, below */
#define TIMES         6   /* the whole, with different layouts */
#define PRINTED_LINES 256

/* --- the program --- */

static cadre_strategy *strategy;
static cadre_variable *order;
static cadre_variable *rate;
static cadre_variable *counts[3];

/* Of the rows, or of one for a step without a batch; `user`: how it is mixed in. */
static cadre_status mix(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    int64_t rows = inputs[0] == NULL ? 0 : cadre_tensor_rows(inputs[0]);
    int64_t own = 0;
    for (int64_t i = 0; i < rows; i++) {
        own += ((const int64_t *)cadre_tensor_const_data(inputs[0]))[i] + 1;
    }
    cadre_tensor *total;
    CADRE_TRY(cadre_tensor_from_i64(own, &total));
    outputs[0] = total;
    CADRE_TRY(cadre_all_reduce(replica, CADRE_SUM, &total, 1, NULL));
    int64_t sum = *(const int64_t *)cadre_tensor_const_data(total);
    *(int64_t *)cadre_variable_write(replica, counts[0]) += rows;
    *(double *)cadre_variable_write(replica, counts[1]) += 1;
    *(int64_t *)cadre_variable_write(replica, counts[2]) += 1;
    uint64_t *mixed = cadre_variable_write(replica, order);
    *mixed = *mixed * *(const uint64_t *)user + (uint64_t)sum;
    return CADRE_OK;
}

/* What is not in the state is alike on all tasks, too: it comes from outputs and collectives. */
static uint64_t seen;

static void run_and_look(cadre_per_replica *batch, uint64_t factor)
{
    cadre_per_replica *output;
    cadre_tensor *mean;
    CADRE_CHECK(cadre_run(strategy, mix, &factor, batch, 1, &output));
    CADRE_CHECK(cadre_reduce(strategy, CADRE_MEAN, output, CADRE_AXIS_NONE, &mean));
    seen = seen * 31 + (uint64_t) * (const double *)cadre_tensor_const_data(mean);
    cadre_tensor_release(mean);
}

static cadre_distributed_dataset *distribute(const char *name, int64_t samples, int64_t batch)
{
    cadre_distributed_dataset *data;
    cadre_dataset *all =
        cadre_dataset_shuffle(cadre_dataset_range(0, samples, 1), CADRE_SHUFFLE_ALL, 7, NULL);
    CADRE_CHECK(cadre_distribute_dataset(strategy, cadre_dataset_batch(all, batch, false),
        &(cadre_input_options){.name = name}, &data));
    return data;
}

/* Two datasets by turns, batches that are run twice, steps without a batch, assignments. */
static void train_an_epoch(cadre_distributed_dataset *first, cadre_distributed_dataset *second)
{
    cadre_per_replica *batch;
    for (uint64_t i = 0; cadre_next(first, &batch) == CADRE_OK; i++) {
        run_and_look(batch, 1000003);
        if (i % 4 == 1) {
            run_and_look(batch, 10007); /* again */
        }
        if (cadre_next(second, &batch) == CADRE_OK) {
            run_and_look(batch, 101);
        }
        if (i % 5 == 2) {
            cadre_tensor *value;
            run_and_look(NULL, 11);
            CADRE_CHECK(cadre_tensor_from_i64((int64_t)i, &value));
            CADRE_CHECK(cadre_variable_assign(NULL, rate, CADRE_ASSIGN, value));
            cadre_tensor_release(value);
            CADRE_CHECK(cadre_barrier());
        }
    }
}

static void create_variables(void)
{
    static const cadre_aggregation how[] = {
        CADRE_AGGREGATION_SUM, CADRE_AGGREGATION_MEAN, CADRE_AGGREGATION_ONLY_FIRST_REPLICA};
    CADRE_CHECK(cadre_variable_create(strategy, "order", CADRE_I64, 0, NULL, NULL, &order));
    CADRE_CHECK(cadre_variable_create(strategy, "rate", CADRE_I64, 0, NULL, NULL, &rate));
    for (int i = 0; i < 3; i++) {
        const char name[] = {'c', (char)('0' + i), '\0'};
        cadre_variable_options options = {
            .synchronization = CADRE_SYNC_ON_READ, .aggregation = how[i]};
        CADRE_CHECK(cadre_variable_create(
            strategy, name, i == 1 ? CADRE_F64 : CADRE_I64, 0, NULL, &options, &counts[i]));
    }
}

static int program(void)
{
    CADRE_CHECK(cadre_init(NULL, NULL));
    CADRE_CHECK(cadre_strategy_default(&strategy));
    bool shaken = getenv("SHAKEN") != NULL;
    if (shaken && !shaker_start(strategy->task, PAUSE_MS, SHAKES)) {
        return 1;
    }
    create_variables();
    cadre_distributed_dataset *first = distribute("first", 83, 8);
    cadre_distributed_dataset *second = distribute("second", 31, 4);
    while (cadre_next_epoch(first, EPOCHS, NULL) && cadre_next_epoch(second, EPOCHS, NULL)) {
        train_an_epoch(first, second);
    }
    if (shaken) {
        shaker_stop();
    }
    printf("order %" PRIu64 " rate %" PRId64 " counts %" PRId64 " %g %" PRId64 " seen %" PRIu64
           " position %" PRIu64 "\n",
        *(const uint64_t *)cadre_variable_read(NULL, order),
        *(const int64_t *)cadre_variable_read(NULL, rate),
        *(const int64_t *)cadre_variable_read(NULL, counts[0]),
        *(const double *)cadre_variable_read(NULL, counts[1]),
        *(const int64_t *)cadre_variable_read(NULL, counts[2]), seen,
        cadre_strategy_position(strategy));
    fflush(stdout);
    return cadre_finish(strategy);
}

/* --- the test --- */

static const char *self;

static bool check(const struct stage_job *job, const char *wanted, char ret_said[PRINTED_LINES])
{
    struct stage_end end;
    stage_run(job, &end);
    bool good = end.done;
    for (uint32_t i = 0; i < end.started; i++) {
        snprintf(ret_said, PRINTED_LINES, "%s", end.printed[i]);
        good = good && end.exit_code[i] == 0 && (wanted == NULL || strcmp(wanted, ret_said) == 0);
    }
    if (!good) {
        print_error("%" PRIu64 " generations, %s\nwanted: %s", end.generations, end.text,
            wanted == NULL ? "any\n" : wanted);
    }
    for (uint32_t i = 0; !good && i < end.started; i++) {
        print_error("exit code %d: %s%s", end.exit_code[i], end.printed[i], end.erred[i]);
    }
    stage_end_free(&end);
    return good;
}

static void what_is_shaken_at_any_moment_ends_alike(void **state)
{
    (void)state;
    static const char *const shaken[] = {"SHAKEN=1", NULL};
    char wanted[PRINTED_LINES];
    char printed[PRINTED_LINES];
    struct stage_job job = {.self = self, .what = "shaken", .tasks = 1, .replicas = 1};
    assert_true(check(&job, NULL, wanted));
    job.environment = shaken;
    for (uint32_t i = 0; i < TIMES; i++) {
        job.tasks = 2 + i % 2;
        job.replicas = 1 + i % 3;
        job.rotates = i % 2 == 1;
        assert_true(check(&job, wanted, printed));
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_shaken_at_any_moment_ends_alike),
    };
    if (argc > 1 && strcmp(argv[1], "shaken") == 0) {
        return program();
    }
    self = argv[0];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
