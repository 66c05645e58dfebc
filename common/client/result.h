/* SPDX-License-Identifier: Apache-2.0
 * From model structs to the public ones. */
#ifndef CADRE_CLIENT_RESULT_H
#define CADRE_CLIENT_RESULT_H

#include "cadre/client.h"
#include "common/wire/wire.h"

/* A result for cadre_result_release(): `bytes` of zeroed memory in front of which its owner keeps
 * `arena` (which it takes over on success; may be NULL) and, after result_array(), one array per
 * slot. NULL: out of memory. */
void *result_new(size_t bytes, struct wire_arena *arena);

#define RESULT_ARRAYS 4

/* Releases a result that failed half-way, but not its arena; accepts NULL. */
void result_discard(void *result);

/* A zeroed array that is freed with the result; `slot` is below RESULT_ARRAYS. NULL: out of
 * memory. */
void *result_array(void *result, unsigned slot, size_t count, size_t item_bytes);

/* Metrics of a job, of its progress and then of its evaluation. */
size_t view_metric_count(const struct job_info *info);

/* The public form of a job. Texts are those of `info`; metrics and tasks are written to the given
 * arrays, with room for as many as `info` has. */
void view_job(const struct job_info *info, cadre_job_metric *metrics, cadre_job_task *tasks,
    cadre_job *ret_job);

/* The same in one piece of memory of its own, to be given to cadre_result_release(); texts are
 * still those of `info`. NULL: out of memory. */
cadre_job *view_job_new(const struct job_info *info, struct wire_arena *arena);

/* `gpus` has room for info->gpus.count, and lives as long as the result. */
void view_worker(const struct worker_info *info, cadre_gpu *gpus, cadre_worker *ret_worker);

#endif
