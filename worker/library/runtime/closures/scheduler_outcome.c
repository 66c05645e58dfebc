/* SPDX-License-Identifier: Apache-2.0
 * Results of closures: done, failed, cancelled with those of a batch, or lost with a worker. */
#include "common/pure/assert.h"
#include "worker/library/runtime/closures/worker_connection_idle.h"
#include "worker/library/runtime/closures/scheduler.h"

void scheduler_notify(struct scheduler *scheduler)
{
    if (scheduler->waiting > 0) {
        pthread_cond_broadcast(&scheduler->changed);
    }
}

static void scheduler_outcome_finish(struct scheduler *scheduler, cadre_remote_value *value)
{
    CADRE_ASSERT(value->number != 0);
    ps_job_push_done(value->number);
    remote_value_release(value);
    if (scheduler->queue.running == 0) {
        scheduler_notify(scheduler);
    }
}

/* A closure that did not run to its end, and will not. */
static void scheduler_outcome_cancel(struct scheduler *scheduler, cadre_remote_value *value)
{
    struct cadre_error error;
    if (scheduler->ending) {
        cadre_error_set(&error, CADRE_CANCELLED,
            "closure %llu (`%s`) was not done when the strategy ended; call cadre_join before",
            (unsigned long long)value->number, value->function->name);
    } else {
        cadre_error_set(&error, CADRE_CANCELLED,
            "closure %llu (`%s`) was cancelled, because another one had failed; schedule it again",
            (unsigned long long)value->number, value->function->name);
    }
    remote_value_fail(value, &error);
    scheduler_outcome_finish(scheduler, value);
}

void scheduler_cancelled(struct closure *closure, void *user)
{
    scheduler_outcome_cancel(user, remote_value_of(closure));
}

void scheduler_succeeded(struct scheduler *scheduler, cadre_remote_value *value,
    cadre_tensor **outputs, uint32_t output_count)
{
    CADRE_ASSERT(value->scheduler == scheduler);
    closure_queue_done(&scheduler->queue, &value->closure);
    remote_value_succeed(value, outputs, output_count);
    scheduler->steps = true;
    scheduler_outcome_finish(scheduler, value);
}

void scheduler_failed(
    struct scheduler *scheduler, cadre_remote_value *value, const struct cadre_error *error)
{
    CADRE_ASSERT(value->scheduler == scheduler);
    CADRE_ASSERT(error->code != CADRE_OK);
    bool first = scheduler->queue.failed == NULL;
    closure_queue_fail(&scheduler->queue, &value->closure);
    remote_value_fail(value, error);
    if (first) {
        remote_value_retain(value); /* the queue's, until the program receives it */
        scheduler->failed = value;
        closure_queue_cancel(&scheduler->queue, scheduler_cancelled, scheduler);
        for (uint32_t i = 0; i < scheduler->workers; i++) {
            if (scheduler->connections[i] != NULL) {
                worker_connection_wake(scheduler->connections[i]);
            }
        }
        scheduler_notify(scheduler);
    }
    scheduler_outcome_finish(scheduler, value);
}

void scheduler_lost(struct scheduler *scheduler, cadre_remote_value *value)
{
    CADRE_ASSERT(value->scheduler == scheduler);
    if (scheduler->ending) {
        closure_queue_done(&scheduler->queue, &value->closure);
        scheduler_outcome_cancel(scheduler, value);
    } else if (closure_queue_put_back(&scheduler->queue, &value->closure)) {
        worker_connection_wake_idle(scheduler);
    } else {
        scheduler_outcome_cancel(scheduler, value);
    }
}
