/* SPDX-License-Identifier: Apache-2.0
 * Jobs and outputs as text for the verbs; render_*.c have the other listings. */
#include "coordinator/cli/render/render.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "common/base/clock.h"
#include "coordinator/cli/render/table.h"

const char *render_percent(const cadre_job *job, char text[RENDER_BYTES])
{
    const cadre_job_progress *progress = &job->progress;
    snprintf(text, RENDER_BYTES, "-");
    if (job->state == CADRE_JOB_SUCCEEDED && job->has_progress) {
        snprintf(text, RENDER_BYTES, "100%%");
    } else if (job->has_progress && progress->epochs > 0) {
        double epochs = (double)progress->epoch;
        if (progress->steps > 0 && progress->step <= progress->steps) {
            epochs += (double)progress->step / (double)progress->steps;
        }
        double part = epochs / (double)progress->epochs;
        snprintf(text, RENDER_BYTES, "%u%%", (unsigned)((part < 1 ? part : 1) * 100));
    }
    return text;
}

enum colour render_state_colour(cadre_job_state state)
{
    switch (state) {
    case CADRE_JOB_QUEUED:
        return COLOUR_YELLOW;
    case CADRE_JOB_STARTING:
    case CADRE_JOB_RUNNING:
    case CADRE_JOB_ENDING:
        return COLOUR_BLUE;
    case CADRE_JOB_SUCCEEDED:
        return COLOUR_GREEN;
    case CADRE_JOB_FAILED:
        return COLOUR_RED;
    case CADRE_JOB_CANCELLED:
        return COLOUR_DIM;
    case CADRE_JOB_PREEMPTED:
        return COLOUR_YELLOW;
    }
    return COLOUR_NONE;
}

bool render_bar(const cadre_job *job, struct progress_bar_metric metrics[PROGRESS_BAR_METRICS_MAX],
    struct progress_bar *ret_bar)
{
    const cadre_job_progress *progress = &job->progress;
    if (!job->has_progress) {
        return false;
    }
    size_t count = progress->metric_count < PROGRESS_BAR_METRICS_MAX ? progress->metric_count
                                                                     : PROGRESS_BAR_METRICS_MAX;
    for (size_t i = 0; i < count; i++) {
        metrics[i] = (struct progress_bar_metric){
            .name = progress->metrics[i].name, .value = progress->metrics[i].value};
    }
    *ret_bar = (struct progress_bar){.stream = progress->stream,
        .epoch = progress->epoch,
        .epochs = progress->epochs,
        .step = progress->step,
        .steps = progress->steps,
        .samples_per_s = progress->samples_per_s,
        .left_s = progress->left_s,
        .metrics = metrics,
        .metric_count = count};
    return true;
}

/* ---- tables ---- */

static uint64_t render_span(uint64_t from_us, uint64_t to_us)
{
    return from_us != 0 && to_us > from_us ? to_us - from_us : 0;
}

/* Whether it runs with fewer tasks than it may have. */
static bool is_incomplete(const cadre_job *job)
{
    return job->state == CADRE_JOB_RUNNING && job->generation > 0 && job->servers == 0 &&
           job->roster != job->workers;
}

static void add_job(struct table *table, const cadre_job *job, uint64_t now_us)
{
    char text[RENDER_BYTES];
    table_add(table, COLOUR_NONE, "%" PRIu64, job->id);
    table_add(table, render_state_colour(job->state), "%s", cadre_job_state_name(job->state));
    table_add(table, COLOUR_NONE, "%s", render_percent(job, text));
    if (is_incomplete(job)) {
        table_add(table, COLOUR_YELLOW, "%" PRIu32 "/%" PRIu32, job->roster, job->workers);
    } else {
        table_add(table, COLOUR_NONE, "%" PRIu32, job->workers);
    }
    table_add(table, COLOUR_NONE, "%s", render_age(render_span(job->submitted_us, now_us), text));
    bool apart = job->message[0] != '\0' && job->state != CADRE_JOB_SUCCEEDED &&
                 job->state != CADRE_JOB_CANCELLED;
    table_add(
        table, COLOUR_NONE, "%s%s%s", job->name, apart ? ": " : "", apart ? job->message : "");
}

bool render_jobs(const cadre_job_list *list, bool all, uint64_t now_us,
    const struct text_style *text_style, FILE *out)
{
    static const struct table_column columns[] = {{"JOB", true}, {"STATE", false}, {"DONE", true},
        {"TASKS", true}, {"AGE", true}, {"NAME", false}};
    struct table table;
    size_t ended = 0;
    size_t hidden = 0;
    table_open(&table, columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; i < list->count; i++) {
        ended += cadre_job_state_is_final(list->jobs[i].state) ? 1 : 0;
        if (!all && cadre_job_state_is_final(list->jobs[i].state) && ended > RENDER_ENDED_MAX) {
            hidden++;
        } else {
            add_job(&table, &list->jobs[i], now_us);
        }
    }
    bool good = table_print(&table, text_style, out);
    table_close(&table);
    if (list->count == 0) {
        fprintf(out, "There are no jobs yet: `cadre submit ./PROGRAM` makes one.\n");
    } else if (hidden > 0) {
        fprintf(out, "%zu older jobs that ended: `cadre jobs --all`\n", hidden);
    } else if (list->more) {
        fprintf(out, "There are older jobs; `cadre job ID` shows them.\n");
    }
    return good;
}

