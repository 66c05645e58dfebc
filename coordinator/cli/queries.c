/* SPDX-License-Identifier: Apache-2.0
 * The verbs of one request and one printed answer: jobs, job, checkpoint, version. */
#include <inttypes.h>

#include "common/base/clock.h"
#include "coordinator/cli/cli.h"
#include "coordinator/cli/hints.h"
#include "coordinator/cli/render/json.h"
#include "coordinator/cli/render/render.h"

#define ROWS(array) .rows = (array), .row_count = sizeof(array) / sizeof(array)[0]

static const struct option_row plain_rows[] = {
    CLI_COORDINATOR_ROW,
    CLI_JSON_ROW("Print JSON instead; its keys are stable."),
};

/* Sends the request and prints the answer; `job` is 0 for a verb without a job. */
typedef int act_fn(const struct invocation *invocation, cadre_client *client, uint64_t job);

/* What three of the four share: parse the arguments, connect, then `act`. */
static int queries_query(const struct cli *cli, const struct option_table *table, void *values,
    int argc, char **argv, act_fn *act)
{
    struct invocation invocation;
    cadre_client *client = NULL;
    uint64_t job = 0;
    int code = CLI_DONE;
    if (invocation_open(&invocation, cli, table, values, argc, argv, &code) &&
        (table->positionals_max == 0 || invocation_job(&invocation, 0, &job, &code)) &&
        invocation_connect(&invocation, NULL, &client, &code)) {
        code = act(&invocation, client, job);
        invocation_print_age(&invocation, client);
        code = invocation_end(&invocation, code);
    }
    cadre_client_release(client);
    invocation_close(&invocation);
    return code;
}

static bool wants_json(const struct invocation *invocation)
{
    const struct cli_common *common = invocation->values;
    return common->json;
}

/* ---- jobs ---- */

struct jobs_options {
    struct cli_common common;
    bool all;
};

static int act_jobs(const struct invocation *invocation, cadre_client *client, uint64_t job)
{
    (void)job;
    const struct jobs_options *options = invocation->values;
    cadre_job_list *list = NULL;
    cadre_status status = cadre_client_jobs(client, &list, NULL);
    if (status != CADRE_OK) {
        return invocation_fail(invocation, status);
    }
    const struct text_style text_style = terminal_style_of(stdout);
    bool good = wants_json(invocation)
                    ? json_print(json_of_jobs(list), stdout)
                    : render_jobs(list, options->all, clock_wall_us(), &text_style, stdout);
    cadre_result_release(list);
    return invocation_print_status(invocation, good);
}

int verb_jobs(const struct cli *cli, int argc, char **argv)
{
    static const struct option_row rows[] = {
        CLI_COORDINATOR_ROW,
        CLI_JSON_ROW("Print JSON instead, always of all jobs; its keys are stable."),
        CLI_STALE_ROW,
        {OPTION_ROW(FLAG, "all", struct jobs_options, all, NULL, NULL), .letter = 'a',
            .help = "All jobs that the coordinator lists, not only those that have not ended and "
                    "the newest that have."},
    };
    static const struct option_table table = {
        .program = "cadre jobs", .summary = "Lists the jobs, newest first.", ROWS(rows)};
    struct jobs_options options = {0};
    return queries_query(cli, &table, &options, argc, argv, act_jobs);
}

/* ---- job and checkpoint ---- */

static int print_job(const struct invocation *invocation, cadre_job *job)
{
    const struct text_style text_style = terminal_style_of(stdout);
    bool good = wants_json(invocation) ? json_print(json_of_job(job), stdout)
                                       : render_job(job, clock_wall_us(), &text_style, stdout);
    cadre_result_release(job);
    return invocation_print_status(invocation, good);
}

struct job_options {
    struct cli_common common;
    bool shards;
};

static int print_shards(const struct invocation *invocation, cadre_job *job)
{
    const struct text_style text_style = terminal_style_of(stdout);
    bool good = wants_json(invocation) ? json_print(json_of_shards(job), stdout)
                                       : render_shards(job, &text_style, stdout);
    cadre_result_release(job);
    return invocation_print_status(invocation, good);
}

static int act_job(const struct invocation *invocation, cadre_client *client, uint64_t id)
{
    const struct job_options *options = invocation->values;
    cadre_job *job = NULL;
    cadre_status status = cadre_client_job(client, id, &job, NULL);
    if (status != CADRE_OK) {
        return hint_fail_job(invocation, client, status, id);
    }
    return options->shards ? print_shards(invocation, job) : print_job(invocation, job);
}

