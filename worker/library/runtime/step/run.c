/* SPDX-License-Identifier: Apache-2.0
 * cadre_run: one ledger step, from the admission to the commit. It goes over the strategy's parts
 * (strategy_hooks.h) and names none of them. */
#include "cadre/replica.h"

#include <stdlib.h>

#include "common/pure/assert.h"
#include "worker/library/device/argument.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/regroup/between_steps.h"
#include "worker/library/runtime/regroup/generation.h"
#include "worker/library/runtime/regroup/regroup.h"
#include "worker/library/runtime/replica/replica_pool.h"
#include "worker/library/runtime/replica/step_admission.h"
#include "worker/library/runtime/step/apply_function.h"
#include "worker/library/runtime/step/merge_call.h"
#include "worker/library/runtime/step/outputs.h"
#include "worker/library/runtime/step/run.h"
#include "worker/library/runtime/strategy/hooks.h"
#include "worker/library/runtime/task/task_trace.h"
#include "worker/library/runtime/values/values.h"
#include "worker/library/trace/trace.h"

enum step_end { STEP_DONE, STEP_FAILED, STEP_INTERRUPTED };

/* --- one attempt --- */

/* The program is the whole job: no task could be lost, or join. Then a replica that did not come to
 * a collective in time is the program's own failure. */
static bool is_alone(const cadre_strategy *strategy)
{
    return !strategy->environment->attached && strategy->roster.member_count == 1;
}

/* The first cause, not its consequences: an interruption only when nothing failed by itself. */
static enum step_end step_run_verdict(const cadre_strategy *strategy, struct cadre_error *error)
{
    enum step_end end = STEP_DONE;
    for (uint32_t i = 0; i < strategy->local_replicas; i++) {
        const cadre_replica *replica = &strategy->replicas[i];
        if (replica->status == CADRE_OK) {
            continue;
        }
        if (!run_lost_peers(replica)) {
            bool cause = end != STEP_FAILED || hooks_is_cause(strategy, replica);
            if (cause) {
                cadre_error_set(error, replica->status, "%s", replica->error.text);
            }
            end = STEP_FAILED;
            continue;
        }
        if (end == STEP_FAILED) {
            continue;
        }
        if (end == STEP_DONE || error->code == CADRE_ABORTED) {
            end = STEP_INTERRUPTED;
            *error = replica->collective_failed;
        }
    }
    if (end == STEP_DONE && outputs_agree(strategy, error) != CADRE_OK) {
        end = STEP_FAILED;
    }
    return end == STEP_INTERRUPTED && is_alone(strategy) ? STEP_FAILED : end;
}

/* The step is over for this task, whichever task applied it. */
static void leave_behind(cadre_strategy *strategy)
{
    strategy->step.collectives_begun = 0;
    between_steps_forget(strategy);
}

/* From the last confirmed collective to the ledger. */
static cadre_status step_run_commit(struct step_order *order, struct cadre_error *error)
{
    cadre_strategy *strategy = order->strategy;
    if (!atomic_load(&strategy->step.admitted)) { /* no replica made a collective */
        CADRE_TRY(step_admit(strategy, 0, error));
    }
    CADRE_TRY(task_apply(strategy->task, order->position, error));
    struct trace_mark mark = trace_begin();
    apply_run(strategy);
    hooks_commit(order);
    trace_end(mark, TRACE_APPLY, 0);
    outputs_record(order);
    leave_behind(strategy);
    strategy->undone.code = CADRE_OK;
    task_applied(strategy->task, order->position, &order->consumption);
    return CADRE_OK;
}

/* All replicas, once, in the current generation. */
static enum step_end step_run_attempt(struct run *run, struct cadre_error *error)
{
    struct step_order *order = &run->order;
    cadre_strategy *strategy = order->strategy;
    CADRE_ASSERT(!run->lost);
    step_begin(strategy, order->position,
        per_replica_global_rows(order->batch != NULL ? order->batch : order->input),
        order->input == NULL ? 0 : order->input->components,
        order->input == NULL ? NULL : order->input->names, &order->own);
    merge_begin(strategy);
    atomic_store_explicit(&run->aborted, false, memory_order_relaxed);
    replica_pool_run(strategy->pool, run_replica, run);
    step_end(strategy);
    enum step_end end = step_run_verdict(strategy, error);
    if (end == STEP_DONE && step_run_commit(order, error) != CADRE_OK) {
        end = STEP_INTERRUPTED;
    }
    if (end != STEP_DONE) {
        run->lost = !hooks_undo(strategy, atomic_load(&run->aborted), error);
    }
    return run->lost ? STEP_FAILED : end;
}