static void print_time(FILE *out, const char *title, uint64_t time_us, uint64_t now_us)
{
    char text[RENDER_BYTES];
    char date[RENDER_BYTES] = "";
    struct tm local;
    time_t seconds = (time_t)(time_us / CADRE_US_PER_S);
    if (time_us == 0 || localtime_r(&seconds, &local) == NULL) {
        return;
    }
    strftime(date, sizeof date, "%Y-%m-%d %H:%M:%S", &local);
    fprintf(
        out, "  %-11s %s, %s ago\n", title, date, render_age(render_span(time_us, now_us), text));
}

static void print_text(FILE *out, const char *title, const char *text)
{
    if (text[0] != '\0') {
        fprintf(out, "  %-11s ", title);
        text_print(out, text, 0);
        fputc('\n', out);
    }
}

static void print_progress(const cadre_job *job, FILE *out)
{
    struct progress_bar_metric metrics[PROGRESS_BAR_METRICS_MAX];
    struct progress_bar bar;
    char text[PROGRESS_BAR_TEXT_BYTES];
    if (render_bar(job, metrics, &bar)) {
        bool over = cadre_job_state_is_final(job->state);
        print_text(out, "progress",
            over ? progress_bar_render_epoch(&bar, text) : progress_bar_render(&bar, 0, text));
    }
}

bool render_evaluation(const cadre_job *job, char *text, size_t size)
{
    const cadre_job_progress *evaluation = &job->evaluation;
    if (!job->has_evaluation) {
        return false;
    }
    int length = snprintf(text, size, "step %" PRIu64, evaluation->step);
    for (size_t i = 0; i < evaluation->metric_count && length >= 0 && (size_t)length < size; i++) {
        length += snprintf(text + length, size - (size_t)length, "  %s %.4g",
            evaluation->metrics[i].name, evaluation->metrics[i].value);
    }
    return true;
}

static void print_ps_job(const cadre_job *job, FILE *out)
{
    if (job->servers > 0) {
        fprintf(out, ": a chief, %" PRIu32 " worker%s, %" PRIu32 " parameter server%s%s",
            job->worker_tasks, job->worker_tasks > 1 ? "s" : "", job->servers,
            job->servers > 1 ? "s" : "", job->evaluators > 0 ? " and an evaluator" : "");
    }
}

/* "2.0 GiB of memory, 1.5 CPUs, 256 processes for each task; 2h00 in all" */
static void print_limits(const cadre_job *job, FILE *out)
{
    char text[RENDER_BYTES];
    bool of_task = job->memory_bytes > 0 || job->cpu_thousandths > 0 || job->pids > 0;
    const char *comma = "";
    if (!of_task && job->time_limit_us == 0) {
        return;
    }
    fprintf(out, "  %-11s ", "limits");
    if (job->memory_bytes > 0) {
        fprintf(out, "%s of memory", render_bytes(job->memory_bytes, text));
        comma = ", ";
    }
    if (job->cpu_thousandths > 0) {
        fprintf(out, "%s%g CPUs", comma, job->cpu_thousandths / 1000.0);
        comma = ", ";
    }
    if (job->pids > 0) {
        fprintf(out, "%s%" PRIu32 " processes", comma, job->pids);
    }
    if (job->time_limit_us > 0) {
        fprintf(out, "%s%s in all", of_task ? " for each task; " : "",
            render_duration(job->time_limit_us, text));
    } else {
        fputs(" for each task", out);
    }
    fputc('\n', out);
}

/* A verified position may be ahead of the committed ones, because it is reported earlier. */
static uint64_t steps_known(const cadre_job *job)
{
    return job->position > job->verified_position ? job->position : job->verified_position;
}

