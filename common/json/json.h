/* SPDX-License-Identifier: Apache-2.0
 * The structs of cadre/client.h as JSON: what --json of the verbs prints, and what the coordinator
 * answers below /api/. The keys are stable; coordinator/cli/README.md documents them.
 *
 * Each object is the caller's to json_decref(); NULL: out of memory. */
#ifndef CADRE_JSON_JSON_H
#define CADRE_JSON_JSON_H

#include <jansson.h>

#include "cadre/client.h"
#include "cadre/client_coordinators.h"
#include "common/view/cluster_sums.h"

/* A job, with "tasks" when it has some. */
json_t *json_of_job(const cadre_job *job);
/* Of each dataset which task reads what. */
json_t *json_of_shards(const cadre_job *job);
/* The list without tasks. */
json_t *json_of_jobs(const cadre_job_list *list);
/* The values by step, with the generations. */
json_t *json_of_series(uint64_t job, const cadre_job_series *series);
/* What happened to a job, and when: a page. */
json_t *json_of_history(const cadre_history *history);
/* One event of it. */
json_t *json_of_event(const cadre_event *event);
/* The proof with its conclusion. */
json_t *json_of_verification(const cadre_verification *verification);
/* The workers with their GPUs. */
json_t *json_of_workers(const cadre_worker_list *list);
/* The coordinators of a cluster. */
json_t *json_of_coordinators(const cadre_coordinator_list *list);
/* A line of a task's log, or a piece of one; `log` has what is true of its first byte, and its
 * bytes are not read. */
json_t *json_of_text_line(uint64_t job, const cadre_log *log, const char *text_line, size_t size);
/* A cluster in a few numbers, as of this time. */
json_t *json_of_cluster(uint64_t time_us, const struct cluster_sums *sums);
/* The coordinator's part of `version --json`. */
json_t *json_of_coordinator(const cadre_coordinator_version *version);

#endif
