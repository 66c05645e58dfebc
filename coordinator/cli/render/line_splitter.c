/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/cli/render/line_splitter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/clock.h"
#include "coordinator/cli/render/terminal.h"

#define PREFIX_BYTES 64

/* The unfinished line of text of a task; its memory begins with room for the prefix. */
struct pending_text {
    char *text;
    size_t used;          /* behind the prefix */
    uint64_t received_us; /* its first byte */
    uint64_t next_us;     /* the bytes that are added next */
};

bool line_splitter_open(struct line_splitter *line_splitter, size_t tasks,
    const struct text_style *text_style, line_splitter_fn *emit, void *user)
{
    *line_splitter =
        (struct line_splitter){.tasks = calloc(tasks > 0 ? tasks : 1, sizeof *line_splitter->tasks),
            .task_count = tasks,
            .prefix = tasks > 1,
            .text_style = *text_style,
            .emit = emit,
            .user = user};
    return line_splitter->tasks != NULL;
}

void line_splitter_close(struct line_splitter *line_splitter)
{
    for (size_t i = 0; i < line_splitter->task_count && line_splitter->tasks != NULL; i++) {
        free(line_splitter->tasks[i].text);
    }
    free(line_splitter->tasks);
    free(line_splitter->cleaned);
    *line_splitter = (struct line_splitter){0};
}

/* RFC 3339 and a space; returns its length. */
static size_t print_time(uint64_t received_us, char *to, size_t size)
{
    time_t seconds = (time_t)(received_us / CADRE_US_PER_S);
    struct tm calendar;
    if (received_us == 0 || gmtime_r(&seconds, &calendar) == NULL) {
        return (size_t)snprintf(to, size, "- ");
    }
    size_t length = strftime(to, size, "%Y-%m-%dT%H:%M:%S", &calendar);
    unsigned ms = (unsigned)(received_us % CADRE_US_PER_S / CADRE_US_PER_MS);
    return length + (size_t)snprintf(to + length, size - length, ".%03uZ ", ms);
}

static size_t make_prefix(
    const struct line_splitter *line_splitter, uint32_t task, char prefix[PREFIX_BYTES])
{
    static const enum colour colours[] = {COLOUR_GREEN, COLOUR_YELLOW, COLOUR_BLUE, COLOUR_RED};
    enum colour colour = colours[task % (sizeof colours / sizeof colours[0])];
    size_t length = 0;
    if (line_splitter->prefix && !line_splitter->bare) {
        length += (size_t)snprintf(prefix, PREFIX_BYTES, "%s[%u]%s ",
            colour_start(&line_splitter->text_style, colour), (unsigned)task,
            colour_end(&line_splitter->text_style, colour));
    }
    if (line_splitter->timestamps && !line_splitter->bare) {
        length += print_time(
            line_splitter->tasks[task].received_us, prefix + length, PREFIX_BYTES - length);
    }
    return length;
}

/* Emits the prefix and the escaped line. Without memory the line is dropped, because its bytes
 * would act on the terminal. */
static void emit_clean(
    struct line_splitter *line_splitter, uint32_t task, const char *start, size_t prefix)
{
    struct escaper escaper = {0};
    if (line_splitter->cleaned == NULL) {
        line_splitter->cleaned = malloc(PREFIX_BYTES + ESCAPER_GROWTH * (TEXT_LINE_BYTES + 1) + 16);
    }
    if (line_splitter->cleaned != NULL) {
        memcpy(line_splitter->cleaned, start, prefix);
        size_t used = escaper_add(&escaper, start + prefix, line_splitter->tasks[task].used, true,
            line_splitter->cleaned + prefix);
        line_splitter->emit(task, line_splitter->cleaned, prefix + used, line_splitter->user);
    }
}

/* Emits the pending line, and a newline when it has none. */
static void line_splitter_emit(struct line_splitter *line_splitter, uint32_t task)
{
    struct pending_text *pending = &line_splitter->tasks[task];
    char prefix[PREFIX_BYTES];
    size_t length = make_prefix(line_splitter, task, prefix);
    char *start = pending->text + PREFIX_BYTES - length;
    if (!line_splitter->bare && pending->text[PREFIX_BYTES + pending->used - 1] != '\n') {
        pending->text[PREFIX_BYTES + pending->used++] = '\n';
    }
    memcpy(start, prefix, length);
    if (line_splitter->clean) {
        emit_clean(line_splitter, task, start, length);
    } else {
        line_splitter->emit(task, start, length + pending->used, line_splitter->user);
    }
    pending->used = 0;
}

void line_splitter_add(
    struct line_splitter *line_splitter, uint32_t task, const char *bytes, size_t size)
{
    if (task >= line_splitter->task_count) {
        return;
    }
    struct pending_text *pending = &line_splitter->tasks[task];
    if (pending->text == NULL && size > 0) {
        pending->text = malloc(PREFIX_BYTES + TEXT_LINE_BYTES + 1);
        if (pending->text == NULL) {
            if (!line_splitter->clean) {
                line_splitter->emit(task, bytes, size, line_splitter->user);
            }
            return;
        }
    }
    while (size > 0) {
        const char *newline = memchr(bytes, '\n', size);
        size_t take = newline != NULL ? (size_t)(newline - bytes) + 1 : size;
        size_t room = TEXT_LINE_BYTES - pending->used;
        take = take < room ? take : room;
        pending->received_us = pending->used == 0 ? pending->next_us : pending->received_us;
        memcpy(pending->text + PREFIX_BYTES + pending->used, bytes, take);
        pending->used += take;
        bytes += take;
        size -= take;
        if (pending->used == TEXT_LINE_BYTES || bytes[-1] == '\n') {
            line_splitter_emit(line_splitter, task);
        }
    }
}

void line_splitter_stamp(struct line_splitter *line_splitter, uint32_t task, uint64_t received_us)
{
    if (task < line_splitter->task_count) {
        line_splitter->tasks[task].next_us = received_us;
    }
}

bool line_splitter_begins(const struct line_splitter *line_splitter, uint32_t task)
{
    return task >= line_splitter->task_count || line_splitter->tasks[task].used == 0;
}

void line_splitter_end(struct line_splitter *line_splitter, uint32_t task)
{
    if (task < line_splitter->task_count && line_splitter->tasks[task].used > 0) {
        line_splitter_emit(line_splitter, task);
    }
}
