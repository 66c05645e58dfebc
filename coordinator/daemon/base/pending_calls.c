/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/daemon/base/pending_calls.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "coordinator/daemon/base/daemon.h"
#include "coordinator/daemon/base/disk.h"

struct pending_call {
    struct pending_call *next;
    struct call_id id;
    pending_answer_fn *answer; /* NULL: the client is gone */
    void *user;
    char drained[LIMIT_NAME_BYTES]; /* the worker that a drain names, else "" */
    char drained_by[LIMIT_NAME_BYTES];
    bool undrains; /* it ends one */
};

static struct pending_call *pending_add(
    struct daemon *daemon, pending_answer_fn *answer, void *user, struct cadre_error *error)
{
    if (disk_check_ledger(daemon, error) != CADRE_OK) {
        return NULL;
    }
    struct pending_call *pending = calloc(1, sizeof *pending);
    if (pending == NULL) {
        cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "the coordinator has no memory for another call");
        return NULL;
    }
    *pending = (struct pending_call){
        .next = daemon->pending, .id = {++daemon->call_last}, .answer = answer, .user = user};
    daemon->pending = pending;
    return pending;
}

/* ---- requests ---- */

struct pending_call *pending_submit(struct daemon *daemon, const struct job_spec *spec,
    pending_answer_fn *answer, void *user, struct cadre_error *error)
{
    struct pending_call *pending = pending_add(daemon, answer, user, error);
    if (pending != NULL) {
        engine_submit(daemon->engine, clock_monotonic_us(), pending->id, spec);
    }
    return pending;
}

struct pending_call *pending_cancel(struct daemon *daemon, struct job_id job,
    pending_answer_fn *answer, void *user, struct cadre_error *error)
{
    struct pending_call *pending = pending_add(daemon, answer, user, error);
    if (pending != NULL) {
        engine_cancel(daemon->engine, clock_monotonic_us(), pending->id, job);
    }
    return pending;
}

struct pending_call *pending_checkpoint(struct daemon *daemon, struct job_id job,
    pending_answer_fn *answer, void *user, struct cadre_error *error)
{
    struct pending_call *pending = pending_add(daemon, answer, user, error);
    if (pending != NULL) {
        engine_checkpoint_now(daemon->engine, clock_monotonic_us(), pending->id, job);
    }
    return pending;
}

struct pending_call *pending_drain(struct daemon *daemon, const struct drain_request *request,
    const char *who, pending_answer_fn *answer, void *user, struct cadre_error *error)
{
    struct pending_call *pending = pending_add(daemon, answer, user, error);
    if (pending != NULL) {
        snprintf(pending->drained, sizeof pending->drained, "%s", request->worker);
        snprintf(pending->drained_by, sizeof pending->drained_by, "%s", who);
        pending->undrains = request->ends;
        engine_drain(
            daemon->engine, clock_monotonic_us(), pending->id, request, pending->drained_by);
    }
    return pending;
}

void pending_forget(struct pending_call *pending)
{
    pending->answer = NULL;
}

/* ---- answers ---- */

void pending_answer(void *user, struct call_id call, cadre_status code, struct job_id job,
    uint32_t queued_before, const char *text)
{
    struct daemon *daemon = user;
    struct pending_call **at = &daemon->pending;
    while (*at != NULL && (*at)->id.n != call.n) {
        at = &(*at)->next;
    }
    struct pending_call *pending = *at;
    if (pending == NULL) {
        return;
    }
    *at = pending->next;
    if (code == CADRE_OK && pending->drained[0] != '\0') {
        log_event(LOG_LEVEL_INFO, "jobs",
            pending->undrains ? "a worker is not drained any more" : "a worker is drained",
            LOG_STR("worker", pending->drained), LOG_STR("by", pending->drained_by));
    }
    struct cadre_error error = {0};
    if (code != CADRE_OK) {
        cadre_error_set(&error, code, "%s", text);
    }
    if (pending->answer != NULL) {
        const struct pending_result result = {
            .job = job, .queued_before = queued_before, .text = text};
        pending->answer(daemon, pending->user, &result, &error);
    }
    free(pending);
}

static void pending_fail(
    struct daemon *daemon, struct pending_call *pending, struct cadre_error *error)
{
    if (pending->answer != NULL) {
        const struct pending_result none = {.text = ""};
        pending->answer(daemon, pending->user, &none, error);
        pending->answer = NULL;
    }
}

/* The requests are carried out when there is room, and not undone. */
void pending_answer_held(struct daemon *daemon)
{
    for (struct pending_call *pending = daemon->pending; pending != NULL; pending = pending->next) {
        struct cadre_error error = {0};
        cadre_error_set(&error, CADRE_UNKNOWN,
            "the coordinator's disk is full: the request is carried out when there is room; free "
            "space in %s, then look at `cadre jobs` and `cadre workers`",
            daemon->options.state_dir);
        pending_fail(daemon, pending, &error);
    }
}

void pending_close(struct daemon *daemon)
{
    while (daemon->pending != NULL) {
        struct pending_call *next = daemon->pending->next;
        struct cadre_error error = {0};
        cadre_error_set(&error, CADRE_UNAVAILABLE, "the coordinator is shutting down");
        pending_fail(daemon, daemon->pending, &error);
        free(daemon->pending);
        daemon->pending = next;
    }
}
