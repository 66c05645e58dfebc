/* SPDX-License-Identifier: Apache-2.0
 * What the ledger proves: the consumption and the length of each epoch that the program has gone
 * through, whatever was killed, cut off or lost on the way. What was consumed before the first
 * position of a plan, or before a checkpoint, is durable with it, because from there on no task
 * reports it again. */
#include "sim.h"
#include "truth.h"

typedef unsigned long long ull;

/* Whether it is the last run of its epoch that begins before position `end`. The state carries what
 * earlier ones consumed. */
static bool is_last_run(const struct job *job, uint32_t segment, uint64_t begin, uint64_t end)
{
    const struct scenario_segment *of = &job->plan->segments[segment];
    for (uint32_t i = segment + 1; i < job->plan->segment_count; i++) {
        begin += job->plan->segments[i - 1].taken;
        const struct scenario_segment *later = &job->plan->segments[i];
        if (begin < end && later->stream == of->stream && later->epoch == of->epoch) {
            return false;
        }
    }
    return true;
}

static void check_epoch(
    struct sim *sim, const struct job *job, const struct scenario_segment *segment, uint64_t taken)
{
    struct store_epoch epoch = {.cursor = {0}};
    bool known = stored_epoch(job->stored, segment->stream, segment->epoch, &epoch);
    struct consumption right = truth_consumption(job, segment->stream, segment->epoch, taken);
    const struct consumption *recorded = &epoch.consumption;
    if (!known || recorded->steps != taken || recorded->samples != right.samples ||
        recorded->consumed[0] != right.consumed[0] || recorded->consumed[1] != right.consumed[1]) {
        broken(sim, "CONSUMED",
            "job %llu: epoch %llu of stream %u has %llu steps with %llu samples, on record are "
            "%llu with %llu",
            (ull)job->id.n, (ull)segment->epoch, segment->stream, (ull)taken, (ull)right.samples,
            (ull)recorded->steps, (ull)recorded->samples);
        return;
    }
    bool whole = taken == segment->steps;
    if (epoch.cursor.steps != segment->steps && (whole || epoch.cursor.steps != 0)) {
        broken(sim, "END",
            "job %llu: epoch %llu of stream %u has %llu steps, its length on record is %llu",
            (ull)job->id.n, (ull)segment->epoch, segment->stream, (ull)segment->steps,
            (ull)epoch.cursor.steps);
    }
}

/* Whether its tasks take the same steps, of datasets. */
static bool is_audited(const struct job *job)
{
    return !job->plan->plain && job->plan->short_slot == UINT32_MAX;
}

/* The epochs whose last run before position `end` is over at position `over_at`, or cut off there.
 */
static void check_epochs(struct sim *sim, const struct job *job, uint64_t over_at, uint64_t end)
{
    uint64_t begin = 0;
    for (uint32_t i = 0; i < job->plan->segment_count; i++) {
        const struct scenario_segment *segment = &job->plan->segments[i];
        uint64_t over = begin + segment->taken < end ? begin + segment->taken : end;
        bool counts = segment->stream != 0 && over > job->stored->first_step && over <= over_at;
        if (counts && begin < end && is_last_run(job, i, begin, end)) {
            check_epoch(sim, job, segment, segment->from + over - begin);
        }
        begin += segment->taken;
    }
}

void check_consumed_before(struct sim *sim, const struct job *job, uint64_t position)
{
    if (is_audited(job)) {
        check_epochs(sim, job, position, job->plan->steps);
    }
}

void check_consumed(struct sim *sim, const struct job *job)
{
    const struct stored *stored = job->stored;
    if (is_audited(job) && stored->ended_as.state == JOB_SUCCEEDED && stored->done) {
        check_epochs(sim, job, stored->done_position, stored->done_position);
    }
}
