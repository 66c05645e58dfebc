/* SPDX-License-Identifier: Apache-2.0
 * A program under test: reports values of each step that follow from its number, and goes on from
 * checkpoints.
 *
 *     reporter STEPS GATE     a step waits until the file GATE has at least its number */
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

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

int main(int argc, char **argv)
{
    CADRE_CHECK(cadre_init(&argc, &argv));
    if (argc != 3) {
        fprintf(stderr, "usage: reporter STEPS GATE\n");
        return 2;
    }
    uint64_t steps = strtoull(argv[1], NULL, 10);
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
