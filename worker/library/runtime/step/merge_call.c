/* SPDX-License-Identifier: Apache-2.0
 * cadre_merge_call: the meeting of the local replicas, the function, and all ways in which a
 * meeting ends without it. Replica functions call it; run.c and run_replica.c report who has
 * returned. */
#include "worker/library/runtime/step/merge_call.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/device/argument.h"
#include "worker/library/device/local_device.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/replica/step_admission.h"
#include "worker/library/runtime/strategy/scope.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/values/values.h"

/* One replica in the meeting, with its arguments. On the stack of its thread, which waits. */
struct merge_arrival {
    cadre_merge_function function;
    cadre_tensor *const *inputs;
    uint32_t n_inputs;
    uint32_t n_outputs;
    void *user;
    cadre_tensor **outputs;    /* filled in before the meeting ends ... */
    struct cadre_error *error; /* ... or this; code OK: it did not fail */
    bool over;
    bool programs; /* it failed in the program's function */
};

/* On cache lines of its own: each replica's return writes here. */
struct merge {
    _Alignas(64) pthread_mutex_t lock; /* a step's lock is taken inside it, never the other way */
    pthread_cond_t changed;
    atomic_uint returned;     /* the first replica whose function is over: its id + 1; 0: none */
    struct cadre_error cause; /* code not OK: it was over with a failure */
    struct merge_arrival *arrivals[]; /* by local id; NULL: not in the meeting */
};

cadre_status merge_open(cadre_strategy *strategy, struct cadre_error *error)
{
    CADRE_ASSERT(strategy->merge == NULL);
    size_t bytes = sizeof(struct merge) + strategy->local_replicas * sizeof(struct merge_arrival *);
    size_t lines = (bytes + _Alignof(struct merge) - 1) / _Alignof(struct merge);
    struct merge *merge = aligned_alloc(_Alignof(struct merge), lines * _Alignof(struct merge));
    if (merge == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for merge calls");
    }
    memset(merge, 0, bytes);
    pthread_mutex_init(&merge->lock, NULL);
    pthread_cond_init(&merge->changed, NULL);
    strategy->merge = merge;
    return CADRE_OK;
}

void merge_close(cadre_strategy *strategy)
{
    struct merge *merge = strategy->merge;
    if (merge != NULL) {
        CADRE_ASSERT(atomic_load(&strategy->step.meeting) == 0);
        pthread_cond_destroy(&merge->changed);
        pthread_mutex_destroy(&merge->lock);
        free(merge);
        strategy->merge = NULL;
    }
}

void merge_begin(cadre_strategy *strategy)
{
    strategy->merge->cause.code = CADRE_OK;
    atomic_store_explicit(&strategy->merge->returned, 0, memory_order_relaxed);
}

/* --- the end of a meeting --- */

/* Under the lock: those in the meeting go on, with this failure or (NULL) with their outputs. */
static void end_meeting(cadre_strategy *strategy, const struct cadre_error *failure, bool programs)
{
    struct merge *merge = strategy->merge;
    for (uint32_t i = 0; i < strategy->local_replicas; i++) {
        struct merge_arrival *arrival = merge->arrivals[i];
        if (arrival == NULL) {
            continue;
        }
        if (failure != NULL) {
            *arrival->error = *failure;
        }
        arrival->over = true;
        arrival->programs = programs;
        CADRE_ASSERT(atomic_load(&strategy->step.meeting) > 0);
        merge->arrivals[i] = NULL;
        atomic_fetch_sub(&strategy->step.meeting, 1);
    }
    pthread_cond_broadcast(&merge->changed);
}

/* Under the lock: the first of those that wait; NULL: none does. */
static const cadre_replica *first_arrived(const cadre_strategy *strategy)
{
    for (uint32_t i = 0; i < strategy->local_replicas; i++) {
        if (strategy->merge->arrivals[i] != NULL) {
            return &strategy->replicas[i];
        }
    }
    return NULL;
}

/* One returned with a failure. Those that wait, and those that will come, have made no mistake:
 * ABORTED, as where a collective ends for one that failed. */
