/* SPDX-License-Identifier: Apache-2.0
 * Each rule on variables that no cache holds, beside a loop that reads and writes as much. By
 * turns; the least time of each counts. Prints the share of the floor's bandwidth. `optimizers
 * [MiB]`: of an array; the default is 128, which is 256 MiB to 640 MiB for a rule. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/bench/optimizers/floor.h"
#include "worker/library/optimizer/apply.h"
#include "worker/library/optimizer/isa.h"

#define TURNS  15
#define ARRAYS (2 + OPTIMIZER_SLOTS)
#define PIECE  (64 << 10) /* elements at a time: as a variable is updated in a step */

static const struct {
    const char *name;
    struct optimizer_rule rule;
} rules[] = {{"sgd", {.kind = OPTIMIZER_SGD}}, {"momentum", {.kind = OPTIMIZER_MOMENTUM}},
    {"nesterov", {.kind = OPTIMIZER_MOMENTUM, .nesterov = true}},
    {"adagrad", {.kind = OPTIMIZER_ADAGRAD}}, {"rmsprop", {.kind = OPTIMIZER_RMSPROP}},
    {"rmsprop_all", {.kind = OPTIMIZER_RMSPROP, .centered = true, .momentum = 0.5}},
    {"adam", {.kind = OPTIMIZER_ADAM}}, {"adamw", {.kind = OPTIMIZER_ADAMW, .weight_decay = 0.01}},
    {"lamb", {.kind = OPTIMIZER_LAMB, .weight_decay = 0.01}}};

static float *arrays[ARRAYS]; /* value, slots; the gradient is the one behind those that are used */
static size_t count;
static volatile float sink;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void update(const struct optimizer_rule *rule)
{
    size_t slots = optimizer_slots(rule);
    struct optimizer_norms norms = {0};
    for (int pass = rule->kind == OPTIMIZER_LAMB ? 0 : 1; pass < 2; pass++) {
        double trust = optimizer_trust(&norms);
        for (size_t i = 0; i < count; i += PIECE) {
            size_t length = count - i < PIECE ? count - i : PIECE;
            void *at[OPTIMIZER_SLOTS] = {arrays[1] + i, arrays[2] + i, arrays[3] + i};
            if (pass == 0) {
                optimizer_norms_add(rule, CADRE_F32, 9, i, length, arrays[0] + i,
                    arrays[1 + slots] + i, at, &norms);
            } else {
                optimizer_apply(rule, CADRE_F32, 1e-6, 9, length, arrays[0] + i,
                    arrays[1 + slots] + i, at, trust);
            }
        }
    }
}

static void stream(const struct optimizer_rule *rule)
{
    size_t slots = optimizer_slots(rule);
    if (rule->kind == OPTIMIZER_LAMB) {
        sink = floor_read(arrays, 2 + slots, count);
    }
    floor_stream(arrays, 1 + slots, count);
}

static void measure(const char *name, struct optimizer_rule rule)
{
    double best[2] = {1e9, 1e9};
    rule.rho = 0.9;
    rule.beta1 = 0.9;
    rule.beta2 = 0.999;
    rule.epsilon = 1e-7;
    for (int turn = 0; turn < TURNS; turn++) {
        for (int which = 0; which < 2; which++) {
            for (size_t i = 0; i < ARRAYS; i++) { /* no number grows, or becomes slow to compute */
                for (size_t k = 0; turn == 0 && k < count; k++) {
                    arrays[i][k] = 0.5F;
                }
            }
            double before = now();
            if (which == 0) {
                update(&rule);
            } else {
                stream(&rule);
            }
            double took = now() - before;
            best[which] = took < best[which] ? took : best[which];
        }
    }
    size_t slots = optimizer_slots(&rule);
    size_t moved = (2 + slots + 1 + slots + (rule.kind == OPTIMIZER_LAMB ? 2 + slots : 0));
    printf("%s_share=%.3f\n%s_gb_per_s=%.2f\n", name, best[1] / best[0], name,
        (double)(moved * count * sizeof(float)) / best[0] / 1e9);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    size_t mib = argc > 1 ? strtoul(argv[1], NULL, 10) : 128;
    count = (mib << 20) / sizeof(float);
    for (size_t i = 0; i < ARRAYS; i++) {
        arrays[i] = aligned_alloc(4096, count * sizeof(float));
        if (arrays[i] == NULL) {
            fprintf(stderr, "no memory for %zu MiB\n", mib);
            return 1;
        }
        memset(arrays[i], 0, count * sizeof(float));
    }
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        measure(rules[i].name, rules[i].rule);
    }
    return 0;
}
