/* SPDX-License-Identifier: Apache-2.0
 * Sets and lifts halts, at which joiners enter and draining tasks leave without an abort (protocol,
 * rules 3, 4 and 20). A halt takes effect when programs begin step S of the joiner's stream; it is
 * lifted when they begin a step of another stream there, or one in the middle of an epoch of
 * another, and set again at a later step. */
#include "coordinator/core/decide/decide.h"
#include "coordinator/core/decide/plain.h"

#include "coordinator/core/facts/drain.h"
#include "coordinator/core/facts/barrier.h"
#include "coordinator/core/facts/timeline.h"
#include "coordinator/core/facts/preempt.h"
#include "coordinator/core/state/due.h"

/* Whether the tasks can still reach the halt, as far as is known. */
static bool control_is_pending(const struct job *job)
{
    struct cursor cursor;
    CADRE_ASSERT(job->halt_kind == HALT_REGROUP);
    if (job->halt_stream == STREAM_ANY) {
        return true;
    }
    if (timeline_at(job, job->halt_at, &cursor) &&
        (cursor.stream != job->halt_stream || cursor.nested)) {
        return false;
    }
    CADRE_ASSERT(job->halt_stream <= LIMIT_STREAMS);
    return job->joiners_of[job->halt_stream] > 0;
}

static void control_lift(struct core *core, struct job *job)
{
    CADRE_ASSERT(job->unconfirmed == 0);
    if (job->reported > 0) {
        return; /* a member is frozen, which only a plan ends */
    }
    deadline_clear(core, job, DEADLINE_DRAIN);
    halt_drop(job);
    job_due(core, job, DUE_HALT | DUE_RELEASE | DUE_RELEASE_RESEND | DUE_CONTROL | DUE_CHANGED);
    CADRE_ASSERT(job->halt_kind == HALT_NONE);
}

void control_decide(struct core *core, struct job *job)
{
    struct cursor cursor;
    bool stuck = false;
    if (job->phase != PHASE_RUN || job->outcome != 0) {
        return;
    }
    /* Rule 4; and it is not known which members are at a halt, and for which joiners. */
    if (job->unconfirmed > 0) {
        return;
    }
    if (job->halt_kind == HALT_REGROUP) {
        if (!control_is_pending(job)) {
            control_lift(core, job);
        }
        return;
    }
    preempt_control(core, job);
    /* Rule 20: joins and drains are halts, and the joiner is warm; a drain has a deadline. */
    if (job->halt_kind != HALT_NONE || job->present < job->roster || job->finished > 0) {
        return; /* a program that has finished begins no step */
    }
    if (job->draining && drain_possible(core, job, &stuck)) {
        halt_set(core, job, STREAM_ANY, halt_first(job));
        deadline_set(core, job, DEADLINE_DRAIN, core->now_us + core->options.grace_us);
    } else if (stuck) {
        preempt_drained(core, job);
    } else if (job->joiners > 0 && timeline_at(job, job->released, &cursor) &&
               cursor.stream <= LIMIT_STREAMS && !cursor.nested &&
               job->joiners_of[cursor.stream] > 0 && !plain_waits_for_joiners(core, job)) {
        halt_set(core, job, cursor.stream, job->released);
    }
    CADRE_ASSERT(job->halt_kind != HALT_REGROUP || job->halt_at >= job->released);
}
