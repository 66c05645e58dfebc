/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/cli/hints.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/near_miss.h"

#define LIST_TIMEOUT_US (2 * CADRE_US_PER_S) /* a hint is not worth a longer wait */
#define SENTENCE_BYTES  2048

/* The thread's last failure with the hint behind it. */
static int fail_with_hint(
    const struct invocation *invocation, cadre_status status, const char *failure, const char *hint)
{
    char sentence[SENTENCE_BYTES];
    snprintf(sentence, sizeof sentence, "%.1500s%s", failure, hint);
    return invocation_fail_with(invocation, status, sentence);
}

/* The message of the failure before the request for a list replaces it. */
static void keep_failure(char ret_failure[SENTENCE_BYTES])
{
    snprintf(ret_failure, SENTENCE_BYTES, "%s", cadre_error_message());
}

/* ---- jobs ---- */

void hint_job(cadre_client *client, uint64_t job, char ret_hint[HINT_BYTES])
{
    cadre_job_list *list = NULL;
    char word[24];
    struct near_miss search;
    ret_hint[0] = '\0';
    if (cadre_client_jobs(client, &list, NULL) != CADRE_OK) {
        return;
    }
    snprintf(word, sizeof word, "%" PRIu64, job);
    near_miss_begin(&search, word);
    bool there = false;
    for (size_t i = 0; i < list->count && !there; i++) {
        char number[24];
        snprintf(number, sizeof number, "%" PRIu64, list->jobs[i].id);
        near_miss_offer(&search, number);
        there = list->jobs[i].id == job;
    }
    if (!there && search.best[0] != '\0') {
        snprintf(ret_hint, HINT_BYTES, "; did you mean %s?", search.best);
    } else if (!there && list->count > 0) {
        snprintf(ret_hint, HINT_BYTES, "; the newest is %" PRIu64, list->jobs[0].id);
    } else if (!there) {
        snprintf(ret_hint, HINT_BYTES, "; there are none yet");
    }
    cadre_result_release(list);
}

void hint_job_name(const struct invocation *invocation, const char *word, char ret_hint[HINT_BYTES])
{
    const cadre_client_options options = {.timeout_us = LIST_TIMEOUT_US};
    cadre_client *client = NULL;
    cadre_job_list *list = NULL;
    ret_hint[0] = '\0';
    if (invocation_try_connect(invocation, &options, &client) == CADRE_OK &&
        cadre_client_jobs(client, &list, NULL) == CADRE_OK) {
        struct near_miss search;
        near_miss_begin(&search, word);
        for (size_t i = 0; i < list->count; i++) {
            near_miss_offer(&search, list->jobs[i].name);
        }
        for (size_t i = 0; i < list->count && ret_hint[0] == '\0'; i++) {
            if (search.best[0] != '\0' && strcmp(list->jobs[i].name, search.best) == 0) {
                snprintf(ret_hint, HINT_BYTES, "; did you mean %" PRIu64 ", the newest job %s?",
                    list->jobs[i].id, search.best);
            }
        }
    }
    cadre_result_release(list);
    cadre_client_release(client);
}

int hint_fail_job(
    const struct invocation *invocation, cadre_client *client, cadre_status status, uint64_t job)
{
    char failure[SENTENCE_BYTES];
    char hint[HINT_BYTES] = "";
    keep_failure(failure);
    if (status == CADRE_NOT_FOUND) {
        hint_job(client, job, hint);
    }
    return fail_with_hint(invocation, status, failure, hint);
}

/* ---- workers and outputs ---- */

int hint_fail_worker(const struct invocation *invocation, cadre_client *client, cadre_status status,
    const char *worker)
{
    char failure[SENTENCE_BYTES];
    char hint[HINT_BYTES] = "";
    cadre_worker_list *list = NULL;
    keep_failure(failure);
    if (status == CADRE_NOT_FOUND && cadre_client_workers(client, NULL, &list, NULL) == CADRE_OK) {
        struct near_miss search;
        near_miss_begin(&search, worker);
        for (size_t i = 0; i < list->count; i++) {
            near_miss_offer(&search, list->workers[i].name);
        }
        if (search.best[0] != '\0' && strcmp(search.best, worker) != 0) {
            snprintf(hint, sizeof hint, "; did you mean %s?", search.best);
        }
    }
    cadre_result_release(list);
    return fail_with_hint(invocation, status, failure, hint);
}

int hint_fail_output(const struct invocation *invocation, const cadre_output_list *list,
    cadre_status status, const char *message, const char *path)
{
    char hint[HINT_BYTES] = "";
    struct near_miss whole;
    struct near_miss behind; /* compared with what follows the task's folder */
    const char *near = NULL;
    near_miss_begin(&whole, path);
    near_miss_begin(&behind, path);
    for (size_t i = 0; status == CADRE_NOT_FOUND && i < list->count; i++) {
        const char *slash = strchr(list->outputs[i].path, '/');
        size_t limits = whole.limit + behind.limit;
        near_miss_offer(&whole, list->outputs[i].path);
        near_miss_offer(&behind, slash != NULL ? slash + 1 : "");
        near = whole.limit + behind.limit < limits ? list->outputs[i].path : near;
    }
    if (near != NULL) {
        snprintf(hint, sizeof hint, "; did you mean %.400s?", near);
    }
    return fail_with_hint(invocation, status, message, hint);
}
