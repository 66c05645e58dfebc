/* SPDX-License-Identifier: Apache-2.0
 * The history of a job as a table: rows of fixed columns, because those of a job that is followed
 * come one by one. */
#include "coordinator/cli/render/render_history.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "common/base/clock.h"
#include "coordinator/cli/render/quantities.h"

#define TIME_COLUMNS   11
#define GEN_COLUMNS    4
#define STEP_COLUMNS   9
#define WHAT_COLUMNS   13
#define SENTENCE_BYTES 1024

static enum colour event_colour(const cadre_event *event)
{
    switch (event->kind) {
    case CADRE_EVENT_TASK_LOST:
    case CADRE_EVENT_CHECKPOINT_LOST:
    case CADRE_EVENT_DIVERGED:
        return COLOUR_RED;
    case CADRE_EVENT_STALLED:
    case CADRE_EVENT_DRAINED:
    case CADRE_EVENT_PREEMPTED:
    case CADRE_EVENT_COORDINATOR_RESTARTED:
        return COLOUR_YELLOW;
    case CADRE_EVENT_GENERATION:
        return event->restarted ? COLOUR_YELLOW : COLOUR_BLUE;
    case CADRE_EVENT_TASK_ENDED:
        return event->exit_code != 0 || event->exit_signal != 0 ? COLOUR_RED : COLOUR_NONE;
    case CADRE_EVENT_ENDED:
        return event->state == CADRE_JOB_SUCCEEDED ? COLOUR_GREEN
               : event->state == CADRE_JOB_FAILED  ? COLOUR_RED
                                                   : COLOUR_YELLOW;
    default:
        return COLOUR_NONE;
    }
}

/* "+2.1 s" since the job's first event. */
static const char *render_since(uint64_t began_us, uint64_t time_us, char text[RENDER_BYTES])
{
    char span[RENDER_BYTES];
    uint64_t span_us = time_us > began_us ? time_us - began_us : 0;
    snprintf(text, RENDER_BYTES, "+%s", render_duration(span_us, span));
    return text;
}

static const char *count_noun(uint32_t count)
{
    return count == 1 ? "task" : "tasks";
}

/* "3 tasks (0-2): task 1 was lost ...; 12 steps are done again" */
static void describe_generation(const cadre_event *event, char *text)
{
    size_t length = (size_t)snprintf(text, SENTENCE_BYTES, "%" PRIu32 " %s%s%s%s", event->tasks,
        count_noun(event->tasks), event->roster[0] != '\0' ? " (" : "", event->roster,
        event->roster[0] != '\0' ? ")" : "");
    if (event->text[0] != '\0') {
        length += (size_t)snprintf(text + length, SENTENCE_BYTES - length, ": %s", event->text);
    }
    if (event->undone > 0 && length < SENTENCE_BYTES) {
        snprintf(text + length, SENTENCE_BYTES - length, "; %" PRIu64 " step%s done again",
            event->undone, event->undone == 1 ? " is" : "s are");
    }
}

static void describe_task(const cadre_event *event, const char *what, char *text)
{
    size_t length = (size_t)snprintf(text, SENTENCE_BYTES, "task %" PRIu32 "%s%s%s%s", event->task,
        event->worker[0] != '\0' ? " on " : "", event->worker, what[0] != '\0' ? " " : "", what);
    if (event->text[0] != '\0' && length < SENTENCE_BYTES) {
        snprintf(text + length, SENTENCE_BYTES - length, ": %s", event->text);
    }
}

static void describe_end_of_task(const cadre_event *event, char *text)
{
    char what[64] = "finished";
    if (event->exit_signal != 0) {
        snprintf(what, sizeof what, "was ended by signal %d", event->exit_signal);
    } else if (event->exit_code != 0) {
        snprintf(what, sizeof what, "exited with status %d", event->exit_code);
    }
    describe_task(event, what, text);
}

