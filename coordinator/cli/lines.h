/* SPDX-License-Identifier: Apache-2.0
 * Cuts what tasks write into whole lines, so that those of several tasks do not mix, and puts the
 * task in front when there are several. */
#ifndef CADRE_CLI_LINES_H
#define CADRE_CLI_LINES_H

#include <stdint.h>

#include "coordinator/cli/terminal.h"

/* A line that grows longer is passed on in pieces of this size, each a line of its own. */
#define LINES_PIECE_BYTES 16384

/* Gets one whole line with its prefix and newline. */
typedef void lines_emit_fn(uint32_t task, const char *line, size_t size, void *user);

struct task_line;

struct lines {
    struct task_line *tasks;
    size_t task_count;
    bool prefix; /* "[3] " before each line, in the task's colour */
    bool clean;  /* control characters become visible; of a terminal */
    bool bare; /* exactly what was written: no prefix, nor a newline that the task did not write */
    char *cleaned; /* a line that became so; NULL until there is one */
    struct look look;
    lines_emit_fn *emit;
    void *user;
};

/* Room for `tasks` tasks; false: out of memory. */
bool lines_open(
    struct lines *lines, size_t tasks, const struct look *look, lines_emit_fn *emit, void *user);
void lines_close(struct lines *lines);

/* What `task` wrote, in any pieces. Memory that runs out ends lines early, and loses nothing
 * but what would have to be cleaned. */
void lines_feed(struct lines *lines, uint32_t task, const char *bytes, size_t size);

/* The task writes no more: its last line needs no newline. */
void lines_end(struct lines *lines, uint32_t task);

#endif
