/* SPDX-License-Identifier: Apache-2.0
 * A program under test: reports numbers at each step.
 *
 *     reporter steps N [pause MS] [chief] [odd] [saves N]
 *     reporter plain N [pause MS]
 *
 * "loss" is 1000 - step and "attempt" the incarnation of the task that reported it; `odd`: "odd" is
 * NaN or infinite at most steps, and names that no program should use are tried. `chief`: only rank
 * 0 reports. `saves`: each N steps the state is saved. `plain`: a plain program, which numbers its
 * steps by tens, and never the first hundred. */
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cadre/cadre.h"

struct options {
    uint64_t steps;
    uint64_t saves;
    int pause_ms;
    bool plain;
    bool chief;
    bool odd;
};

static bool read_options(int argc, char **argv, struct options *options)
{
    for (int i = 1; i < argc; i++) {
        uint64_t number = i + 1 < argc ? strtoull(argv[i + 1], NULL, 10) : 0;
        options->plain = options->plain || strcmp(argv[i], "plain") == 0;
        options->chief = options->chief || strcmp(argv[i], "chief") == 0;
        options->odd = options->odd || strcmp(argv[i], "odd") == 0;
        if (strcmp(argv[i], "steps") == 0 || strcmp(argv[i], "plain") == 0) {
            options->steps = number;
        } else if (strcmp(argv[i], "pause") == 0) {
            options->pause_ms = (int)number;
        } else if (strcmp(argv[i], "saves") == 0) {
            options->saves = number;
        }
    }
    return options->steps > 0;
}

static double own_attempt(void)
{
    const char *text = getenv("CADRE_INCARNATION");
    return text == NULL ? 0 : strtod(text, NULL);
}

static cadre_status add_one(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    cadre_tensor *one;
    CADRE_TRY(cadre_tensor_from_f32(1, &one));
    cadre_status status = cadre_all_reduce(replica, CADRE_SUM, &one, 1, NULL);
    if (status == CADRE_OK) {
        status = cadre_variable_assign(replica, user, CADRE_ASSIGN_ADD, one);
    }
    outputs[0] = one;
    return status;
}

static void refuse(cadre_status status, cadre_status wanted, const char *what)
{
    if (status != wanted) {
        fprintf(stderr, "%s is %s, not %s\n", what, cadre_status_name(status),
            cadre_status_name(wanted));
        exit(3);
    }
}

/* Names that are refused, and a million of others. */
static void try_names(cadre_strategy *strategy)
{
    char name[4097];
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    refuse(cadre_report(strategy, name, 1), CADRE_INVALID_ARGUMENT, "a name of 4 KiB");
    refuse(cadre_report(strategy, "a\nb", 1), CADRE_INVALID_ARGUMENT, "a control character");
    refuse(cadre_report(strategy, "\xff", 1), CADRE_INVALID_ARGUMENT, "no UTF-8");
    refuse(cadre_report(strategy, "<b>bold</b>", 1), CADRE_INVALID_ARGUMENT, "HTML");
    for (int i = 0; i < 1000000; i++) {
        snprintf(name, sizeof name, "name-%d", i);
        refuse(cadre_report(strategy, name, i), i < 13 ? CADRE_OK : CADRE_RESOURCE_EXHAUSTED, name);
    }
}

static double odd_value(uint64_t step)
{
    const double values[] = {NAN, INFINITY, -INFINITY, 1};
    return values[step % 4];
}

static int train(const struct options *options)
{
    cadre_strategy *strategy;
    cadre_variable *sum;
    cadre_per_replica *added;
    CADRE_CHECK(cadre_strategy_default(&strategy));
    CADRE_CHECK(cadre_variable_create(strategy, "sum", CADRE_F32, 0, NULL, NULL, &sum));
    while (cadre_strategy_position(strategy) < options->steps) {
        CADRE_CHECK(cadre_run(strategy, add_one, sum, NULL, 1, &added));
        uint64_t step = cadre_strategy_position(strategy);
        if (!options->chief || cadre_rank() == 0) {
            CADRE_CHECK(cadre_report(strategy, "loss", 1000 - (double)step));
            CADRE_CHECK(cadre_report(strategy, "attempt", own_attempt()));
        }
        if (options->odd) {
            CADRE_CHECK(cadre_report(strategy, "odd", odd_value(step)));
        }
        if (options->saves > 0 && step % options->saves == 0) {
            CADRE_CHECK(cadre_save(strategy, true));
        }
        (void)poll(NULL, 0, options->pause_ms);
    }
    if (options->odd) {
        try_names(strategy);
    }
    return cadre_finish(strategy);
}

static int train_plain(int argc, char **argv, const struct options *options)
{
    CADRE_CHECK(cadre_plain_init(&argc, &argv));
    for (uint64_t i = 0; i < options->steps; i++) {
        CADRE_CHECK(cadre_plain_progress(100 + 10 * i, 0));
        CADRE_CHECK(cadre_plain_report("loss", 1000 - (double)i));
        CADRE_CHECK(cadre_plain_report("attempt", own_attempt()));
        (void)poll(NULL, 0, options->pause_ms);
    }
    return cadre_plain_finish();
}

int main(int argc, char **argv)
{
    struct options options = {0};
    if (!read_options(argc, argv, &options)) {
        fprintf(stderr, "usage: reporter steps N [pause MS] [chief] [odd] [saves N] | plain N\n");
        return 2;
    }
    if (options.plain) {
        return train_plain(argc, argv, &options);
    }
    CADRE_CHECK(cadre_init(&argc, &argv));
    return train(&options);
}