/* --- until the step is applied --- */

/* Others had applied it: its outputs came with the state. */
static cadre_status step_run_adopt(struct step_order *order, struct cadre_error *error)
{
    cadre_strategy *strategy = order->strategy;
    CADRE_ASSERT(strategy_position(strategy) > order->position);
    if (hooks_adopt(order, error) != CADRE_OK) {
        return strategy_fail(strategy, error);
    }
    leave_behind(strategy);
    return CADRE_OK;
}

/* Nothing of the step is left, so its generation may pause in order. */
static cadre_status regroup_before(
    cadre_strategy *strategy, struct cadre_error *cause, struct cadre_error *error)
{
    struct cadre_error other;
    if (hooks_before_pause(strategy, &other) != CADRE_OK) {
        *cause = other;
    }
    if (!strategy_is_peer_failure(cause->code)) {
        *error = *cause;
        return strategy_fail(strategy, error);
    }
    return strategy_regroup(strategy, cause, error);
}

/* Runs the step, or adopts it. */
static cadre_status run_step(struct run *run, struct cadre_error *error)
{
    struct step_order *order = &run->order;
    cadre_strategy *strategy = order->strategy;
    enum step_end end;
    order->position = strategy_position(strategy);
    do {
        struct cadre_error cause;
        cause.code = CADRE_OK;
        cause.text[0] = '\0';
        CADRE_TRY(hooks_halt(strategy, error));
        if (hooks_begin(order, &cause) != CADRE_OK) {
            *error = cause;
            return strategy_fail(strategy, error);
        }
        end = step_run_attempt(run, &cause);
        if (end == STEP_FAILED) {
            *error = cause;
            strategy->undone = cause;
            return run->lost ? strategy_set_failed(strategy, error)
                             : strategy_fail(strategy, error);
        }
        if (end == STEP_INTERRUPTED) {
            struct trace_mark mark = trace_begin();
            cadre_status status = regroup_before(strategy, &cause, error);
            trace_end(mark, TRACE_REGROUP, 0);
            CADRE_TRY(status);
        }
    } while (end == STEP_INTERRUPTED && strategy_position(strategy) == order->position);
    if (end != STEP_DONE) {
        CADRE_TRY(step_run_adopt(order, error));
    }
    hooks_report(order);
    return CADRE_OK;
}

/* --- the call --- */

/* Values that are no batch: one for each replica of this task. */
static cadre_status check_values(
    const cadre_strategy *strategy, const cadre_per_replica *values, struct cadre_error *error)
{
    if (values->replicas != strategy->local_replicas) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the step was given values of %u replicas, and this task has %u; make them with this "
            "strategy",
            values->replicas, strategy->local_replicas);
    }
    return CADRE_OK;
}

static cadre_status check_call(const struct run *run, struct cadre_error *error)
{
    const struct step_order *order = &run->order;
    if (run->function == NULL) {
        return argument_require(NULL, "cadre_run", "function", error);
    }
    if (order->n_outputs > CADRE_OUTPUTS_MAX ||
        (order->n_outputs > 0 && order->ret_outputs == NULL)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%u outputs were requested of the step%s; at most %d are possible, each with a place",
            order->n_outputs, order->ret_outputs == NULL ? " without an array for them" : "",
            CADRE_OUTPUTS_MAX);
    }
    if (order->input != NULL) {
        CADRE_TRY(per_replica_require(order->input, "cadre_run", "input", error));
    }
    if (order->input != NULL && order->batch == NULL) {
        CADRE_TRY(check_values(order->strategy, order->input, error));
    }
    return hooks_check(order, error);
}