static void describe_event(const cadre_event *event, char text[SENTENCE_BYTES])
{
    char span[RENDER_BYTES];
    switch (event->kind) {
    case CADRE_EVENT_SUBMITTED:
    case CADRE_EVENT_STARTED:
        snprintf(text, SENTENCE_BYTES, "%" PRIu32 " %s%s%s", event->tasks, count_noun(event->tasks),
            event->text[0] != '\0' ? ": " : "", event->text);
        break;
    case CADRE_EVENT_GENERATION:
        describe_generation(event, text);
        break;
    case CADRE_EVENT_TASK_STARTED:
        describe_task(event, "", text);
        break;
    case CADRE_EVENT_TASK_ENDED:
        describe_end_of_task(event, text);
        break;
    case CADRE_EVENT_WENT_ON:
        snprintf(text, SENTENCE_BYTES, "after %s", render_duration(event->waited_us, span));
        break;
    case CADRE_EVENT_ENDED:
    case CADRE_EVENT_ENDING:
        snprintf(text, SENTENCE_BYTES, "%s%s%s", cadre_job_state_name(event->state),
            strcmp(event->text, cadre_job_state_name(event->state)) != 0 ? ": " : "",
            strcmp(event->text, cadre_job_state_name(event->state)) != 0 ? event->text : "");
        break;
    default:
        snprintf(text, SENTENCE_BYTES, "%s", event->text);
        break;
    }
}

/* "coordinator_restarted" is wider than its column: "coordinator". */
static const char *event_name(const cadre_event *event)
{
    return event->kind == CADRE_EVENT_COORDINATOR_RESTARTED ? "coordinator"
           : event->kind == CADRE_EVENT_CHECKPOINT_LOST     ? "chkpt lost"
                                                            : cadre_event_kind_name(event->kind);
}

static void print_name(const cadre_event *event, const struct text_style *text_style, FILE *out)
{
    char name[32];
    snprintf(name, sizeof name, "%s", event_name(event));
    for (char *at = name; *at != '\0'; at++) {
        *at = *at == '_' ? ' ' : *at;
    }
    enum colour colour = event_colour(event);
    fprintf(out, "%s%-*s%s  ", colour_start(text_style, colour), WHAT_COLUMNS, name,
        colour_end(text_style, colour));
}

static void print_event(const struct history_table *table, const cadre_event *event,
    const struct text_style *text_style, FILE *out)
{
    char since[RENDER_BYTES];
    char sentence[SENTENCE_BYTES];
    char generation[24] = "-";
    const size_t before = TIME_COLUMNS + GEN_COLUMNS + STEP_COLUMNS + WHAT_COLUMNS + 8;
    if (event->generation > 0) {
        snprintf(generation, sizeof generation, "%" PRIu64, event->generation);
    }
    fprintf(out, "%*s  %*s  %*" PRIu64 "  ", TIME_COLUMNS,
        render_since(table->began_us, event->time_us, since), GEN_COLUMNS, generation, STEP_COLUMNS,
        event->position);
    print_name(event, text_style, out);
    describe_event(event, sentence);
    bool cut = text_style->columns > before;
    text_print(out, sentence, cut ? text_style->columns - before : 0);
    fputc('\n', out);
}

static void print_titles(
    const struct history_table *table, const struct text_style *text_style, FILE *out)
{
    char date[64];
    time_t seconds = (time_t)(table->began_us / CADRE_US_PER_S);
    struct tm broken;
    localtime_r(&seconds, &broken);
    strftime(date, sizeof date, "%Y-%m-%d %H:%M:%S %Z", &broken);
    fprintf(out, "%ssince %s\n%*s  %*s  %*s  EVENT%s\n", colour_start(text_style, COLOUR_DIM), date,
        TIME_COLUMNS, "TIME", GEN_COLUMNS, "GEN", STEP_COLUMNS, "STEP",
        colour_end(text_style, COLOUR_DIM));
}

void render_history(struct history_table *table, const cadre_history *history,
    const struct text_style *text_style, FILE *out)
{
    for (size_t i = 0; i < history->count; i++) {
        const cadre_event *event = &history->events[i];
        if (!table->titled) {
            table->began_us = table->began_us > 0 ? table->began_us : event->time_us;
            table->titled = true;
            print_titles(table, text_style, out);
        }
        if (table->printed > 0 && event->number > table->printed + 1) {
            fprintf(out, "%*s  %" PRIu64 " events are not kept\n", TIME_COLUMNS, "...",
                event->number - table->printed - 1);
        }
        print_event(table, event, text_style, out);
        table->printed = event->number;
    }
}
