/* SPDX-License-Identifier: Apache-2.0
 * Metrics: a rule, and a variable that is summed when it is read. Replica functions and the program
 * call it. */
#include "cadre/metric.h"

#include <stdio.h>
#include <stdlib.h>

#include "cadre/checkpoint.h"
#include "common/pure/assert.h"
#include "worker/library/device/argument.h"
#include "worker/library/device/device.h"
#include "worker/library/device/tensor.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/metrics/metric_terms.h"
#include "worker/library/runtime/replica/step_admission.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/variables/assign.h"
#include "worker/library/runtime/variables/variable_reset.h"

#define RESET_SUFFIX                                                                               \
    "/reset" /* after the variable's name: the state that has whether it awaits */

struct cadre_metric {
    struct metric_rule rule;  /* its name is the following one */
    cadre_variable *variable; /* the strategy's; this metric's own where there is none */
    bool own;
    char name[LIMIT_NAME_BYTES];
};

/* --- creation --- */

static cadre_status fill_in(cadre_metric_kind kind, const cadre_metric_options *options,
    struct metric_rule *ret_rule, struct cadre_error *error)
{
    static const cadre_metric_options defaults = {0};
    options = options == NULL ? &defaults : options;
    *ret_rule = (struct metric_rule){.kind = kind,
        .threshold = options->threshold == 0 ? 0.5 : options->threshold,
        .k = options->k == 0 ? 5 : options->k,
        .thresholds = options->thresholds == 0 ? 200 : options->thresholds};
    if (kind < CADRE_METRIC_SUM || kind > CADRE_METRIC_AUC) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%d is no kind of metric; use one of enum cadre_metric_kind", (int)kind);
    }
    if (ret_rule->thresholds < 2 || ret_rule->thresholds > METRIC_THRESHOLDS_MAX) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "a metric was given %u thresholds; give 2 to %d", ret_rule->thresholds,
            METRIC_THRESHOLDS_MAX);
    }
    return CADRE_OK;
}

/* A reset that awaits a step is the state of the program's loop, as a program's own is; the loop of
 * a worker's closures has none. */
static cadre_status open_resets(cadre_variable *variable, struct cadre_error *error)
{
    char name[LIMIT_NAME_BYTES + sizeof RESET_SUFFIX];
    snprintf(name, sizeof name, "%s" RESET_SUFFIX, variable->name);
    CADRE_TRY(variable_reset_open(variable, error));
    if (variable->strategy->worker != NULL) {
        return CADRE_OK;
    }
    cadre_status status =
        cadre_state_register(variable->strategy, name, &variable->reset->awaits, 1);
    return status == CADRE_OK ? status
                              : cadre_error_set(error, status, "%s", cadre_error_message());
}

static cadre_status create_variable(cadre_strategy *strategy, const char *name,
    const struct metric_rule *rule, cadre_variable **ret_variable, struct cadre_error *error)
{
    int64_t dims[2];
    uint32_t rank = metric_state_dims(rule, dims);
    CADRE_ASSERT(rank <= CADRE_COUNT_OF(dims));
    const cadre_variable_options options = {.synchronization = CADRE_SYNC_ON_READ,
        .aggregation = CADRE_AGGREGATION_SUM,
        .placement = CADRE_PLACEMENT_REPLICAS};
    cadre_status status =
        cadre_variable_create(strategy, name, CADRE_F64, rank, dims, &options, ret_variable);
    if (status != CADRE_OK) {
        return cadre_error_set(error, status, "%s", cadre_error_message());
    }
    bool steps = (*ret_variable)->strategy == NULL || (*ret_variable)->origin.late;
    return steps ? CADRE_OK : open_resets(*ret_variable, error); /* else a reset is a step */
}

cadre_status cadre_metric_create(cadre_strategy *strategy, cadre_metric_kind kind, const char *name,
    const cadre_metric_options *options, cadre_metric **ret_metric)
{
    struct cadre_error error = {0};
    struct metric_rule rule;
    cadre_status status = argument_require(ret_metric, __func__, "ret_metric", &error);
    if (status == CADRE_OK) {
        *ret_metric = NULL;
        status = fill_in(kind, options, &rule, &error);
    }
    if (status != CADRE_OK) {
        return api_return(status, &error);
    }
    cadre_metric *metric = calloc(1, sizeof *metric);
    if (metric == NULL) {
        return api_return(
            cadre_error_set(&error, CADRE_RESOURCE_EXHAUSTED, "no memory for a metric"), &error);
    }
    metric->rule = rule;
    status = create_variable(strategy, name, &rule, &metric->variable, &error);
    if (status != CADRE_OK) {
        free(metric);
        return api_return(status, &error);
    }
    snprintf(metric->name, sizeof metric->name, "%s", cadre_variable_name(metric->variable));
    metric->rule.name = metric->name;
    metric->own = cadre_variable_kind(metric->variable) == CADRE_VARIABLE_REGULAR;
    *ret_metric = metric;
    return CADRE_OK;
}

void cadre_metric_release(cadre_metric *metric)
{
    if (metric != NULL && metric->own) { /* else it may be freed, and the memory be another one's */
        cadre_variable_release(metric->variable);
    }
    free(metric);
}

