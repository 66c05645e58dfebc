/* SPDX-License-Identifier: Apache-2.0
 * Shows a job that is followed: output, progress and events; follow.c and deploy/cadre/run.c
 * call it. */
#include "coordinator/cli/render/monitor.h"

#include <inttypes.h>
#include <string.h>

#include "common/base/clock.h"
#include "coordinator/cli/render/cli_exit.h"
#include "coordinator/cli/render/fetches.h"
#include "coordinator/cli/render/render.h"

#define PENDING_SHOWN_S 2 /* what takes less shows no time */

static void emit_out(uint32_t task, const char *text_line, size_t size, void *user)
{
    (void)task;
    screen_write(user, 1, text_line, size);
}

static void emit_err(uint32_t task, const char *text_line, size_t size, void *user)
{
    (void)task;
    screen_write(user, 2, text_line, size);
}

bool monitor_open(struct monitor *monitor, size_t tasks, bool raw, FILE *out, FILE *err)
{
    *monitor = (struct monitor){0};
    screen_open(&monitor->screen, out, err);
    struct screen *screen = &monitor->screen;
    monitor->by_text_line = tasks > 1 || screen->live || screen->out_style.columns > 0;
    bool first =
        line_splitter_open(&monitor->line_splitter[0], tasks, &screen->out_style, emit_out, screen);
    bool second =
        line_splitter_open(&monitor->line_splitter[1], tasks, &screen->err_style, emit_err, screen);
    monitor->line_splitter[0].clean = screen->out_style.columns > 0 && !raw;
    monitor->line_splitter[1].clean = screen->err_style.columns > 0 && !raw;
    return first && second;
}

static void print_epoch(struct monitor *monitor)
{
    if (monitor->epoch_text[0] != '\0') {
        screen_note(&monitor->screen, "%s", monitor->epoch_text);
        monitor->epoch_text[0] = '\0';
    }
}

void monitor_close(struct monitor *monitor)
{
    for (uint32_t task = 0; task < monitor->line_splitter[0].task_count; task++) {
        monitor_task_end(monitor, task);
    }
    screen_close(&monitor->screen);
    print_epoch(monitor);
    line_splitter_close(&monitor->line_splitter[0]);
    line_splitter_close(&monitor->line_splitter[1]);
}

/* On a terminal the bar is redrawn; elsewhere an epoch is a line, printed when the next begins. */
static void show_progress(struct monitor *monitor, const cadre_job *job)
{
    struct progress_bar_metric metrics[PROGRESS_BAR_METRICS_MAX];
    struct progress_bar bar;
    char text[PROGRESS_BAR_TEXT_BYTES];
    if (!render_bar(job, metrics, &bar)) {
        return;
    }
    const char *stream = bar.stream != NULL ? bar.stream : "";
    if (!monitor->screen.live &&
        (bar.epoch != monitor->epoch || strcmp(stream, monitor->stream) != 0)) {
        print_epoch(monitor);
    }
    monitor->epoch = bar.epoch;
    snprintf(monitor->stream, sizeof monitor->stream, "%s", stream);
    progress_bar_render_epoch(&bar, monitor->epoch_text);
    if (monitor->screen.live) {
        screen_status(&monitor->screen,
            progress_bar_render(&bar, monitor->screen.err_style.columns - 1, text));
    }
}

static void show_waiting(struct monitor *monitor, const cadre_job *job)
{
    char text[sizeof monitor->waits_for + 64];
    if (strcmp(monitor->waits_for, job->message) == 0 && monitor->state == job->state) {
        return;
    }
    snprintf(monitor->waits_for, sizeof monitor->waits_for, "%s", job->message);
    snprintf(text, sizeof text, "job %" PRIu64 " is queued%s%s", job->id,
        job->message[0] != '\0' ? ": " : "", job->message);
    if (monitor->screen.live) {
        screen_status(&monitor->screen, text);
    } else {
        screen_note(&monitor->screen, "%s", text);
    }
}

