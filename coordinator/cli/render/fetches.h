/* SPDX-License-Identifier: Apache-2.0
 * What tasks lack before their programs can go on, as text: how much of it there is, how fast it
 * comes, how long it takes still. Pure. */
#ifndef CADRE_CLI_RENDER_FETCHES_H
#define CADRE_CLI_RENDER_FETCHES_H

#include "cadre/client.h"
#include "common/base/progress_bar.h"

/* What takes less is not shown while a job is followed. */
#define FETCHES_SHOWN_AFTER_US (2 * UINT64_C(1000000))

#define FETCHES_TEXT_BYTES 256

/* All that is fetched for a job now. */
struct fetches {
    uint32_t tasks;   /* for which; 0: nothing is fetched */
    uint32_t first;   /* of them */
    const char *what; /* as in cadre_job_fetch; "": several of these */
    uint64_t done_bytes;
    uint64_t whole_bytes;
    double bytes_per_s;  /* of all of them together */
    uint64_t elapsed_us; /* of the one that began first */
};

/* Adds up what is fetched for the tasks of the job. */
struct fetches fetches_of(const cadre_job *job);

/* "task 1 fetches its checkpoint", "2 tasks fetch their files". */
const char *fetches_text(const struct fetches *fetches, char text[FETCHES_TEXT_BYTES]);

/* "<doing>  12.0 MiB/64.0 MiB [===>    ]  31.5 MiB/s  0:02 left" in at most `columns` columns. */
const char *fetches_bar(const struct fetches *fetches, const char *doing, unsigned columns,
    char text[PROGRESS_BAR_TEXT_BYTES]);

/* Of one task, for a table: "fetches its checkpoint: 12.0 MiB of 64.0 MiB, 31.5 MiB/s, 0:02
 * left"; "" when nothing is fetched. */
const char *fetches_note(const cadre_job_task *task, char text[FETCHES_TEXT_BYTES]);

#endif
