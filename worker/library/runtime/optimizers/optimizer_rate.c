/* SPDX-License-Identifier: Apache-2.0
 * An optimizer's count of updates, and its rate. */
#include <math.h>

#include "common/pure/assert.h"
#include "worker/library/device/argument.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/optimizers/optimizer.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/variables/remote_variable.h"
#include "worker/library/runtime/variables/variable.h"

cadre_status optimizer_require(
    const cadre_optimizer *optimizer, const char *function, struct cadre_error *error)
{
    CADRE_TRY(argument_require(optimizer, function, "optimizer", error));
    if (optimizer->strategy != NULL &&
        !(strategy_is_registered(optimizer->strategy) &&
            optimizer->strategy->number == optimizer->strategy_number)) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s: the strategy of optimizer '%s' has ended, and its variables with it; create "
            "another optimizer",
            function, optimizer->name);
    }
    return CADRE_OK;
}

double optimizer_rate(const cadre_optimizer *optimizer, uint32_t local, uint64_t updates)
{
    if (optimizer->learning_rate == NULL) {
        return schedule_rate(&optimizer->rule.schedule, optimizer->rule.rate, updates);
    }
    const struct variable_component *component =
        variable_component(optimizer->learning_rate, local);
    CADRE_ASSERT(component->device == NULL);
    return *(const double *)component->value;
}

static cadre_status updates_of(
    const struct optimized *of, int64_t *ret_updates, struct cadre_error *error)
{
    if (of->variable->served != NULL) {
        return remote_variable_ops()->updates(of->variable, ret_updates, error);
    }
    const int64_t *updates = of->updates == NULL ? NULL : cadre_variable_read(NULL, of->updates);
    *ret_updates = updates == NULL ? 0 : *updates;
    return CADRE_OK;
}

int64_t cadre_optimizer_iterations(const cadre_optimizer *optimizer)
{
    struct cadre_error error = {0};
    int64_t most = 0;
    if (optimizer == NULL ||
        api_return(optimizer_require(optimizer, __func__, &error), &error) != CADRE_OK) {
        return 0;
    }
    const uint64_t attempt = optimizer_attempt(optimizer);
    for (size_t i = 0; i < optimizer_count(optimizer); i++) {
        int64_t updates = 0;
        const struct optimized *of = optimizer_at(optimizer, i, attempt);
        if (of != NULL && api_return(updates_of(of, &updates, &error), &error) != CADRE_OK) {
            return -1;
        }
        most = updates > most ? updates : most;
    }
    return most;
}

double cadre_optimizer_learning_rate(const cadre_optimizer *optimizer)
{
    struct cadre_error error = {0};
    if (optimizer == NULL ||
        api_return(optimizer_require(optimizer, __func__, &error), &error) != CADRE_OK) {
        return 0;
    }
    if (optimizer->learning_rate == NULL) {
        const struct schedule *schedule = &optimizer->rule.schedule;
        bool changes = schedule->kind != SCHEDULE_CONSTANT || schedule->warmup_steps > 0;
        int64_t updates = changes ? cadre_optimizer_iterations(optimizer) : 0;
        return updates < 0 ? (double)NAN
                           : schedule_rate(schedule, optimizer->rule.rate, (uint64_t)updates);
    }
    const double *rate = cadre_variable_read(NULL, optimizer->learning_rate);
    return rate == NULL ? 0 : *rate;
}
