/* SPDX-License-Identifier: Apache-2.0
 * `cadre metrics`: what a job's program reported, by step. */
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/near_miss.h"
#include "common/model/limits.h"
#include "coordinator/cli/cli.h"
#include "coordinator/cli/hints.h"
#include "coordinator/cli/job_options.h"
#include "coordinator/cli/render/json.h"
#include "coordinator/cli/render/render_metrics.h"

#define PIPE_COLUMNS 80 /* of curves that are no terminal's */
#define FOLLOW_MS    1000

struct metrics_options {
    struct cli_common common;
    bool csv;
    bool plot;
    bool follow;
    char *steps;
};

/* What the options say. */
struct metrics_view {
    const struct metrics_options *options;
    bool csv;
    bool table;
    bool curves;
    uint64_t job;
    cadre_metrics_options request;
    const char *names[LIMIT_JOB_SERIES];
};

/* ---- options ---- */

static bool metrics_take_options(
    const struct invocation *invocation, struct metrics_view *view, int *ret_exit)
{
    const struct metrics_options *options = view->options;
    bool json = options->common.json;
    bool terminal = isatty(STDOUT_FILENO) != 0;
    if ((json ? 1 : 0) + (options->csv ? 1 : 0) + (options->plot ? 1 : 0) > 1) {
        *ret_exit = invocation_usage(invocation,
            "--json, --csv and --plot: give one of them; without any a terminal gets a table with "
            "curves, and a pipe or file CSV");
        return false;
    }
    if (options->follow && json) {
        *ret_exit = invocation_usage(
            invocation, "--follow prints CSV or curves; for --json request it again");
        return false;
    }
    view->csv = options->csv || (!json && !options->plot && !terminal);
    view->curves = !json && !view->csv;
    view->table = view->curves && !options->plot;
    if (options->steps != NULL &&
        !step_range_parse(options->steps, &view->request.first_step, &view->request.last_step)) {
        *ret_exit = invocation_usage(invocation,
            "--steps: \"%s\" is not A:B with A <= B and B at least 1; A: and :B are open ranges",
            options->steps);
        return false;
    }
    return true;
}

static bool take_names(
    const struct invocation *invocation, struct metrics_view *view, int *ret_exit)
{
    int count = invocation_argument_count(invocation) - 1;
    if (count > LIMIT_JOB_SERIES) {
        *ret_exit = invocation_usage(
            invocation, "%d names are given; a job has %d at most", count, LIMIT_JOB_SERIES);
        return false;
    }
    for (int i = 0; i < count; i++) {
        view->names[i] = invocation_argument(invocation, i + 1);
    }
    view->request.names = view->names;
    view->request.name_count = count > 0 ? (size_t)count : 0;
    return true;
}

/* ---- names that there are not ---- */

static bool has_name(const cadre_job_series *metrics, const char *name)
{
    size_t at = 0;
    while (at < metrics->count && strcmp(metrics->series[at].name, name) != 0) {
        at++;
    }
    return at < metrics->count;
}

/* The first name that the job has not reported, with what was meant. */
static int fail_name(const struct invocation *invocation, cadre_client *client,
    const struct metrics_view *view, const char *name)
{
    cadre_job_series *all = NULL;
    struct near_miss search;
    char sentence[HINT_BYTES];
    near_miss_begin(&search, name);
    if (cadre_client_metrics(client, view->job, NULL, &all, NULL) == CADRE_OK) {
        for (size_t i = 0; i < all->count; i++) {
            near_miss_offer(&search, all->series[i].name);
        }
    }
    bool known = all != NULL && has_name(all, name);
    size_t count = all != NULL ? all->count : 0;
    snprintf(sentence, sizeof sentence, "job %" PRIu64 " has no value \"%.128s\"%s", view->job,
        name,
        known        ? " of these steps"
        : count == 0 ? ": it has reported nothing so far"
                     : "");
    size_t length = strlen(sentence);
    if (!known && search.best[0] != '\0') {
        snprintf(
            sentence + length, sizeof sentence - length, "; did you mean \"%.128s\"?", search.best);
    } else if (!known && count > 0) {
        snprintf(sentence + length, sizeof sentence - length,
            "; `cadre metrics %" PRIu64 "` shows those that it has", view->job);
    }
    cadre_result_release(all);
    return invocation_fail_with(invocation, CADRE_NOT_FOUND, sentence);
}

/* ---- printing ---- */

