/* SPDX-License-Identifier: Apache-2.0
 * A program under test: reports values of each step that follow from its number, and goes on from
 * checkpoints.
 *
 *     summarizer STEPS GATE           a step waits until the file GATE has at least its number
 *     summarizer STEPS GATE plain     a plain program, which saves its state each 20 steps */
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cadre/cadre.h"

static cadre_status add_one(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    cadre_tensor *one;
    CADRE_TRY(cadre_tensor_from_f32(1, &one));
    cadre_status status = cadre_all_reduce(replica, CADRE_MEAN, &one, 1, NULL);
    if (status == CADRE_OK) {
        status = cadre_variable_assign(replica, user, CADRE_ASSIGN_ADD, one);
    }
    outputs[0] = one;
    return status;
}

static uint64_t allowed_steps(const char *gate)
{
    uint64_t allowed = 0;
    FILE *file = fopen(gate, "r");
    if (file != NULL) {
        if (fscanf(file, "%" SCNu64, &allowed) != 1) {
            allowed = 0;
        }
        fclose(file);
    }
    return allowed;
}

static void await_gate(const char *gate, uint64_t step)
{
    while (allowed_steps(gate) < step) {
        poll(NULL, 0, 2);
    }
}

/* What is not a number comes, too. */
static double odd_value(uint64_t step)
{
    const double odd[] = {0, NAN, INFINITY, -INFINITY, 1e300, -0.0};
    return odd[step % (sizeof odd / sizeof odd[0])];
}

static void report(cadre_strategy *strategy)
{
    uint64_t step = cadre_strategy_position(strategy);
    CADRE_CHECK(cadre_report(strategy, "loss", 1.0 / (double)step));
    CADRE_CHECK(cadre_report(strategy, "odd", odd_value(step)));
    if (step % 10 != 0) {
        return;
    }
    char text[64];
    const float values[] = {0, (float)step, NAN, 2 * (float)step};
    cadre_tensor *tensor;
    CADRE_CHECK(cadre_tensor_from_data(CADRE_F32, 1, (int64_t[]){4}, values, &tensor));
    CADRE_CHECK(cadre_summary_histogram(strategy, "weights/w", tensor, 4));
    cadre_tensor_release(tensor);
    snprintf(text, sizeof text, "**step** %" PRIu64 " \xe2\x9c\x93", step);
    CADRE_CHECK(cadre_summary_text(strategy, "note", text));
}

static uint64_t loaded_step(void)
{
    void *state;
    size_t size;
    uint64_t step = 0;
    cadre_status status = cadre_plain_load("step", 0, &state, &size);
    if (status == CADRE_NOT_FOUND) {
        return 0;
    }
    CADRE_CHECK(status);
    memcpy(&step, state, sizeof step);
    free(state);
    return step;
}

static int run_plain(uint64_t steps, const char *gate)
{
    CADRE_CHECK(cadre_plain_init(NULL, NULL));
    for (uint64_t step = loaded_step() + 1; step <= steps; step++) {
        await_gate(gate, step);
        CADRE_CHECK(cadre_plain_barrier());
        CADRE_CHECK(cadre_plain_progress(step, steps));
        CADRE_CHECK(cadre_plain_report("loss", 1.0 / (double)step));
        if (step % 20 == 0) {
            bool chief = cadre_rank() == 0;
            CADRE_CHECK(cadre_plain_save("step", chief ? &step : NULL, chief ? sizeof step : 0));
        }
    }
    return cadre_plain_finish();
}

int main(int argc, char **argv)
{
    CADRE_CHECK(cadre_init(&argc, &argv));
    bool plain = argc == 4 && strcmp(argv[3], "plain") == 0;
    if (argc != 3 && !plain) {
        fprintf(stderr, "usage: summarizer STEPS GATE [plain]\n");
        return 2;
    }
    uint64_t steps = strtoull(argv[1], NULL, 10);
    if (plain) {
        return run_plain(steps, argv[2]);
    }
    cadre_strategy *strategy;
    cadre_variable *sum;
    cadre_per_replica *added;
    CADRE_CHECK(cadre_strategy_default(&strategy));
    CADRE_CHECK(cadre_variable_create(strategy, "sum", CADRE_F32, 0, NULL, NULL, &sum));
    while (cadre_strategy_position(strategy) < steps) {
        await_gate(argv[2], cadre_strategy_position(strategy) + 1);
        CADRE_CHECK(cadre_run(strategy, add_one, sum, NULL, 1, &added));
        report(strategy);
    }
    return cadre_finish(strategy);
}
