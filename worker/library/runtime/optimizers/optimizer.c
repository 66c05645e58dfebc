/* SPDX-License-Identifier: Apache-2.0
 * Optimizers: create, look up, release. The public functions but cadre_optimizer_apply. */
#include "worker/library/runtime/optimizers/optimizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/fault.h"
#include "common/pure/assert.h"
#include "worker/library/device/argument.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/optimizers/pending_update.h"
#include "worker/library/runtime/strategy/scope.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/variables/remote_variable.h"
#include "worker/library/runtime/variables/variable.h"

#define LEARNING_RATE "learning_rate"

/* --- create and release --- */

static cadre_status check_options(const cadre_optimizer_options *options, struct cadre_error *error)
{
    const double clips[] = {options->clip_norm, options->clip_value, options->clip_global_norm};
    uint32_t set = 0;
    if (options->kind == CADRE_OPTIMIZER_NONE) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "an optimizer of no kind was asked for; give one of cadre_optimizer_kind");
    }
    for (size_t i = 0; i < CADRE_COUNT_OF(clips); i++) {
        if (!(clips[i] >= 0)) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "the optimizer is to clip gradients to %g; give 0 for not at all, or more",
                clips[i]);
        }
        set += clips[i] > 0;
    }
    return set <= 1 ? CADRE_OK
                    : cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                          "the optimizer is to clip gradients in %u ways; give one of clip_norm, "
                          "clip_value and clip_global_norm",
                          set);
}

static cadre_status learning_rate_make(cadre_optimizer *optimizer, struct cadre_error *error)
{
    const struct schedule *schedule = &optimizer->rule.schedule;
    char name[LIMIT_NAME_BYTES + sizeof "/" LEARNING_RATE];
    /* On servers the rate is the rule's, because no task receives what another one assigns. */
    if (schedule->kind != SCHEDULE_CONSTANT || schedule->warmup_steps > 0 ||
        variable_scope_has_servers(optimizer->strategy)) {
        return CADRE_OK;
    }
    snprintf(name, sizeof name, "%s/" LEARNING_RATE, optimizer->name);
    const struct optimizer_variable what = {
        .name = name, .dtype = CADRE_F64, .initial = optimizer->rule.rate, .may_lack = true};
    return optimizer_variable_create(
        optimizer, &what, "cadre_optimizer_create", &optimizer->learning_rate, error);
}

static cadre_status fill_in(cadre_optimizer *optimizer, cadre_strategy *strategy,
    const cadre_optimizer_options *options, struct cadre_error *error)
{
    CADRE_TRY(optimizer_rule_of(options, &optimizer->rule, error));
    optimizer->clip_norm = options->clip_norm;
    optimizer->clip_value = options->clip_value;
    optimizer->clip_global_norm = options->clip_global_norm;
    snprintf(optimizer->name, sizeof optimizer->name, "%s",
        options->name == NULL ? "optimizer" : options->name);
    if (strategy != NULL) {
        optimizer->strategy = strategy;
        optimizer->strategy_number = strategy->number;
        optimizer->turns = fault_point("optimizer")
                               ? NULL
                               : calloc(strategy->local_replicas, sizeof optimizer->turns[0]);
        optimizer->pending_lists = strategy->local_replicas;
        if (optimizer->turns == NULL) {
            optimizer->pending_lists = 0;
            return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for an optimizer");
        }
    }
    return learning_rate_make(optimizer, error);
}

static cadre_status optimizer_create(cadre_strategy *strategy,
    const cadre_optimizer_options *options, cadre_optimizer **ret_optimizer,
    struct cadre_error *error)
{
    CADRE_TRY(argument_require(options, "cadre_optimizer_create", "options", error));
    CADRE_TRY(check_options(options, error));
    if (options->name != NULL) {
        CADRE_TRY(name_check("optimizer", options->name, error));
    }
    strategy = strategy != NULL ? strategy : scope_current();
    if (strategy_is_default(strategy)) {
        strategy = NULL;
    }
    if (strategy != NULL && !strategy_is_registered(strategy)) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "cadre_optimizer_create was given a strategy that does not live; make one first");
    }
    cadre_optimizer *optimizer = calloc(1, sizeof *optimizer);
    if (optimizer == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for an optimizer");
    }
    cadre_status status = optimizer_list_make(optimizer, error);
    if (status == CADRE_OK) {
        status = fill_in(optimizer, strategy, options, error);
    }
    if (status != CADRE_OK) {
        cadre_optimizer_release(optimizer);
        return status;
    }
    *ret_optimizer = optimizer;
    return CADRE_OK;
}

