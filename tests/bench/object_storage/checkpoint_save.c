/* SPDX-License-Identifier: Apache-2.0
 * A training by hand that saves a state of so many bytes again and again while it goes on:
 *     checkpoint_save BYTES COUNT STEP_MS
 * to where CADRE_CHECKPOINT_DIR says. A step waits, as for a device, and leaves the CPUs to others.
 * The first save, which makes the memory for the copy, does not count. Prints medians: for how long
 * cadre_save held the training up, after how long the checkpoint was published, and how long the
 * steps took, before and meanwhile. */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cadre/cadre.h"

#define COUNT_MAX 64

struct training {
    cadre_strategy *strategy;
    cadre_variable *state;
    cadre_distributed_dataset *input;
    int step_ms;
    uint64_t steps;
    double steps_s; /* of all since it was set to 0 */
};

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static cadre_status one_step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)replica;
    (void)inputs;
    (void)outputs;
    const struct training *training = user;
    (void)poll(NULL, 0, training->step_ms);
    return CADRE_OK;
}

static void take_step(struct training *training)
{
    cadre_per_replica *batch = NULL;
    double begun = now();
    CADRE_CHECK(cadre_next(training->input, &batch));
    CADRE_CHECK(cadre_run(training->strategy, one_step, training, batch, 0, NULL));
    training->steps_s += now() - begun;
    training->steps++;
}

static double mean_step(struct training *training, uint64_t steps)
{
    return steps > 0 ? training->steps_s / (double)steps : 0;
}

struct saved {
    double stall_s;
    double written_s;
    double step_s; /* meanwhile */
};

static struct saved save(struct training *training)
{
    struct saved saved = {0};
    uint64_t position = cadre_strategy_position(training->strategy);
    uint64_t before = training->steps;
    double begun = now();
    CADRE_CHECK(cadre_save(training->strategy, false));
    saved.stall_s = now() - begun;
    training->steps_s = 0;
    while (cadre_checkpoint_latest(training->strategy) == CADRE_POSITION_NONE ||
           cadre_checkpoint_latest(training->strategy) < position) {
        take_step(training);
    }
    saved.written_s = now() - begun;
    saved.step_s = mean_step(training, training->steps - before);
    return saved;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_median(const char *name, double values[], size_t value_count)
{
    qsort(values, value_count, sizeof values[0], compare);
    printf("%s=%.6f\n", name, values[value_count / 2]);
}

/* How long memory of that size takes to be copied, to pages that are there. */
static double copy_s(size_t bytes)
{
    char *from = malloc(bytes);
    char *to = malloc(bytes);
    double values[3];
    if (from == NULL || to == NULL) {
        fprintf(stderr, "no memory for a copy\n");
        exit(1);
    }
    memset(from, 1, bytes);
    memset(to, 1, bytes);
    for (size_t i = 0; i < 3; i++) {
        double begun = now();
        memcpy(to, from, bytes);
        values[i] = now() - begun;
        from[0] = to[bytes - 1];
    }
    qsort(values, 3, sizeof values[0], compare);
    free(from);
    free(to);
    return values[1];
}

static void measure(struct training *training, size_t value_count)
{
    double stall[COUNT_MAX], written[COUNT_MAX], step[COUNT_MAX], share[COUNT_MAX];
    (void)save(training);
    training->steps_s = 0;
    for (int i = 0; i < 20; i++) {
        take_step(training);
    }
    printf("step_before_s=%.6f\n", mean_step(training, 20));
    for (size_t i = 0; i < value_count; i++) {
        struct saved saved = save(training);
        stall[i] = saved.stall_s;
        written[i] = saved.written_s;
        step[i] = saved.step_s;
        share[i] = saved.stall_s / saved.written_s;
        take_step(training);
    }
    print_median("stall_s", stall, value_count);
    print_median("written_s", written, value_count);
    print_median("step_meanwhile_s", step, value_count);
    print_median("stall_share", share, value_count);
}

int main(int argc, char **argv)
{
    struct training training = {.steps = 0};
    CADRE_CHECK(cadre_init(&argc, &argv));
    size_t value_count = argc == 4 ? strtoul(argv[2], NULL, 10) : 0;
    if (value_count < 1 || value_count > COUNT_MAX) {
        fprintf(
            stderr, "usage: checkpoint_save BYTES COUNT STEP_MS; COUNT is 1 to %d\n", COUNT_MAX);
        return 2;
    }
    training.step_ms = (int)strtol(argv[3], NULL, 10);
    printf("copy_s=%.6f\n", copy_s(strtoull(argv[1], NULL, 10)));
    CADRE_CHECK(cadre_strategy_default(&training.strategy));
    CADRE_CHECK(cadre_variable_create(training.strategy, "state", CADRE_U8, 1,
        &(int64_t){strtoll(argv[1], NULL, 10)}, NULL, &training.state));
    cadre_dataset *data = cadre_dataset_batch(
        cadre_dataset_repeat(cadre_dataset_range(0, 1024, 1), CADRE_REPEAT_FOREVER), 8, false);
    CADRE_CHECK(cadre_distribute_dataset(training.strategy, data,
        &(cadre_input_options){.auto_shard = CADRE_SHARD_DATA}, &training.input));
    if (cadre_next_epoch(training.input, 1, NULL)) {
        take_step(&training);
        measure(&training, value_count);
    }
    fflush(stdout);
    _Exit(0); /* it has no end that is to be saved */
}
