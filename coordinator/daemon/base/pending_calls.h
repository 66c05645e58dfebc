/* SPDX-License-Identifier: Apache-2.0
 * Requests that change something, of gRPC and of the pages of --http: they are answered once their
 * records are durable, at the end of a turn. */
#ifndef CADRE_COORDINATOR_BASE_PENDING_CALLS_H
#define CADRE_COORDINATOR_BASE_PENDING_CALLS_H

#include "common/model/client_message.h"
#include "coordinator/engine/engine.h"

struct daemon;
struct pending_call;

/* Borrowed for the call. */
struct pending_result {
    struct job_id job;
    uint32_t queued_before;
    const char *text;
};

/* Receives the answer, once, after the request was made; error->code other than OK: it failed, and
 * the result says nothing. */
typedef void pending_answer_fn(struct daemon *daemon, void *user,
    const struct pending_result *result, struct cadre_error *error);

/* Each makes the request; NULL: the error, and nothing is called. RESOURCE_EXHAUSTED: no memory, or
 * no room on the disk. */
struct pending_call *pending_submit(struct daemon *daemon, const struct job_spec *spec,
    pending_answer_fn *answer, void *user, struct cadre_error *error);
struct pending_call *pending_cancel(struct daemon *daemon, struct job_id job,
    pending_answer_fn *answer, void *user, struct cadre_error *error);
struct pending_call *pending_checkpoint(struct daemon *daemon, struct job_id job,
    pending_answer_fn *answer, void *user, struct cadre_error *error);
/* `who` is the client, for listings and the log. */
struct pending_call *pending_drain(struct daemon *daemon, const struct drain_request *request,
    const char *who, pending_answer_fn *answer, void *user, struct cadre_error *error);

/* The client is gone: the request is carried out all the same. */
void pending_forget(struct pending_call *pending);

/* The engine's sink, whose user is the daemon: once for each request that it was given. */
void pending_answer(void *user, struct call_id call, cadre_status code, struct job_id job,
    uint32_t queued_before, const char *text);
/* The engine holds the turn: the requests of this turn are answered with the reason. */
void pending_answer_held(struct daemon *daemon);
/* Answers what is left, and frees it. */
void pending_close(struct daemon *daemon);

#endif
