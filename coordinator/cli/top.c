/* SPDX-License-Identifier: Apache-2.0
 * `cadre top`: fetches and shows the cluster's state again and again. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/error.h"
#include "coordinator/cli/cli.h"
#include "coordinator/cli/render/screen.h"
#include "coordinator/cli/render/top_frame.h"

#define POLL_US (50 * CADRE_US_PER_MS)

#define TOP_ASKED_MAX 4    /* jobs whose tasks a frame shows */
#define TOP_TASKS_MAX 1024 /* of a job; the answer about a larger one is large */

struct top_options {
    struct cli_common common;
    bool once;
    uint64_t interval_us;
};

/* A request that is in progress. */
struct question {
    bool done;
    cadre_status status;
    char message[512];
};

struct top {
    const struct invocation *invocation;
    cadre_client *client;
    bool live; /* full screen */
    bool quits;
    bool resized;
    cadre_job_list *jobs; /* the newest answers */
    cadre_worker_list *workers;
    cadre_job *asked[TOP_ASKED_MAX]; /* with their tasks */
    size_t asked_count;
    struct top_speeds speeds;
    struct top_waits waits;
    struct cadre_error trouble;
};

static void on_answer(cadre_status status, const char *message, void *user)
{
    struct question *question = user;
    question->done = true;
    snprintf(question->message, sizeof question->message, "%s", message);
    question->status = status;
}

/* Handles keys and signals, for `wait_us` at the longest; a signal ends the wait. */
static void poll_input(struct top *top, uint64_t wait_us)
{
    bool resized = false;
    int key = 0;
    if (top->live) {
        key = full_screen_key(wait_us, &resized);
    } else if (wait_us > 0) {
        (void)poll(NULL, 0, (int)(wait_us / CADRE_US_PER_MS) + 1);
    }
    top->resized |= resized;
    top->quits |= key == 'q' || key == 'Q' || interrupt_count() > 0;
}

/* Handles keys until these have been answered; then the client is gone if it quits. */
static void wait_for_answers(struct top *top, const struct question *questions, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        while (!top->quits && !questions[i].done) {
            (void)cadre_client_run(top->client, POLL_US);
            poll_input(top, 0);
        }
    }
    if (top->quits && top->client != NULL) {
        cadre_client_release(top->client); /* requests in progress end in here */
        top->client = NULL;
    }
}

/* The newest jobs that run, without those of too many tasks; the ids of them. */
static size_t choose_jobs(const cadre_job_list *jobs, uint64_t ids[TOP_ASKED_MAX])
{
    size_t count = 0;
    for (size_t i = 0; i < jobs->count && count < TOP_ASKED_MAX; i++) {
        const cadre_job *job = &jobs->jobs[i];
        if (job->state == CADRE_JOB_RUNNING && job->workers <= TOP_TASKS_MAX) {
            ids[count++] = job->id;
        }
    }
    return count;
}

static void release_asked(struct top *top)
{
    for (size_t i = 0; i < top->asked_count; i++) {
        cadre_result_release(top->asked[i]);
    }
    top->asked_count = 0;
}

/* Asks for the tasks of some jobs; one that fails, as of a job that is gone, is left out. */
static void ask_for_tasks(struct top *top)
{
    uint64_t ids[TOP_ASKED_MAX];
    cadre_job *jobs[TOP_ASKED_MAX] = {NULL};
    struct question questions[TOP_ASKED_MAX] = {{.done = false}};
    size_t count = choose_jobs(top->jobs, ids);
    release_asked(top);
    for (size_t i = 0; i < count; i++) {
        const cadre_then then = {.done = on_answer, .user = &questions[i]};
        questions[i].done |= cadre_client_job(top->client, ids[i], &jobs[i], &then) != CADRE_OK;
    }
    wait_for_answers(top, questions, count);
    for (size_t i = 0; i < count; i++) {
        if (jobs[i] != NULL) {
            top->asked[top->asked_count++] = jobs[i];
        }
    }
}

/* Sends the requests, and handles keys until all are answered. */
static cadre_status top_ask(struct top *top)
{
    enum { JOBS, WORKERS };
    cadre_job_list *jobs = NULL;
    cadre_worker_list *workers = NULL;
    struct question questions[] = {[JOBS] = {.done = false}, [WORKERS] = {.done = false}};
    const cadre_then then_jobs = {.done = on_answer, .user = &questions[JOBS]};
    const cadre_then then_workers = {.done = on_answer, .user = &questions[WORKERS]};
    cadre_status status = cadre_client_jobs(top->client, &jobs, &then_jobs);
    questions[JOBS].done |= status != CADRE_OK;
    if (status == CADRE_OK) {
        status = cadre_client_workers(top->client, NULL, &workers, &then_workers);
    }
    questions[WORKERS].done |= status != CADRE_OK;
    wait_for_answers(top, questions, 2);
    const struct question *asked =
        questions[JOBS].status != CADRE_OK ? &questions[JOBS] : &questions[WORKERS];
    if (status == CADRE_OK) {
        status = asked->status;
        cadre_error_set(&top->trouble, status, "%s", asked->message);
    } else {
        cadre_error_set(&top->trouble, status, "%s", cadre_error_message());
    }
    if (status == CADRE_OK && !top->quits) {
        cadre_result_release(top->jobs);
        cadre_result_release(top->workers);
        top->jobs = jobs;
        top->workers = workers;
        top_speeds_note(&top->speeds, jobs, clock_monotonic_us());
        top_waits_note(&top->waits, jobs, clock_monotonic_us());
        ask_for_tasks(top);
        return CADRE_OK;
    }
    cadre_result_release(jobs);
    cadre_result_release(workers);
    return status;
}

