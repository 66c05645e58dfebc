/* SPDX-License-Identifier: Apache-2.0
 * A job while it is followed: its output, its progress, what it waits for. For `submit` and `run`.
 */
#ifndef CADRE_CLI_RENDER_MONITOR_H
#define CADRE_CLI_RENDER_MONITOR_H

#include "cadre/client.h"
#include "common/base/progress_bar.h"
#include "coordinator/cli/render/line_splitter.h"
#include "coordinator/cli/render/screen.h"

struct monitor {
    struct screen screen;
    struct line_splitter line_splitter[2]; /* of streams 1 and 2 */
    bool by_text_line;      /* else bytes pass through as they come: one task, and no terminal */
    cadre_job_state state;  /* last one told; 0: none */
    char waits_for[512];    /* last sentence of a job that waits */
    char last_message[512]; /* last sentence of one that runs */
    char evaluation[512];   /* last one told */
    uint64_t generation;    /* last one told; 0: none */
    char stream[128];       /* of the epoch in hand */
    uint64_t epoch;
    char epoch_text[PROGRESS_BAR_TEXT_BYTES]; /* its newest line; "": there is none */
};

/* For a job of `tasks` tasks; false: out of memory. `raw`: a terminal, too, gets the bytes that
 * they write, else control characters become visible there. */
bool monitor_open(struct monitor *monitor, size_t tasks, bool raw, FILE *out, FILE *err);

/* Prints what is unfinished. */
void monitor_close(struct monitor *monitor);

/* The job changed. */
void monitor_job(struct monitor *monitor, const cadre_job *job);

/* A task wrote to its standard output (stream 1) or error (2). */
void monitor_output(
    struct monitor *monitor, uint32_t task, int stream, const char *bytes, size_t size);

/* A task writes no more. */
void monitor_task_end(struct monitor *monitor, uint32_t task);

/* What a shell should see of a job that has ended: never 0 unless it succeeded. */
int monitor_exit_code(const cadre_job *job);

#endif
