/* SPDX-License-Identifier: Apache-2.0
 * cadre_run: one ledger step, from the admission to the commit. */
#include "cadre/replica.h"

#include <stdlib.h>

#include "worker/device/argument.h"
#include "worker/runtime/border.h"
#include "worker/runtime/collective.h"
#include "worker/runtime/input.h"
#include "worker/runtime/strategy.h"
#include "worker/runtime/values.h"
#include "worker/runtime/variable.h"

struct run {
    cadre_strategy *strategy;
    cadre_replica_function function;
    cadre_per_replica *batch;
    uint32_t n_outputs;
    void *user;
};

/* --- on each replica --- */

static cadre_status call_function(
    struct run *run, cadre_replica *replica, struct cadre_error *error)
{
    cadre_tensor *inputs[CADRE_ELEMENT_TENSORS_MAX] = {NULL};
    for (uint32_t i = 0; run->batch != NULL && i < run->batch->components; i++) {
        inputs[i] = *per_replica_at(run->batch, i, replica->local);
    }
    /* Whatever failed on this thread before has nothing to do with this function. */
    cadre_error_publish(&(struct cadre_error){.code = CADRE_OK});
    cadre_status status =
        argument_status(run->function(replica, inputs, replica->outputs, run->user));
    if (status == CADRE_OK) {
        return CADRE_OK;
    }
    if (replica->all_know) {
        *error = replica->collective_failed;
        return error->code;
    }
    const char *message = cadre_error_message();
    if (message[0] == '\0') {
        return cadre_error_set(error, status,
            "replica %u: its function returned %s and left no message; say why with cadre_fail",
            replica->id, cadre_status_name(status));
    }
    return cadre_error_set(error, status, "replica %u: %s", replica->id, message);
}

static cadre_status check_outputs(
    const struct run *run, const cadre_replica *replica, struct cadre_error *error)
{
    for (uint32_t i = 0; i < CADRE_OUTPUTS_MAX; i++) {
        bool made = replica->outputs[i] != NULL;
        if (made && i >= run->n_outputs) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "replica %u: its function made output %u, and cadre_run was asked for %u outputs",
                replica->id, i, run->n_outputs);
        }
        if (!made && i < run->n_outputs) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "replica %u: its function left output %u of %u empty; give it a tensor",
                replica->id, i, run->n_outputs);
        }
    }
    return CADRE_OK;
}

static void run_replica(uint32_t local, void *user)
{
    struct run *run = user;
    cadre_strategy *strategy = run->strategy;
    cadre_replica *replica = &strategy->replicas[local];
    replica->error = (struct cadre_error){0};
    replica->active = true;
    context_enter(replica);
    cadre_status status = call_function(run, replica, &replica->error);
    if (status == CADRE_OK && replica->collective_failed.code != CADRE_OK) {
        replica->error = replica->collective_failed; /* the function did not look */
        status = replica->error.code;
    }
    if (status == CADRE_OK) {
        status = check_outputs(run, replica, &replica->error);
    }
    if (status == CADRE_OK && replica->collectives == 0 && strategy->roster.member_count > 1) {
        status = collective_implicit(replica, &replica->error); /* rule 25 */
    }
    context_enter(NULL);
    replica->active = false;
    /* Others may be waiting for this one in a collective that it will never enter, unless it failed
     * in one that failed on all of them. */
    bool release = status != CADRE_OK && !replica->all_know;
    struct cadre_error counts;
    if (!release && step_replica_end(replica, &counts) != CADRE_OK) {
        release = true;
        if (status == CADRE_OK) {
            replica->error = counts;
            status = counts.code;
        }
    }
    replica->status = status;
    if (release) {
        strategy->mesh->ops->abort(strategy->mesh, replica->error.text);
    }
}

/* --- the whole step --- */

/* The cause, not what followed from it: an abort only when there is nothing else. */
static cadre_status verdict(const cadre_strategy *strategy, struct cadre_error *error)
{
    const cadre_replica *cause = NULL;
    for (uint32_t i = 0; i < strategy->local_replicas; i++) {
        const cadre_replica *replica = &strategy->replicas[i];
        bool better =
            cause == NULL || (cause->status == CADRE_ABORTED && replica->status != CADRE_ABORTED);
        if (replica->status != CADRE_OK && better) {
            cause = replica;
        }
    }
    return cause == NULL ? CADRE_OK
                         : cadre_error_set(error, cause->status, "%s", cause->error.text);
}

/* From the last confirmed collective to the ledger. */
static cadre_status commit(struct run *run, uint64_t position, struct cadre_error *error)
{
    cadre_strategy *strategy = run->strategy;
    cadre_status status = CADRE_OK;
    if (!atomic_load(&strategy->step.admitted)) { /* no replica made a collective */
        status = task_admit(strategy->task, position, error);
    }
    if (status == CADRE_OK) {
        status = task_apply(strategy->task, position, error);
    }
    if (status != CADRE_OK) {
        return status;
    }
    variables_commit(strategy);
    uint64_t digest[2] = {0, 0};
    if (run->batch != NULL && !run->batch->source.consumed) {
        struct batch_source *source = &run->batch->source;
        source->consumed = true;
        source->dataset->applied = source->step + 1;
        digest[0] = source->fed.lane[0];
        digest[1] = source->fed.lane[1];
    }
    task_applied(strategy->task, position, digest);
    return CADRE_OK;
}

