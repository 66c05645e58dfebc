/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/cli/lines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/cli/cleaner.h"

#define PREFIX_BYTES 32

/* The unfinished line of a task; its memory begins with room for the prefix. */
struct task_line {
    char *text;
    size_t used; /* behind the prefix */
};

bool lines_open(
    struct lines *lines, size_t tasks, const struct look *look, lines_emit_fn *emit, void *user)
{
    *lines = (struct lines){.tasks = calloc(tasks > 0 ? tasks : 1, sizeof *lines->tasks),
        .task_count = tasks,
        .prefix = tasks > 1,
        .look = *look,
        .emit = emit,
        .user = user};
    return lines->tasks != NULL;
}

void lines_close(struct lines *lines)
{
    for (size_t i = 0; i < lines->task_count && lines->tasks != NULL; i++) {
        free(lines->tasks[i].text);
    }
    free(lines->tasks);
    free(lines->cleaned);
    *lines = (struct lines){0};
}

static size_t make_prefix(const struct lines *lines, uint32_t task, char prefix[PREFIX_BYTES])
{
    static const enum colour colours[] = {COLOUR_GREEN, COLOUR_YELLOW, COLOUR_BLUE, COLOUR_RED};
    enum colour colour = colours[task % (sizeof colours / sizeof colours[0])];
    if (!lines->prefix || lines->bare) {
        return 0;
    }
    int length = snprintf(prefix, PREFIX_BYTES, "%s[%u]%s ", colour_start(&lines->look, colour),
        (unsigned)task, colour_end(&lines->look, colour));
    return (size_t)length;
}

/* The line behind a prefix of ours. Without memory it is left out: its bytes would be obeyed. */
static void emit_clean(struct lines *lines, uint32_t task, const char *start, size_t prefix)
{
    struct cleaner cleaner = {0};
    if (lines->cleaned == NULL) {
        lines->cleaned = malloc(PREFIX_BYTES + CLEANER_GROWTH * (LINES_PIECE_BYTES + 1) + 16);
    }
    if (lines->cleaned != NULL) {
        memcpy(lines->cleaned, start, prefix);
        size_t used = cleaner_take(
            &cleaner, start + prefix, lines->tasks[task].used, true, lines->cleaned + prefix);
        lines->emit(task, lines->cleaned, prefix + used, lines->user);
    }
}

/* Emits the line in hand, and a newline when it has none. */
static void emit(struct lines *lines, uint32_t task)
{
    struct task_line *line = &lines->tasks[task];
    char prefix[PREFIX_BYTES];
    size_t length = make_prefix(lines, task, prefix);
    char *start = line->text + PREFIX_BYTES - length;
    if (!lines->bare && line->text[PREFIX_BYTES + line->used - 1] != '\n') {
        line->text[PREFIX_BYTES + line->used++] = '\n';
    }
    memcpy(start, prefix, length);
    if (lines->clean) {
        emit_clean(lines, task, start, length);
    } else {
        lines->emit(task, start, length + line->used, lines->user);
    }
    line->used = 0;
}

void lines_feed(struct lines *lines, uint32_t task, const char *bytes, size_t size)
{
    if (task >= lines->task_count) {
        return;
    }
    struct task_line *line = &lines->tasks[task];
    if (line->text == NULL && size > 0) {
        line->text = malloc(PREFIX_BYTES + LINES_PIECE_BYTES + 1);
        if (line->text == NULL) {
            if (!lines->clean) {
                lines->emit(task, bytes, size, lines->user);
            }
            return;
        }
    }
    while (size > 0) {
        const char *newline = memchr(bytes, '\n', size);
        size_t take = newline != NULL ? (size_t)(newline - bytes) + 1 : size;
        size_t room = LINES_PIECE_BYTES - line->used;
        take = take < room ? take : room;
        memcpy(line->text + PREFIX_BYTES + line->used, bytes, take);
        line->used += take;
        bytes += take;
        size -= take;
        if (line->used == LINES_PIECE_BYTES || bytes[-1] == '\n') {
            emit(lines, task);
        }
    }
}

void lines_end(struct lines *lines, uint32_t task)
{
    if (task < lines->task_count && lines->tasks[task].used > 0) {
        emit(lines, task);
    }
}
