/* SPDX-License-Identifier: Apache-2.0
 * See rule.h: the slots of a rule, and which numbers it may have. */
#include "worker/library/optimizer/rule.h"

#include <math.h>

#include "common/pure/assert.h"

uint32_t optimizer_slots(const struct optimizer_rule *rule)
{
    CADRE_ASSERT((unsigned)rule->kind < OPTIMIZER_KINDS);
    static const uint32_t slots[OPTIMIZER_KINDS] = {[OPTIMIZER_MOMENTUM] = 1,
        [OPTIMIZER_ADAGRAD] = 1,
        [OPTIMIZER_RMSPROP] = 1,
        [OPTIMIZER_ADAM] = 2,
        [OPTIMIZER_ADAMW] = 2,
        [OPTIMIZER_LAMB] = 2};
    bool more = rule->kind == OPTIMIZER_RMSPROP;
    return slots[rule->kind] + (more && rule->momentum != 0) + (more && rule->centered);
}

const char *optimizer_slot_name(const struct optimizer_rule *rule, uint32_t slot)
{
    CADRE_ASSERT(slot < optimizer_slots(rule));
    switch (rule->kind) {
    case OPTIMIZER_MOMENTUM:
        return "momentum";
    case OPTIMIZER_ADAGRAD:
        return "accumulator";
    case OPTIMIZER_RMSPROP:
        return slot == 0                          ? "velocity"
               : slot == 1 && rule->momentum != 0 ? "momentum"
                                                  : "average_gradient";
    default:
        return slot == 0 ? "m" : "v";
    }
}

double optimizer_slot_initial(const struct optimizer_rule *rule, uint32_t slot)
{
    CADRE_ASSERT(slot < optimizer_slots(rule));
    return rule->kind == OPTIMIZER_ADAGRAD ? rule->initial_accumulator : 0;
}

bool optimizer_counts(const struct optimizer_rule *rule)
{
    return rule->kind >= OPTIMIZER_ADAM || rule->schedule.kind != SCHEDULE_CONSTANT ||
           rule->schedule.warmup_steps != 0;
}

/* ---- checks ---- */

/* A number that is out of its range, or NaN. */
static cadre_status rule_refuse(
    const char *field, double value, const char *wanted, struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT, "the optimizer's %s is %g; give one %s",
        field, value, wanted);
}

static cadre_status at_least_0(const char *field, double value, struct cadre_error *error)
{
    return value >= 0 && isfinite(value) ? CADRE_OK
                                         : rule_refuse(field, value, "of 0 or more", error);
}

static cadre_status check_fraction(const char *field, double value, struct cadre_error *error)
{
    return value >= 0 && value < 1 ? CADRE_OK
                                   : rule_refuse(field, value, "from 0 to less than 1", error);
}

cadre_status optimizer_check(const struct optimizer_rule *rule, struct cadre_error *error)
{
    if ((unsigned)rule->kind >= OPTIMIZER_KINDS) {
        return cadre_error_set(
            error, CADRE_INVALID_ARGUMENT, "%u is no kind of optimizer", (unsigned)rule->kind);
    }
    if (rule->kind == OPTIMIZER_NONE) {
        return CADRE_OK;
    }
    if (!(rule->rate >= 0) || !isfinite(rule->rate) ||
        (rule->rate == 0 && rule->schedule.warmup_steps == 0)) {
        return rule_refuse("rate", rule->rate, "above 0", error);
    }
    if (!(rule->momentum >= 0 && rule->momentum <= 1)) {
        return rule_refuse("momentum", rule->momentum, "from 0 to 1", error);
    }
    if (!(rule->rho >= 0 && rule->rho <= 1)) {
        return rule_refuse("rho", rule->rho, "from 0 to 1", error);
    }
    CADRE_TRY(at_least_0("initial_accumulator", rule->initial_accumulator, error));
    CADRE_TRY(check_fraction("beta1", rule->beta1, error));
    CADRE_TRY(check_fraction("beta2", rule->beta2, error));
    CADRE_TRY(at_least_0("epsilon", rule->epsilon, error));
    CADRE_TRY(at_least_0("weight_decay", rule->weight_decay, error));
    return schedule_check(&rule->schedule, error);
}