static void lend_outputs(struct run *run, cadre_per_replica *values[])
{
    cadre_strategy *strategy = run->strategy;
    for (uint32_t i = 0; i < run->n_outputs; i++) {
        for (uint32_t local = 0; local < strategy->local_replicas; local++) {
            cadre_tensor **output = &strategy->replicas[local].outputs[i];
            *per_replica_at(values[i], 0, local) = *output;
            *output = NULL;
        }
        strategy->outputs[i] = values[i];
    }
    strategy->output_count = run->n_outputs;
}

static void drop_outputs(cadre_strategy *strategy)
{
    for (uint32_t local = 0; local < strategy->local_replicas; local++) {
        for (uint32_t i = 0; i < CADRE_OUTPUTS_MAX; i++) {
            cadre_tensor_release(strategy->replicas[local].outputs[i]);
            strategy->replicas[local].outputs[i] = NULL;
        }
    }
}

static cadre_status run_step(struct run *run, cadre_per_replica *values[],
    cadre_per_replica *ret_outputs[], struct cadre_error *error)
{
    cadre_strategy *strategy = run->strategy;
    uint64_t position = strategy_position(strategy);
    bool feeds = run->batch != NULL && !run->batch->source.consumed;
    distributed_announce(strategy, feeds ? run->batch->source.dataset : NULL,
        feeds ? run->batch->source.step : 0, position);
    step_begin(strategy, position, run->batch == NULL ? 0 : run->batch->source.global_rows,
        run->batch == NULL ? 0 : run->batch->components);
    replica_pool_run(strategy->pool, run_replica, run);
    step_end(strategy);
    cadre_status status = verdict(strategy, error);
    if (status == CADRE_OK) {
        status = commit(run, position, error);
    }
    if (status != CADRE_OK) {
        variables_restore(strategy);
        return strategy_fail(strategy, error);
    }
    lend_outputs(run, values);
    for (uint32_t i = 0; i < run->n_outputs; i++) {
        ret_outputs[i] = values[i];
        values[i] = NULL;
    }
    reports_step(strategy, feeds ? run->batch->source.dataset : NULL,
        feeds ? run->batch->source.global_rows : 0);
    return CADRE_OK;
}

static cadre_status check_call(
    const struct run *run, cadre_per_replica *const ret_outputs[], struct cadre_error *error)
{
    cadre_status status = strategy_enter(run->strategy, "cadre_run", error);
    if (status == CADRE_OK && run->function == NULL) {
        status = argument_require(NULL, "cadre_run", "function", error);
    }
    if (status != CADRE_OK) {
        return status;
    }
    if (run->n_outputs > CADRE_OUTPUTS_MAX || (run->n_outputs > 0 && ret_outputs == NULL)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "cadre_run was asked for %u outputs%s; at most %d are possible, each with a place",
            run->n_outputs, ret_outputs == NULL ? " without places for them" : "",
            CADRE_OUTPUTS_MAX);
    }
    if (run->batch != NULL && run->batch->source.dataset == NULL) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "cadre_run was given a value that is not a batch; give it what cadre_next returned, "
            "or NULL");
    }
    if (run->batch != NULL && !distributed_lives(run->batch->source.dataset)) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "cadre_run was given a batch of a strategy that has ended; give it one that this "
            "strategy's cadre_next returned");
    }
    return CADRE_OK;
}

cadre_status cadre_run(cadre_strategy *strategy, cadre_replica_function function,
    cadre_per_replica *batch, uint32_t n_outputs, void *user, cadre_per_replica *ret_outputs[])
{
    struct cadre_error error = {0};
    struct run run = {.strategy = strategy,
        .function = function,
        .batch = batch,
        .n_outputs = n_outputs,
        .user = user};
    cadre_per_replica *values[CADRE_OUTPUTS_MAX] = {NULL};
    for (uint32_t i = 0; ret_outputs != NULL && i < n_outputs && i < CADRE_OUTPUTS_MAX; i++) {
        ret_outputs[i] = NULL;
    }
    cadre_status status = check_call(&run, ret_outputs, &error);
    if (status != CADRE_OK) {
        return border(status, &error);
    }
    for (uint32_t i = 0; i < strategy->output_count; i++) {
        cadre_per_replica_release(strategy->outputs[i]);
    }
    strategy->output_count = 0;
    bool memory = true;
    for (uint32_t i = 0; i < n_outputs; i++) {
        values[i] = per_replica_new(strategy->local_replicas, 1);
        memory = memory && values[i] != NULL;
    }
    status = memory ? run_step(&run, values, ret_outputs, &error)
                    : cadre_error_set(
                          &error, CADRE_RESOURCE_EXHAUSTED, "no memory for the outputs of a step");
    for (uint32_t i = 0; i < n_outputs; i++) {
        cadre_per_replica_release(values[i]);
    }
    drop_outputs(strategy);
    return border(status, &error);
}