static void end_for_failure(cadre_strategy *strategy, const struct cadre_error *failure)
{
    struct merge *merge = strategy->merge;
    pthread_mutex_lock(&merge->lock);
    struct cadre_error theirs;
    cadre_error_set(&theirs, CADRE_ABORTED, "cadre_merge_call: %s", failure->text);
    if (atomic_load(&merge->returned) == 0 && merge->cause.code == CADRE_OK) {
        merge->cause = theirs;
    }
    if (first_arrived(strategy) != NULL) {
        end_meeting(strategy, &theirs, false);
    }
    pthread_mutex_unlock(&merge->lock);
}

cadre_status merge_returned(
    cadre_replica *replica, const struct cadre_error *failure, struct cadre_error *error)
{
    cadre_strategy *strategy = replica->strategy;
    struct merge *merge = strategy->merge;
    uint32_t none = 0;
    if (failure != NULL) {
        end_for_failure(strategy, failure);
    }
    if (atomic_load(&merge->returned) == 0) { /* only the first one writes */
        atomic_compare_exchange_strong(&merge->returned, &none, replica->id + 1);
    }
    if (failure != NULL || atomic_load(&strategy->step.meeting) == 0) {
        return CADRE_OK;
    }
    cadre_status status = CADRE_OK;
    pthread_mutex_lock(&merge->lock);
    const cadre_replica *waiting = first_arrived(strategy);
    if (waiting != NULL) {
        status = cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the replicas disagree: replica %u returned from its function while replica %u waits "
            "for it in cadre_merge_call; all replicas of a task must make the same calls",
            replica->id, waiting->id);
        end_meeting(strategy, error, false);
    }
    pthread_mutex_unlock(&merge->lock);
    return status;
}

/* --- the function --- */

/* The replicas' inputs `at` as one value; NULL: no memory. */
static cadre_per_replica *merge_call_regroup(const cadre_strategy *strategy, uint32_t at)
{
    cadre_per_replica *value = per_replica_new(strategy->local_replicas, 1);
    for (uint32_t i = 0; value != NULL && i < strategy->local_replicas; i++) {
        *per_replica_at(value, 0, i) =
            cadre_tensor_retain(strategy->merge->arrivals[i]->inputs[at]);
    }
    if (value != NULL) {
        per_replica_lend(value);
    }
    return value;
}

static cadre_status check_output(const cadre_strategy *strategy, const cadre_per_replica *output,
    uint32_t at, uint32_t wanted, struct cadre_error *error)
{
    if ((output != NULL) != (at < wanted)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the function of cadre_merge_call %s output %u, and %u outputs were requested of it",
            output != NULL ? "made" : "did not make", at, wanted);
    }
    bool fits =
        output == NULL || (output->replicas == strategy->local_replicas && output->components == 1);
    for (uint32_t i = 0; fits && output != NULL && i < output->replicas; i++) {
        fits = cadre_local_results(output, 0)[i] != NULL;
    }
    if (!fits) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "output %u of the function of cadre_merge_call has %u components of %u replicas; make "
            "one tensor for each of the %u replicas of this task, as cadre_values_from_tensors "
            "does",
            at, output->components, output->replicas, strategy->local_replicas);
    }
    return CADRE_OK;
}

/* Gives each replica its component of each output. */
static cadre_status hand_out(cadre_strategy *strategy, cadre_per_replica *const outputs[],
    uint32_t n_outputs, struct cadre_error *error)
{
    for (uint32_t at = 0; at < CADRE_OUTPUTS_MAX; at++) {
        CADRE_TRY(check_output(strategy, outputs[at], at, n_outputs, error));
    }
    for (uint32_t at = 0; at < n_outputs; at++) {
        for (uint32_t i = 0; i < strategy->local_replicas; i++) {
            strategy->merge->arrivals[i]->outputs[at] =
                cadre_tensor_retain(*per_replica_at(outputs[at], 0, i));
        }
    }
    return CADRE_OK;
}

static cadre_status call_program(cadre_strategy *strategy, const struct merge_arrival *arrival,
    cadre_per_replica *const inputs[], cadre_per_replica *outputs[], struct cadre_error *error)
{
    static const struct cadre_error none;
    struct context_frame frame;
    struct cadre_error open;
    struct scope scope = scope_suspend();
    cadre_error_publish(&none);
    context_merge_enter(&frame, strategy);
    uint8_t processor = local_device_prefer(0);
    cadre_status status =
        argument_status(arrival->function(strategy, inputs, outputs, arrival->user));
    local_device_prefer(processor);
    context_merge_leave(&frame);
    cadre_status balance = scope_resume(&scope, "cadre_merge_call", &open);
    if (status != CADRE_OK) {
        const char *message = cadre_error_message();
        return cadre_error_set(error, status, "the function of cadre_merge_call: %s",
            message[0] != '\0' ? message
                               : "it failed and left no message; give one with cadre_fail");
    }
    return balance == CADRE_OK ? CADRE_OK : cadre_error_set(error, balance, "%s", open.text);
}

