/* SPDX-License-Identifier: Apache-2.0
 * Splits the output of tasks into whole lines, so that those of several tasks do not mix, and puts
 * the task's number in front when there are several. */
#ifndef CADRE_CLI_RENDER_LINE_SPLITTER_H
#define CADRE_CLI_RENDER_LINE_SPLITTER_H

#include <stdint.h>

#include "coordinator/cli/render/terminal.h"

/* A line that grows longer is passed on in pieces of this size, each a line of its own. */
#define TEXT_LINE_BYTES 16384

/* Receives one whole line with its prefix and newline. */
typedef void line_splitter_fn(uint32_t task, const char *text_line, size_t size, void *user);

struct pending_text;

struct line_splitter {
    struct pending_text *tasks;
    size_t task_count;
    bool prefix;     /* "[3] " before each line, in the task's colour */
    bool clean;      /* control characters become visible; of a terminal */
    bool timestamps; /* "2026-11-29T06:40:04.123Z " before each line: when a worker received it */
    bool bare; /* exactly what was written: no prefix, nor a newline that the task did not write */
    char *cleaned; /* an escaped line; NULL until there is one */
    struct text_style text_style;
    line_splitter_fn *emit;
    void *user;
};

/* Room for `tasks` tasks; false: out of memory. */
bool line_splitter_open(struct line_splitter *line_splitter, size_t tasks,
    const struct text_style *text_style, line_splitter_fn *emit, void *user);
/* Frees it; pending text is dropped. */
void line_splitter_close(struct line_splitter *line_splitter);

/* Adds output of `task`, in any pieces. Without memory lines end early, and only text that would
 * have to be escaped is lost. */
void line_splitter_add(
    struct line_splitter *line_splitter, uint32_t task, const char *bytes, size_t size);

/* The bytes of the task that are added next reached a worker at this Unix time; 0: it is not
 * recorded. */
void line_splitter_stamp(struct line_splitter *line_splitter, uint32_t task, uint64_t received_us);
/* Whether the next byte of the task begins a line. */
bool line_splitter_begins(const struct line_splitter *line_splitter, uint32_t task);

/* The task writes no more: its last line needs no newline. */
void line_splitter_end(struct line_splitter *line_splitter, uint32_t task);

#endif
