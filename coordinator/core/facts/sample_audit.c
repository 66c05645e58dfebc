/* SPDX-License-Identifier: Apache-2.0
 * The sample audit: how many samples of an epoch were consumed in committed steps. The state itself
 * carries these sums, and arrivals report them. What all have applied is recorded when an epoch is
 * complete, when another begins, and, with all that is known, at a plan, at a checkpoint and at the
 * end: from a plan or a checkpoint on no task reports the epochs before it again. Beside it the
 * positions of the streams, for joiners. arrivals.c, plan.c and emit.c call this. */
#include "coordinator/core/facts/timeline.h"

#include "coordinator/core/facts/tasks.h"
#include "coordinator/core/state/actions.h"
#include "coordinator/core/state/due.h"

static bool sample_audit_is_of(const struct sample_audit *sample_audit, const struct cursor *cursor)
{
    return sample_audit->cursor.stream == cursor->stream &&
           sample_audit->cursor.epoch == cursor->epoch;
}

static void sample_audit_emit(struct core *core, struct job *job, struct sample_audit *sample_audit)
{
    if (sample_audit->cursor.stream == 0 || sample_audit->consumption.steps == 0 ||
        sample_audit->recorded == sample_audit->at) {
        return;
    }
    struct core_record *record = record_add(core, job, CORE_RECORD_CONSUMED, false);
    record->consumption.cursor = sample_audit->cursor;
    record->consumption.consumption = sample_audit->consumption;
    sample_audit->recorded = sample_audit->at;
    CADRE_ASSERT(sample_audit->recorded != POSITION_NONE);
}

/* A value that arrived early counts as soon as all have applied its position. */
static void sample_audit_settle(struct sample_audit *sample_audit, uint64_t applied)
{
    if (sample_audit->ahead_at > sample_audit->at && sample_audit->ahead_at <= applied) {
        sample_audit->consumption = sample_audit->ahead;
        sample_audit->at = sample_audit->ahead_at;
    }
    CADRE_ASSERT(sample_audit->ahead_at <= sample_audit->at || sample_audit->ahead_at > applied);
}

/* The program has returned to the epoch: what is known of its earlier run is recorded, since a plan
 * may go back to that. The sums go on, and are those of the later run from here on. */
static void sample_audit_returns(struct core *core, struct job *job,
    struct sample_audit *sample_audit, const struct cursor *cursor, uint64_t applied)
{
    uint64_t steps = sample_audit->cursor.steps;
    sample_audit_settle(sample_audit, applied);
    sample_audit_emit(core, job, sample_audit);
    sample_audit->cursor = *cursor;
    sample_audit->cursor.steps = cursor->steps > 0 ? cursor->steps : steps;
}

/* The entry of the epoch of an arrival; if there is none, a free one or the one that arrived
 * longest ago is reused. A member that has applied a step had the contributions of all to it: they
 * had applied all before it (protocol, section 1.2), so what is removed counts up to there. */
static struct sample_audit *sample_audit_of(
    struct core *core, struct job *job, const struct agent_arrived *arrived)
{
    const struct cursor *cursor = &arrived->cursor;
    struct sample_audit *oldest = &job->sample_audits[0];
    uint64_t applied = arrived->applied > 0 ? arrived->applied - 1 : 0;
    applied = applied > job->applied.least ? applied : job->applied.least;
    CADRE_ASSERT(cursor->stream > 0 && cursor->stream <= LIMIT_STREAMS);
    for (uint32_t i = 0; i < SAMPLE_AUDITS_MAX; i++) {
        struct sample_audit *sample_audit = &job->sample_audits[i];
        if (sample_audit_is_of(sample_audit, cursor)) {
            if (cursor->begin > sample_audit->cursor.begin) {
                sample_audit_returns(core, job, sample_audit, cursor, applied);
            }
            return sample_audit;
        }
        bool older = sample_audit->cursor.stream == 0 ||
                     (sample_audit->ahead_at < oldest->ahead_at && oldest->cursor.stream != 0);
        oldest = older ? sample_audit : oldest;
    }
    sample_audit_settle(oldest, applied);
    sample_audit_emit(core, job, oldest);
    *oldest = (struct sample_audit){.cursor = *cursor, .recorded = POSITION_NONE};
    job_due(core, job, DUE_CONSUMED); /* another epoch has begun */
    CADRE_ASSERT(sample_audit_is_of(oldest, cursor));
    return oldest;
}

static bool sample_audit_is_complete(const struct sample_audit *sample_audit)
{
    return sample_audit->cursor.steps > 0 &&
           sample_audit->consumption.steps >= sample_audit->cursor.steps;
}

bool sample_audit_stream_ended(const struct job *job, uint32_t stream)
{
    const struct stream_position *at = stream == 0 ? NULL : &job->streams[stream - 1];
    CADRE_ASSERT(stream <= LIMIT_STREAMS);
    return at != NULL && at->stream != 0 && at->steps > 0 && at->applied >= at->steps;
}

bool sample_audit_stream_is_past(const struct job *job, uint32_t stream, uint64_t epoch)
{
    CADRE_ASSERT(stream <= LIMIT_STREAMS);
    return stream > 0 && job->streams[stream - 1].epoch > epoch;
}