/* In the thread of local replica 0, with all of them waiting: no other thread uses the arrivals. */
static cadre_status run_function(cadre_strategy *strategy, struct cadre_error *error)
{
    const struct merge_arrival *arrival = strategy->merge->arrivals[0];
    CADRE_ASSERT(arrival != NULL);
    CADRE_ASSERT(atomic_load(&strategy->step.meeting) == strategy->local_replicas);
    cadre_per_replica *inputs[CADRE_ELEMENT_TENSORS_MAX] = {NULL};
    cadre_per_replica *outputs[CADRE_OUTPUTS_MAX] = {NULL};
    bool memory = true;
    for (uint32_t i = 0; memory && i < arrival->n_inputs; i++) {
        inputs[i] = merge_call_regroup(strategy, i);
        memory = inputs[i] != NULL;
    }
    cadre_status status = memory ? call_program(strategy, arrival, inputs, outputs, error)
                                 : cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
                                       "no memory for the values of a merge call");
    if (status == CADRE_OK) {
        status = hand_out(strategy, outputs, arrival->n_outputs, error);
    }
    for (uint32_t i = 0; i < arrival->n_inputs; i++) {
        per_replica_drop(inputs[i]);
    }
    for (uint32_t i = 0; i < CADRE_OUTPUTS_MAX; i++) {
        cadre_per_replica_release(outputs[i]);
    }
    return status;
}

/* --- the meeting --- */

/* Under the lock: whether this call equals the first one's, and no replica has returned. */
static cadre_status check_arrival(
    cadre_replica *replica, const struct merge_arrival *arrival, struct cadre_error *error)
{
    cadre_strategy *strategy = replica->strategy;
    const struct merge *merge = strategy->merge;
    const cadre_replica *first = first_arrived(strategy);
    uint32_t returned = atomic_load(&merge->returned);
    if (merge->cause.code != CADRE_OK) {
        *error = merge->cause;
        return error->code;
    }
    if (returned > 0) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the replicas disagree: replica %u calls cadre_merge_call, and replica %u has returned "
            "from its function; all replicas of a task must make the same calls",
            replica->id, returned - 1);
    }
    if (first == NULL) {
        return CADRE_OK;
    }
    const struct merge_arrival *other = merge->arrivals[first->local];
    if (other->function != arrival->function || other->n_inputs != arrival->n_inputs ||
        other->n_outputs != arrival->n_outputs) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the replicas disagree: replica %u calls cadre_merge_call with %u inputs for %u "
            "outputs, replica %u with %u inputs for %u outputs%s; all must make the same calls",
            first->id, other->n_inputs, other->n_outputs, replica->id, arrival->n_inputs,
            arrival->n_outputs,
            other->function != arrival->function ? " and another function" : "");
    }
    return CADRE_OK;
}

/* Under the lock: no replica has returned from here, so collectives go on. */
static void allow_collectives(cadre_strategy *strategy)
{
    atomic_store(&strategy->step.ended_collectives, UINT32_MAX);
}

/* Under the lock: waits until the meeting is over, or all are in it and this is the replica whose
 * thread runs the function. */
static void wait_for_others(cadre_replica *replica, const struct merge_arrival *arrival)
{
    cadre_strategy *strategy = replica->strategy;
    struct merge *merge = strategy->merge;
    CADRE_ASSERT(merge->arrivals[replica->local] == arrival);
    if (atomic_load(&strategy->step.meeting) == strategy->local_replicas) {
        pthread_cond_broadcast(&merge->changed);
    }
    while (!arrival->over && (replica->local != 0 ||
                                 atomic_load(&strategy->step.meeting) < strategy->local_replicas)) {
        pthread_cond_wait(&merge->changed, &merge->lock);
    }
}

