/* SPDX-License-Identifier: Apache-2.0
 * What the chief's program calls: schedule, join, done, fetch, per-worker datasets and resources.
 * Checks the calls; scheduler.c does the rest. */
#include <stdlib.h>

#include "cadre/cluster_coordinator.h"
#include "common/pure/assert.h"
#include "worker/library/device/argument.h"
#include "worker/library/device/device.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/closures/closure.h"
#include "worker/library/runtime/closures/per_worker.h"
#include "worker/library/runtime/closures/scheduler.h"
#include "worker/library/runtime/regroup/generation.h"
#include "worker/library/runtime/step/run.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/trace/trace.h"

/* --- who may call --- */

static cadre_status require_between_steps(const char *function, struct cadre_error *error)
{
    if (closure_current() != NULL) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s was called in a closure, on a worker; only the chief's program schedules and waits",
            function);
    }
    return CADRE_OK;
}

/* The scheduler of a strategy that has not ended; NULL: it is of another kind. */
static struct scheduler *scheduler_of(const cadre_strategy *strategy)
{
    struct ps_job_state *ps_job = ps_job_current();
    struct scheduler *scheduler = ps_job == NULL ? NULL : ps_job->scheduler;
    return scheduler != NULL && scheduler->strategy == strategy ? scheduler : NULL;
}

static cadre_status closures_schedule_enter(const cadre_strategy *strategy, const char *function,
    struct strategy_call *call, struct scheduler **ret_scheduler, struct cadre_error *error)
{
    CADRE_TRY(require_between_steps(function, error));
    CADRE_TRY(strategy_enter(strategy, function, call, error));
    *ret_scheduler = scheduler_of(strategy);
    if (*ret_scheduler == NULL) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s needs a strategy with parameter servers; make one with "
            "cadre_strategy_parameter_server",
            function);
    }
    return CADRE_OK;
}

/* The same for functions that depend on the chief's own state: the state of a resumed job is loaded
 * now, before the first closures depend on it. */
static cadre_status enter_state(cadre_strategy *strategy, const char *function,
    struct strategy_call *call, struct scheduler **ret_scheduler, struct cadre_error *error)
{
    bool passed;
    CADRE_TRY(closures_schedule_enter(strategy, function, call, ret_scheduler, error));
    return join_job(strategy, 0, NULL, NULL, &passed, error);
}

/* --- scheduling --- */

static cadre_status check_argument(struct scheduler *scheduler, const char *function, uint32_t i,
    const cadre_closure_argument *argument, size_t *bytes, struct cadre_error *error)
{
    if ((argument->tensor == NULL) == (argument->per_worker == NULL)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "argument %u of `%s` is %s; give one of the two", i, function,
            argument->tensor == NULL ? "neither a tensor nor of each worker's own"
                                     : "both a tensor and of each worker's own");
    }
    if (argument->per_worker != NULL &&
        !scheduler_has_per_worker(scheduler, argument->per_worker)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "argument %u of `%s` is a dataset or resource of another strategy; make one with this "
            "one",
            i, function);
    }
    CADRE_TRY(tensor_require_host(argument->tensor, function, error));
    const struct wire_item item = {.tensor = argument->tensor};
    size_t more = wire_item_bytes(&item);
    if (more > CLOSURE_BYTES_MAX - *bytes) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the arguments of `%s` up to number %u have more than 1 GiB together; keep what is "
            "large in parameters or datasets",
            function, i);
    }
    *bytes += more;
    return CADRE_OK;
}

static cadre_status check_arguments(struct scheduler *scheduler, const char *function,
    const cadre_closure_argument *arguments, uint32_t count, struct cadre_error *error)
{
    size_t bytes = LIMIT_NAME_BYTES;
    if (count > CADRE_CLOSURE_ARGUMENTS_MAX) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "a closure of `%s` was given %u arguments; at most %d are possible", function, count,
            CADRE_CLOSURE_ARGUMENTS_MAX);
    }
    if (count > 0) {
        CADRE_TRY(argument_require(arguments, "cadre_schedule", "arguments", error));
    }
    for (uint32_t i = 0; i < count; i++) {
        CADRE_TRY(check_argument(scheduler, function, i, &arguments[i], &bytes, error));
    }
    return CADRE_OK;
}

