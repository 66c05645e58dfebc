/* SPDX-License-Identifier: Apache-2.0
 * What a job's program does without any fault: which step each position is, what it consumes, and
 * the state after it. */
#include <string.h>

#include "common/pure/assert.h"
#include "sim.h"
#include "truth.h"

#define TIMELINE_START UINT64_C(0x6C696E65)

static const struct scenario_segment *segment_at(const struct job *job, uint64_t position)
{
    return &job->plan->segments[job->positions[position].segment];
}

/* A position is one step of one epoch; of steps without samples each is itself. */
uint64_t truth_step(const struct job *job, uint64_t position)
{
    const struct scenario_segment *segment = segment_at(job, position);
    uint64_t step = segment->stream == 0 ? position : job->positions[position].step;
    return prng_mix(prng_mix(segment->stream) ^ prng_mix(segment->epoch << 20 ^ step));
}

static uint64_t chained(uint64_t chain, uint64_t link)
{
    return prng_mix(chain ^ link);
}

/* After the last step of an epoch of unknown length, all agree that it is the last; before each
 * step of it, that there is one. */
static uint32_t between_steps_before(const struct job *job, uint64_t position)
{
    const struct scenario_job *plan = job->plan;
    uint32_t count = plan->between_steps[position];
    if (!plan->streamed) {
        return count;
    }
    if (position > 0) {
        const struct scenario_segment *before = segment_at(job, position - 1);
        bool ends = position == plan->steps ||
                    job->positions[position].segment != job->positions[position - 1].segment;
        bool whole = before->from + before->taken == before->steps;
        count += ends && whole && before->stream != 0 ? 1 : 0;
    }
    if (position < plan->steps && segment_at(job, position)->stream != 0) {
        count++;
    }
    return count;
}

/* The first segment of the same epoch. */
static uint32_t epoch_begins(const struct scenario_job *plan, uint32_t segment)
{
    const struct scenario_segment *of = &plan->segments[segment];
    uint32_t first = 0;
    while (plan->segments[first].stream != of->stream || plan->segments[first].epoch != of->epoch) {
        first++;
    }
    return first;
}

/* Whether a joiner's program would come to another epoch first: one that was begun before this one,
 * and was left with steps in it. */
static bool is_nested(const struct scenario_job *plan, uint32_t segment)
{
    const struct scenario_segment *at = &plan->segments[segment];
    uint32_t seen =
        UINT32_C(1) << at->stream | 1; /* streams; steps without samples have no epochs */
    bool nested = false;
    for (uint32_t i = segment; i > 0; i--) {
        const struct scenario_segment *before = &plan->segments[i - 1];
        bool newest = (seen >> before->stream & 1) == 0;
        seen |= UINT32_C(1) << before->stream;
        nested = nested || (newest && before->from + before->taken < before->steps &&
                               epoch_begins(plan, i - 1) < epoch_begins(plan, segment));
    }
    return nested && at->stream != 0;
}

void truth_make(struct job *job)
{
    const struct scenario_job *plan = job->plan;
    uint64_t position = 0;
    for (uint32_t i = 0; i < plan->segment_count; i++) {
        uint64_t begin = position;
        bool nested = is_nested(plan, i);
        for (uint64_t step = 0; step < plan->segments[i].taken; step++, position++) {
            job->positions[position] = (struct program_position){.segment = i,
                .begin = begin,
                .step = plan->segments[i].from + step,
                .nested = nested};
        }
    }
    CADRE_ASSERT(position == plan->steps);
    CADRE_ASSERT(position <= POSITIONS_MAX);
    job->once[0] = TIMELINE_START;
    for (uint64_t p = 0; p < plan->steps; p++) {
        job->once[p + 1] = chained(job->once[p], truth_step(job, p));
        truth_slice(job, p, 0, 1, &job->consumed[p]);
    }
    truth_layouts(job);
    for (uint64_t p = 0; p <= plan->steps; p++) {
        job->between_steps[p] = (uint8_t)between_steps_before(job, p);
        job->timeline[p] = job->once[p];
        job->between_steps_done[p] = UINT8_MAX;
    }
}