/* Whether two sentences differ only in their numbers: "... for 12 s", "... for 17 s". */
static bool same_but_numbers(const char *a, const char *b)
{
    const char *const digits = "0123456789";
    while (*a != '\0' && *b != '\0') {
        size_t digits_a = strspn(a, digits);
        size_t digits_b = strspn(b, digits);
        if ((digits_a > 0) != (digits_b > 0) || (digits_a == 0 && *a != *b)) {
            return false;
        }
        a += digits_a > 0 ? digits_a : 1;
        b += digits_b > 0 ? digits_b : 1;
    }
    return *a == *b;
}

/* Skips the text that was shown before: of "task 1 was lost; the other went on" after "task 1 was
 * lost" only the rest is new. */
static const char *skip_known_text(const struct monitor *monitor, const char *message)
{
    size_t last_message = strlen(monitor->last_message);
    bool continues = last_message > 0 &&
                     strncmp(message, monitor->last_message, last_message) == 0 &&
                     strncmp(message + last_message, "; ", 2) == 0;
    return continues ? message + last_message + 2 : message;
}

/* Tasks join one after the other: no event, unless one does not, which the coordinator reports. */
static bool is_joining(const cadre_job *job)
{
    return same_but_numbers(job->message, "1 of 2 tasks joined");
}

/* Shows each event of a job that runs once: a task was lost, what it waits for, that it goes on. A
 * sentence in which only numbers changed is not repeated. */
static void show_events(struct monitor *monitor, const cadre_job *job)
{
    bool regrouped = monitor->generation != 0 && job->generation > monitor->generation;
    bool news = job->message[0] != '\0' && !is_joining(job) &&
                (regrouped ? strcmp(job->message, monitor->last_message) != 0
                           : !same_but_numbers(job->message, monitor->last_message));
    if (news) {
        screen_note(&monitor->screen, "job %" PRIu64 ": %s", job->id,
            skip_known_text(monitor, job->message));
        snprintf(monitor->last_message, sizeof monitor->last_message, "%s", job->message);
    }
    if (regrouped && job->servers > 0) {
        screen_note(&monitor->screen,
            "job %" PRIu64 " goes on at step %" PRIu64 " (generation %" PRIu64 ")", job->id,
            job->position, job->generation);
    } else if (regrouped) {
        screen_note(&monitor->screen,
            "job %" PRIu64 " goes on at step %" PRIu64 " with %" PRIu32 " of %" PRIu32
            " tasks (generation %" PRIu64 ")",
            job->id, job->position, job->roster, job->workers, job->generation);
    }
    monitor->generation = job->generation;
}

/* Shows each evaluation once, as a line of its own. */
static void show_evaluation(struct monitor *monitor, const cadre_job *job)
{
    char text[RENDER_EVALUATION_BYTES];
    if (render_evaluation(job, text, sizeof text) && strcmp(text, monitor->evaluation) != 0) {
        screen_note(&monitor->screen, "evaluation: %s", text);
        snprintf(monitor->evaluation, sizeof monitor->evaluation, "%s", text);
    }
}

/* What a job does before there is progress. Large files, or a checkpoint to go on from, take their
 * time. */
static void show_pending(struct monitor *monitor, const cadre_job *job)
{
    char text[sizeof monitor->pending];
    uint32_t preparing = 0;
    for (size_t i = 0; i < job->task_count; i++) {
        preparing += job->tasks[i].state == CADRE_TASK_STARTING ? 1 : 0;
    }
    if (job->has_progress) {
        monitor->pending[0] = '\0';
        return;
    }
    int used = snprintf(
        text, sizeof text, "job %" PRIu64 " is %s", job->id, cadre_job_state_name(job->state));
    if (preparing > 0) {
        snprintf(text + used, sizeof text - (size_t)used,
            ": %" PRIu32 " of %" PRIu32 " tasks get their files and checkpoint", preparing,
            job->workers);
    }
    if (strcmp(text, monitor->pending) != 0) {
        monitor->pending_us = job->state != monitor->state ? 0 : monitor->pending_us;
        snprintf(monitor->pending, sizeof monitor->pending, "%s", text);
        screen_status(&monitor->screen, text);
    }
}

