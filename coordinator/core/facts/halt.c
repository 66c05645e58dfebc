/* SPDX-License-Identifier: Apache-2.0
 * The pending halt: the step before which members freeze (protocol, rules 3, 4 and 20). */
#include "coordinator/core/facts/barrier.h"

#include "coordinator/core/state/due.h"

uint64_t halt_first(const struct job *job)
{
    CADRE_ASSERT(job->released >= job->resume);
    return job->plain && job->released == job->resume ? job->resume + 1 : job->released;
}

void halt_drop(struct job *job)
{
    job->halt_kind = HALT_NONE;
    job->halt_at = POSITION_NONE;
    job->halt_stream = 0;
}

void halt_set(struct core *core, struct job *job, uint32_t stream, uint64_t position)
{
    CADRE_ASSERT(job->halt_kind == HALT_NONE);
    CADRE_ASSERT(job->unconfirmed == 0); /* Rule 4. */
    CADRE_ASSERT(stream == STREAM_ANY || job->joiners_of[stream] > 0);
    CADRE_ASSERT(position >= job->released);
    job->halt_kind = HALT_REGROUP;
    /* Rule 3: S is the highest watermark ever sent, so each task that may enter S receives it. */
    job->halt_at = position;
    job->halt_stream = stream;
    job_due(core, job, DUE_HALT | DUE_RELEASE_RESEND | DUE_CHANGED);
}

/* Rule 31: only a report with the reason "halt at this S" is orderly. */
bool halt_met(const struct job *job, const struct task_report *report)
{
    bool there = report->reason == REPORT_HALT && report->clean && report->position == job->halt_at;
    CADRE_ASSERT(job->phase == PHASE_RUN);
    if (job->halt_kind != HALT_REGROUP) {
        return there && job->halt_kind == HALT_STOP;
    }
    return there && report->begun &&
           (job->halt_stream == STREAM_ANY ||
               (report->stream == job->halt_stream && !report->nested));
}

void halt_stop(struct job *job, uint64_t position)
{
    CADRE_ASSERT(position >= job->released || job->phase != PHASE_RUN);
    job->halt_kind = HALT_STOP;
    job->halt_at = position;
    job->halt_stream = 0;
}