void truth_plan(struct job *job, uint64_t resume, uint64_t generation)
{
    for (uint64_t p = resume; p < job->plan->steps; p++) {
        job->timeline[p + 1] = chained(job->timeline[p], truth_step(job, p) ^ generation << 32);
    }
}

/* ---- consumption ---- */

void truth_sample(
    const struct job *job, uint64_t position, uint64_t sample, struct step_consumption *consumed)
{
    const struct scenario_segment *segment = segment_at(job, position);
    uint64_t id = job->positions[position].step * job->plan->batch + sample;
    uint64_t key = prng_mix((uint64_t)segment->stream << 40 ^ segment->epoch);
    consumed->samples++;
    consumed->consumed[0] += prng_mix(key ^ id);
    consumed->consumed[1] += prng_mix(~key ^ prng_mix(id));
}

void truth_slice(const struct job *job, uint64_t position, uint32_t rank, uint32_t count,
    struct step_consumption *consumed)
{
    if (segment_at(job, position)->stream == 0) {
        return;
    }
    uint64_t replicas = (uint64_t)count * job->plan->replicas;
    uint64_t first = (uint64_t)rank * job->plan->replicas;
    uint64_t begin = job->plan->batch * first / replicas;
    uint64_t end = job->plan->batch * (first + job->plan->replicas) / replicas;
    for (uint64_t sample = begin; sample < end; sample++) {
        truth_sample(job, position, sample, consumed);
    }
}

static void consumption_add(const struct job *job, struct consumption *consumption,
    uint64_t position, const struct step_consumption *consumed)
{
    const struct step_consumption *right = &job->consumed[position];
    consumption->steps++;
    consumption->samples += consumed->samples;
    consumption->consumed[0] += consumed->consumed[0];
    consumption->consumed[1] += consumed->consumed[1];
    consumption->expected[0] += right->consumed[0];
    consumption->expected[1] += right->consumed[1];
    consumption->provable = job->plan->provable;
}

struct consumption truth_consumption(
    const struct job *job, uint32_t stream, uint64_t epoch, uint64_t steps)
{
    struct consumption consumption = {.provable = job->plan->provable};
    for (uint64_t p = 0; p < job->plan->steps && consumption.steps < steps; p++) {
        const struct scenario_segment *segment = segment_at(job, p);
        if (segment->stream == stream && segment->epoch == epoch) {
            consumption_add(job, &consumption, p, &job->consumed[p]);
        }
    }
    return consumption;
}

/* ---- states ---- */

void state_apply(const struct job *job, struct state *state, uint64_t position,
    const struct step_consumption *consumed, uint64_t generation)
{
    const struct scenario_segment *segment = segment_at(job, position);
    uint64_t step = truth_step(job, position);
    state->once = chained(state->once, step);
    state->value = chained(state->value, step);
    state->timeline = chained(state->timeline, step ^ generation << 32);
    struct consumption *consumption = &state->consumptions[segment->stream];
    if (state->epochs[segment->stream] != segment->epoch + 1) {
        *consumption = (struct consumption){0};
        state->epochs[segment->stream] = segment->epoch + 1;
    }
    consumption_add(job, consumption, position, consumed);
}

/* Of a job without any fault. */
struct state truth_state(const struct job *job, uint64_t position)
{
    struct state state = {.once = TIMELINE_START, .timeline = TIMELINE_START};
    for (uint64_t p = 0; p < position; p++) {
        state_apply(job, &state, p, &job->consumed[p], 0);
    }
    state.once = job->once[position];
    state.timeline = job->once[position];
    state.value = job->once[position];
    state.layout = job->layouts[position];
    return state;
}
