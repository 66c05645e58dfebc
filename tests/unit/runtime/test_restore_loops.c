/* SPDX-License-Identifier: Apache-2.0
 * Two datasets in one loop, as a training and its evaluation: a job goes on from the checkpoint of
 * each of its steps, and what it registered and changes all over its loop is counted once. So is
 * what metrics count that are reset before an epoch, behind it, and behind every other step. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cadre/cadre.h"
#include "job.h"
#include "tests/lib/test.h"

#define TRAIN_STEPS 3
#define EXAM_STEPS  4                                /* in an epoch, undisturbed */
#define STEPS       (2 * (TRAIN_STEPS + EXAM_STEPS)) /* that are looked at */
#define TASKS       2
#define COUNTED     "all is counted once\n"

static const char *const file_names[] = {"nine", "one"};

static const char *self;

/* --- the program --- */

/* Registered, and changed between the calls that a checkpoint can be taken in. */
static struct {
    uint64_t begun;
    uint64_t behind_step;
    uint64_t trained;
    uint64_t examined;
    uint64_t steps;
    double of_epochs; /* the metrics of all epochs, by the resets up to now */
    double of_pairs;
    double of_begun;
} counts;

static cadre_strategy *strategy;
static cadre_variable *steps;
static cadre_distributed_dataset *train;
static cadre_distributed_dataset *exam;
static uint64_t epochs;
static cadre_metric *of_epoch; /* of the training's steps */
static cadre_metric *of_begun; /* the same, reset at the other end of the epoch */
static cadre_metric *of_pair;  /* of two steps, whichever they are */

static cadre_status step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    const bool *trains = user;
    cadre_tensor *one;
    CADRE_TRY(cadre_tensor_from_f64(1, &one));
    cadre_status status = cadre_metric_update(replica, of_pair, one, NULL, NULL);
    if (status == CADRE_OK && *trains) {
        status = cadre_metric_update(replica, of_epoch, one, NULL, NULL);
    }
    if (status == CADRE_OK && *trains) {
        status = cadre_metric_update(replica, of_begun, one, NULL, NULL);
    }
    cadre_tensor_release(one);
    CADRE_TRY(status);
    return cadre_variable_assign_literal(replica, steps, CADRE_ASSIGN_ADD, 1);
}

/* The metric goes to *sum. Right after the first epoch of the training it can be read, although the
 * state of a checkpoint that was taken there begins with the reset. */
static void collect(cadre_metric *metric, double *sum)
{
    double result;
    CADRE_CHECK(cadre_metric_result(NULL, metric, &result));
    if (metric == of_epoch && cadre_strategy_position(strategy) == TRAIN_STEPS &&
        result != TRAIN_STEPS * TASKS) {
        printf("the metric of the first epoch is %g\n", result);
        exit(1);
    }
    *sum += result;
    CADRE_CHECK(cadre_metric_reset(metric));
}

static void take(cadre_per_replica *batch, bool trains)
{
    const char *preempt_at = getenv("PREEMPT_AT");
    CADRE_CHECK(cadre_run(strategy, step, &trains, batch, 0, NULL));
    if (++counts.steps % 2 == 0) {
        collect(of_pair, &counts.of_pairs);
    }
    if (preempt_at != NULL && cadre_strategy_position(strategy) == strtoull(preempt_at, NULL, 10)) {
        CADRE_CHECK(cadre_preempt(strategy));
    }
}

static void train_epoch(bool by_turns)
{
    cadre_per_replica *batch;
    while (cadre_next(train, &batch) == CADRE_OK) {
        take(batch, true);
        counts.behind_step++;
        if (by_turns && cadre_next(exam, &batch) == CADRE_OK) {
            take(batch, false);
        }
    }
}