/* --- counting --- */

static cadre_status check_context(
    const cadre_replica *replica, const cadre_metric *metric, struct cadre_error *error)
{
    static const char function[] = "cadre_metric_update";
    CADRE_TRY(argument_require(metric, function, "metric", error));
    if (replica != NULL) {
        CADRE_TRY(step_require_own_thread(replica, function, error));
        return variable_require_own(replica, metric->variable, function, error);
    }
    STRATEGY_CALL call = {0};
    CADRE_TRY(variable_enter(metric->variable, function, &call, error));
    return cadre_variable_kind(metric->variable) == CADRE_VARIABLE_REGULAR
               ? CADRE_OK
               : cadre_error_set(error, CADRE_FAILED_PRECONDITION,
                     "metric '%s' was updated outside of a replica function, where it is not known "
                     "which replica saw the values; update it in the function given to cadre_run",
                     metric->rule.name);
}

static cadre_status metric_update(cadre_replica *replica, const cadre_metric *metric,
    const struct metric_batch *batch, struct cadre_error *error)
{
    cadre_tensor *counted = NULL;
    int64_t dims[2];
    uint32_t rank = metric_state_dims(&metric->rule, dims);
    CADRE_TRY(tensor_create(CADRE_F64, rank, dims, &counted, error));
    cadre_status status = metric_count(&metric->rule, batch, cadre_tensor_data(counted), error);
    if (status == CADRE_OK) {
        const struct assignment added = {.function = "cadre_metric_update",
            .how = CADRE_ASSIGN_ADD,
            .variable = metric->variable,
            .value = counted};
        status = assign_make(replica, &added, error);
    }
    cadre_tensor_release(counted);
    return status;
}

cadre_status cadre_metric_update(cadre_replica *replica, cadre_metric *metric,
    const cadre_tensor *values, const cadre_tensor *targets, const cadre_tensor *weights)
{
    struct cadre_error error = {0};
    const struct metric_batch batch = {.values = values, .targets = targets, .weights = weights};
    cadre_status status = check_context(replica, metric, &error);
    if (status == CADRE_OK) {
        status = tensor_require(values, __func__, "values", &error);
    }
    if (status == CADRE_OK) {
        status = tensor_require_host(targets, __func__, &error);
    }
    if (status == CADRE_OK) {
        status = tensor_require_host(weights, __func__, &error);
    }
    if (status == CADRE_OK) {
        status = metric_check(&metric->rule, &batch, &error);
    }
    if (status == CADRE_OK) {
        status = metric_update(replica, metric, &batch, &error);
    }
    if (status != CADRE_OK) {
        step_record_refusal(replica, &error);
    }
    return api_return(status, &error);
}

/* --- the result --- */

cadre_status cadre_metric_result(
    const cadre_replica *replica, const cadre_metric *metric, double *ret_result)
{
    struct cadre_error error = {0};
    cadre_status status = argument_require(metric, __func__, "metric", &error);
    if (status == CADRE_OK) {
        status = argument_require(ret_result, __func__, "ret_result", &error);
    }
    if (status == CADRE_OK && !variable_is_registered(metric->variable)) {
        status = cadre_error_set(&error, CADRE_FAILED_PRECONDITION,
            "cadre_metric_result was called with a metric whose strategy has ended; call it "
            "before");
    }
    if (status == CADRE_OK) {
        const double *counted = cadre_variable_read(replica, metric->variable);
        if (counted == NULL) { /* the error is set */
            return CADRE_FAILED_PRECONDITION;
        }
        *ret_result = metric_result(&metric->rule, counted);
    }
    return api_return(status, &error);
}

/* At once before the first step, and in the function of a merge call, where it is a part of that
 * step. */
static cadre_status assign_zero(cadre_metric *metric, struct cadre_error *error)
{
    cadre_tensor *zero = NULL;
    CADRE_TRY(literal_tensor(metric->variable, 0, &zero, error));
    const struct assignment set_back = {.function = "cadre_metric_reset",
        .how = CADRE_ASSIGN,
        .variable = metric->variable,
        .value = zero};
    cadre_status status = assign_make(NULL, &set_back, error);
    cadre_tensor_release(zero);
    return status;
}

/* Whether the reset belongs to the next step. */
static bool awaits_step(const cadre_metric *metric)
{
    const cadre_strategy *strategy = metric->variable->strategy;
    return strategy != NULL && metric->variable->reset != NULL && context_strategy() == NULL &&
           (strategy_position(strategy) > 0 || strategy_is_catching_up(strategy));
}

cadre_status cadre_metric_reset(cadre_metric *metric)
{
    struct cadre_error error = {0};
    cadre_status status = argument_require(metric, __func__, "metric", &error);
    bool awaits = false;
    if (status == CADRE_OK) {
        STRATEGY_CALL call = {0};
        status = variable_enter(metric->variable, __func__, &call, &error);
        awaits = status == CADRE_OK && awaits_step(metric);
        if (awaits) {
            variable_reset(metric->variable);
        }
    }
    if (status == CADRE_OK && !awaits) {
        status = assign_zero(metric, &error);
    }
    return api_return(status, &error);
}
