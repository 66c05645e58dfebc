/* SPDX-License-Identifier: Apache-2.0
 * Iterators in jobs whose tasks die, come later, or go on from a checkpoint: each step is done
 * once, and the ledger proves it. Two programs: one takes iterators one after the other and two by
 * turns; one goes by epochs, and takes an iterator for the evaluation after each. And the first
 * with pipelines of the tasks' own, where all agree on each step. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "elastic_program.h"
#include "faults.h"
#include "stage.h"
#include "tests/lib/test.h"
#include "training.h"

enum {
    SAMPLES = 103,
    BATCH = 8,
    STEPS = 5, /* of 13 */
    EPOCHS = 3,
    POSITIONS = EPOCHS * 3 * STEPS,
    TURNS_AT = STEPS /* of an epoch: from here on two by turns */
};

/* --- the programs --- */

static const char *const programs[] = {"counted", "led"};

static cadre_strategy *strategy;
static cadre_variable *sum;
static cadre_variable *order;

static cadre_status add(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    uint64_t position = cadre_strategy_position(strategy);
    const int64_t *rows = cadre_tensor_const_data(inputs[0]);
    int64_t own = 0;
    cadre_tensor *total;
    (void)outputs;
    fault_die("DIE_BEFORE", position);
    for (int64_t i = 0; i < cadre_tensor_rows(inputs[0]); i++) {
        own += rows[i] * rows[i] + 1;
    }
    CADRE_TRY(cadre_tensor_from_i64(own, &total));
    cadre_status status = cadre_all_reduce(replica, CADRE_SUM, &total, 1, NULL);
    int64_t all = *(const int64_t *)cadre_tensor_const_data(total);
    cadre_tensor_release(total);
    CADRE_TRY(status);
    fault_die("DIE_AFTER", position);
    *(int64_t *)cadre_variable_write(replica, sum) += all * (1 + *(const int64_t *)user);
    uint64_t *mixed = cadre_variable_write(replica, order);
    *mixed = *mixed * UINT64_C(1000003) + (uint64_t)all;
    return CADRE_OK;
}

/* False: there was none left. */
static bool take(cadre_distributed_dataset *from)
{
    cadre_per_replica *batch;
    int64_t number = (int64_t)cadre_epoch(from);
    if (cadre_next(from, &batch) != CADRE_OK) {
        CADRE_CHECK(cadre_distributed_status(from));
        return false;
    }
    CADRE_CHECK(cadre_run(strategy, add, &number, batch, 0, NULL));
    return true;
}

static cadre_distributed_dataset *iterate(
    cadre_distributed_dataset *data, uint64_t number, uint64_t steps)
{
    cadre_distributed_dataset *iterator;
    CADRE_CHECK(cadre_distributed_iterate(data, number, steps, &iterator));
    return iterator;
}

/* The second of two by turns is left with steps in it, where the first one has ended. */
static void left_epochs(cadre_distributed_dataset *data)
{
    for (uint64_t epoch = 0; epoch < EPOCHS; epoch++) {
        cadre_distributed_dataset *two[2] = {
            iterate(data, 2 * epoch, STEPS), iterate(data, 2 * epoch + 1, 2 * STEPS)};
        bool more[2] = {true, true};
        while (more[0] || more[1]) {
            more[0] = more[0] && take(two[0]);
            bool left = !more[0] && cadre_strategy_position(strategy) == (epoch + 1) * 2 * STEPS;
            more[1] = more[1] && !left && take(two[1]);
        }
        cadre_distributed_release(two[0]);
        cadre_distributed_release(two[1]);
    }
}

static void counted_epochs(cadre_distributed_dataset *data)
{
    for (uint64_t epoch = 0; epoch < EPOCHS; epoch++) {
        cadre_distributed_dataset *one = iterate(data, 3 * epoch, STEPS);
        while (take(one)) {
        }
        cadre_distributed_release(one);
        cadre_distributed_dataset *two[2] = {
            iterate(data, 3 * epoch + 1, STEPS), iterate(data, 3 * epoch + 2, STEPS)};
        bool more[2] = {true, true};
        while (more[0] || more[1]) {
            more[0] = more[0] && take(two[0]);
            more[1] = more[1] && take(two[1]);
        }
        cadre_distributed_release(two[0]);
        cadre_distributed_release(two[1]);
    }
}

