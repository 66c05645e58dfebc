/* SPDX-License-Identifier: Apache-2.0
 * The answers of single verbs as JSON, beside those of common/json; printing. The keys are stable;
 * README.md documents them. Each object here is the caller's to json_decref(); NULL: out of
 * memory. */
#ifndef CADRE_CLI_RENDER_JSON_H
#define CADRE_CLI_RENDER_JSON_H

#include <jansson.h>
#include <stdio.h>

#include "cadre/client.h"
#include "common/json/json.h"
#include "coordinator/cli/render/comparison.h"

/* What became of the argument `word` of `cadre cancel`; `job` is NULL when it failed. */
json_t *json_of_cancelled(
    const char *word, cadre_status status, const char *message, const cadre_job *job);
/* These of several arguments; takes over the array. */
json_t *json_of_cancellations(json_t *answers);
/* The comparison of two jobs. */
json_t *json_of_comparison(const struct comparison *comparison);
/* The files with their sizes. */
json_t *json_of_outputs(const cadre_output_list *list);
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
