/* SPDX-License-Identifier: Apache-2.0
 * The options of a program as a rule. */
#include <math.h>

#include "worker/library/runtime/optimizers/optimizer.h"

_Static_assert((int)CADRE_OPTIMIZER_SGD == (int)OPTIMIZER_SGD, "kinds are numbered alike");
_Static_assert((int)CADRE_OPTIMIZER_LAMB == (int)OPTIMIZER_LAMB, "kinds are numbered alike");
_Static_assert((int)CADRE_RATE_COSINE == (int)SCHEDULE_COSINE, "schedules are numbered alike");
_Static_assert(CADRE_RATE_PIECES_MAX == SCHEDULE_BOUNDARIES, "as many boundaries");

static double optimizer_options_given(double number, double otherwise)
{
    return number == 0 ? otherwise : number;
}

static cadre_status schedule_of(
    const cadre_rate_schedule *schedule, struct schedule *ret_schedule, struct cadre_error *error)
{
    if ((unsigned)schedule->kind >= SCHEDULE_KINDS) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%d is no schedule of a learning rate; use one of cadre_rate_kind",
            (int)schedule->kind);
    }
    if (schedule->pieces > CADRE_RATE_PIECES_MAX) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "a schedule of %u pieces was asked for; at most %d are possible", schedule->pieces,
            CADRE_RATE_PIECES_MAX);
    }
    *ret_schedule = (struct schedule){.kind = (enum schedule_kind)schedule->kind,
        .staircase = schedule->staircase,
        .cycle = schedule->cycle,
        .boundaries = schedule->pieces,
        .decay_steps = schedule->decay_steps,
        .decay_rate = schedule->decay_rate,
        .end_rate = schedule->end_rate,
        .power = optimizer_options_given(schedule->power, 1),
        .alpha = schedule->alpha,
        .warmup_steps = schedule->warmup_steps,
        .warmup_target = schedule->warmup_target};
    for (uint32_t i = 0; i < schedule->pieces; i++) {
        ret_schedule->bounds[i] = schedule->boundaries[i];
        ret_schedule->values[i] = schedule->rates[i];
    }
    return CADRE_OK;
}

cadre_status optimizer_rule_of(const cadre_optimizer_options *options,
    struct optimizer_rule *ret_rule, struct cadre_error *error)
{
    const bool momentum = options->kind == CADRE_OPTIMIZER_MOMENTUM;
    *ret_rule = (struct optimizer_rule){.kind = OPTIMIZER_NONE};
    if ((unsigned)options->kind >= OPTIMIZER_KINDS) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%d is no kind of optimizer; use one of cadre_optimizer_kind", (int)options->kind);
    }
    if (options->kind == CADRE_OPTIMIZER_NONE) {
        return CADRE_OK;
    }
    *ret_rule = (struct optimizer_rule){.kind = (enum optimizer_kind)options->kind,
        .nesterov = momentum && options->nesterov,
        .centered = options->kind == CADRE_OPTIMIZER_RMSPROP && options->centered,
        .rate = options->rate,
        .momentum = momentum ? optimizer_options_given(options->momentum, 0.9)
                    : options->kind == CADRE_OPTIMIZER_RMSPROP ? options->momentum
                                                               : 0,
        .rho = optimizer_options_given(options->rho, 0.9),
        .initial_accumulator = optimizer_options_given(options->initial_accumulator, 0.1),
        .beta1 = optimizer_options_given(options->beta1, 0.9),
        .beta2 = optimizer_options_given(options->beta2, 0.999),
        .epsilon = optimizer_options_given(
            options->epsilon, options->kind == CADRE_OPTIMIZER_LAMB ? 1e-6 : 1e-7),
        .weight_decay = optimizer_options_given(
            options->weight_decay, options->kind == CADRE_OPTIMIZER_ADAMW ? 0.004 : 0)};
    CADRE_TRY(schedule_of(&options->schedule, &ret_rule->schedule, error));
    return optimizer_check(ret_rule, error);
}
