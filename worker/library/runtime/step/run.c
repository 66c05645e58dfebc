/* SPDX-License-Identifier: Apache-2.0
 * cadre_run: one ledger step, from the admission to the commit. */
#include "cadre/replica.h"

#include <stdlib.h>

#include "worker/library/device/argument.h"
#include "worker/library/device/tensor_references.h"
#include "worker/library/runtime/step/apply.h"
#include "worker/library/runtime/devices/replica_device.h"
#include "worker/library/runtime/border/border.h"
#include "worker/library/runtime/variables/caching_scope.h"
#include "worker/library/runtime/state/checkpoint.h"
#include "worker/library/runtime/state/registered.h"
#include "worker/library/runtime/collectives/collective.h"
#include "worker/library/runtime/collectives/buckets.h"
#include "worker/library/runtime/collectives/collective_queue.h"
#include "worker/library/runtime/input/input.h"
#include "worker/library/runtime/regroup/join.h"
#include "worker/library/runtime/regroup/outside.h"
#include "worker/library/runtime/preemption/preemption.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/values/values.h"
#include "worker/library/runtime/variables/variable.h"
#include "worker/library/runtime/variables/variable_memory.h"
#include "worker/library/runtime/input/reports.h"

struct run {
    cadre_strategy *strategy;
    cadre_replica_function function;
    cadre_per_replica *input; /* a batch, or other values; NULL: none */
    cadre_per_replica *batch; /* the input, if it is a batch; else NULL */
    bool feeds;               /* the batch, which was not run before */
    atomic_bool aborted;      /* the mesh, for a replica that failed, in this attempt */
    bool lost;                /* a device of this task takes no more work */
    uint32_t n_outputs;
    void *user;
};

/* Empties it, without writing half a kilobyte in each step. */
static void clear(struct cadre_error *error)
{
    error->code = CADRE_OK;
    error->text[0] = '\0';
}

/* --- on each replica --- */

static cadre_status released_output(
    const cadre_replica *replica, uint32_t output, struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
        "replica %u: its function released output %u, whose reference cadre_run takes; leave that "
        "one, or retain the tensor before releasing it",
        replica->id, output);
}

static cadre_status call_function(
    struct run *run, cadre_replica *replica, struct cadre_error *error)
{
    static const struct cadre_error none;
    cadre_tensor *inputs[CADRE_ELEMENT_TENSORS_MAX] = {NULL};
    for (uint32_t i = 0; run->input != NULL && i < run->input->components; i++) {
        inputs[i] = *per_replica_at(run->input, i, replica->local);
    }
    /* Whatever failed on this thread before has nothing to do with this function. */
    cadre_error_publish(&none);
    struct tensor_places places;
    tensor_places_enter(&places, replica->outputs, CADRE_OUTPUTS_MAX);
    cadre_status status =
        argument_status(run->function(replica, inputs, replica->outputs, run->user));
    uint32_t released = tensor_places_leave(&places);
    if (status == CADRE_OK) {
        return released == CADRE_OUTPUTS_MAX ? CADRE_OK : released_output(replica, released, error);
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

/* Each with a reference that is nobody else's. */
static cadre_status take_outputs(cadre_replica *replica, uint32_t count, struct cadre_error *error)
{
    uint32_t missing = count;
    for (uint32_t i = 0; i < count; i++) {
        bool given = tensor_take(replica->outputs[i]);
        missing = given || missing < count ? missing : i;
    }
    replica->outputs_taken = true;
    return missing == count
               ? CADRE_OK
               : cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                     "replica %u: its function gave output %u without a reference: it was "
                     "released, or is an input, or another output too; retain the tensor once for "
                     "each output that it is",
                     replica->id, missing);
}

static cadre_status check_outputs(
    const struct run *run, cadre_replica *replica, struct cadre_error *error)
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
    return take_outputs(replica, run->n_outputs, error);
}