static bool print_frame(const struct top *top, const struct text_style *text_style, FILE *out)
{
    const struct top_options *options = top->invocation->values;
    static const cadre_job_list no_jobs;
    static const cadre_worker_list no_workers;
    const struct top_frame frame = {.jobs = top->jobs != NULL ? top->jobs : &no_jobs,
        .workers = top->workers != NULL ? top->workers : &no_workers,
        .speeds = &top->speeds,
        .waits = &top->waits,
        .asked = (const cadre_job *const *)top->asked,
        .asked_count = top->asked_count,
        .coordinator = invocation_address(top->invocation),
        .trouble = top->trouble.text,
        .now_us = clock_wall_us()};
    if (!options->common.json) {
        return top_frame_render(&frame, text_style, out);
    }
    json_t *json = top_frame_json(&frame);
    bool good = json != NULL && json_dumpf(json, out, JSON_COMPACT) == 0 &&
                fputc('\n', out) != EOF && fflush(out) == 0;
    json_decref(json);
    return good;
}

static bool top_draw(const struct top *top)
{
    char *text = NULL;
    size_t size = 0;
    const struct text_style text_style = terminal_style_of(stdout);
    FILE *out = open_memstream(&text, &size);
    bool good = out != NULL && print_frame(top, &text_style, out);
    good = out != NULL && fclose(out) == 0 && good;
    if (good) {
        full_screen_show(text, size);
    }
    free(text);
    return good;
}

static void wait_until(struct top *top, uint64_t until_us)
{
    while (!top->quits && clock_monotonic_us() < until_us) {
        uint64_t left_us = until_us - clock_monotonic_us();
        poll_input(top, left_us < POLL_US ? left_us : POLL_US);
        if (top->resized) {
            top->resized = false;
            (void)top_draw(top);
        }
    }
}

static int top_follow(struct top *top)
{
    const struct top_options *options = top->invocation->values;
    const struct text_style text_style = terminal_style_of(stdout);
    bool goes_on = top->live || (options->common.json && !options->once);
    do {
        uint64_t began_us = clock_monotonic_us();
        cadre_status status = top_ask(top);
        if (top->quits) {
            break;
        }
        if (status != CADRE_OK && (!top->live || top->jobs == NULL)) {
            full_screen_close();
            return invocation_fail(top->invocation, cadre_error_publish(&top->trouble));
        }
        if (!(top->live ? top_draw(top) : print_frame(top, &text_style, stdout))) {
            return CLI_FAILED; /* the reader closed the pipe */
        }
        if (goes_on) {
            wait_until(top, began_us + options->interval_us);
        }
    } while (goes_on && !top->quits);
    return CLI_DONE;
}

static int run_top(const struct invocation *invocation, cadre_client *client)
{
    const struct top_options *options = invocation->values;
    struct top *top = calloc(1, sizeof *top);
    if (top == NULL) {
        cadre_client_release(client);
        fprintf(stderr, "%s: no memory\n", invocation->table->program);
        return CLI_FAILED;
    }
    top->invocation = invocation;
    top->client = client;
    interrupt_watch();
    top->live = !options->once && !options->common.json && full_screen_open();
    int code = top_follow(top);
    full_screen_close();
    cadre_client_release(top->client);
    release_asked(top);
    cadre_result_release(top->jobs);
    cadre_result_release(top->workers);
    free(top);
    return code;
}

int verb_top(const struct cli *cli, int argc, char **argv)
{
    static const struct option_row rows[] = {
        CLI_COORDINATOR_ROW,
        CLI_JSON_ROW("Print one JSON object a line for each frame instead; with --once one."),
        {OPTION_ROW(FLAG, "once", struct top_options, once, NULL, NULL),
            .help = "Print one frame and end; so does an output that is no terminal."},
        {OPTION_ROW(DURATION, "interval", struct top_options, interval_us, "TIME", "1s"),
            .letter = 'i', .min = 100000, .max = 3600 * CADRE_US_PER_S,
            .help = "From one frame to the next."},
    };
    static const struct option_table table = {.program = "cadre top",
        .summary = "Shows the cluster as it is now: jobs that run and wait, the tasks that their "
                   "steps wait for, what the busiest tasks of the newest jobs use, workers, their "
                   "slots; again every second, until q or Ctrl-C.",
        .rows = rows,
        .row_count = sizeof rows / sizeof rows[0]};
    struct top_options options = {0};
    struct invocation invocation;
    cadre_client *client = NULL;
    int code = CLI_DONE;
    if (invocation_open(&invocation, cli, &table, &options, argc, argv, &code) &&
        invocation_connect(&invocation, NULL, &client, &code)) {
        code = invocation_end(&invocation, run_top(&invocation, client));
    }
    invocation_close(&invocation);
    return code;
}
