/* SPDX-License-Identifier: Apache-2.0
 * Halts before a step: by them joiners come in and draining tasks go out without an abort (rules 3,
 * 4, 20). S is the watermark: whoever may enter S has been told. It takes effect when programs
 * begin step S of the joiner's stream; when it turns out that they begin a step of another one
 * there, it is lifted, and tried again later. */
#include "coordinator/core/parts.h"

void control_drop(struct job *job)
{
    job->halt_kind = HALT_NONE;
    job->halt_at = POSITION_NONE;
    job->halt_stream = 0;
}

static void control_set(struct core *core, struct job *job, uint32_t stream)
{
    job->halt_kind = HALT_REGROUP;
    job->halt_at = job->released;
    job->halt_stream = stream;
    job_due(core, job, DUE_HALT | DUE_RELEASE_AGAIN | DUE_CHANGED);
}

bool control_met(const struct job *job, const struct task_report *report)
{
    bool there = report->reason == REPORT_HALT && report->clean && report->position == job->halt_at;
    if (job->halt_kind != HALT_REGROUP) {
        return there && job->halt_kind == HALT_STOP;
    }
    return there && report->begun &&
           (job->halt_stream == STREAM_ANY || report->stream == job->halt_stream);
}

/* Whether it can still be met, as far as is known. */
static bool control_stands(const struct job *job)
{
    struct cursor cursor;
    if (job->halt_stream == STREAM_ANY) {
        return true;
    }
    if (line_at(job, job->halt_at, &cursor) && cursor.stream != job->halt_stream) {
        return false;
    }
    return job->joiners_of[job->halt_stream] > 0;
}

static void control_lift(struct core *core, struct job *job)
{
    if (job->reported > 0) {
        return; /* somebody is frozen, which only a plan ends */
    }
    deadline_clear(core, job, DEADLINE_DRAIN);
    control_drop(job);
    job_due(core, job, DUE_HALT | DUE_RELEASE | DUE_RELEASE_AGAIN | DUE_CONTROL | DUE_CHANGED);
}

void control_consider(struct core *core, struct job *job)
{
    struct cursor cursor;
    bool stuck = false;
    if (job->phase != PHASE_RUN || job->outcome != 0) {
        return;
    }
    if (job->unheard > 0) {
        return; /* rule 4; nor is it known who stands at a halt, and whom that is for */
    }
    if (job->halt_kind == HALT_REGROUP) {
        if (!control_stands(job)) {
            control_lift(core, job);
        }
        return;
    }
    preempt_control(core, job);
    if (job->halt_kind != HALT_NONE || job->present < job->roster || job->finished > 0) {
        return; /* who is done begins no step */
    }
    if (job->draining && drain_possible(core, job, &stuck)) {
        control_set(core, job, STREAM_ANY);
        deadline_set(core, job, DEADLINE_DRAIN, core->now_us + core->options.grace_us);
    } else if (stuck) {
        preempt_drained(core, job);
    } else if (job->joiners > 0 && line_at(job, job->released, &cursor) &&
               cursor.stream <= LIMIT_STREAMS && job->joiners_of[cursor.stream] > 0) {
        control_set(core, job, cursor.stream);
    }
}