static void led_epochs(cadre_distributed_dataset *data)
{
    uint64_t epoch;
    while (cadre_next_epoch(data, EPOCHS, &epoch)) {
        while (take(data)) {
        }
        cadre_distributed_dataset *exam = iterate(data, epoch, 2 * STEPS);
        while (take(exam)) {
        }
        cadre_distributed_release(exam);
    }
}

static cadre_status make_own(
    const cadre_input_context *context, cadre_dataset **ret_data, void *user)
{
    (void)user;
    cadre_dataset *data = cadre_dataset_batch(cadre_dataset_range(0, SAMPLES, 1), BATCH, false);
    *ret_data = cadre_dataset_shard(data, context->num_input_pipelines, context->input_pipeline_id);
    return CADRE_OK;
}

static cadre_distributed_dataset *distribute(bool own)
{
    cadre_distributed_dataset *data;
    const cadre_input_options options = {.name = "data", .steps_per_epoch = STEPS};
    if (own) {
        CADRE_CHECK(
            cadre_distribute_datasets_from_function(strategy, make_own, NULL, &options, &data));
        return data;
    }
    cadre_dataset *all =
        cadre_dataset_shuffle(cadre_dataset_range(0, SAMPLES, 1), CADRE_SHUFFLE_ALL, 7, NULL);
    CADRE_CHECK(cadre_distribute_dataset(
        strategy, cadre_dataset_batch(all, BATCH, false), &options, &data));
    return data;
}

static int program(const char *what)
{
    CADRE_CHECK(cadre_init(NULL, NULL));
    CADRE_CHECK(cadre_strategy_default(&strategy));
    CADRE_CHECK(cadre_variable_create(strategy, "sum", CADRE_I64, 0, NULL, NULL, &sum));
    CADRE_CHECK(cadre_variable_create(strategy, "order", CADRE_I64, 0, NULL, NULL, &order));
    cadre_distributed_dataset *data = distribute(strcmp(what, "own") == 0);
    if (strcmp(what, programs[1]) == 0) {
        led_epochs(data);
    } else if (strcmp(what, "left") == 0) {
        left_epochs(data);
    } else {
        counted_epochs(data);
    }
    printf("sum %lld order %llu position %llu tasks %u\n",
        (long long)*(const int64_t *)cadre_variable_read(NULL, sum),
        (unsigned long long)*(const uint64_t *)cadre_variable_read(NULL, order),
        (unsigned long long)cadre_strategy_position(strategy), cadre_world_size());
    fflush(stdout);
    return cadre_finish(strategy);
}

/* --- running them --- */

static const char *self;
static char undisturbed[2][256];

static struct stage_job job_of(size_t which, uint32_t tasks, const char *const *environment)
{
    return (struct stage_job){.self = self,
        .what = programs[which],
        .tasks = tasks,
        .replicas = 1,
        .environment = environment};
}

/* "sum 7 order 9 position 45", or without the order. */
static void outcome(const char *printed, bool ordered, char line[256])
{
    elastic_outcome(printed, line);
    char *from = strstr(line, " order ");
    char *to = strstr(line, " position ");
    if (!ordered && from != NULL && to != NULL) {
        memmove(from, to, strlen(to) + 1);
    }
}

/* All steps are done once. `ordered`: in the same order, too. `dead`: an attempt that does not end.
 */
static void check(const struct stage_job *job, uint32_t dead, bool ordered, struct stage_end *end)
{
    char line[256 + sizeof " tasks"];
    char wanted[256];
    size_t which = job->what == programs[1] ? 1 : 0;
    stage_run(job, end);
    snprintf(line, sizeof line, "%s tasks", undisturbed[which]);
    outcome(line, ordered, wanted);
    bool good = end->done && end->position == POSITIONS;
    for (uint32_t i = 0; i < end->started; i++) {
        outcome(end->printed[i], ordered, line);
        good = good && (i == dead || (end->exit_code[i] == 0 && strcmp(line, wanted) == 0));
    }
    if (!good) {
        print_error("wanted: %s\n", wanted);
        elastic_show(end);
    }
    assert_true(good);
}