/* The program's loop has come to a step: this task joins the others, and receives the state. */
static cadre_status come_to_step(struct step_order *order, struct cadre_error *error)
{
    cadre_strategy *strategy = order->strategy;
    bool passed = false;
    if (order->batch == NULL) {
        CADRE_TRY(join_job(strategy, 0, NULL, NULL, &passed, error));
    }
    strategy->catching_up = false;
    if (!strategy->changes) {
        hooks_loop_point(strategy, LOOP_IN_RUN, true);
    }
    order->consumes = order->batch != NULL && !order->batch->source.was_run;
    return CADRE_OK;
}

static cadre_status run_with_values(struct run *run, struct cadre_error *error)
{
    struct step_order *order = &run->order;
    cadre_per_replica *values[CADRE_OUTPUTS_MAX]; /* as many as there are outputs */
    CADRE_ASSERT(order->n_outputs <= CADRE_OUTPUTS_MAX);
    bool memory = true;
    order->values = values;
    per_replica_keep(order->input); /* it may be an output, which the next ones replace */
    for (uint32_t i = 0; i < order->n_outputs; i++) {
        values[i] = per_replica_new(order->strategy->local_replicas, 1);
        memory = memory && values[i] != NULL;
    }
    cadre_status status = memory ? run_step(run, error)
                                 : cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
                                       "no memory for the outputs of a step");
    for (uint32_t i = 0; i < order->n_outputs; i++) {
        cadre_per_replica_release(values[i]);
    }
    outputs_drop(order->strategy);
    per_replica_drop(order->input);
    hooks_loop_point(order->strategy, LOOP_BETWEEN_STEPS, false);
    return status;
}

cadre_status run_program_step(cadre_strategy *strategy, cadre_replica_function function, void *user,
    cadre_per_replica *input, uint32_t n_outputs, cadre_per_replica *ret_outputs[],
    struct cadre_error *error)
{
    struct run run = {.order = {.strategy = strategy,
                          .input = input,
                          .batch = per_replica_batch(input),
                          .n_outputs = n_outputs,
                          .ret_outputs = ret_outputs},
        .function = function,
        .user = user};
    CADRE_TRY(check_call(&run, error));
    CADRE_TRY(come_to_step(&run.order, error));
    struct trace_mark mark = trace_begin();
    cadre_status status = run_with_values(&run, error);
    trace_end(mark, TRACE_STEP, 0);
    task_trace_step_ended(strategy->task);
    return status;
}

static void empty_outputs(cadre_per_replica *targets[], uint32_t count)
{
    for (uint32_t i = 0; targets != NULL && i < count && i < CADRE_OUTPUTS_MAX; i++) {
        targets[i] = NULL;
    }
}

cadre_status cadre_run(cadre_strategy *strategy, cadre_replica_function function, void *user,
    cadre_per_replica *input, uint32_t n_outputs, cadre_per_replica *ret_outputs[])
{
    STRATEGY_CALL call = {0};
    struct cadre_error error;
    error.code = CADRE_OK;
    error.text[0] = '\0';
    empty_outputs(ret_outputs, n_outputs);
    cadre_status status = strategy_enter(strategy, __func__, &call, &error);
    if (status == CADRE_OK) {
        status = run_program_step(strategy, function, user, input, n_outputs, ret_outputs, &error);
    }
    return api_return(status, &error);
}

cadre_status cadre_run_arguments(cadre_strategy *strategy, cadre_replica_function function,
    void *user, const cadre_argument arguments[], uint32_t n_arguments, uint32_t n_outputs,
    cadre_per_replica *ret_outputs[])
{
    STRATEGY_CALL call = {0};
    struct cadre_error error;
    cadre_per_replica *joined = NULL;
    error.code = CADRE_OK;
    error.text[0] = '\0';
    empty_outputs(ret_outputs, n_outputs);
    cadre_status status = strategy_enter(strategy, __func__, &call, &error);
    if (status == CADRE_OK && n_arguments > 0) {
        status = argument_require(arguments, __func__, "arguments", &error);
        status = status == CADRE_OK ? values_join(strategy, arguments, n_arguments, &joined, &error)
                                    : status;
    }
    if (status == CADRE_OK) {
        status = run_program_step(strategy, function, user, joined, n_outputs, ret_outputs, &error);
    }
    cadre_per_replica_release(joined);
    return api_return(status, &error);
}
