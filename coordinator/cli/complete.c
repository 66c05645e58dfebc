/* SPDX-License-Identifier: Apache-2.0
 * What the shells offer for the next word of a verb: its table's options and choices, and what only
 * the coordinator knows: jobs, their tasks, outputs and metrics, workers. Called by deploy/cadre
 * for `cadre __complete`. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/completion.h"
#include "common/tls/identity.h"
#include "coordinator/cli/cli.h"

/* A key was pressed: who waits for longer than this types on. */
#define CONNECT_US (700 * CADRE_US_PER_MS)

static const char *value_of(const struct completion *completion, size_t row, const char *before)
{
    const char *value = completion->values[row];
    return value != NULL ? value : before;
}

/* The client of the coordinator that the words before name; NULL: none, or not in time. */
static cadre_client *complete_connect(const struct cli *cli, const struct completion *completion)
{
    const struct option_table *table = completion->table;
    cadre_client *client = NULL;
    if (table->row_count < 5 || strcmp(table->rows[0].name, "coordinator") != 0) {
        return NULL;
    }
    const cadre_client_options options = {.address = value_of(completion, 0, cli->coordinator),
        .tls_dir = value_of(completion, 1, cli->tls.dir),
        .tls_cert = value_of(completion, 2, cli->tls.cert),
        .tls_key = value_of(completion, 3, cli->tls.key),
        .tls_ca = value_of(completion, 4, cli->tls.ca),
        .timeout_us = CONNECT_US};
    return cadre_client_connect(&options, &client) == CADRE_OK ? client : NULL;
}

static bool is_given(const struct completion *completion, char *const *arguments, const char *text)
{
    for (int i = 0; i < completion->positional_count && i < COMPLETION_POSITIONALS; i++) {
        if (strcmp(arguments[completion->positionals[i]], text) == 0) {
            return true;
        }
    }
    return false;
}

/* Whether the verb changes a job, which one that has ended does not do any more. */
static bool wants_live_jobs(const struct option_table *table)
{
    return strcmp(table->program, "cadre cancel") == 0 ||
           strcmp(table->program, "cadre checkpoint") == 0;
}

static void offer_jobs(
    cadre_client *client, const struct completion *completion, char *const *arguments, FILE *out)
{
    cadre_job_list *list = NULL;
    bool live = wants_live_jobs(completion->table);
    if (cadre_client_jobs(client, &list, NULL) != CADRE_OK) {
        return;
    }
    for (size_t i = 0; i < list->count; i++) {
        const cadre_job *job = &list->jobs[i];
        if (live && cadre_job_state_is_final(job->state)) {
            continue;
        }
        char id[24];
        char step[32] = "";
        char text[256];
        snprintf(id, sizeof id, "%" PRIu64, job->id);
        if (job->position > 0) {
            snprintf(step, sizeof step, ", step %" PRIu64, job->position);
        }
        snprintf(
            text, sizeof text, "%.150s, %s%s", job->name, cadre_job_state_name(job->state), step);
        if (!is_given(completion, arguments, id)) {
            completion_offer(completion, id, text, out);
        }
    }
    cadre_result_release(list);
}

static void offer_workers(cadre_client *client, const struct completion *completion, FILE *out)
{
    cadre_worker_list *list = NULL;
    if (cadre_client_workers(client, NULL, &list, NULL) != CADRE_OK) {
        return;
    }
    for (size_t i = 0; i < list->count; i++) {
        const cadre_worker *worker = &list->workers[i];
        char text[128];
        snprintf(text, sizeof text, "%" PRIu32 " of %" PRIu32 " slots in use%s%s",
            worker->slots_used, worker->slots, worker->draining ? ", drained" : "",
            worker->connected ? "" : ", not connected");
        completion_offer(completion, worker->name, text, out);
    }
    cadre_result_release(list);
}

static void offer_tasks(
    cadre_client *client, uint64_t id, const struct completion *completion, FILE *out)
{
    cadre_job *job = NULL;
    if (cadre_client_job(client, id, &job, NULL) != CADRE_OK) {
        return;
    }
    for (size_t i = 0; i < job->task_count; i++) {
        const cadre_job_task *task = &job->tasks[i];
        char number[16];
        char text[256];
        snprintf(number, sizeof number, "%" PRIu32, task->task);
        snprintf(text, sizeof text, "%s%s%s%s%.120s", task->type, task->type[0] != '\0' ? ", " : "",
            cadre_task_state_name(task->state), task->worker[0] != '\0' ? ", on " : "",
            task->worker);
        completion_offer(completion, number, text, out);
    }
    cadre_result_release(job);
}

static void offer_outputs(
    cadre_client *client, uint64_t id, const struct completion *completion, FILE *out)
{
    cadre_output_list *list = NULL;
    if (cadre_client_outputs(client, id, &list, NULL) != CADRE_OK) {
        return;
    }
    for (size_t i = 0; i < list->count; i++) {
        completion_offer(completion, list->outputs[i].path, NULL, out);
    }
    cadre_result_release(list);
}

/* Names that the job's program reported. */
static void offer_metrics(cadre_client *client, uint64_t id, const struct completion *completion,
    char *const *arguments, FILE *out)
{
    cadre_job_series *metrics = NULL;
    if (cadre_client_metrics(client, id, NULL, &metrics, NULL) != CADRE_OK) {
        return;
    }
    for (size_t i = 0; i < metrics->count; i++) {
        if (!is_given(completion, arguments, metrics->series[i].name)) {
            completion_offer(completion, metrics->series[i].name, NULL, out);
        }
    }
    cadre_result_release(metrics);
}

static void offer_roles(const struct completion *completion, FILE *out)
{
    for (enum tls_role role = TLS_ROLE_COORDINATOR; role <= TLS_ROLE_VIEWER; role++) {
        completion_offer(completion, tls_role_name(role), NULL, out);
    }
}

/* The job that the words before name; 0: none. */
static uint64_t job_before(const struct completion *completion, char *const *arguments)
{
    return completion->positional_count > 0
               ? strtoull(arguments[completion->positionals[0]], NULL, 10)
               : 0;
}

void complete_arguments(const struct cli *cli, const struct option_table *table, int count,
    char *const *arguments, FILE *out)
{
    struct completion completion;
    completion_find(table, count, arguments, &completion);
    bool value = completion.at == COMPLETION_VALUE || completion.at == COMPLETION_POSITIONAL;
    bool jobs = completion_is(&completion, "ID") || completion_is(&completion, "JOB") ||
                completion_is(&completion, "OTHER");
    bool workers = completion_is(&completion, "WORKER");
    bool tasks = completion_is(&completion, "TASK");
    bool outputs = completion_is(&completion, "OUTPUT");
    bool metrics = completion_is(&completion, "METRIC");
    bool asks = value && (jobs || workers || tasks || outputs || metrics);
    cadre_client *client = asks ? complete_connect(cli, &completion) : NULL;
    if (client != NULL && jobs) {
        offer_jobs(client, &completion, arguments, out);
    } else if (client != NULL && workers) {
        offer_workers(client, &completion, out);
    } else if (client != NULL && tasks) {
        offer_tasks(client, job_before(&completion, arguments), &completion, out);
    } else if (client != NULL && metrics) {
        offer_metrics(client, job_before(&completion, arguments), &completion, arguments, out);
    } else if (client != NULL) {
        offer_outputs(client, job_before(&completion, arguments), &completion, out);
    } else if (value && completion_is(&completion, "ROLE")) {
        offer_roles(&completion, out);
    }
    cadre_client_release(client);
    completion_print(&completion, out);
}