/* Its part ended for want of others: whatever its function made of that is not its own failure. */
static bool lost_peers(const cadre_replica *replica)
{
    return strategy_is_peers(replica->collective_failed.code);
}

/* What it has enqueued is done, and without an error: only then may the step be committed. */
static cadre_status settle(cadre_replica *replica, struct cadre_error *error)
{
    cadre_status status = replica_device_settle(replica, error);
    if (status != CADRE_OK && replica->collective_failed.code == CADRE_OK) {
        replica->collective_failed = *error;
    }
    return status;
}

static void run_replica(uint32_t local, void *user)
{
    struct run *run = user;
    cadre_strategy *strategy = run->strategy;
    cadre_replica *replica = &strategy->replicas[local];
    clear(&replica->error);
    replica->active = true;
    replica->outputs_taken = false;
    atomic_store_explicit(&replica->doing, REPLICA_WORKS, memory_order_relaxed);
    context_replica_enter(replica, strategy);
    enum tensor_memory_kind memory = value_memory_enter(strategy);
    cadre_status status = replica_device_bind(replica, &replica->error);
    if (status == CADRE_OK) {
        status = call_function(run, replica, &replica->error);
    }
    replica_device_returned(replica, status);
    value_memory_leave(memory);
    caching_scope_end();
    buckets_end(replica);
    collective_queue_end(replica, status == CADRE_OK ? NULL : &replica->error);
    if (status == CADRE_OK && replica->collective_failed.code != CADRE_OK) {
        replica->error = replica->collective_failed; /* the function did not look */
        status = replica->error.code;
    }
    struct cadre_error missed;
    if (merge_returned(replica, status == CADRE_OK ? NULL : &replica->error, &missed) != CADRE_OK) {
        replica->error = missed;
        status = missed.code;
    }
    if (status == CADRE_OK) {
        status = check_outputs(run, replica, &replica->error);
    }
    if (status == CADRE_OK) {
        status = on_read_fold(replica, &replica->error);
    }
    if (status == CADRE_OK && replica->collectives == 0 && strategy->roster.member_count > 1) {
        status = collective_implicit(replica, &replica->error); /* rule 25 */
    }
    if (status == CADRE_OK && replica->device != NULL) {
        status = settle(replica, &replica->error);
    }
    context_replica_leave();
    replica->active = false;
    /* Others may be waiting for this one in a collective that it will never enter, unless it failed
     * in one that failed on all of them. */
    bool release = status != CADRE_OK && !replica->all_know && !task_halted(strategy->task);
    struct cadre_error counts;
    if (!release && !lost_peers(replica) && step_replica_end(replica, &counts) != CADRE_OK) {
        release = true;
        if (status == CADRE_OK) {
            replica->error = counts;
            status = counts.code;
        }
    }
    replica->status = status;
    if (release) {
        atomic_store(&run->aborted, true);
        strategy->mesh->ops->abort(strategy->mesh, replica->error.text);
    }
    atomic_store_explicit(&replica->doing, REPLICA_AWAY, memory_order_relaxed);
}

/* --- the whole step --- */

enum step_end { STEP_DONE, STEP_FAILED, STEP_INTERRUPTED };

/* The program is the whole job: there is nobody who could be lost, or come instead. Then a replica
 * that did not come to a collective in time is the program's own failure. */
static bool is_alone(const cadre_strategy *strategy)
{
    return !strategy->environment->attached && strategy->roster.member_count == 1;
}