int verb_job(const struct cli *cli, int argc, char **argv)
{
    static const struct option_row rows[] = {
        CLI_COORDINATOR_ROW,
        CLI_JSON_ROW("Print JSON instead; its keys are stable."),
        CLI_STALE_ROW,
        {OPTION_ROW(FLAG, "shards", struct job_options, shards, NULL, NULL), .letter = 's',
            .help = "Which task reads which part of each distributed dataset, as the chief last "
                    "reported it: for a dataset that is shared out by files each file's reader and "
                    "how far it "
                    "is."},
    };
    static const struct option_table table = {.program = "cadre job",
        .usage = "ID",
        .summary = "Shows one job with its tasks.",
        .notes =
            "A generation is a set of tasks that train together; each loss, join or drain makes "
            "a\nnew one. INCARNATION counts the processes that the job has started: a task that "
            "was "
            "replaced\nhas a higher one. RESTARTS counts failures, against --max-restarts.\n",
        ROWS(rows),
        .positionals_max = 1};
    struct job_options options = {0};
    return queries_query(cli, &table, &options, argc, argv, act_job);
}

static int act_checkpoint(const struct invocation *invocation, cadre_client *client, uint64_t id)
{
    cadre_job *job = NULL;
    cadre_status status = cadre_client_checkpoint(client, id, &job, NULL);
    if (status != CADRE_OK) {
        return hint_fail_job(invocation, client, status, id);
    }
    if (wants_json(invocation)) {
        return print_job(invocation, job);
    }
    printf("job %" PRIu64 " saves before the next step that no task has begun: `cadre job %" PRIu64
           "` shows its newest checkpoint\n",
        id, id);
    cadre_result_release(job);
    return CLI_DONE;
}

int verb_checkpoint(const struct cli *cli, int argc, char **argv)
{
    static const struct option_table table = {.program = "cadre checkpoint",
        .usage = "ID",
        .summary = "Makes a job save its state now: all of its tasks at one step, the next that "
                   "none has begun. The training goes on.",
        ROWS(plain_rows),
        .positionals_max = 1};
    struct cli_common options = {0};
    return queries_query(cli, &table, &options, argc, argv, act_checkpoint);
}

/* ---- version ---- */

static int print_versions(
    const struct invocation *invocation, const cadre_coordinator_version *version)
{
    if (wants_json(invocation)) {
        return invocation_print_status(invocation, json_print(json_of_version(version), stdout));
    }
    printf("cadre %s\n", CADRE_VERSION);
    if (version != NULL) {
        char text[RENDER_BYTES];
        uint64_t now_us = clock_wall_us();
        uint64_t up_us = now_us > version->started_us ? now_us - version->started_us : 0;
        printf("coordinator %s, up for %s: %" PRIu64 " live job%s, %" PRIu64
               " worker%s; worker protocol %" PRIu32 ", task frames %" PRIu32 "\n",
            version->version, render_age(up_us, text), version->jobs_live,
            version->jobs_live == 1 ? "" : "s", version->workers, version->workers == 1 ? "" : "s",
            version->agent_protocol, version->task_frame);
    }
    return CLI_DONE;
}

/* The own version is printed also when no coordinator answers. */
int verb_version(const struct cli *cli, int argc, char **argv)
{
    static const struct option_table table = {.program = "cadre version",
        .summary = "Prints the version of this command and that of the coordinator.",
        ROWS(plain_rows)};
    struct cli_common options = {0};
    struct invocation invocation;
    cadre_client *client = NULL;
    cadre_coordinator_version *version = NULL;
    int code = CLI_DONE;
    if (invocation_open(&invocation, cli, &table, &options, argc, argv, &code)) {
        if (invocation_connect(&invocation, NULL, &client, &code)) {
            cadre_status status = cadre_client_version(client, &version, NULL);
            code = status == CADRE_OK ? CLI_DONE : invocation_fail(&invocation, status);
        }
        if (code != CLI_USAGE) {
            int rc = print_versions(&invocation, version);
            code = invocation_end(&invocation, code != CLI_DONE ? code : rc);
        }
    }
    cadre_result_release(version);
    cadre_client_release(client);
    invocation_close(&invocation);
    return code;
}