static cadre_status closures_schedule_schedule(cadre_strategy *strategy, const char *name,
    const cadre_closure_argument *arguments, uint32_t argument_count,
    cadre_remote_value **ret_value, struct cadre_error *error)
{
    STRATEGY_CALL call = {0};
    struct scheduler *scheduler = NULL;
    const struct registration *function = NULL;
    cadre_remote_value *value = NULL;
    CADRE_TRY(enter_state(strategy, "cadre_schedule", &call, &scheduler, error));
    CADRE_ASSERT(scheduler->strategy == strategy);
    CADRE_TRY(argument_require(name, "cadre_schedule", "function", error));
    CADRE_TRY(closure_registry_find(REGISTERED_FUNCTION, name, &function, error));
    CADRE_TRY(check_arguments(scheduler, name, arguments, argument_count, error));
    CADRE_TRY(remote_value_new(function, arguments, argument_count, &value, error));
    value->step = strategy_position(strategy);
    cadre_status status = scheduler_put(scheduler, value, error);
    if (status == CADRE_OK && ret_value != NULL) {
        *ret_value = value;
    } else {
        remote_value_release(value);
    }
    return status;
}

cadre_status cadre_schedule(cadre_strategy *strategy, const char *function,
    const cadre_closure_argument *arguments, uint32_t argument_count,
    cadre_remote_value **ret_value)
{
    struct cadre_error error = {0};
    if (ret_value != NULL) {
        *ret_value = NULL;
    }
    struct trace_mark mark = trace_begin();
    cadre_status status = closures_schedule_schedule(
        strategy, function, arguments, argument_count, ret_value, &error);
    trace_end(mark, TRACE_SCHEDULE, 0);
    return api_return(status, &error);
}

/* --- waiting --- */

static cadre_status no_work(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)replica;
    (void)inputs;
    (void)outputs;
    (void)user;
    return CADRE_OK;
}

/* The ledger's step of a join. */
static cadre_status take_step(
    cadre_strategy *strategy, struct scheduler *scheduler, struct cadre_error *error)
{
    scheduler->takes_step = true;
    cadre_status status = run_program_step(strategy, no_work, NULL, NULL, 0, NULL, error);
    scheduler->takes_step = false;
    CADRE_TRY(status);
    return ps_job_publish_step(strategy_position(strategy), error);
}

cadre_status cadre_join(cadre_strategy *strategy)
{
    STRATEGY_CALL call = {0};
    struct cadre_error error = {0};
    struct scheduler *scheduler = NULL;
    cadre_status status = enter_state(strategy, "cadre_join", &call, &scheduler, &error);
    if (status == CADRE_OK) {
        status = scheduler_join(scheduler, &error);
    }
    if (status == CADRE_OK && scheduler_take_steps(scheduler)) {
        status = take_step(strategy, scheduler, &error);
    }
    return api_return(status, &error);
}

cadre_status cadre_done(cadre_strategy *strategy, bool *ret_done)
{
    STRATEGY_CALL call = {0};
    struct cadre_error error = {0};
    struct scheduler *scheduler = NULL;
    cadre_status status = argument_require(ret_done, "cadre_done", "ret_done", &error);
    if (status == CADRE_OK) {
        *ret_done = false;
        status = enter_state(strategy, "cadre_done", &call, &scheduler, &error);
    }
    if (status == CADRE_OK) {
        status = scheduler_done(scheduler, ret_done, &error);
    }
    return api_return(status, &error);
}

uint32_t cadre_workers_connected(const cadre_strategy *strategy)
{
    struct scheduler *scheduler = strategy_is_registered(strategy) ? scheduler_of(strategy) : NULL;
    return scheduler == NULL ? 0 : scheduler_connected(scheduler);
}

/* --- what they returned --- */

static cadre_status await_ready(cadre_remote_value *value, struct cadre_error *error)
{
    while (!cadre_remote_value_ready(value) && !remote_value_wait(value)) {
        /* An ended scheduler makes it ready, so this one has not ended. */
        const struct ps_job_state *ps_job = ps_job_current();
        if (ps_job != NULL && ps_job->scheduler == value->scheduler) {
            CADRE_TRY(directory_ended(ps_job->directory, error));
        }
    }
    return CADRE_OK;
}