/* The cause, not what followed from it: an interruption only when nothing failed by itself. */
static enum step_end verdict(const cadre_strategy *strategy, struct cadre_error *error)
{
    enum step_end end = STEP_DONE;
    for (uint32_t i = 0; i < strategy->local_replicas; i++) {
        const cadre_replica *replica = &strategy->replicas[i];
        if (replica->status == CADRE_OK) {
            continue;
        }
        if (!lost_peers(replica)) {
            bool cause = end != STEP_FAILED || replica_device_failed(replica);
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
    return end == STEP_INTERRUPTED && is_alone(strategy) ? STEP_FAILED : end;
}

static void add_feed(struct feed *feed, const struct step_feed *step)
{
    feed->steps++;
    feed->samples += step->samples;
    for (int lane = 0; lane < 2; lane++) {
        feed->fed[lane] += step->fed[lane];
        feed->expected[lane] += step->expected[lane];
    }
    feed->provable = feed->provable && step->provable != 0;
}

/* What follows from an applied step, wherever it was applied. */
static void take_account(struct run *run, uint64_t position)
{
    cadre_strategy *strategy = run->strategy;
    if (run->feeds) {
        run->batch->source.consumed = true;
        run->batch->source.dataset->at.applied = run->batch->source.step + 1;
    }
    strategy->step.collectives_begun = 0;
    outside_forget(strategy);
    if (strategy->reenters) {
        strategy->reenters = false;
        for (uint32_t i = 0; i < strategy->dataset_count; i++) {
            strategy->datasets[i]->reenters = false;
        }
    }
    strategy->applied.known = true;
    strategy->applied.position = position;
}

/* From the last confirmed collective to the ledger. */
static cadre_status commit(struct run *run, uint64_t position, struct cadre_error *error)
{
    cadre_strategy *strategy = run->strategy;
    if (!atomic_load(&strategy->step.admitted)) { /* no replica made a collective */
        CADRE_TRY(task_admit(strategy->task, position, error));
    }
    CADRE_TRY(task_apply(strategy->task, position, error));
    apply_run(strategy);
    variables_commit(strategy);
    struct feed feed = {0};
    if (run->feeds) {
        cadre_distributed_dataset *dataset = run->batch->source.dataset;
        struct cadre_error failure;
        if (files_applied(run->batch, &failure) != CADRE_OK) {
            dataset->failed = failure; /* the step is applied; there is no next one */
        }
        add_feed(&dataset->at.feed, &strategy->step.whole);
        dataset->at.feed.files = files_fed(run->batch);
        feed = dataset->at.feed;
    }
    strategy->applied = (struct applied_step){
        .collectives = strategy->step.collectives_begun,
        .stream = run->feeds ? run->batch->source.dataset->stream : 0,
        .feed = feed,
    };
    take_account(run, position);
    strategy->undone.code = CADRE_OK;
    task_applied(strategy->task, position, &feed);
    return CADRE_OK;
}

/* Those of the step before are kept until now: a task that was frozen in it may have asked for
 * them. */
static void lend_outputs(struct run *run, cadre_per_replica *values[])
{
    cadre_strategy *strategy = run->strategy;
    for (uint32_t i = 0; i < strategy->output_count; i++) {
        per_replica_drop(strategy->outputs[i]);
    }
    for (uint32_t i = 0; i < run->n_outputs; i++) {
        for (uint32_t local = 0; local < strategy->local_replicas; local++) {
            cadre_tensor **output = &strategy->replicas[local].outputs[i];
            *per_replica_at(values[i], 0, local) = *output;
            *output = NULL;
        }
        strategy->outputs[i] = values[i];
        values[i]->shown = true;
        per_replica_lend(values[i]);
    }
    strategy->output_count = run->n_outputs;
}

/* A tensor that is several outputs with one reference ends after the last of them: all are taken
 * before one is dropped. */
static void drop_outputs(cadre_strategy *strategy)
{
    for (uint32_t local = 0; local < strategy->local_replicas; local++) {
        cadre_replica *replica = &strategy->replicas[local];
        for (uint32_t i = 0; !replica->outputs_taken && i < CADRE_OUTPUTS_MAX; i++) {
            if (replica->outputs[i] != NULL) {
                (void)tensor_take(replica->outputs[i]);
            }
        }
        replica->outputs_taken = true;
    }
    for (uint32_t local = 0; local < strategy->local_replicas; local++) {
        for (uint32_t i = 0; i < CADRE_OUTPUTS_MAX; i++) {
            tensor_drop(strategy->replicas[local].outputs[i]);
            strategy->replicas[local].outputs[i] = NULL;
        }
    }
}

/* What this task will feed. */
static struct step_feed feed_of(const struct run *run)
{
    struct step_feed feed = {0};
    if (run->feeds) {
        const struct batch_source *source = &run->batch->source;
        feed = (struct step_feed){.samples = source->samples,
            .fed = {source->fed.lane[0], source->fed.lane[1]},
            .expected = {source->expected.lane[0], source->expected.lane[1]},
            .provable = source->provable ? 1 : 0};
        struct digest expected;
        if (run->strategy->roster.rank == 0 && files_expected(run->batch, &expected)) {
            feed.expected[0] = expected.lane[0];
            feed.expected[1] = expected.lane[1];
            feed.provable = 1;
        }
    }
    return feed;
}

/* All replicas, once, in the generation at hand. */
static enum step_end attempt(struct run *run, uint64_t position, struct cadre_error *error)
{
    cadre_strategy *strategy = run->strategy;
    const struct batch_source *source = run->batch == NULL ? NULL : &run->batch->source;
    const struct step_feed own = feed_of(run);
    distributed_announce(
        strategy, run->feeds ? source->dataset : NULL, run->feeds ? source->step : 0, position);
    checkpoint_at_step(strategy);
    step_begin(strategy, position, source == NULL ? 0 : source->global_rows,
        run->input == NULL ? 0 : run->input->components, &own);
    merge_begin(strategy);
    atomic_store_explicit(&run->aborted, false, memory_order_relaxed);
    replica_pool_run(strategy->pool, run_replica, run);
    step_end(strategy);
    enum step_end end = verdict(strategy, error);
    if (end == STEP_DONE && commit(run, position, error) != CADRE_OK) {
        end = STEP_INTERRUPTED;
    }
    if (end != STEP_DONE) {
        replica_devices_rest(strategy, atomic_load(&run->aborted));
        variables_restore(strategy);
        drop_outputs(strategy);
        run->lost = replica_devices_lost(strategy, error);
    }
    return run->lost ? STEP_FAILED : end;
}

/* Others had applied the step: its outputs came with the state. */
static cadre_status adopt(
    struct run *run, uint64_t position, cadre_per_replica *ret_outputs[], struct cadre_error *error)
{
    cadre_strategy *strategy = run->strategy;
    uint32_t stream = run->feeds ? run->batch->source.dataset->stream : 0;
    if (strategy->applied.stream != stream || strategy->output_count != run->n_outputs) {
        cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "step %llu is one of stream %u with %u outputs here, and of stream %u with %u outputs "
            "on the tasks that had applied it; all tasks must take the same steps",
            (unsigned long long)position, stream, run->n_outputs, strategy->applied.stream,
            strategy->output_count);
        return strategy_fail(strategy, error);
    }
    if (run->feeds) {
        run->batch->source.dataset->at.feed = strategy->applied.feed;
    }
    take_account(run, position);
    for (uint32_t i = 0; i < run->n_outputs; i++) {
        ret_outputs[i] = strategy->outputs[i];
    }
    return CADRE_OK;
}

/* Until the step is applied, here or where the state then comes from. */
static cadre_status run_step(struct run *run, cadre_per_replica *values[],
    cadre_per_replica *ret_outputs[], struct cadre_error *error)
{
    cadre_strategy *strategy = run->strategy;
    uint64_t position = strategy_position(strategy);
    enum step_end end = STEP_INTERRUPTED;
    while (end == STEP_INTERRUPTED && strategy_position(strategy) == position) {
        struct cadre_error cause;
        clear(&cause);
        CADRE_TRY(preemption_meet(strategy, error));
        if (run->batch != NULL && distributed_refresh(run->batch, &cause) != CADRE_OK) {
            *error = cause;
            return strategy_fail(strategy, error);
        }
        end = attempt(run, position, &cause);
        if (end == STEP_FAILED) {
            *error = cause;
            strategy->undone = cause;
            return run->lost ? strategy_end(strategy, error) : strategy_fail(strategy, error);
        }
        if (end == STEP_INTERRUPTED) {
            CADRE_TRY(strategy_regroup(strategy, &cause, error));
        }
    }
    if (end == STEP_DONE) {
        lend_outputs(run, values);
        for (uint32_t i = 0; i < run->n_outputs; i++) {
            ret_outputs[i] = values[i];
            values[i] = NULL;
        }
    } else {
        CADRE_TRY(adopt(run, position, ret_outputs, error));
    }
    reports_step(strategy, run->feeds ? run->batch->source.dataset : NULL,
        run->feeds ? run->batch->source.global_rows : 0);
    return CADRE_OK;
}

/* Values that are no batch: one for each replica of this task. */
static cadre_status check_values(
    const cadre_strategy *strategy, const cadre_per_replica *values, struct cadre_error *error)
{
    if (values->replicas != strategy->local_replicas) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "cadre_run was given values of %u replicas, and this task has %u; make them with this "
            "strategy",
            values->replicas, strategy->local_replicas);
    }
    return CADRE_OK;
}

