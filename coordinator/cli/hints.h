/* SPDX-License-Identifier: Apache-2.0
 * What a user may have meant, where something does not exist: the failure's sentence with "; did
 * you mean ...?" behind it. Each asks the coordinator for one list more; without an answer the
 * sentence stays as it is. */
#ifndef CADRE_CLI_HINTS_H
#define CADRE_CLI_HINTS_H

#include "coordinator/cli/cli.h"

#define HINT_BYTES 512

/* "; did you mean 12?", "; the newest is 12" or "" for a job that there may not be. */
void hint_job(cadre_client *client, uint64_t job, char ret_hint[HINT_BYTES]);

/* The same for a word where a job's number belongs: the newest job of that name. Connects by
 * itself. */
void hint_job_name(
    const struct invocation *invocation, const char *word, char ret_hint[HINT_BYTES]);

/* As invocation_fail(), with the hint when the status is NOT_FOUND. */
int hint_fail_job(
    const struct invocation *invocation, cadre_client *client, cadre_status status, uint64_t job);
int hint_fail_worker(const struct invocation *invocation, cadre_client *client, cadre_status status,
    const char *worker);
/* `message` is the failure; `list`: the job's outputs. A path without the task's folder is found,
 * too. */
int hint_fail_output(const struct invocation *invocation, const cadre_output_list *list,
    cadre_status status, const char *message, const char *path);

#endif
