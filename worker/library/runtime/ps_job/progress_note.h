/* SPDX-License-Identifier: Apache-2.0
 * The progress of the training, read from the servers: an evaluator waits for it to change. */
#ifndef CADRE_RUNTIME_PS_JOB_PROGRESS_NOTE_H
#define CADRE_RUNTIME_PS_JOB_PROGRESS_NOTE_H

#include "worker/library/runtime/ps_job/ps_job.h"

/* The chief's step count, on server 0. No variable has this name: SERVED_RESERVED. */
#define PROGRESS_NOTE_NAME "cadre/progress"

struct progress_note {
    uint64_t step;   /* of the last cadre_join, or of the checkpoint; 0 before the first */
    uint64_t pushes; /* applied, over all shards */
};

/* Reads it from all servers. */
cadre_status progress_note_read(
    struct ps_job_state *ps_job, struct progress_note *ret_note, struct cadre_error *error);

#endif