/* Each iterator, and each epoch, consumed what it is defined to hold. */
static void check_consumptions(size_t which, const struct stage_end *end)
{
    static const char *const names[] = {"data", "data/1", "data/2"};
    assert_int_equal(end->consumption_count, which == 0 ? 3 * EPOCHS : 2 * EPOCHS);
    for (size_t i = 0; i < end->consumption_count; i++) {
        const struct consumption *consumption = &end->consumptions[i].consumption;
        bool exam = which == 1 && end->consumptions[i].cursor.stream == 2;
        assert_int_equal(consumption->steps, exam ? 2 * STEPS : STEPS);
        assert_int_equal(consumption->samples, (exam ? 2 * STEPS : STEPS) * BATCH);
        assert_true(consumption->provable);
        assert_true(consumption->consumed[0] == consumption->expected[0] &&
                    consumption->consumed[1] == consumption->expected[1]);
    }
    assert_int_equal(end->stream_count, which == 0 ? 3 : 2);
    for (uint32_t i = 0; i < end->stream_count; i++) {
        assert_string_equal(end->stream_names[i], names[i]);
    }
}

static int learn(void **state)
{
    (void)state;
    for (size_t which = 0; which < 2; which++) {
        struct stage_end end;
        struct stage_job job = job_of(which, 1, NULL);
        stage_run(&job, &end);
        elastic_outcome(end.printed[0], undisturbed[which]);
        if (!end.done || end.position != POSITIONS || undisturbed[which][0] == '\0') {
            elastic_show(&end);
            return -1;
        }
        check_consumptions(which, &end);
        stage_end_free(&end);
    }
    return 0;
}

static void any_number_of_tasks_is_the_same(void **state)
{
    (void)state;
    for (size_t which = 0; which < 2; which++) {
        for (uint32_t tasks = 2; tasks <= 3; tasks++) {
            struct stage_end end;
            struct stage_job job = job_of(which, tasks, NULL);
            check(&job, UINT32_MAX, true, &end);
            check_consumptions(which, &end);
            stage_end_free(&end);
        }
    }
}

/* Two tasks use twice what each of them has. */
static void pipelines_of_functions_have_iterators(void **state)
{
    (void)state;
    for (uint32_t tasks = 1; tasks <= 2; tasks++) {
        char first[256];
        struct stage_end end;
        struct stage_job job = job_of(0, tasks, NULL);
        job.what = "own";
        stage_run(&job, &end);
        elastic_outcome(end.printed[0], first);
        bool good = end.done && end.position == POSITIONS && end.consumption_count == 3 * EPOCHS;
        for (uint32_t i = 0; i < end.started; i++) {
            char line[256];
            elastic_outcome(end.printed[i], line);
            good = good && end.exit_code[i] == 0 && strcmp(line, first) == 0;
        }
        for (size_t i = 0; i < end.consumption_count; i++) {
            good = good && end.consumptions[i].consumption.samples == tasks * STEPS * BATCH;
        }
        if (!good) {
            elastic_show(&end);
        }
        assert_true(good);
        stage_end_free(&end);
    }
}

/* At the edges of iterators, and in the middle of a turn. */
static void a_loss_is_survived(void **state)
{
    (void)state;
    static const char *const faults[] = {"DIE_BEFORE=1:0", "DIE_AFTER=0:4", "DIE_BEFORE=2:5",
        "DIE_BEFORE=1:6", "DIE_AFTER=0:9", "DIE_BEFORE=0:14", "DIE_BEFORE=1:22"};
    static const uint32_t dead[] = {1, 0, 2, 1, 0, 0, 1};
    for (size_t which = 0; which < 2; which++) {
        for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
            struct stage_end end;
            const char *const environment[] = {faults[i], NULL};
            struct stage_job job = job_of(which, 3, environment);
            check(&job, dead[i], true, &end);
            check_consumptions(which, &end);
            assert_int_equal(end.roster, 2);
            stage_end_free(&end);
        }
    }
}

