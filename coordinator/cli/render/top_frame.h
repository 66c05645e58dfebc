/* SPDX-License-Identifier: Apache-2.0
 * What `cadre top` shows at one time: the cluster in a line, the jobs that live, the workers. Pure:
 * it follows from what the coordinator said and from the frame before. */
#ifndef CADRE_CLI_RENDER_TOP_FRAME_H
#define CADRE_CLI_RENDER_TOP_FRAME_H

#include <jansson.h>

#include "cadre/client.h"
#include "coordinator/cli/render/terminal.h"

#define TOP_JOBS_MAX 500

/* Where jobs stood when: from two of them follow steps a second. Begins as {0}. */
struct top_speeds {
    struct top_speed {
        uint64_t job;
        uint64_t position;
        uint64_t at_us;
        double steps_per_s; /* negative: not known yet */
    } jobs[TOP_JOBS_MAX];
    size_t count;
};

/* Takes notice of the jobs that run, at `now_us` of a clock that never jumps. */
void top_speeds_note(struct top_speeds *speeds, const cadre_job_list *jobs, uint64_t now_us);

struct top_frame {
    const cadre_job_list *jobs;
    const cadre_worker_list *workers;
    const struct top_speeds *speeds;
    const char *coordinator; /* its address */
    const char *trouble;     /* why this is not of now; "" mostly */
    uint64_t now_us;         /* Unix time */
};

/* False: out of memory. */
bool top_frame_render(
    const struct top_frame *frame, const struct text_style *text_style, FILE *out);
/* The same as an object; NULL: out of memory. */
json_t *top_frame_json(const struct top_frame *frame);

#endif