/* Under the lock, with all of them waiting: in the thread of local replica 0. */
static void hold_meeting(cadre_strategy *strategy)
{
    struct merge *merge = strategy->merge;
    struct cadre_error failure;
    pthread_mutex_unlock(&merge->lock);
    cadre_status status = run_function(strategy, &failure);
    pthread_mutex_lock(&merge->lock);
    allow_collectives(strategy);
    end_meeting(strategy, status == CADRE_OK ? NULL : &failure, true);
}

/* Keeps a failure, because the function may not look at it. A status of the program's function must
 * not be taken for the loss of a peer. */
static void keep_failure(cadre_replica *replica, const struct cadre_error *error, bool programs)
{
    struct cadre_error kept = *error;
    if (programs && strategy_is_peer_failure(kept.code)) {
        kept.code = CADRE_UNKNOWN;
    }
    step_record_refusal(replica, &kept);
}

static cadre_status merge_call(
    cadre_replica *replica, struct merge_arrival *arrival, struct cadre_error *error)
{
    cadre_strategy *strategy = replica->strategy;
    struct merge *merge = strategy->merge;
    CADRE_ASSERT(replica->active);
    replica->active = false; /* no collectives meanwhile */
    atomic_store_explicit(&replica->doing, REPLICA_IN_MERGE, memory_order_relaxed);
    pthread_mutex_lock(&merge->lock);
    atomic_fetch_add(&strategy->step.meeting, 1);
    cadre_status status = check_arrival(replica, arrival, error);
    if (status == CADRE_OK) {
        status = step_replica_end(replica, error); /* an error if it makes more collectives */
    }
    if (status == CADRE_OK) {
        merge->arrivals[replica->local] = arrival;
        wait_for_others(replica, arrival);
        if (!arrival->over) {
            hold_meeting(strategy);
        }
        status = error->code;
    } else {
        atomic_fetch_sub(&strategy->step.meeting, 1);
        end_meeting(strategy, error, false);
    }
    pthread_mutex_unlock(&merge->lock);
    atomic_store_explicit(&replica->doing, REPLICA_RUNNING, memory_order_relaxed);
    replica->active = true;
    if (status != CADRE_OK) {
        keep_failure(replica, error, arrival->programs);
    }
    return status;
}

static cadre_status check_call(
    const cadre_replica *replica, const struct merge_arrival *arrival, struct cadre_error *error)
{
    CADRE_TRY(step_require_own_thread(replica, "cadre_merge_call", error));
    if (arrival->function == NULL) {
        return argument_require(NULL, "cadre_merge_call", "function", error);
    }
    if (arrival->n_inputs > CADRE_ELEMENT_TENSORS_MAX || arrival->n_outputs > CADRE_OUTPUTS_MAX) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "cadre_merge_call was given %u inputs for %u outputs; at most %d and %d are possible",
            arrival->n_inputs, arrival->n_outputs, CADRE_ELEMENT_TENSORS_MAX, CADRE_OUTPUTS_MAX);
    }
    if (arrival->n_outputs > 0) {
        CADRE_TRY(argument_require(arrival->outputs, "cadre_merge_call", "ret_outputs", error));
    }
    if (arrival->n_inputs > 0) {
        CADRE_TRY(argument_require(arrival->inputs, "cadre_merge_call", "inputs", error));
    }
    for (uint32_t i = 0; i < arrival->n_inputs; i++) {
        if (arrival->inputs[i] == NULL) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "cadre_merge_call: input %u of %u is NULL; give it a tensor", i, arrival->n_inputs);
        }
    }
    return CADRE_OK;
}

cadre_status cadre_merge_call(cadre_replica *replica, cadre_merge_function function, void *user,
    cadre_tensor *const inputs[], uint32_t n_inputs, uint32_t n_outputs,
    cadre_tensor *ret_outputs[])
{
    struct cadre_error error = {0};
    struct merge_arrival arrival = {.function = function,
        .inputs = inputs,
        .n_inputs = n_inputs,
        .n_outputs = n_outputs,
        .user = user,
        .outputs = ret_outputs,
        .error = &error};
    for (uint32_t i = 0; ret_outputs != NULL && i < n_outputs && i < CADRE_OUTPUTS_MAX; i++) {
        ret_outputs[i] = NULL;
    }
    cadre_status status = check_call(replica, &arrival, &error);
    if (status != CADRE_OK) {
        step_record_refusal(replica, &error);
        return api_return(status, &error);
    }
    return api_return(merge_call(replica, &arrival, &error), &error);
}
