/* SPDX-License-Identifier: Apache-2.0
 * A program under test: trains one number over any number of tasks, and goes wrong on demand.
 *
 *     trainer STEPS [SLOT STEP exit|crash|hang|leave|fail|stick]
 *     trainer STEPS bare    without a dataset, up to that position, and says the number at its end
 *
 * Task SLOT does the last before step STEP: exits with status 7 after a line on stderr, crashes,
 * stops taking part, or leaves with status 0 without cadre_finish; or its function fails in it, or
 * does not return in its second replica. */
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cadre/cadre.h"

struct fault {
    uint64_t step;
    const char *kind;
};

static bool fails;
static bool sticks;

static void hang(void)
{
    for (;;) {
        pause();
    }
}

__attribute__((noinline)) static void go_wrong(const char *kind)
{
    fails = strcmp(kind, "fail") == 0;
    sticks = strcmp(kind, "stick") == 0;
    if (fails || sticks) {
        return;
    }
    if (strcmp(kind, "exit") == 0) {
        fprintf(stderr, "reading shard 3\nthe shard is empty\n");
        exit(7);
    }
    if (strcmp(kind, "crash") == 0) {
        raise(SIGSEGV);
    }
    if (strcmp(kind, "hang") == 0) {
        hang();
    }
    exit(0);
}

static cadre_status add_one(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    cadre_tensor *one;
    if (fails) {
        return cadre_fail(CADRE_DATA_LOSS, "the shard is empty");
    }
    if (sticks && cadre_replica_local_id(replica) == 1) {
        hang();
    }
    CADRE_TRY(cadre_tensor_from_f32(1, &one));
    cadre_status status = cadre_all_reduce(replica, CADRE_SUM, &one, 1, NULL);
    if (status == CADRE_OK) {
        status = cadre_variable_assign(replica, user, CADRE_ASSIGN_ADD, one);
    }
    outputs[0] = one;
    return status;
}

static void train(cadre_strategy *strategy, int64_t steps, const struct fault *fault)
{
    cadre_variable *sum;
    cadre_distributed_dataset *data;
    cadre_per_replica *batch;
    cadre_per_replica *added;
    CADRE_CHECK(cadre_variable_create(strategy, "sum", CADRE_F32, 0, NULL, NULL, &sum));
    cadre_dataset *range = cadre_dataset_batch(cadre_dataset_range(0, steps * 8, 1), 8, false);
    CADRE_CHECK(cadre_distribute_dataset(
        strategy, range, &(cadre_input_options){.auto_shard = CADRE_SHARD_DATA}, &data));
    while (cadre_next_epoch(data, 1, NULL)) {
        while (cadre_next(data, &batch) == CADRE_OK) {
            if (fault->kind != NULL && cadre_step(data) == fault->step) {
                go_wrong(fault->kind);
            }
            CADRE_CHECK(cadre_run(strategy, add_one, sum, batch, 1, &added));
        }
    }
    CADRE_CHECK(cadre_distributed_status(data));
}

static void train_bare(cadre_strategy *strategy, uint64_t steps)
{
    cadre_variable *sum;
    cadre_per_replica *added;
    CADRE_CHECK(cadre_variable_create(strategy, "sum", CADRE_F32, 0, NULL, NULL, &sum));
    uint64_t taken = 0;
    for (; cadre_strategy_position(strategy) < steps; taken++) {
        CADRE_CHECK(cadre_run(strategy, add_one, sum, NULL, 1, &added));
    }
    const float *value = cadre_variable_read(NULL, sum);
    printf("the sum is %g after %" PRIu64 " steps\n", value == NULL ? -1 : (double)*value, taken);
}

int main(int argc, char **argv)
{
    CADRE_CHECK(cadre_init(&argc, &argv));
    bool bare = argc == 3 && strcmp(argv[2], "bare") == 0;
    if (argc != 2 && argc != 5 && !bare) {
        fprintf(
            stderr, "usage: trainer STEPS [bare | SLOT STEP exit|crash|hang|leave|fail|stick]\n");
        return 2;
    }
    cadre_strategy *strategy;
    CADRE_CHECK(cadre_strategy_default(&strategy));
    struct fault fault = {0};
    const char *slot = getenv("CADRE_SLOT");
    if (argc == 5 && slot != NULL && strcmp(slot, argv[2]) == 0) {
        fault = (struct fault){.step = strtoull(argv[3], NULL, 10), .kind = argv[4]};
    }
    if (bare) {
        train_bare(strategy, strtoull(argv[1], NULL, 10));
    } else {
        train(strategy, strtoll(argv[1], NULL, 10), &fault);
    }
    printf("rank %" PRIu32 " of %" PRIu32 " did its steps\n", cadre_rank(), cadre_world_size());
    return cadre_finish(strategy);
}
