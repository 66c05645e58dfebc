/* SPDX-License-Identifier: Apache-2.0
 * How far the training is, as servers know it: what an evaluator goes by. */
#ifndef CADRE_RUNTIME_PS_JOB_PROGRESS_NOTE_H
#define CADRE_RUNTIME_PS_JOB_PROGRESS_NOTE_H

#include "worker/library/runtime/ps_job/ps_job.h"

/* The chief's steps, on server 0. No variable is called so: SERVED_RESERVED. */
#define PROGRESS_NOTE_NAME "cadre/progress"

struct progress_note {
    uint64_t step;   /* joins; 0 before the first */
    uint64_t pushes; /* applied, over all shards */
};

/* Asks all servers. */
cadre_status progress_note_read(
    struct ps_job_state *ps_job, struct progress_note *ret_note, struct cadre_error *error);

#endif