bool render_job(
    const cadre_job *job, uint64_t now_us, const struct text_style *text_style, FILE *out)
{
    char text[RENDER_BYTES];
    enum colour colour = render_state_colour(job->state);
    fprintf(out, "job %" PRIu64 "  ", job->id);
    text_print(out, job->name, 0);
    fprintf(out, "  %s%s%s\n", colour_start(text_style, colour), cadre_job_state_name(job->state),
        colour_end(text_style, colour));
    print_text(out, "message", job->message);
    print_text(out, "program", job->program);
    fprintf(out, "  %-11s ", "tasks");
    if (job->workers_min != 0 && job->workers_min != job->workers) {
        fprintf(out, "%" PRIu32 " to ", job->workers_min);
    }
    fprintf(out, "%" PRIu32, job->workers);
    print_ps_job(job, out);
    if (job->replicas > 0) {
        fprintf(out, " of %" PRIu32 " replica%s each", job->replicas, job->replicas > 1 ? "s" : "");
    }
    fputc('\n', out);
    if (job->state == CADRE_JOB_RUNNING && job->generation > 0 && job->servers == 0) {
        fprintf(out, "  %-11s %" PRIu32 " of %" PRIu32 " tasks, generation %" PRIu64 "\n",
            "training", job->roster, job->workers, job->generation);
    }
    if (job->priority != 0) {
        fprintf(out, "  %-11s %" PRId32 "\n", "priority", job->priority);
    }
    print_limits(job, out);
    print_time(out, "submitted", job->submitted_us, now_us);
    print_time(out, "started", job->started_us, now_us);
    print_time(out, "ended", job->ended_us, now_us);
    if (job->started_us != 0 && job->ended_us != 0) {
        fprintf(out, "  %-11s %s\n", "took",
            render_duration(render_span(job->started_us, job->ended_us), text));
    }
    print_progress(job, out);
    char evaluation[RENDER_EVALUATION_BYTES];
    if (render_evaluation(job, evaluation, sizeof evaluation)) {
        print_text(out, "evaluation", evaluation);
    }
    if (job->position > 0) {
        fprintf(out, "  %-11s %" PRIu64 " committed, generation %" PRIu64 "\n", "steps",
            job->position, job->generation);
    }
    if (job->verified_digest != 0) {
        fprintf(out, "  %-11s step %" PRIu64 " of %" PRIu64 "\n", "verified",
            job->verified_position, steps_known(job));
    }
    if (job->restarts > 0) {
        fprintf(out, "  %-11s %" PRIu32 "\n", "restarts", job->restarts);
    }
    print_text(out, "checkpoint", job->checkpoint);
    if (job->outputs_folder[0] != '\0') {
        char folder[RENDER_FOLDER_BYTES];
        print_text(out, "outputs", render_outputs_folder(job->outputs_folder, job->id, folder));
    }
    if (cadre_job_state_is_final(job->state)) {
        fprintf(out, "  %-11s %" PRId32 "\n", "exit code", job->exit_code);
    }
    if (job->task_count > 0) {
        fputc('\n', out);
    }
    return render_tasks(job, text_style, out);
}

const char *render_outputs_folder(const char *folder, uint64_t job, char text[RENDER_FOLDER_BYTES])
{
    size_t length = strlen(folder);
    while (length > 0 && folder[length - 1] == '/') {
        length--;
    }
    snprintf(text, RENDER_FOLDER_BYTES, "%.*s/%" PRIu64, (int)length, folder, job);
    return text;
}

bool render_outputs(const cadre_output_list *list, const struct text_style *text_style, FILE *out)
{
    static const struct table_column columns[] = {{"SIZE", true}, {"PATH", false}};
    struct table table;
    table_open(&table, columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; i < list->count; i++) {
        char text[RENDER_BYTES];
        table_add(&table, COLOUR_NONE, "%s", render_bytes(list->outputs[i].size_bytes, text));
        table_add(&table, COLOUR_NONE, "%s", list->outputs[i].path);
    }
    struct text_style whole = {.colour = text_style->colour}; /* a path that is cut is of no use */
    bool good = table_print(&table, &whole, out);
    table_close(&table);
    if (list->count == 0 && list->folder[0] == '\0') {
        fprintf(out, "The job left no files.\n");
    } else if (list->more) {
        fprintf(out, "There are more files; `cadre get JOB PATH` fetches any of them.\n");
    }
    return good;
}

void render_outcome(const cadre_job *job, const struct text_style *text_style, FILE *out)
{
    char text[RENDER_BYTES];
    enum colour colour = render_state_colour(job->state);
    bool was = job->state == CADRE_JOB_CANCELLED || job->state == CADRE_JOB_PREEMPTED;
    fprintf(out, "job %" PRIu64 " %s%s%s%s", job->id, colour_start(text_style, colour),
        was ? "was " : "", cadre_job_state_name(job->state), colour_end(text_style, colour));
    uint64_t from_us = job->started_us != 0 ? job->started_us : job->submitted_us;
    if (job->state == CADRE_JOB_SUCCEEDED) {
        fprintf(out, " in %s", render_duration(render_span(from_us, job->ended_us), text));
    } else if (job->message[0] != '\0' && job->state != CADRE_JOB_CANCELLED) {
        fputs(": ", out);
        text_print(out, job->message, 0);
    } else {
        fprintf(out, " after %s", render_duration(render_span(from_us, job->ended_us), text));
    }
}