cadre_status cadre_optimizer_create(cadre_strategy *strategy,
    const cadre_optimizer_options *options, cadre_optimizer **ret_optimizer)
{
    struct cadre_error error = {0};
    cadre_status status = argument_require(ret_optimizer, __func__, "ret_optimizer", &error);
    if (status == CADRE_OK) {
        *ret_optimizer = NULL;
        status = optimizer_create(strategy, options, ret_optimizer, &error);
    }
    return api_return(status, &error);
}

void cadre_optimizer_release(cadre_optimizer *optimizer)
{
    if (optimizer == NULL) {
        return;
    }
    struct cadre_error ended;
    pending_updates_free(optimizer);
    if (optimizer->strategy == NULL) { /* else the strategy owns them */
        cadre_variable_release(optimizer->learning_rate);
    }
    optimizer_list_free(optimizer, optimizer_require(optimizer, __func__, &ended) == CADRE_OK);
    free(optimizer);
}

static cadre_status optimizer_build(cadre_optimizer *optimizer, cadre_variable *const variables[],
    size_t count, struct cadre_error *error)
{
    static const char function[] = "cadre_optimizer_build";
    CADRE_TRY(optimizer_require(optimizer, function, error));
    CADRE_TRY(context_require_cross(function, error));
    if (count > 0) {
        CADRE_TRY(argument_require(variables, function, "variables", error));
    }
    for (size_t i = 0; i < count; i++) {
        CADRE_TRY(optimizer_check_variable(optimizer, variables[i], i, function, error));
    }
    CADRE_TRY(optimizer_list_room(optimizer, count, error));
    for (size_t i = 0; i < count; i++) {
        if (optimizer_find(optimizer, variables[i], i, 0) == NULL) {
            CADRE_TRY(optimizer_slots_make(optimizer, variables[i], function, error));
        }
    }
    return CADRE_OK;
}

cadre_status cadre_optimizer_build(
    cadre_optimizer *optimizer, cadre_variable *const variables[], size_t count)
{
    struct cadre_error error = {0};
    return api_return(optimizer_build(optimizer, variables, count, &error), &error);
}

/* --- lookups --- */

static cadre_status find_slot(const cadre_optimizer *optimizer, const cadre_variable *variable,
    const char *name, cadre_variable **ret_slot, struct cadre_error *error)
{
    static const char function[] = "cadre_optimizer_slot";
    CADRE_TRY(optimizer_require(optimizer, function, error));
    CADRE_TRY(argument_require(name, function, "name", error));
    if (variable != NULL) {
        return optimizer_slot_find(optimizer, variable, name, ret_slot, error);
    }
    if (strcmp(name, LEARNING_RATE) != 0) {
        return cadre_error_set(error, CADRE_NOT_FOUND,
            "optimizer '%s' has no '%.48s' of its own; there is '" LEARNING_RATE "'",
            optimizer->name, name);
    }
    if (optimizer->learning_rate == NULL) {
        return cadre_error_set(error, CADRE_NOT_FOUND,
            "the rate of optimizer '%s' follows its schedule, or is its parameter servers', and no "
            "variable holds it; ask cadre_optimizer_learning_rate, and of servers change it by "
            "cadre_apply_options.push",
            optimizer->name);
    }
    *ret_slot = optimizer->learning_rate;
    return CADRE_OK;
}

cadre_status cadre_optimizer_slot(const cadre_optimizer *optimizer, const cadre_variable *variable,
    const char *name, cadre_variable **ret_slot)
{
    struct cadre_error error = {0};
    cadre_status status = argument_require(ret_slot, __func__, "ret_slot", &error);
    if (status == CADRE_OK) {
        *ret_slot = NULL;
        status = find_slot(optimizer, variable, name, ret_slot, &error);
    }
    return api_return(status, &error);
}
