/* SPDX-License-Identifier: Apache-2.0
 * How far an optimizer is, and its rate there. */
#include "common/pure/assert.h"
#include "worker/library/device/argument.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/optimizers/optimizer.h"
#include "worker/library/runtime/strategy/strategy.h"
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
        const struct optimized *of = optimizer_at(optimizer, i, attempt);
        const int64_t *updates =
            of == NULL || of->updates == NULL ? NULL : cadre_variable_read(NULL, of->updates);
        most = updates != NULL && *updates > most ? *updates : most;
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
        return schedule_rate(&optimizer->rule.schedule, optimizer->rule.rate,
            (uint64_t)cadre_optimizer_iterations(optimizer));
    }
    const double *rate = cadre_variable_read(NULL, optimizer->learning_rate);
    return rate == NULL ? 0 : *rate;
}