/* The evaluation by turns with the training, or behind each of its epochs. */
static void loop(bool by_turns)
{
    cadre_per_replica *batch;
    double result;
    while (cadre_next_epoch(train, epochs, NULL)) {
        uint64_t epoch = cadre_epoch(train) + 1;
        bool begun = by_turns && cadre_next_epoch(exam, epoch, NULL);
        counts.begun++;
        CADRE_CHECK(cadre_metric_reset(of_begun));
        train_epoch(by_turns);
        if (cadre_preempted(strategy)) {
            return;
        }
        counts.trained++;
        collect(of_epoch, &counts.of_epochs);
        CADRE_CHECK(cadre_metric_result(NULL, of_begun, &result));
        counts.of_begun += result;
        while (begun || cadre_next_epoch(exam, epoch, NULL)) {
            begun = false;
            while (cadre_next(exam, &batch) == CADRE_OK) {
                take(batch, false);
            }
        }
        if (cadre_preempted(strategy)) {
            return;
        }
        counts.examined++;
    }
}

/* One task reads nine lines and the other one a line, in batches of eight that both have a piece
 * of: four steps, and in the last one there is a piece of the ninth line's batch, without a row. */
static cadre_dataset *lines(const char *folder)
{
    char pattern[TEST_PATH_BYTES];
    const char *patterns[] = {test_path(pattern, folder, "*")};
    return cadre_dataset_batch(cadre_dataset_interleave(cadre_dataset_list_files(patterns, 1, NULL),
                                   cadre_open_text_lines, NULL, NULL),
        8, false);
}

static int program(const char *how)
{
    const cadre_input_options by_file = {.name = "exam", .auto_shard = CADRE_SHARD_FILE};
    epochs = strtoull(getenv("EPOCHS"), NULL, 10);
    strategy = job_strategy();
    CADRE_CHECK(cadre_variable_create(strategy, "steps", CADRE_I64, 0, NULL, NULL, &steps));
    CADRE_CHECK(cadre_state_register(strategy, "counts", &counts, sizeof counts));
    CADRE_CHECK(cadre_metric_create(strategy, CADRE_METRIC_SUM, "of_epoch", NULL, &of_epoch));
    CADRE_CHECK(cadre_metric_create(strategy, CADRE_METRIC_SUM, "of_pair", NULL, &of_pair));
    CADRE_CHECK(cadre_metric_create(strategy, CADRE_METRIC_SUM, "of_begun", NULL, &of_begun));
    CADRE_CHECK(cadre_distribute_dataset(strategy,
        cadre_dataset_batch(cadre_dataset_range(0, TRAIN_STEPS * 2, 1), 2, false), NULL, &train));
    CADRE_CHECK(cadre_distribute_dataset(strategy, lines(getenv("LINES_IN")), &by_file, &exam));
    loop(strcmp(how, "by turns") == 0);
    collect(of_pair, &counts.of_pairs);
    if (counts.begun == epochs && counts.behind_step == epochs * TRAIN_STEPS &&
        counts.trained == epochs && counts.examined == epochs &&
        counts.of_epochs == (double)(epochs * TRAIN_STEPS * TASKS) &&
        counts.of_begun == counts.of_epochs && counts.of_pairs == (double)(counts.steps * TASKS) &&
        counts.steps == cadre_strategy_position(strategy)) {
        printf(COUNTED);
    } else if (!cadre_preempted(strategy)) {
        printf(
            "%llu epochs begun, %llu trained, %llu examined, %llu steps of the training, metrics "
            "of %g, %g and %g, %llu steps, position %llu\n",
            (unsigned long long)counts.begun, (unsigned long long)counts.trained,
            (unsigned long long)counts.examined, (unsigned long long)counts.behind_step,
            counts.of_epochs, counts.of_begun, counts.of_pairs, (unsigned long long)counts.steps,
            (unsigned long long)cadre_strategy_position(strategy));
    }
    return cadre_finish(strategy);
}

/* --- running it --- */

static void write_lines(const char *folder)
{
    static const char *const texts[] = {"1\n2\n3\n4\n5\n6\n7\n8\n9\n", "10\n"};
    for (int i = 0; i < 2; i++) {
        char path[TEST_PATH_BYTES];
        FILE *file = fopen(test_path(path, folder, file_names[i]), "w");
        assert_non_null(file);
        fputs(texts[i], file);
        fclose(file);
    }
}

