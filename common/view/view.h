/* SPDX-License-Identifier: Apache-2.0
 * From model structs to the public ones of cadre/client.h: for libcadre-client, whose answers they
 * are, and for programs that have the model structs themselves.
 *
 * Each `_new` makes a result for cadre_result_release(). Its texts are those of what it was made
 * of: they live in `arena`, which belongs to the result from then on, or, when that is NULL,
 * outlive it. NULL: out of memory, and the arena is still the caller's. */
#ifndef CADRE_VIEW_VIEW_H
#define CADRE_VIEW_VIEW_H

#include "cadre/client.h"
#include "cadre/client_coordinators.h"
#include "cadre/client_trace.h"
#include "common/wire/wire.h"

/* A job with its tasks and shards. */
cadre_job *view_job_new(const struct job_info *info, struct wire_arena *arena);

/* Jobs without their tasks and shards. */
cadre_job_list *view_jobs_new(const struct list_jobs_response *response, struct wire_arena *arena);

/* Workers with their GPUs. */
cadre_worker_list *view_workers_new(
    const struct list_workers_response *response, struct wire_arena *arena);

/* What a job's program reported, by step. */
cadre_job_series *view_series_new(
    const struct metrics_response *response, struct wire_arena *arena);

/* What happened to a job, and when. */
cadre_history *view_history_new(const struct history_response *response, struct wire_arena *arena);

/* Where the coordinator's pages are. */
cadre_login *view_login_new(const struct login_response *response, struct wire_arena *arena);

/* The coordinator's version. */
cadre_coordinator_version *view_version_new(
    const struct version_response *response, struct wire_arena *arena);

/* The coordinators of a cluster. */
cadre_coordinator_list *view_coordinators_new(
    const struct list_coordinators_response *response, struct wire_arena *arena);

/* Fills an array of the caller's; the texts stay those of the model. */
void view_spans(const struct trace_span *from, size_t count, cadre_trace_span *ret);
void view_traced_tasks(const struct trace_task *from, size_t count, cadre_trace_task *ret);

#endif