/* From the environment, as setlocale() reads it. */
static bool metrics_is_utf8(void)
{
    static const char *const variables[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    const char *locale = "";
    for (size_t i = 0; i < sizeof variables / sizeof variables[0] && locale[0] == '\0'; i++) {
        const char *value = getenv(variables[i]);
        locale = value != NULL ? value : "";
    }
    return strcasestr(locale, "utf-8") != NULL || strcasestr(locale, "utf8") != NULL;
}

static bool print_metrics(const struct metrics_view *view, const cadre_job_series *metrics)
{
    const struct text_style text_style = terminal_style_of(stdout);
    bool good = true;
    if (view->options->common.json) {
        return json_print_compact(json_of_series(view->job, metrics), stdout);
    }
    if (view->csv) {
        render_metrics_csv(metrics, stdout);
        return true;
    }
    if (metrics->count == 0) {
        printf("job %" PRIu64 " has reported no value%s\n", view->job,
            view->options->steps != NULL ? " of these steps" : "; cadre_report() does");
    }
    if (view->table) {
        good = render_metrics(metrics, &text_style, stdout);
    }
    if (view->curves) {
        const struct curve_style style = {
            .columns = text_style.columns > 0 ? text_style.columns : PIPE_COLUMNS,
            .braille = metrics_is_utf8()};
        render_curves(metrics, &style, stdout);
    }
    return good;
}

static int metrics_fetch(const struct invocation *invocation, cadre_client *client,
    const struct metrics_view *view, cadre_job_series **ret_metrics)
{
    cadre_status status =
        cadre_client_metrics(client, view->job, &view->request, ret_metrics, NULL);
    return status == CADRE_OK ? CLI_DONE : hint_fail_job(invocation, client, status, view->job);
}

static int show_once(
    const struct invocation *invocation, cadre_client *client, const struct metrics_view *view)
{
    cadre_job_series *metrics = NULL;
    int code = metrics_fetch(invocation, client, view, &metrics);
    for (size_t i = 0; code == CLI_DONE && i < view->request.name_count; i++) {
        if (!has_name(metrics, view->names[i])) {
            code = fail_name(invocation, client, view, view->names[i]);
        }
    }
    if (code == CLI_DONE) {
        if (view->csv) {
            render_metrics_csv_head(stdout);
        }
        code = invocation_print_status(invocation, print_metrics(view, metrics));
        render_metrics_notes(metrics, stderr);
    }
    cadre_result_release(metrics);
    return code;
}

/* ---- following ---- */

/* What was printed as CSV so far. */
struct printed {
    uint64_t generation; /* the newest one */
    size_t count;
    char names[LIMIT_JOB_SERIES][LIMIT_NAME_BYTES];
    uint64_t steps[LIMIT_JOB_SERIES]; /* of each name the last one, plus 1 */
};

static uint64_t *step_of(struct printed *printed, const char *name)
{
    size_t at = 0;
    while (at < printed->count && strcmp(printed->names[at], name) != 0) {
        at++;
    }
    if (at == printed->count && at < LIMIT_JOB_SERIES) {
        snprintf(printed->names[at], sizeof printed->names[at], "%s", name);
        printed->steps[at] = 0;
        printed->count++;
    }
    return at < LIMIT_JOB_SERIES ? &printed->steps[at] : NULL;
}

/* Steps that a newer generation does again are printed again. */
static void forget_undone(struct printed *printed, const cadre_job_series *metrics)
{
    for (size_t i = 0; i < metrics->generation_count; i++) {
        const cadre_series_generation *generation = &metrics->generations[i];
        for (size_t at = 0; generation->number > printed->generation && at < printed->count; at++) {
            uint64_t next = generation->first_step + 1;
            printed->steps[at] = next < printed->steps[at] ? next : printed->steps[at];
        }
    }
    if (metrics->generation_count > 0) {
        printed->generation = metrics->generations[metrics->generation_count - 1].number;
    }
}

static void print_new_rows(struct printed *printed, const cadre_job_series *metrics)
{
    forget_undone(printed, metrics);
    for (size_t i = 0; i < metrics->count; i++) {
        cadre_series series = metrics->series[i];
        uint64_t *next = step_of(printed, series.name);
        if (next == NULL || series.bucket_count + series.point_count == 0) {
            continue;
        }
        uint64_t newest = series.point_count > 0
                              ? series.points[series.point_count - 1].step
                              : series.buckets[series.bucket_count - 1].last_step;
        while (series.bucket_count > 0 && series.buckets[0].last_step < *next) {
            series.buckets++;
            series.bucket_count--;
        }
        while (series.point_count > 0 && series.points[0].step < *next) {
            series.points++;
            series.point_count--;
        }
        *next = newest + 1;
        render_metrics_csv(&(cadre_job_series){.series = &series, .count = 1}, stdout);
    }
}

/* Whether the job has ended; CLI_DONE, or the exit code. */
static int has_ended(
    const struct invocation *invocation, cadre_client *client, uint64_t job, bool *ret_ended)
{
    cadre_job *info = NULL;
    cadre_status status = cadre_client_job(client, job, &info, NULL);
    if (status != CADRE_OK) {
        return hint_fail_job(invocation, client, status, job);
    }
    *ret_ended = cadre_job_state_is_final(info->state);
    cadre_result_release(info);
    return CLI_DONE;
}

static int metrics_follow(
    const struct invocation *invocation, cadre_client *client, const struct metrics_view *view)
{
    struct printed printed = {0};
    bool ended = false;
    int code = CLI_DONE;
    if (view->csv) {
        render_metrics_csv_head(stdout);
    }
    while (code == CLI_DONE && !ended) {
        cadre_job_series *metrics = NULL;
        code = has_ended(invocation, client, view->job, &ended);
        code = code == CLI_DONE ? metrics_fetch(invocation, client, view, &metrics) : code;
        if (code == CLI_DONE && view->csv) {
            print_new_rows(&printed, metrics);
        } else if (code == CLI_DONE) {
            fputs(isatty(STDOUT_FILENO) != 0 ? "\033[H\033[J" : "", stdout);
            code = invocation_print_status(invocation, print_metrics(view, metrics));
        }
        cadre_result_release(metrics);
        if (fflush(stdout) != 0) {
            return code; /* the reader has left; the end reports it */
        }
        if (code == CLI_DONE && !ended) {
            (void)poll(NULL, 0, FOLLOW_MS);
        }
    }
    return code;
}

/* ---- the verb ---- */

int verb_metrics(const struct cli *cli, int argc, char **argv)
{
    static const struct option_row rows[] = {
        CLI_COORDINATOR_ROW,
        CLI_JSON_ROW("Print JSON instead; its keys are stable."),
        {OPTION_ROW(FLAG, "csv", struct metrics_options, csv, NULL, NULL),
            .help = "Print CSV: name, step, value, and of steps that are not kept one by one the "
                    "mean with minimum, maximum, first step and count."},
        {OPTION_ROW(FLAG, "plot", struct metrics_options, plot, NULL, NULL),
            .help = "Print the curves only, also to a pipe: in Braille where the locale is UTF-8, "
                    "else in ASCII. A + below marks a step at which a generation began."},
        {OPTION_ROW(TEXT, "steps", struct metrics_options, steps, "A:B", NULL),
            .help = "Only of these steps; A: and :B are open ranges."},
        {OPTION_ROW(FLAG, "follow", struct metrics_options, follow, NULL, NULL), .letter = 'f',
            .help = "Go on until the job has ended: curves are drawn again, CSV gets rows as they "
                    "come, those of steps that are done again too."},
    };
    static const struct option_table table = {.program = "cadre metrics",
        .usage = "JOB [METRIC...]",
        .summary =
            "Shows what a job's program reported with cadre_report, by step: on a terminal a table "
            "of the newest values and a curve of each name, in a pipe CSV. The values are those of "
            "the steps that count: a step that was undone and done again has its newest value.",
        .notes = "  cadre metrics 3\n"
                 "  cadre metrics 3 loss --steps 1000: -f\n"
                 "  cadre metrics 3 loss accuracy --csv > curves.csv\n"
                 "  cadre metrics 3 --json | jq '.series[] | {name, newest: .points[-1]}'\n"
                 "\n"
                 "Of each name the newest 4096 values are kept one by one; of the steps before\n"
                 "them at most 1024 buckets, each with count, minimum, maximum and mean.\n",
        .rows = rows,
        .row_count = sizeof rows / sizeof rows[0],
        .positionals_max = 1 + LIMIT_JOB_SERIES};
    struct metrics_options options = {0};
    struct metrics_view view = {.options = &options};
    struct invocation invocation;
    cadre_client *client = NULL;
    int code = CLI_DONE;
    if (invocation_open(&invocation, cli, &table, &options, argc, argv, &code) &&
        invocation_job(&invocation, 0, &view.job, &code) &&
        metrics_take_options(&invocation, &view, &code) && take_names(&invocation, &view, &code) &&
        invocation_connect(&invocation, NULL, &client, &code)) {
        code = options.follow ? metrics_follow(&invocation, client, &view)
                              : show_once(&invocation, client, &view);
        code = invocation_end(&invocation, code);
    }
    cadre_client_release(client);
    invocation_close(&invocation);
    return code;
}
