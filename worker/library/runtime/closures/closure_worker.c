/* SPDX-License-Identifier: Apache-2.0
 * A worker's loop; see closure_worker.h. Called by the runtime's roles/. */
#include "worker/library/runtime/closures/closure_worker.h"

#include <stdlib.h>

#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/closures/closure.h"
#include "worker/library/runtime/closures/closure_run.h"
#include "worker/library/runtime/closures/closure_wire.h"
#include "worker/library/trace/trace.h"

#define DIAL_TIMEOUT_US (UINT64_C(10) * CADRE_US_PER_S)
#define LOOK_US         CADRE_US_PER_S /* how often it checks whether the job goes on */
#define AGAIN_US        (50 * CADRE_US_PER_MS)

struct worker {
    struct ps_job_state *ps_job;
    struct closure_inbox inbox;
    struct worker_objects objects;
    struct worker_strategy strategy;
};

/* A name from the chief: bounded, and ended by the inbox's zero. */
static cadre_status closure_worker_make(
    struct worker *worker, const struct message *message, struct cadre_error *error)
{
    if (message->frame.bytes >= LIMIT_NAME_BYTES) {
        return cadre_error_set(error, CADRE_INTERNAL, "the chief sent a name of %llu bytes",
            (unsigned long long)message->frame.bytes);
    }
    return worker_objects_make(&worker->objects, worker->strategy.strategy->local_replicas,
        message->frame.id, message->frame.args[0], (const char *)message->bytes, error);
}

static cadre_status closure_worker_handle(
    struct worker *worker, const struct message *message, struct cadre_error *error)
{
    switch (message->frame.kind) {
    case CLOSURE_START:
        return closure_run(&worker->strategy, &worker->inbox, &worker->objects, message, error);
    case CLOSURE_MAKE:
        return closure_worker_make(worker, message, error);
    default:
        return cadre_error_set(
            error, CADRE_INTERNAL, "the chief sent a frame of kind %u", message->frame.kind);
    }
}

/* Handles messages until the connection is lost or the job is over. True: the chief has sent that
 * it is done. */
static bool closure_worker_serve(struct worker *worker, struct link *link)
{
    struct cadre_error error = {0};
    if (closure_inbox_open(&worker->inbox, link, &error) != CADRE_OK) {
        return false;
    }
    cadre_status status = CADRE_OK;
    struct trace_mark wait = trace_begin();
    while (status == CADRE_OK) {
        struct message *message = NULL;
        enum closure_inbox_event news = closure_inbox_take(&worker->inbox, &message);
        if (news == INBOX_MESSAGE) {
            trace_end(wait, TRACE_WAIT, 0);
            status = closure_worker_handle(worker, message, &error);
            wait = trace_begin();
        } else if (news == INBOX_NOTHING) {
            status = directory_ended(worker->ps_job->directory, &error);
        } else {
            status = CADRE_UNAVAILABLE;
        }
        free(message);
    }
    closure_inbox_close(&worker->inbox);
    worker_objects_clear(&worker->objects);
    return worker->inbox.goodbye;
}

/* Connects to the chief at its address of now. CADRE_OK also without a link: the caller tries
 * again. */
static cadre_status closure_worker_dial(
    struct ps_job_state *ps_job, struct link **ret_link, struct cadre_error *error)
{
    struct directory_member chief;
    struct cadre_error refused;
    *ret_link = NULL;
    cadre_status status =
        directory_await(ps_job->directory, ROLE_CHIEF, 0, 0, LOOK_US, &chief, error);
    if (status == CADRE_OK &&
        link_connect(&ps_job->terms, "the chief", chief.address, chief.slot, DIAL_TIMEOUT_US,
            ret_link, &refused) != CADRE_OK &&
        refused.code == CADRE_FAILED_PRECONDITION) {
        *error = refused; /* another program: trying again does not help */
        status = error->code;
    }
    return status == CADRE_DEADLINE_EXCEEDED ? CADRE_OK : status;
}

static void wait_a_little(struct ps_job_state *ps_job, uint64_t *seen, uint64_t wait_timeout_us)
{
    *seen = directory_await_change(ps_job->directory, *seen, wait_timeout_us);
}

cadre_status closure_worker_run(struct ps_job_state *ps_job, struct cadre_error *error)
{
    CADRE_ASSERT(ps_job->role == ROLE_WORKER);
    CADRE_ASSERT(ps_job->directory != NULL);
    struct worker worker = {.ps_job = ps_job};
    bool goodbye = false;
    uint64_t seen = 0;
    cadre_status status = CADRE_OK;
    closure_worker_enter(ps_job->index);
    context_set_worker(true);
    while (status == CADRE_OK) {
        struct link *link = NULL;
        if (!goodbye) {
            status = closure_worker_dial(ps_job, &link, error);
        }
        if (link != NULL) {
            status = worker_strategy_open(&worker.strategy, ps_job, error);
            goodbye = status == CADRE_OK && closure_worker_serve(&worker, link);
            worker_strategy_close(&worker.strategy);
            link_free(link);
        } else if (status == CADRE_OK) {
            wait_a_little(ps_job, &seen, goodbye ? LOOK_US : AGAIN_US);
        }
        if (status == CADRE_OK) {
            status = directory_ended(ps_job->directory, error);
        }
    }
    context_set_worker(false);
    closure_worker_enter(UINT32_MAX);
    return status == CADRE_CANCELLED ? CADRE_OK : status;
}
