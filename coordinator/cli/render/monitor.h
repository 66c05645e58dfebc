/* SPDX-License-Identifier: Apache-2.0
 * Shows a job that is followed by `submit` or `run`: its output, its progress, what it waits
 * for. */
#ifndef CADRE_CLI_RENDER_MONITOR_H
#define CADRE_CLI_RENDER_MONITOR_H

#include "cadre/client.h"
#include "common/base/progress_bar.h"
#include "coordinator/cli/render/line_splitter.h"
#include "coordinator/cli/render/screen.h"

struct monitor {
    struct screen screen;
    struct line_splitter line_splitter[2]; /* of streams 1 and 2 */
    bool by_text_line;      /* else bytes pass unchanged: one task, and no terminal */
    cadre_job_state state;  /* shown last; 0: none */
    char waits_for[512];    /* shown last of a job that waits */
    char last_message[512]; /* shown last of one that runs */
    char pending[128];      /* shown until there is progress; "": there is some */
    uint64_t pending_us;    /* since when; 0: monitor_tick() sets it */
    char fetches[512];      /* what is shown of fetches that take long; "": there are none */
    char evaluation[512];   /* shown last */
    uint64_t generation;    /* shown last; 0: none */
    char stream[128];       /* of the current epoch */
    uint64_t epoch;
    char epoch_text[PROGRESS_BAR_TEXT_BYTES]; /* its newest text; "": there is none */
};

/* For a job of `tasks` tasks; false: out of memory. `raw`: a terminal gets the tasks' bytes
 * unchanged, else control characters are escaped there. */
bool monitor_open(struct monitor *monitor, size_t tasks, bool raw, FILE *out, FILE *err);

/* Prints unfinished lines and frees it. */
void monitor_close(struct monitor *monitor);

/* Shows what changed of the job. */
void monitor_job(struct monitor *monitor, const cadre_job *job);

/* Shows for how long a job has been without progress: it is called again and again, at times of the
 * monotonic clock. */
void monitor_tick(struct monitor *monitor, uint64_t now_us);

/* Shows what a task wrote to its standard output (stream 1) or error (2). */
void monitor_output(
    struct monitor *monitor, uint32_t task, int stream, const char *bytes, size_t size);

/* The task's output has ended: prints its unfinished line. */
void monitor_task_end(struct monitor *monitor, uint32_t task);

/* The exit status for a job that has ended: 0 only if it succeeded. */
int monitor_exit_code(const cadre_job *job);

#endif
