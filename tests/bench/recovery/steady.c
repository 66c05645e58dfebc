/* SPDX-License-Identifier: Apache-2.0
 * A training that never ends and writes the time when it applied each step, so that the script that
 * kills its tasks can measure for how long the others waited.
 *
 *     bench_steady FOLDER STATE_BYTES STEP_US
 *
 * Each task appends (position, CLOCK_MONOTONIC in ns) as two 64-bit numbers to a file of its own in
 * FOLDER. The state is a variable of STATE_BYTES, which a replacement has to receive. A step
 * computes for STEP_US and reduces one number. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "cadre/cadre.h"

struct steady {
    cadre_variable *state;
    uint64_t step_ns;
};

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static cadre_status one_step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    struct steady *steady = user;
    for (uint64_t end = now_ns() + steady->step_ns; now_ns() < end;) {
    }
    cadre_tensor *one;
    CADRE_TRY(cadre_tensor_from_f32(1, &one));
    cadre_status status = cadre_all_reduce(replica, CADRE_SUM, &one, 1, NULL);
    cadre_tensor_release(one);
    return status;
}

int main(int argc, char **argv)
{
    CADRE_CHECK(cadre_init(&argc, &argv));
    if (argc != 4) {
        fprintf(stderr, "usage: bench_steady FOLDER STATE_BYTES STEP_US\n");
        return 2;
    }
    struct steady steady = {.step_ns = strtoull(argv[3], NULL, 10) * 1000};
    char path[4096];
    snprintf(path, sizeof path, "%s/steps-%s-%s", argv[1], getenv("CADRE_SLOT"),
        getenv("CADRE_INCARNATION"));
    int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    cadre_strategy *strategy;
    CADRE_CHECK(cadre_strategy_default(&strategy));
    CADRE_CHECK(cadre_variable_create(strategy, "state", CADRE_U8, 1,
        &(int64_t){strtoll(argv[2], NULL, 10)}, NULL, &steady.state));
    cadre_dataset *data = cadre_dataset_batch(
        cadre_dataset_repeat(cadre_dataset_range(0, 1024, 1), CADRE_REPEAT_FOREVER), 8, false);
    cadre_distributed_dataset *input;
    cadre_per_replica *batch;
    CADRE_CHECK(cadre_distribute_dataset(
        strategy, data, &(cadre_input_options){.auto_shard = CADRE_SHARD_DATA}, &input));
    while (cadre_next_epoch(input, 1, NULL)) {
        while (cadre_next(input, &batch) == CADRE_OK) {
            CADRE_CHECK(cadre_run(strategy, one_step, &steady, batch, 0, NULL));
            uint64_t stamp[2] = {cadre_strategy_position(strategy), now_ns()};
            if (write(file, stamp, sizeof stamp) != sizeof stamp) {
                return 1;
            }
        }
    }
    CADRE_CHECK(cadre_distributed_status(input));
    return cadre_finish(strategy);
}
