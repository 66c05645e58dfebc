/* SPDX-License-Identifier: Apache-2.0
 * One frame of `cadre top`: the cluster in a line, the jobs that have not ended, who is waited for,
 * the busiest tasks, the workers. Pure:
 * it depends only on the coordinator's answers and the frame before. */
#ifndef CADRE_CLI_RENDER_TOP_FRAME_H
#define CADRE_CLI_RENDER_TOP_FRAME_H

#include <jansson.h>

#include "cadre/client.h"
#include "coordinator/cli/render/terminal.h"
#include "coordinator/cli/render/top_waits.h"

#define TOP_JOBS_MAX 500

/* Positions of jobs with their times, for steps a second. Begins as {0}. */
struct top_speeds {
    struct top_speed {
        uint64_t job;
        uint64_t position;
        uint64_t at_us;
        double steps_per_s; /* negative: not known yet */
    } jobs[TOP_JOBS_MAX];
    size_t count;
};

/* Notes the positions of the running jobs at `now_us` of a monotonic clock. */
void top_speeds_note(struct top_speeds *speeds, const cadre_job_list *jobs, uint64_t now_us);

struct top_frame {
    const cadre_job_list *jobs;
    const cadre_worker_list *workers;
    const struct top_speeds *speeds;
    const struct top_waits *waits;
    const cadre_job *const *asked; /* some of the jobs, with their tasks */
    size_t asked_count;
    const char *coordinator; /* its address */
    const char *trouble;     /* why the frame is not current; "" mostly */
    uint64_t now_us;         /* Unix time */
};

/* The frame as text; false: out of memory. */
bool top_frame_render(
    const struct top_frame *frame, const struct text_style *text_style, FILE *out);
/* The same as an object; NULL: out of memory. */
json_t *top_frame_json(const struct top_frame *frame);

#endif
