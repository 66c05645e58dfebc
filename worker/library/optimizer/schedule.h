/* SPDX-License-Identifier: Apache-2.0
 * The rate of a step: tf.keras.optimizers.schedules. The step is the number of updates before. The
 * same bits on every machine. */
#ifndef CADRE_OPTIMIZER_SCHEDULE_H
#define CADRE_OPTIMIZER_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"

#define SCHEDULE_BOUNDARIES 16

enum schedule_kind {
    SCHEDULE_CONSTANT = 0,
    SCHEDULE_EXPONENTIAL,  /* rate * decay_rate^(step / decay_steps) */
    SCHEDULE_PIECEWISE,    /* rate up to step boundaries[0], values[0] up to boundaries[1], ... */
    SCHEDULE_POLYNOMIAL,   /* (rate - end_rate) * (1 - step / decay_steps)^power + end_rate */
    SCHEDULE_INVERSE_TIME, /* rate / (1 + decay_rate * step / decay_steps) */
    SCHEDULE_COSINE /* rate * ((1 - alpha) * (1 + cos(pi * step / decay_steps)) / 2 + alpha) */
};
#define SCHEDULE_KINDS (SCHEDULE_COSINE + 1)

struct schedule {
    enum schedule_kind kind;
    bool staircase;       /* EXPONENTIAL, INVERSE_TIME: step / decay_steps is rounded down */
    bool cycle;           /* POLYNOMIAL: behind decay_steps it begins again, for as many more
                           * steps */
    uint32_t boundaries;  /* PIECEWISE: how many */
    uint64_t decay_steps; /* all but CONSTANT and PIECEWISE */
    double decay_rate;    /* EXPONENTIAL, INVERSE_TIME */
    double end_rate;      /* POLYNOMIAL */
    double power;         /* POLYNOMIAL */
    double alpha;         /* COSINE */
    /* Of any kind: for so many steps the rate rises linearly from `rate` to `warmup_target`; then
     * the kind's formula begins with step 0, and with `warmup_target` as its rate. 0: none. */
    uint64_t warmup_steps;
    double warmup_target;
    uint64_t bounds[SCHEDULE_BOUNDARIES]; /* PIECEWISE: ascending */
    double values[SCHEDULE_BOUNDARIES];   /* behind the bound of the same index */
};

/* The rate after `step` updates; `rate` is the rule's. */
double schedule_rate(const struct schedule *schedule, double rate, uint64_t step);
/* INVALID_ARGUMENT names the field, the value and its range. */
cadre_status schedule_check(const struct schedule *schedule, struct cadre_error *error);

#endif