/* Of a job. */
static void fresh_folder(char path[TEST_PATH_BYTES])
{
    static const char *base;
    static unsigned made;
    char name[32];
    base = base == NULL ? test_temp_dir() : base;
    snprintf(name, sizeof name, "%u", made++);
    assert_int_equal(mkdir(test_path(path, base, name), 0700), 0);
}

static void run(
    const char *how, const char *folder, const char *from, uint64_t every, struct job_end *ret_end)
{
    const struct local_options options = {.program = self,
        .arguments = &how,
        .argument_count = 1,
        .tasks = TASKS,
        .replicas = 1,
        .output = folder,
        .checkpoint_folder = folder,
        .checkpoint_every = every,
        .checkpoints_kept = 100,
        .restore_path = from,
        .grace_us = 1000000};
    job_run(&options, ret_end);
}

static void check_counted(const char *how, const char *from)
{
    struct job_end end;
    char folder[TEST_PATH_BYTES];
    fresh_folder(folder);
    unsetenv("PREEMPT_AT");
    run(how, folder, from, 0, &end);
    const char *printed = strstr(end.printed, COUNTED);
    if (end.exit_code != 0 || printed == NULL || strstr(printed + 1, COUNTED) == NULL) {
        fail_msg("%s from %s: exit code %d, message %s, said\n%s", how, from, end.exit_code,
            end.message, end.printed);
    }
}

/* From the automatic checkpoint of each step. */
static void check_each_step(const char *how)
{
    setenv("EPOCHS", "2", 1);
    for (unsigned position = 1; position < STEPS; position++) {
        struct job_end end;
        char name[64];
        char path[TEST_PATH_BYTES];
        char folder[TEST_PATH_BYTES];
        fresh_folder(folder);
        run(how, folder, NULL, position, &end);
        snprintf(name, sizeof name, "checkpoint-%u.json", position);
        if (end.exit_code != 0 || access(test_path(path, folder, name), F_OK) != 0) {
            job_wrong(name, &end);
        }
        check_counted(how, path);
    }
}

/* From that of a preemption at each step. The notice takes its time, so the end is far. */
static void check_each_preemption(const char *how)
{
    setenv("EPOCHS", "60", 1);
    for (unsigned position = 1; position < STEPS; position++) {
        struct job_end end;
        char text[32];
        char path[TEST_PATH_BYTES];
        char folder[TEST_PATH_BYTES];
        unsigned long long saved = 0;
        fresh_folder(folder);
        snprintf(text, sizeof text, "%u", position);
        setenv("PREEMPT_AT", text, 1);
        run(how, folder, NULL, 0, &end);
        const char *printed = strstr(end.message, "saved at step ");
        if (end.exit_code != CADRE_EXIT_PREEMPTED || printed == NULL ||
            sscanf(printed, "saved at step %llu", &saved) != 1) {
            job_wrong(text, &end);
        }
        snprintf(text, sizeof text, "checkpoint-%llu.json", saved);
        check_counted(how, test_path(path, folder, text));
    }
}

static void an_evaluation_behind_each_epoch(void **state)
{
    (void)state;
    check_each_step("behind");
}

static void an_evaluation_by_turns(void **state)
{
    (void)state;
    check_each_step("by turns");
}

static void preempted_with_an_evaluation_behind_each_epoch(void **state)
{
    (void)state;
    check_each_preemption("behind");
}

static void preempted_with_an_evaluation_by_turns(void **state)
{
    (void)state;
    check_each_preemption("by turns");
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        return program(argv[1]);
    }
    self = argv[0];
    const char *folder = test_temp_dir();
    write_lines(folder);
    setenv("LINES_IN", folder, 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_evaluation_behind_each_epoch),
        cmocka_unit_test(an_evaluation_by_turns),
        cmocka_unit_test(preempted_with_an_evaluation_behind_each_epoch),
        cmocka_unit_test(preempted_with_an_evaluation_by_turns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
