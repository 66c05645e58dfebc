/* SPDX-License-Identifier: Apache-2.0
 * The listings as JSON for programs. The keys are stable; README.md documents them. */
#ifndef CADRE_CLI_RENDER_JSON_H
#define CADRE_CLI_RENDER_JSON_H

#include <jansson.h>
#include <stdio.h>

#include "cadre/client.h"
#include "coordinator/cli/render/comparison.h"

/* A job, with "tasks" when it has some. Each object here is the caller's to json_decref(); NULL:
 * out of memory. */
json_t *json_of_job(const cadre_job *job);
/* What became of the argument `word` of `cadre cancel`; `job` is NULL when it failed. */
json_t *json_of_cancelled(
    const char *word, cadre_status status, const char *message, const cadre_job *job);
/* These of several arguments; takes over the array. */
json_t *json_of_cancellations(json_t *answers);
/* Of each dataset which task reads what. */
json_t *json_of_shards(const cadre_job *job);
/* The list without tasks. */
json_t *json_of_jobs(const cadre_job_list *list);
/* The values by step, with the generations (json_metrics.c). */
json_t *json_of_metrics(uint64_t job, const cadre_job_series *metrics);
/* The proof with its conclusion. */
json_t *json_of_verification(const cadre_verification *verification);
/* The comparison of two jobs. */
json_t *json_of_comparison(const struct comparison *comparison);
/* The workers with their GPUs. */
json_t *json_of_workers(const cadre_worker_list *list);
/* The files with their sizes. */
json_t *json_of_outputs(const cadre_output_list *list);
/* A line of a task's log, or a piece of one; `log` has what is true of its first byte, and its
 * bytes are not read. */
json_t *json_of_text_line(uint64_t job, const cadre_log *log, const char *text_line, size_t size);
/* `tasks`: how many are left on the worker; NULL: the coordinator has no such worker any more. */
json_t *json_of_drained(const char *worker, const uint32_t *tasks);
/* The number of the new job. */
json_t *json_of_submitted(const cadre_submitted *submitted);
/* NULL: no coordinator answered. */
json_t *json_of_version(const cadre_coordinator_version *version);

/* Prints and releases; false when there is none. */
bool json_print(json_t *json, FILE *out);
/* The same on one line. */
bool json_print_compact(json_t *json, FILE *out);

#endif