static cadre_status check_call(
    const struct run *run, cadre_per_replica *const ret_outputs[], struct cadre_error *error)
{
    cadre_status status = strategy_enter(run->strategy, "cadre_run", error);
    if (status == CADRE_OK) {
        status = preemption_refuse(run->strategy, "cadre_run", error);
    }
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
    if (run->input != NULL) {
        CADRE_TRY(per_replica_require(run->input, "cadre_run", "input", error));
    }
    if (run->input != NULL && run->batch == NULL) {
        return check_values(run->strategy, run->input, error);
    }
    if (run->batch != NULL && !distributed_lives(run->batch->source.dataset)) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "cadre_run was given a batch of a strategy that has ended; give it one that this "
            "strategy's cadre_next returned");
    }
    if (run->batch != NULL && run->batch->source.dataset->strategy != run->strategy) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "cadre_run was given a batch of another strategy; give it one of a dataset that this "
            "strategy distributes");
    }
    return CADRE_OK;
}

cadre_status cadre_run(cadre_strategy *strategy, cadre_replica_function function,
    cadre_per_replica *input, uint32_t n_outputs, void *user, cadre_per_replica *ret_outputs[])
{
    struct cadre_error error;
    cadre_per_replica *batch = per_replica_batch(input);
    struct run run = {.strategy = strategy,
        .function = function,
        .input = input,
        .batch = batch,
        .n_outputs = n_outputs,
        .user = user};
    cadre_per_replica *values[CADRE_OUTPUTS_MAX] = {NULL};
    clear(&error);
    for (uint32_t i = 0; ret_outputs != NULL && i < n_outputs && i < CADRE_OUTPUTS_MAX; i++) {
        ret_outputs[i] = NULL;
    }
    cadre_status status = check_call(&run, ret_outputs, &error);
    if (status != CADRE_OK) {
        return border(status, &error);
    }
    bool passed = false;
    if (batch == NULL && join_job(strategy, 0, NULL, NULL, &passed, &error) != CADRE_OK) {
        return border(error.code, &error);
    }
    strategy->arrives = false;
    if (!strategy->changes) {
        strategy->place = PLACE_RUN;
        registered_give(strategy, PLACE_RUN);
    }
    run.feeds = batch != NULL && !batch->source.consumed;
    bool memory = true;
    per_replica_keep(input); /* it may be an output, whose place the next ones take */
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
    per_replica_drop(input);
    strategy->place = PLACE_BETWEEN;
    return border(status, &error);
}
