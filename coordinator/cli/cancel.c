/* SPDX-License-Identifier: Apache-2.0
 * `cadre cancel`: one request for each job that is named; one that cannot be cancelled does not
 * keep the others from it. */
#include <inttypes.h>
#include <string.h>

#include "coordinator/cli/cli.h"
#include "coordinator/cli/hints.h"
#include "coordinator/cli/render/json.h"
#include "coordinator/cli/render/render.h"

#define JOBS_MAX 4096

struct cancellation {
    const struct invocation *invocation;
    cadre_client *client;
    json_t *answers; /* of several jobs; NULL: text, or one job */
    bool good;       /* all answers could be printed */
};

static void print_cancelled(const cadre_job *job)
{
    const struct text_style text_style = terminal_style_of(stdout);
    if (cadre_job_state_is_final(job->state)) {
        render_outcome(job, &text_style, stdout);
    } else {
        printf("job %" PRIu64 " is being cancelled", job->id);
    }
    putchar('\n');
}

/* What became of the argument `word`; `job` is NULL when it failed. */
static void report(struct cancellation *cancellation, const char *word, cadre_status status,
    const char *sentence, const cadre_job *job)
{
    const struct cli_common *common = cancellation->invocation->values;
    if (cancellation->answers != NULL) {
        json_array_append_new(
            cancellation->answers, json_of_cancelled(word, status, sentence, job));
    } else if (job != NULL && common->json) {
        cancellation->good = json_print(json_of_job(job), stdout) && cancellation->good;
    } else if (job != NULL) {
        print_cancelled(job);
    }
}

/* Of the argument `i`; returns its exit code. */
static int cancel_one(struct cancellation *cancellation, int i)
{
    const struct invocation *invocation = cancellation->invocation;
    const char *word = invocation_argument(invocation, i);
    cadre_job *job = NULL;
    uint64_t id = 0;
    int code = CLI_DONE;
    if (!invocation_job(invocation, i, &id, &code)) {
        report(cancellation, word, CADRE_INVALID_ARGUMENT, "this is not the number of a job", NULL);
        return code;
    }
    cadre_status status = cadre_client_cancel(cancellation->client, id, &job, NULL);
    report(cancellation, word, status, status == CADRE_OK ? "" : cadre_error_message(), job);
    code =
        status == CADRE_OK ? CLI_DONE : hint_fail_job(invocation, cancellation->client, status, id);
    cadre_result_release(job);
    return code;
}

static int cancel_all(struct cancellation *cancellation)
{
    const struct cli_common *common = cancellation->invocation->values;
    int count = invocation_argument_count(cancellation->invocation);
    int code = CLI_DONE;
    if (common->json && count > 1) {
        cancellation->answers = json_array();
    }
    for (int i = 0; i < count; i++) {
        if (code == CLI_NO_COORDINATOR) { /* it was lost meanwhile, and is not asked again */
            report(cancellation, invocation_argument(cancellation->invocation, i),
                CADRE_UNAVAILABLE, "no coordinator answers", NULL);
            continue;
        }
        int one = cancel_one(cancellation, i);
        code = one > code ? one : code;
    }
    if (common->json && count > 1) {
        cancellation->good = json_print(json_of_cancellations(cancellation->answers), stdout);
    }
    return cancellation->good ? code : invocation_print_status(cancellation->invocation, false);
}

int verb_cancel(const struct cli *cli, int argc, char **argv)
{
    static const struct option_row rows[] = {
        CLI_COORDINATOR_ROW,
        CLI_JSON_ROW("Print JSON instead: the job; of several an array of what became of each. Its "
                     "keys are stable."),
    };
    static const struct option_table table = {.program = "cadre cancel",
        .usage = "ID...",
        .summary = "Stops jobs: their tasks get SIGTERM, and after a while SIGKILL. A job that has "
                   "ended is not changed. One that does not exist does not keep the others from "
                   "being cancelled; the exit status is then the highest of theirs.",
        .notes = "  cadre cancel 3\n"
                 "  cadre cancel 3 4 7\n"
                 "  cadre cancel $(cadre jobs --json | jq '.jobs[] | select(.final | not) .id')\n",
        .rows = rows,
        .row_count = sizeof rows / sizeof rows[0],
        .positionals_max = JOBS_MAX};
    struct cli_common options = {0};
    struct invocation invocation;
    struct cancellation cancellation = {.invocation = &invocation, .good = true};
    uint64_t first = 0;
    int code = CLI_DONE;
    if (invocation_open(&invocation, cli, &table, &options, argc, argv, &code) &&
        (invocation_argument_count(&invocation) > 1 ||
            invocation_job(&invocation, 0, &first, &code)) &&
        invocation_connect(&invocation, NULL, &cancellation.client, &code)) {
        code = invocation_end(&invocation, cancel_all(&cancellation));
    }
    cadre_client_release(cancellation.client);
    invocation_close(&invocation);
    return code;
}
