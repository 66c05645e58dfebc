/* SPDX-License-Identifier: Apache-2.0
 * `cadre history`: what happened to a job, and when. */
#include <inttypes.h>
#include <poll.h>

#include "common/json/json.h"
#include "common/model/limits.h"
#include "coordinator/cli/cli.h"
#include "coordinator/cli/hints.h"
#include "coordinator/cli/job_options.h"
#include "coordinator/cli/render/json.h"
#include "coordinator/cli/render/render_history.h"

#define PAGE      1024
#define FOLLOW_MS 1000

struct history_options {
    struct cli_common common;
    bool follow;
    uint64_t limit;
};

struct history_view {
    const struct history_options *options;
    uint64_t job;
    uint64_t after; /* the number of the last event that was printed, or that is not wanted */
    struct history_table table;
    struct text_style style;
    json_t *events;        /* of --json without --follow: all so far */
    cadre_job_state state; /* of the newest page */
};

static int history_fetch(const struct invocation *invocation, cadre_client *client,
    const struct history_view *view, uint64_t after, uint32_t limit, cadre_history **ret_history)
{
    cadre_status status = cadre_client_history(client, view->job, after, limit, ret_history, NULL);
    return status == CADRE_OK ? CLI_DONE : hint_fail_job(invocation, client, status, view->job);
}

/* Times are relative to the job's first event, and --limit counts from the newest. */
static int history_begin(
    const struct invocation *invocation, cadre_client *client, struct history_view *view)
{
    cadre_history *first = NULL;
    int code = history_fetch(invocation, client, view, 0, 1, &first);
    if (code == CLI_DONE) {
        uint64_t limit = view->options->limit;
        view->table.began_us = first->count > 0 ? first->events[0].time_us : 0;
        view->after = limit > 0 && first->last > limit ? first->last - limit : 0;
    }
    cadre_result_release(first);
    return code;
}

/* With --json and --follow each event is an object on a line of its own. */
static bool print_lines(const cadre_history *history)
{
    bool good = true;
    for (size_t i = 0; i < history->count && good; i++) {
        good = json_print_compact(json_of_event(&history->events[i]), stdout);
    }
    return good;
}

/* All pages make one object: the last one, with the events of those before it. */
static bool join_page(struct history_view *view, const cadre_history *history)
{
    json_t *page = json_of_history(history);
    json_t *events = json_object_get(page, "events");
    if (view->events == NULL) {
        view->events = json_incref(events);
    } else if (events != NULL && json_array_extend(view->events, events) == 0) {
        json_object_set(page, "events", view->events);
    }
    bool good = page != NULL && view->events != NULL;
    if (good && !history->more) {
        return json_print(page, stdout);
    }
    json_decref(page);
    return good;
}

static bool print_page(struct history_view *view, const cadre_history *history)
{
    if (view->options->common.json) {
        return view->options->follow ? print_lines(history) : join_page(view, history);
    }
    render_history(&view->table, history, &view->style, stdout);
    return true;
}

/* All that there is now. */
static int history_show(
    const struct invocation *invocation, cadre_client *client, struct history_view *view)
{
    bool more = true;
    int code = CLI_DONE;
    while (code == CLI_DONE && more) {
        cadre_history *history = NULL;
        code = history_fetch(invocation, client, view, view->after, PAGE, &history);
        if (code == CLI_DONE) {
            more = history->more;
            view->state = history->state;
            code = invocation_print_status(invocation, print_page(view, history));
            view->after =
                history->count > 0 ? history->events[history->count - 1].number : view->after;
        }
        cadre_result_release(history);
    }
    return code;
}

static int history_follow(
    const struct invocation *invocation, cadre_client *client, struct history_view *view)
{
    int code = CLI_DONE;
    do {
        code = history_show(invocation, client, view);
        if (fflush(stdout) != 0) {
            return code; /* the reader has left; the end reports it */
        }
        if (code == CLI_DONE && !cadre_job_state_is_final(view->state)) {
            (void)poll(NULL, 0, FOLLOW_MS);
        }
    } while (code == CLI_DONE && !cadre_job_state_is_final(view->state));
    return code;
}

int verb_history(const struct cli *cli, int argc, char **argv)
{
    static const struct option_row rows[] = {
        CLI_COORDINATOR_ROW,
        CLI_JSON_ROW("Print JSON instead; its keys are stable. With --follow an event is a line."),
        CLI_STALE_ROW,
        {OPTION_ROW(U64, "limit", struct history_options, limit, "N", NULL), .letter = 'n',
            .min = 1, .max = LIMIT_EVENTS,
            .help = "Only the newest N events; else all that are kept."},
        {OPTION_ROW(FLAG, "follow", struct history_options, follow, NULL, NULL), .letter = 'f',
            .help = "Go on until the job has ended: events are printed as they come."},
    };
    static const struct option_table table = {.program = "cadre history",
        .usage = "JOB",
        .summary =
            "Shows what happened to a job and when, as the coordinator's ledger has it: when its "
            "tasks started, ended and were lost, and where; each generation with its tasks, the "
            "step from which it went on and how many steps were undone; checkpoints; and why the "
            "job stood still: the task that a step waited for, and for how long.",
        .notes = "  cadre history 3\n"
                 "  cadre history 3 -n 20 -f\n"
                 "  cadre history 3 --json | jq '.events[] | select(.kind == \"stalled\")'\n"
                 "\n"
                 "TIME counts from the submission, GEN is the generation, STEP the number of\n"
                 "committed steps, or the step that the event concerns. A step is no event.\n"
                 "A stall is a step that has not ended for the coordinator's --slow-after\n"
                 "and --slow-factor times the median. Of more than 4096 events the first 64 and\n"
                 "the newest are kept, with their job.\n",
        .rows = rows,
        .row_count = sizeof rows / sizeof rows[0],
        .positionals_max = 1};
    struct history_options options = {0};
    struct history_view view = {.options = &options, .style = terminal_style_of(stdout)};
    struct invocation invocation;
    cadre_client *client = NULL;
    int code = CLI_DONE;
    if (invocation_open(&invocation, cli, &table, &options, argc, argv, &code) &&
        invocation_job(&invocation, 0, &view.job, &code) &&
        invocation_connect(&invocation, NULL, &client, &code)) {
        code = history_begin(&invocation, client, &view);
        if (code == CLI_DONE) {
            code = options.follow ? history_follow(&invocation, client, &view)
                                  : history_show(&invocation, client, &view);
        }
        invocation_print_age(&invocation, client);
        code = invocation_end(&invocation, code);
    }
    json_decref(view.events);
    cadre_client_release(client);
    invocation_close(&invocation);
    return code;
}
