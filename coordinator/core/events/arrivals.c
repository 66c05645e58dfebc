/* SPDX-License-Identifier: Apache-2.0
 * Arrivals: up to which step the tasks of a job on one worker have batches, and what they applied.
 */
#include "coordinator/core/events/events.h"

#include "coordinator/core/facts/barrier.h"
#include "coordinator/core/facts/behind.h"
#include "coordinator/core/facts/health.h"
#include "coordinator/core/facts/timeline.h"
#include "coordinator/core/facts/outcome.h"
#include "coordinator/core/facts/verified.h"
#include "coordinator/core/state/due.h"
#include "coordinator/core/state/find.h"

/* Rule 4: after a start of the coordinator the watermark is not known until all members have said
 * hello. No task can be farther than what had been released. */
static void raise_by_arrival(
    struct core *core, struct job *job, const struct agent_arrived *arrived)
{
    uint64_t released = arrived->applied;
    CADRE_ASSERT(job->phase == PHASE_RUN);
    if (arrived->wanted > released + 1) {
        released = arrived->wanted - 1;
    }
    if (arrived->verified.digest != 0 && arrived->verified.position > released) {
        released = arrived->verified.position;
    }
    if (arrived->up_to > released + LIMIT_WINDOW_STEPS) {
        released = arrived->up_to - LIMIT_WINDOW_STEPS;
    }
    if (job->unconfirmed > 0 && barrier_may_rise(job, released) && released <= arrived->up_to) {
        barrier_raise(core, job, released);
    }
}

/* What an agent can have at all; a violation is a bug of a program or a daemon, and the job fails.
 */
static bool arrival_possible(struct core *core, struct job *job,
    const struct task_group *task_group, const struct agent_arrived *arrived)
{
    char sentence[LIMIT_TEXT_BYTES];
    struct text text = text_begin(sentence, sizeof(sentence));
    bool compared = arrived->verified.digest != 0;
    CADRE_ASSERT(task_group->worker != NONE);
    CADRE_ASSERT(task_group->up_to >= job->resume);
    if (arrived->applied <= job->released && arrived->applied <= arrived->up_to &&
        arrived->up_to <= job->released + LIMIT_WINDOW_STEPS &&
        arrived->wanted <= job->released + 1 &&
        (!compared || arrived->verified.position <= job->released)) {
        return true;
    }
    text_add(&text, "worker ");
    text_add(&text, core->workers[task_group->worker].name);
    text_add(&text, " says that its tasks applied ");
    text_add_u64(&text, arrived->applied);
    text_add(&text, " steps, are ready for ");
    text_add_u64(&text, arrived->up_to);
    text_add(&text, " and want ");
    text_add_u64(&text, arrived->wanted);
    if (compared) {
        text_add(&text, ", with their states compared after ");
        text_add_u64(&text, arrived->verified.position);
    }
    text_add(&text, ", but only ");
    text_add_u64(&text, job->released);
    text_add(&text, " were released");
    job_fail(core, job, CADRE_INTERNAL, 1, sentence);
    return false;
}

/* Whether the slot that an arrival names is one of the task group's members. */
static bool is_member(
    const struct core *core, const struct job *job, uint32_t slot, uint32_t task_group)
{
    CADRE_ASSERT(task_group < job->task_groups);
    return slot < job->tasks && job_task(core, job, slot)->task_group == task_group &&
           job_task(core, job, slot)->rank != NONE;
}

/* What all have applied may be recorded and published. */
static void applied_rose(struct core *core, struct job *job, uint64_t before)
{
    CADRE_ASSERT(job->applied.least >= before);
    if (job->applied.least > before) {
        health_progress(core, job, job->applied.least - before);
        restarts_step_applied(core, job);
    }
    if (job->has_part) {
        job_due(core, job, DUE_PART);
    }
}

/* Of no member, or in a regroup, whose plan lets all steps be claimed again: what an epoch
 * consumed. The plan records it as far as its first position. */
static void arrival_of_epoch(
    struct core *core, struct job *job, const struct agent_arrived *arrived)
{
    CADRE_ASSERT(arrived->tasks == 0 || job->phase == PHASE_REGROUP);
    CADRE_ASSERT(job->generation.number > 0);
    if (arrived->applied > job->resume) { /* else the plan has recorded it */
        timeline_end(core, job, &arrived->cursor);
        sample_audit_arrived(core, job, arrived);
    }
}

void arrival_handle(struct core *core, uint32_t worker, const struct agent_arrived *arrived)
{
    /* Rules 2 and 13: only arrivals of this generation count. */
    struct job *job = job_find(core, arrived->job);
    if (job == NULL || (job->phase != PHASE_RUN && job->phase != PHASE_REGROUP) || behind_is(job) ||
        !generation_equal(arrived->generation, job->generation)) {
        return;
    }
    uint32_t number = task_group_find(core, job, worker);
    if (number == NONE || job->outcome != 0) {
        return;
    }
    if (arrived->tasks == 0 || job->phase != PHASE_RUN) {
        arrival_of_epoch(core, job, arrived);
        return;
    }
    struct task_group *task_group = job_task_group(core, job, number);
    if (task_group->members == 0 || arrived->tasks != task_group->members) {
        return; /* Rule 2: an arrival counts for all members on the worker together. */
    }
    raise_by_arrival(core, job, arrived);
    if (!arrival_possible(core, job, task_group, arrived) ||
        !timeline_claim(core, job, number, arrived)) {
        return;
    }
    uint64_t applied_before = job->applied.least;
    if (arrived->up_to >= job->resume) { /* else it only carries a step that is waited for */
        job->unarrived -= !task_group->arrived;
        task_group->arrived = true;
    }
    if (arrived->up_to > task_group->up_to) {
        uint64_t old = task_group->up_to;
        task_group->up_to = arrived->up_to;
        barrier_mark_raise(core, job, &job->arrived, false, old);
    }
    if (arrived->applied > task_group->applied) {
        uint64_t old = task_group->applied;
        task_group->applied = arrived->applied;
        barrier_mark_raise(core, job, &job->applied, true, old);
    }
    sample_audit_arrived(core, job, arrived);
    applied_rose(core, job, applied_before);
    verified_raise(core, job, &arrived->verified);
    if (is_member(core, job, arrived->wanted_slot, number)) {
        uint64_t wanted_before = job->wanted;
        barrier_wants(core, job, arrived->wanted_slot, arrived->wanted);
        if (job->wanted > wanted_before) {
            health_step_begun(core, job);
        }
    }
    if (job->arrived.least > job->released) {
        job_due(core, job, DUE_RELEASE);
    }
    if (job->joiners > 0 || job->halt_kind != HALT_NONE || job->draining) {
        job_due(core, job, DUE_CONTROL);
    }
    CADRE_ASSERT(task_group->applied <= task_group->up_to);
    CADRE_ASSERT(
        job->arrived.least <= task_group->up_to && job->applied.least <= task_group->applied);
}