static cadre_status await_value(cadre_remote_value *value, struct cadre_error *error)
{
    if (!cadre_remote_value_ready(value)) {
        struct trace_mark mark = trace_begin();
        cadre_status status = await_ready(value, error);
        trace_end(mark, TRACE_WAIT, 0);
        CADRE_TRY(status);
    }
    return value->code == CADRE_OK ? CADRE_OK : remote_value_error(value, error);
}

static cadre_status closures_schedule_fetch(cadre_remote_value *value, cadre_tensor *ret_outputs[],
    uint32_t capacity, uint32_t *ret_count, struct cadre_error *error)
{
    CADRE_TRY(argument_require(value, "cadre_fetch", "value", error));
    CADRE_TRY(require_between_steps("cadre_fetch", error));
    CADRE_TRY(context_require_cross("cadre_fetch", error));
    if (capacity > 0) {
        CADRE_TRY(argument_require(ret_outputs, "cadre_fetch", "ret_outputs", error));
    }
    CADRE_TRY(await_value(value, error));
    CADRE_ASSERT(cadre_remote_value_ready(value));
    if (capacity > 0 && value->output_count > capacity) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "closure %llu (`%s`) returned %u outputs, and cadre_fetch was given room for %u",
            (unsigned long long)value->number, value->function->name, value->output_count,
            capacity);
    }
    for (uint32_t i = 0; i < value->output_count && i < capacity; i++) {
        ret_outputs[i] = cadre_tensor_retain(value->outputs[i]);
    }
    if (ret_count != NULL) {
        *ret_count = value->output_count;
    }
    return CADRE_OK;
}

cadre_status cadre_fetch(
    cadre_remote_value *value, cadre_tensor *ret_outputs[], uint32_t capacity, uint32_t *ret_count)
{
    struct cadre_error error = {0};
    if (ret_count != NULL) {
        *ret_count = 0;
    }
    return api_return(
        closures_schedule_fetch(value, ret_outputs, capacity, ret_count, &error), &error);
}

bool cadre_remote_value_ready(const cadre_remote_value *value)
{
    return value != NULL && atomic_load(&value->ready);
}

void cadre_remote_value_release(cadre_remote_value *value)
{
    remote_value_release(value);
}

/* --- per-worker datasets and resources --- */

static cadre_status closures_schedule_create(cadre_strategy *strategy, const char *function,
    enum registration_kind kind, const char *name, cadre_per_worker **ret_per_worker)
{
    STRATEGY_CALL call = {0};
    struct cadre_error error = {0};
    struct scheduler *scheduler = NULL;
    const struct registration *made_of = NULL;
    cadre_per_worker *per_worker = NULL;
    cadre_status status = argument_require(ret_per_worker, function, "ret_per_worker", &error);
    if (status == CADRE_OK) {
        *ret_per_worker = NULL;
        status = closures_schedule_enter(strategy, function, &call, &scheduler, &error);
    }
    if (status == CADRE_OK) {
        status = argument_require(name, function, "name", &error);
    }
    if (status == CADRE_OK) {
        status = closure_registry_find(kind, name, &made_of, &error);
    }
    if (status == CADRE_OK) {
        per_worker = calloc(1, sizeof *per_worker);
        status = per_worker == NULL ? cadre_error_set(&error, CADRE_RESOURCE_EXHAUSTED,
                                          "%s: no memory for `%s`", function, name)
                                    : CADRE_OK;
    }
    if (status == CADRE_OK) {
        per_worker->made_of = made_of;
        status = scheduler_add_per_worker(scheduler, per_worker, &error);
    }
    if (status == CADRE_OK) {
        *ret_per_worker = per_worker;
    } else {
        free(per_worker);
    }
    return api_return(status, &error);
}

cadre_status cadre_create_per_worker_dataset(
    cadre_strategy *strategy, const char *name, cadre_per_worker **ret_per_worker)
{
    return closures_schedule_create(
        strategy, "cadre_create_per_worker_dataset", REGISTERED_DATASET, name, ret_per_worker);
}

cadre_status cadre_create_per_worker_resource(
    cadre_strategy *strategy, const char *name, cadre_per_worker **ret_per_worker)
{
    return closures_schedule_create(
        strategy, "cadre_create_per_worker_resource", REGISTERED_RESOURCE, name, ret_per_worker);
}
