/* SPDX-License-Identifier: Apache-2.0
 * A program under test: takes steps whose parts last as long as the arguments say.
 *
 *     traced steps N [input TASK MS] [function TASK MS] [between TASK MS] [ahead TASK SECONDS]
 *            [saves N] [plain | ps]
 *
 * `ahead`: the clock of that task is so far ahead, as on a host that was started earlier. `plain`:
 * a plain program, which numbers its steps; there `input` is between two numbers. `ps`: a program
 * with parameter servers (traced_ps.c). */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/integration/traced.h"

#define ROWS 2 /* of a batch: one for each of two replicas */

/* Of `name TASK VALUE`, if it is for this task. */
static bool is_own(int argc, char **argv, int at, const char *name, uint32_t task)
{
    return at + 2 < argc && strcmp(argv[at], name) == 0 && strtoul(argv[at + 1], NULL, 10) == task;
}

static void set_clock_ahead(const char *seconds)
{
    char text[32];
    snprintf(text, sizeof text, "%s000000000", seconds);
    setenv("CADRE_TEST_CLOCK_AHEAD_NS", text, 1);
}

static bool read_options(int argc, char **argv, struct traced *options)
{
    const char *own = getenv("CADRE_TASK"); /* JOB.SLOT.INCARNATION */
    const char *dot = own != NULL ? strchr(own, '.') : NULL;
    uint32_t task = dot != NULL ? (uint32_t)strtoul(dot + 1, NULL, 10) : 0;
    for (int i = 1; i < argc; i++) {
        uint64_t number = i + 1 < argc ? strtoull(argv[i + 1], NULL, 10) : 0;
        options->plain = options->plain || strcmp(argv[i], "plain") == 0;
        options->ps = options->ps || strcmp(argv[i], "ps") == 0;
        if (strcmp(argv[i], "steps") == 0) {
            options->steps = number;
        } else if (strcmp(argv[i], "saves") == 0) {
            options->saves = number;
        } else if (is_own(argc, argv, i, "input", task)) {
            options->input_ms = (int)strtol(argv[i + 2], NULL, 10);
        } else if (is_own(argc, argv, i, "function", task)) {
            options->function_ms = (int)strtol(argv[i + 2], NULL, 10);
        } else if (is_own(argc, argv, i, "between", task)) {
            options->between_ms = (int)strtol(argv[i + 2], NULL, 10);
        } else if (is_own(argc, argv, i, "ahead", task)) {
            set_clock_ahead(argv[i + 2]);
        }
    }
    return options->steps > 0;
}

static cadre_status read_slowly(const cadre_element *in, cadre_element *ret_out, void *user)
{
    const struct traced *options = user;
    (void)poll(NULL, 0, options->input_ms);
    ret_out->count = 1;
    return cadre_tensor_from_i64(
        *(const int64_t *)cadre_tensor_const_data(in->tensors[0]), &ret_out->tensors[0]);
}

static cadre_status add_up(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    const struct traced *options = user;
    cadre_tensor *one;
    (void)inputs;
    (void)poll(NULL, 0, options->function_ms);
    CADRE_TRY(cadre_tensor_from_f32(1, &one));
    cadre_status status = cadre_all_reduce(replica, CADRE_SUM, &one, 1, NULL);
    if (status == CADRE_OK) {
        status = cadre_variable_assign(replica, options->sum, CADRE_ASSIGN_ADD, one);
    }
    outputs[0] = one;
    return status;
}

static int train(struct traced *options)
{
    cadre_strategy *strategy;
    cadre_distributed_dataset *data;
    cadre_per_replica *batch;
    cadre_per_replica *added;
    CADRE_CHECK(cadre_strategy_default(&strategy));
    CADRE_CHECK(cadre_variable_create(strategy, "sum", CADRE_F32, 0, NULL, NULL, &options->sum));
    cadre_dataset *read = cadre_dataset_map(
        cadre_dataset_range(0, (int64_t)options->steps * ROWS, 1), read_slowly, options, NULL);
    CADRE_CHECK(
        cadre_distribute_dataset(strategy, cadre_dataset_batch(read, ROWS, true), NULL, &data));
    while (cadre_next_epoch(data, 1, NULL)) {
        while (cadre_next(data, &batch) == CADRE_OK) {
            CADRE_CHECK(cadre_run(strategy, add_up, options, batch, 1, &added));
            if (options->saves > 0 && cadre_strategy_position(strategy) % options->saves == 0) {
                CADRE_CHECK(cadre_save(strategy, true));
            }
            (void)poll(NULL, 0, options->between_ms);
        }
        CADRE_CHECK(cadre_distributed_status(data));
    }
    return cadre_finish(strategy);
}

static int train_plain(int argc, char **argv, const struct traced *options)
{
    float sum = 0;
    CADRE_CHECK(cadre_plain_init(&argc, &argv));
    for (uint64_t step = 0; step < options->steps; step++) {
        CADRE_CHECK(cadre_plain_progress(step, options->steps));
        (void)poll(NULL, 0, options->input_ms + options->function_ms);
        CADRE_CHECK(cadre_plain_all_reduce(NULL, &sum, 1, CADRE_F32, CADRE_SUM));
    }
    return cadre_plain_finish();
}

int main(int argc, char **argv)
{
    static struct traced options;
    if (!read_options(argc, argv, &options)) {
        fprintf(stderr, "usage: traced steps N [input TASK MS] [function TASK MS] ...\n");
        return 2;
    }
    if (options.plain) {
        return train_plain(argc, argv, &options);
    }
    CADRE_CHECK(cadre_init(&argc, &argv));
    if (options.ps) {
        return train_on_servers(&options);
    }
    return train(&options);
}