/* A checkpoint is awaited by all tasks; for files of one that joins the others do not wait. */
static bool are_awaited(const struct fetches *fetches, const cadre_job *job)
{
    return fetches->tasks > 0 && fetches->elapsed_us >= FETCHES_SHOWN_AFTER_US &&
           (!job->has_progress || strcmp(fetches->what, "files") != 0);
}

/* What takes long before there is progress: on a terminal as a bar, elsewhere as a line when it
 * begins. False: nothing does. */
static bool show_fetches(struct monitor *monitor, const cadre_job *job)
{
    char text[FETCHES_TEXT_BYTES];
    char doing[FETCHES_TEXT_BYTES + 32];
    char bar[PROGRESS_BAR_TEXT_BYTES];
    char whole[RENDER_BYTES];
    const struct fetches fetches = fetches_of(job);
    if (!are_awaited(&fetches, job)) {
        monitor->fetches[0] = '\0';
        return false;
    }
    snprintf(doing, sizeof doing, "job %" PRIu64 ": %s", job->id, fetches_text(&fetches, text));
    monitor->pending[0] = '\0';
    if (monitor->screen.live) {
        unsigned columns = monitor->screen.err_style.columns;
        screen_status(
            &monitor->screen, fetches_bar(&fetches, doing, columns > 0 ? columns - 1 : 0, bar));
    } else if (strcmp(doing, monitor->fetches) != 0) {
        screen_note(&monitor->screen, "%s: %s", doing, render_bytes(fetches.whole_bytes, whole));
    }
    snprintf(monitor->fetches, sizeof monitor->fetches, "%s", doing);
    return true;
}

void monitor_tick(struct monitor *monitor, uint64_t now_us)
{
    char text[sizeof monitor->pending + 32];
    if (monitor->pending[0] == '\0' || !monitor->screen.live) {
        return;
    }
    if (monitor->pending_us == 0) {
        monitor->pending_us = now_us;
    }
    uint64_t passed_s = (now_us - monitor->pending_us) / CADRE_US_PER_S;
    if (passed_s >= PENDING_SHOWN_S) {
        snprintf(text, sizeof text, "%s  %" PRIu64 ":%02u", monitor->pending, passed_s / 60,
            (unsigned)(passed_s % 60));
        screen_status(&monitor->screen, text);
    }
}

void monitor_job(struct monitor *monitor, const cadre_job *job)
{
    show_evaluation(monitor, job);
    if (job->state != CADRE_JOB_STARTING && job->state != CADRE_JOB_RUNNING) {
        monitor->pending[0] = '\0';
    }
    switch (job->state) {
    case CADRE_JOB_QUEUED:
        show_waiting(monitor, job);
        break;
    case CADRE_JOB_STARTING:
    case CADRE_JOB_RUNNING:
        if (job->state == CADRE_JOB_RUNNING) {
            show_events(monitor, job);
        }
        if (!show_fetches(monitor, job)) {
            show_pending(monitor, job);
            show_progress(monitor, job);
        }
        break;
    case CADRE_JOB_ENDING:
    case CADRE_JOB_SUCCEEDED:
    case CADRE_JOB_FAILED:
    case CADRE_JOB_CANCELLED:
    case CADRE_JOB_PREEMPTED:
        show_progress(monitor, job);
        break;
    }
    monitor->state = job->state;
}

void monitor_output(
    struct monitor *monitor, uint32_t task, int stream, const char *bytes, size_t size)
{
    if (monitor->by_text_line) {
        line_splitter_add(&monitor->line_splitter[stream == 2 ? 1 : 0], task, bytes, size);
    } else {
        screen_write(&monitor->screen, stream, bytes, size);
    }
}

void monitor_task_end(struct monitor *monitor, uint32_t task)
{
    line_splitter_end(&monitor->line_splitter[0], task);
    line_splitter_end(&monitor->line_splitter[1], task);
}

int monitor_exit_code(const cadre_job *job)
{
    if (job->state == CADRE_JOB_SUCCEEDED) {
        return CLI_DONE;
    }
    if (job->exit_code > 0 && job->exit_code < 256) {
        return job->exit_code;
    }
    return job->state == CADRE_JOB_CANCELLED ? CLI_INTERRUPTED : CLI_FAILED;
}