/* It has none of the iterators of the others, and finds its way to theirs by its own loop. */
static void a_task_that_comes_later_joins(void **state)
{
    (void)state;
    static const uint64_t grows_at[] = {2, 5, 6, 9, 17, 21};
    for (size_t which = 0; which < 2; which++) {
        for (size_t i = 0; i < sizeof grows_at / sizeof grows_at[0]; i++) {
            struct stage_end end;
            struct stage_job job = job_of(which, 1, NULL);
            job.grows = 1;
            job.grows_at = grows_at[i];
            job.greets_at = grows_at[i] + 1;
            job.waits_at = 2 * 3 * STEPS + 1; /* a step that it waits for, too */
            check(&job, UINT32_MAX, true, &end);
            check_consumptions(which, &end);
            assert_int_equal(end.roster, 2);
            stage_end_free(&end);
        }
    }
}

/* It begins the second of two by turns, when the first one is done; the job turns to others of
 * both, and it comes in where its own loop begins: not in the middle of a turn. */
static void a_turn_is_not_joined_in_its_middle(void **state)
{
    (void)state;
    struct stage_end end[2];
    char wanted[256];
    char line[256];
    for (uint32_t grows = 0; grows < 2; grows++) {
        struct stage_job job = job_of(0, 1, NULL);
        job.what = "left";
        job.grows = grows;
        job.grows_at = 2 * STEPS - 1;
        job.asks_at = grows * 2 * STEPS;
        job.waits_at = grows * (4 * STEPS + 4); /* a step of the first of both */
        stage_run(&job, &end[grows]);
        outcome(end[0].printed[0], true, wanted);
        bool good = end[grows].done && end[grows].position == 2 * EPOCHS * STEPS;
        for (uint32_t i = 0; i < end[grows].started; i++) {
            outcome(end[grows].printed[i], true, line);
            good = good && end[grows].exit_code[i] == 0 && strcmp(line, wanted) == 0;
        }
        if (!good) {
            print_error("wanted: %s\n", wanted);
            elastic_show(&end[grows]);
        }
        assert_true(good);
        assert_int_equal(end[grows].roster, 1 + grows);
    }
    stage_end_free(&end[0]);
    stage_end_free(&end[1]);
}

/* Leaves the checkpoint of a position. */
static void leave_checkpoint(size_t which, uint64_t position, char path[TEST_PATH_BYTES])
{
    struct stage_end end;
    char name[64];
    char every[64];
    snprintf(every, sizeof every, "CADRE_CHECKPOINT_EVERY=%llu", (unsigned long long)position);
    const char *const environment[] = {every, "CADRE_CHECKPOINTS_KEPT=100", NULL};
    struct stage_job job = job_of(which, 1, environment);
    stage_run(&job, &end);
    assert_true(end.done);
    snprintf(name, sizeof name, "checkpoint-%llu.json", (unsigned long long)position);
    test_path(path, end.folder, name);
    stage_end_free(&end);
}

/* Of each position. In the middle of a turn the next one begins with the first of both: no step is
 * left out or done twice, but the order is another one. */
static void a_checkpoint_is_gone_on_from(void **state)
{
    (void)state;
    for (size_t which = 0; which < 2; which++) {
        for (uint64_t position = 1; position < 2 * 3 * STEPS; position++) {
            char path[TEST_PATH_BYTES];
            struct stage_end end;
            uint64_t inside = position % (3 * STEPS);
            bool turns = which == 0 && inside > TURNS_AT && (inside - TURNS_AT) % 2 == 1;
            leave_checkpoint(which, position, path);
            struct stage_job job = job_of(which, (uint32_t)(position % 3) + 1, NULL);
            job.resume = position;
            job.restore = path;
            check(&job, UINT32_MAX, !turns, &end);
            stage_end_free(&end);
        }
    }
}

int main(int argc, char **argv)
{
    if (argc == 2 && getenv("CADRE_SOCKET") != NULL) {
        return program(argv[1]);
    }
    self = argv[0];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_tasks_is_the_same),
        cmocka_unit_test(pipelines_of_functions_have_iterators),
        cmocka_unit_test(a_loss_is_survived),
        cmocka_unit_test(a_task_that_comes_later_joins),
        cmocka_unit_test(a_turn_is_not_joined_in_its_middle),
        cmocka_unit_test(a_checkpoint_is_gone_on_from),
    };
    return cmocka_run_group_tests(tests, learn, NULL);
}
