/* SPDX-License-Identifier: Apache-2.0
 * See schedule.h. */
#include "worker/library/optimizer/schedule.h"

#include <inttypes.h>
#include <math.h>

#include "worker/library/optimizer/powers.h"

static double optimizer_schedule_share(const struct schedule *schedule, uint64_t step)
{
    double steps = (double)schedule->decay_steps;
    return schedule->staircase ? (double)(step / schedule->decay_steps) : (double)step / steps;
}

static double optimizer_schedule_piece(const struct schedule *schedule, double rate, uint64_t step)
{
    for (uint32_t i = schedule->boundaries; i != 0; i--) {
        if (step > schedule->bounds[i - 1]) {
            return schedule->values[i - 1];
        }
    }
    return rate;
}

static double optimizer_schedule_polynomial(
    const struct schedule *schedule, double rate, uint64_t step)
{
    uint64_t steps = schedule->decay_steps;
    double whole = (double)steps;
    if (schedule->cycle && step > steps) {
        whole *= (double)((step - 1) / steps + 1);
    }
    double rest = !schedule->cycle && step >= steps ? 0 : 1 - (double)step / whole;
    return (rate - schedule->end_rate) * power_real(rest, schedule->power) + schedule->end_rate;
}

static double optimizer_schedule_cosine(const struct schedule *schedule, double rate, uint64_t step)
{
    double done = step >= schedule->decay_steps ? 1 : optimizer_schedule_share(schedule, step);
    double decayed = 0.5 * (1 + cosine_of_pi(done));
    return rate * ((1 - schedule->alpha) * decayed + schedule->alpha);
}

double schedule_rate(const struct schedule *schedule, double rate, uint64_t step)
{
    if (step < schedule->warmup_steps) {
        return (schedule->warmup_target - rate) * ((double)step / (double)schedule->warmup_steps) +
               rate;
    }
    step -= schedule->warmup_steps;
    rate = schedule->warmup_steps != 0 ? schedule->warmup_target : rate;
    switch (schedule->kind) {
    case SCHEDULE_EXPONENTIAL:
        return rate * power_real(schedule->decay_rate, optimizer_schedule_share(schedule, step));
    case SCHEDULE_PIECEWISE:
        return optimizer_schedule_piece(schedule, rate, step);
    case SCHEDULE_POLYNOMIAL:
        return optimizer_schedule_polynomial(schedule, rate, step);
    case SCHEDULE_INVERSE_TIME:
        return rate / (1 + schedule->decay_rate * optimizer_schedule_share(schedule, step));
    case SCHEDULE_COSINE:
        return optimizer_schedule_cosine(schedule, rate, step);
    default:
        return rate;
    }
}

/* ---- checks ---- */

static cadre_status optimizer_schedule_refuse(
    const char *field, double value, const char *wanted, struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT, "the schedule's %s is %g; give one %s",
        field, value, wanted);
}

static bool is_at_least_0(double value)
{
    return value >= 0 && isfinite(value);
}

static cadre_status check_pieces(const struct schedule *schedule, struct cadre_error *error)
{
    if (schedule->boundaries == 0 || schedule->boundaries > SCHEDULE_BOUNDARIES) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the schedule has %" PRIu32 " boundaries; give 1 to %d", schedule->boundaries,
            SCHEDULE_BOUNDARIES);
    }
    for (uint32_t i = 0; i < schedule->boundaries; i++) {
        if (i != 0 && schedule->bounds[i] <= schedule->bounds[i - 1]) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "the schedule's boundary %" PRIu32 " is %" PRIu64 ", after %" PRIu64
                "; give them in ascending order",
                i, schedule->bounds[i], schedule->bounds[i - 1]);
        }
        if (!is_at_least_0(schedule->values[i])) {
            return optimizer_schedule_refuse("value", schedule->values[i], "of 0 or more", error);
        }
    }
    return CADRE_OK;
}

cadre_status schedule_check(const struct schedule *schedule, struct cadre_error *error)
{
    if ((unsigned)schedule->kind >= SCHEDULE_KINDS) {
        return cadre_error_set(
            error, CADRE_INVALID_ARGUMENT, "%u is no kind of schedule", (unsigned)schedule->kind);
    }
    if (schedule->kind == SCHEDULE_PIECEWISE) {
        CADRE_TRY(check_pieces(schedule, error));
    } else if (schedule->kind != SCHEDULE_CONSTANT && schedule->decay_steps == 0) {
        return optimizer_schedule_refuse("decay_steps", 0, "above 0", error);
    }
    if (!is_at_least_0(schedule->decay_rate)) {
        return optimizer_schedule_refuse("decay_rate", schedule->decay_rate, "of 0 or more", error);
    }
    if (!is_at_least_0(schedule->end_rate)) {
        return optimizer_schedule_refuse("end_rate", schedule->end_rate, "of 0 or more", error);
    }
    if (!is_at_least_0(schedule->power)) {
        return optimizer_schedule_refuse("power", schedule->power, "of 0 or more", error);
    }
    if (!(schedule->alpha >= 0 && schedule->alpha <= 1)) {
        return optimizer_schedule_refuse("alpha", schedule->alpha, "from 0 to 1", error);
    }
    if (!is_at_least_0(schedule->warmup_target)) {
        return optimizer_schedule_refuse(
            "warmup_target", schedule->warmup_target, "of 0 or more", error);
    }
    return CADRE_OK;
}