static void stream_advance(struct core *core, struct job *job, const struct agent_arrived *arrived)
{
    const struct cursor *cursor = &arrived->cursor;
    struct stream_position *stream = &job->streams[cursor->stream - 1];
    bool was_over = sample_audit_stream_ended(job, cursor->stream);
    bool next = stream->stream != 0 && cursor->epoch > stream->epoch;
    bool newer = stream->stream == 0 || next;
    CADRE_ASSERT(cursor->stream > 0 && cursor->stream <= LIMIT_STREAMS);
    if (newer) {
        *stream = (struct stream_position){.stream = cursor->stream, .epoch = cursor->epoch};
    }
    if (cursor->epoch == stream->epoch) {
        stream->steps = cursor->steps > 0 ? cursor->steps : stream->steps;
        stream->applied = arrived->consumption.steps > stream->applied ? arrived->consumption.steps
                                                                       : stream->applied;
    }
    if (next || (!was_over && sample_audit_stream_ended(job, cursor->stream))) {
        joiners_outdate(core, job, cursor->stream);
    }
}

/* Arrivals will report the stream's position again. */
static void stream_undo(struct job *job, const struct cursor *cursor)
{
    CADRE_ASSERT(cursor->stream <= LIMIT_STREAMS);
    if (cursor->stream > 0 && job->streams[cursor->stream - 1].epoch == cursor->epoch) {
        job->streams[cursor->stream - 1].applied = 0;
    }
}

void sample_audit_arrived(struct core *core, struct job *job, const struct agent_arrived *arrived)
{
    const struct cursor *cursor = &arrived->cursor;
    uint64_t applied = job->applied.least;
    CADRE_ASSERT(job->phase == PHASE_RUN || job->phase == PHASE_REGROUP);
    if (cursor->stream == 0 || cursor->stream > LIMIT_STREAMS) {
        return;
    }
    if (job->phase == PHASE_RUN) { /* else the plan may undo the step */
        stream_advance(core, job, arrived);
    }
    struct sample_audit *sample_audit = sample_audit_of(core, job, arrived);
    sample_audit->cursor.steps = cursor->steps > 0 ? cursor->steps : sample_audit->cursor.steps;
    sample_audit_settle(sample_audit, applied);
    if (arrived->applied <= applied &&
        arrived->consumption.steps > sample_audit->consumption.steps) {
        sample_audit->consumption = arrived->consumption;
        sample_audit->at = arrived->applied;
    }
    if (arrived->applied > sample_audit->ahead_at && arrived->consumption.steps > 0) {
        sample_audit->ahead = arrived->consumption;
        sample_audit->ahead_at = arrived->applied;
    }
    if (sample_audit_is_complete(sample_audit) && sample_audit->recorded != sample_audit->at) {
        job_due(core, job, DUE_CONSUMED);
    }
    CADRE_ASSERT(sample_audit->ahead_at == 0 || sample_audit->ahead.steps > 0);
}

void sample_audit_stream(struct core *core, struct job *job, const struct task_stream *stream)
{
    CADRE_ASSERT(job->generation.number > 0 || job->phase == PHASE_JOIN);
    if (stream->stream == 0 || stream->stream > LIMIT_STREAMS || stream->name == NULL ||
        strlen(stream->name) >= LIMIT_NAME_BYTES) {
        return;
    }
    uint64_t bit = UINT64_C(1) << (stream->stream - 1);
    if ((job->streams_recorded & bit) != 0 || job->outcome != 0) {
        return;
    }
    job->streams_recorded |= bit;
    struct core_record *record = record_add(core, job, CORE_RECORD_STREAM, false);
    record->stream.stream = stream->stream;
    record->stream.samples = stream->samples;
    record->stream.shares = stream->shares;
    memcpy(record->stream.name, stream->name, strlen(stream->name) + 1);
}

void sample_audit_record(struct core *core, struct job *job, bool all, uint64_t applied)
{
    const struct sample_audit *newest = &job->sample_audits[0];
    for (uint32_t i = 0; i < SAMPLE_AUDITS_MAX; i++) {
        struct sample_audit *sample_audit = &job->sample_audits[i];
        sample_audit_settle(sample_audit, applied);
        newest = sample_audit->cursor.begin > newest->cursor.begin ? sample_audit : newest;
    }
    for (uint32_t i = 0; i < SAMPLE_AUDITS_MAX; i++) {
        struct sample_audit *sample_audit = &job->sample_audits[i];
        if (all || sample_audit_is_complete(sample_audit) || sample_audit != newest) {
            sample_audit_emit(core, job, sample_audit);
        }
    }
}

/* Removes what arrived of steps that are not on the timeline any more. After a regroup in place all
 * steps that all had applied are on it, except a step whose holders were all lost: then arrivals
 * report the sums without it. After a restart from a checkpoint nothing is known. */
void sample_audit_cut(struct job *job)
{
    /* Section 1.3: the plan truncates the ledger at its first position. */
    if (job->restarted) {
        memset(job->streams, 0, sizeof(job->streams));
    }
    memset(job->ends, 0, sizeof(job->ends)); /* the records of those that begin later are cut off */
    for (uint32_t i = 0; i < SAMPLE_AUDITS_MAX; i++) {
        struct sample_audit *sample_audit = &job->sample_audits[i];
        sample_audit->ahead_at = 0;
        if (job->restarted || sample_audit->cursor.begin >= job->resume) {
            *sample_audit = (struct sample_audit){.recorded = POSITION_NONE};
        } else if (sample_audit->at > job->resume) {
            sample_audit->consumption = (struct consumption){0};
            sample_audit->at = 0;
            sample_audit->recorded = POSITION_NONE;
            stream_undo(job, &sample_audit->cursor);
        }
    }
}
