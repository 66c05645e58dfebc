/* SPDX-License-Identifier: Apache-2.0
 * What the ledger can prove: how many samples of an epoch were fed in steps that are committed. The
 * state itself carries these sums, arrivals tell them. What all have applied is recorded when an
 * epoch is complete, when another run begins, at a plan and at the end. Beside it, where each
 * stream stands, for those that come later. */
#include "coordinator/core/facts/proof.h"

#include "coordinator/core/facts/tasks.h"
#include "coordinator/core/state/actions.h"
#include "coordinator/core/state/due.h"

static bool proof_is_of(const struct proof *proof, const struct cursor *cursor)
{
    return proof->cursor.stream == cursor->stream && proof->cursor.epoch == cursor->epoch;
}

static void proof_say(struct core *core, struct job *job, struct proof *proof)
{
    if (proof->cursor.stream == 0 || proof->feed.steps == 0 || proof->recorded == proof->at) {
        return;
    }
    struct core_record *record = record_add(core, job, CORE_RECORD_FEED, false);
    record->feed.cursor = proof->cursor;
    record->feed.feed = proof->feed;
    proof->recorded = proof->at;
    CADRE_ASSERT(proof->recorded != POSITION_NONE);
}

/* What was told ahead of the others holds as soon as they have applied as much. */
static void proof_settle(struct proof *proof, uint64_t applied)
{
    if (proof->ahead_at > proof->at && proof->ahead_at <= applied) {
        proof->feed = proof->ahead;
        proof->at = proof->ahead_at;
    }
    CADRE_ASSERT(proof->ahead_at <= proof->at || proof->ahead_at > applied);
}

/* The entry of the cursor's epoch; another makes room for it: a free one, or that which was told
 * longest ago. */
static struct proof *proof_of(struct core *core, struct job *job, const struct cursor *cursor)
{
    struct proof *oldest = &job->proofs[0];
    CADRE_ASSERT(cursor->stream > 0 && cursor->stream <= LIMIT_STREAMS);
    for (uint32_t i = 0; i < PROOFS_MAX; i++) {
        struct proof *proof = &job->proofs[i];
        if (proof_is_of(proof, cursor)) {
            return proof;
        }
        bool older = proof->cursor.stream == 0 ||
                     (proof->ahead_at < oldest->ahead_at && oldest->cursor.stream != 0);
        oldest = older ? proof : oldest;
    }
    proof_settle(oldest, job->applied.least);
    proof_say(core, job, oldest);
    *oldest = (struct proof){.cursor = *cursor, .recorded = POSITION_NONE};
    job_due(core, job, DUE_FEEDS); /* another run has begun */
    CADRE_ASSERT(proof_is_of(oldest, cursor));
    return oldest;
}

static bool proof_is_whole(const struct proof *proof)
{
    return proof->cursor.steps > 0 && proof->feed.steps >= proof->cursor.steps;
}

bool proof_stream_is_over(const struct job *job, uint32_t stream)
{
    const struct stream_position *at = stream == 0 ? NULL : &job->streams[stream - 1];
    CADRE_ASSERT(stream <= LIMIT_STREAMS);
    return at != NULL && at->stream != 0 && at->steps > 0 && at->applied >= at->steps;
}

bool proof_stream_is_past(const struct job *job, uint32_t stream, uint64_t epoch)
{
    CADRE_ASSERT(stream <= LIMIT_STREAMS);
    return stream > 0 && job->streams[stream - 1].epoch > epoch;
}

static void stream_stands(struct core *core, struct job *job, const struct agent_arrived *arrived)
{
    const struct cursor *cursor = &arrived->cursor;
    struct stream_position *stream = &job->streams[cursor->stream - 1];
    bool was_over = proof_stream_is_over(job, cursor->stream);
    bool next = stream->stream != 0 && cursor->epoch > stream->epoch;
    bool newer = stream->stream == 0 || next;
    CADRE_ASSERT(cursor->stream > 0 && cursor->stream <= LIMIT_STREAMS);
    if (newer) {
        *stream = (struct stream_position){.stream = cursor->stream, .epoch = cursor->epoch};
    }
    if (cursor->epoch == stream->epoch) {
        stream->steps = cursor->steps > 0 ? cursor->steps : stream->steps;
        stream->applied =
            arrived->feed.steps > stream->applied ? arrived->feed.steps : stream->applied;
    }
    if (next || (!was_over && proof_stream_is_over(job, cursor->stream))) {
        joiners_outdate(core, job, cursor->stream);
    }
}

/* How far it stands is told again. */
static void stream_undo(struct job *job, const struct cursor *cursor)
{
    CADRE_ASSERT(cursor->stream <= LIMIT_STREAMS);
    if (cursor->stream > 0 && job->streams[cursor->stream - 1].epoch == cursor->epoch) {
        job->streams[cursor->stream - 1].applied = 0;
    }
}

void proof_arrived(struct core *core, struct job *job, const struct agent_arrived *arrived)
{
    const struct cursor *cursor = &arrived->cursor;
    uint64_t applied = job->applied.least;
    CADRE_ASSERT(job->phase == PHASE_RUN);
    if (cursor->stream == 0 || cursor->stream > LIMIT_STREAMS) {
        return;
    }
    stream_stands(core, job, arrived);
    struct proof *proof = proof_of(core, job, cursor);
    proof->cursor.steps = cursor->steps > 0 ? cursor->steps : proof->cursor.steps;
    proof_settle(proof, applied);
    if (arrived->applied <= applied && arrived->feed.steps > proof->feed.steps) {
        proof->feed = arrived->feed;
        proof->at = arrived->applied;
    }
    if (arrived->applied > proof->ahead_at && arrived->feed.steps > 0) {
        proof->ahead = arrived->feed;
        proof->ahead_at = arrived->applied;
    }
    if (proof_is_whole(proof) && proof->recorded != proof->at) {
        job_due(core, job, DUE_FEEDS);
    }
    CADRE_ASSERT(proof->ahead_at == 0 || proof->ahead.steps > 0);
}

void proof_stream(struct core *core, struct job *job, const struct task_stream *stream)
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

void proof_record(struct core *core, struct job *job, bool all, uint64_t applied)
{
    const struct proof *newest = &job->proofs[0];
    for (uint32_t i = 0; i < PROOFS_MAX; i++) {
        struct proof *proof = &job->proofs[i];
        proof_settle(proof, applied);
        newest = proof->cursor.begin > newest->cursor.begin ? proof : newest;
    }
    for (uint32_t i = 0; i < PROOFS_MAX; i++) {
        struct proof *proof = &job->proofs[i];
        if (all || proof_is_whole(proof) || proof != newest) {
            proof_say(core, job, proof);
        }
    }
}

/* What was told of steps that are not in the line any more is void. After a regroup in place all
 * that all had applied is in it, but for a step whose holders were all lost: then arrivals tell the
 * feed without it. From a checkpoint nothing is known to be. */
void proof_cut(struct job *job)
{
    if (job->restarted) {
        memset(job->streams, 0, sizeof(job->streams));
    }
    memset(job->ends, 0, sizeof(job->ends)); /* the records of those that begin later are cut off */
    for (uint32_t i = 0; i < PROOFS_MAX; i++) {
        struct proof *proof = &job->proofs[i];
        proof->ahead_at = 0;
        if (job->restarted || proof->cursor.begin >= job->resume) {
            *proof = (struct proof){.recorded = POSITION_NONE};
        } else if (proof->at > job->resume) {
            proof->feed = (struct feed){0};
            proof->at = 0;
            proof->recorded = POSITION_NONE;
            stream_undo(job, &proof->cursor);
        }
    }
}
