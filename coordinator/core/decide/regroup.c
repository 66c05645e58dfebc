/* SPDX-License-Identifier: Apache-2.0
 * A generation that cannot go on: its members freeze and report, then this decides which tasks form
 * the next one and at which position, or what is waited for. turn/ calls it once a turn.
 *
 *     RUN --a member is lost--> REGROUP --all reported--> enough: plan
 *                                                         too few: wait for joiners
 *                                                         no state is left: JOIN, all begin again
 */
#include "coordinator/core/decide/regroup.h"
#include "coordinator/core/decide/plain.h"

#include "coordinator/core/facts/abort.h"
#include "coordinator/core/facts/ps_job.h"
#include "coordinator/core/facts/drain.h"
#include "coordinator/core/facts/preempt.h"
#include "coordinator/core/facts/outcome.h"
#include "coordinator/core/facts/tasks.h"
#include "coordinator/core/facts/verified.h"
#include "coordinator/core/facts/jobs.h"
#include "coordinator/core/state/due.h"
#include "coordinator/core/state/find.h"
#include "coordinator/core/state/states.h"
#include "coordinator/core/state/text_format.h"

/* Removes members that exited in order and cannot report. */
static void remove_gone(struct core *core, struct job *job)
{
    for (uint32_t slot = 0; slot < job->tasks; slot++) {
        const struct task *task = job_task(core, job, slot);
        if (task->rank != NONE && !task_is_usable(task)) {
            task_remove_from_roster(core, job, slot);
            task_vacate(core, job, slot);
        }
    }
    CADRE_ASSERT(job->roster > 0);
}

void regroup_break(struct core *core, struct job *job)
{
    CADRE_ASSERT(job->roster > 0);
    if (job->phase != PHASE_RUN) {
        return;
    }
    phase_move(job, PHASE_REGROUP);
    remove_gone(core, job);
    job_due(core, job, DUE_ABORT); /* Rule 31: from now on only a plan ends this phase. */
    underfilled_reopen(core, job);
    underfilled_note(core, job);
    CADRE_ASSERT(job->phase == PHASE_REGROUP);
}

static void note_loss(struct job *job, uint64_t position, uint32_t survivors)
{
    struct text text = text_begin(job->note, sizeof(job->note));
    CADRE_ASSERT(survivors <= job->roster);
    text_add(&text, job->reason);
    text_add(&text, "; ");
    if (survivors < job->roster) {
        text_add(&text, "the ");
        if (survivors > 1) {
            text_add_u64(&text, survivors);
            text_add(&text, " ");
        }
        text_add(&text, survivors == 1 ? "other" : "others");
    } else {
        text_add(&text, survivors == 1 ? "it" : "all");
    }
    text_add(&text, " went on from step ");
    text_add_u64(&text, position);
}

/* `why`: what follows from the job's reason, "; all tasks began again". */
static void decide_regroup_restart(
    struct core *core, struct job *job, const char *why, enum dismissal how)
{
    CADRE_ASSERT(job->outcome == 0);
    if (preempt_stops(job)) {
        preempt_unsaved(core, job, job->reason);
        return;
    }
    struct text text = text_begin(job->note, sizeof(job->note));
    text_add(&text, job->reason);
    text_add(&text, why);
    if (job->has_checkpoint) {
        text_add(&text, " from the checkpoint of step ");
        text_add_u64(&text, job->checkpoint.position);
    } else {
        text_add(&text, ", and Cadre has no checkpoint of the job");
    }
    disband(core, job, how);
    CADRE_ASSERT(job->phase == PHASE_JOIN && job->roster == 0);
}

void regroup_restart(struct core *core, struct job *job)
{
    bool voided = ps_job_is_set(&job->ps_job) || job->diverged || job->plain;
    decide_regroup_restart(core, job,
        voided ? "; all tasks began again" : "; no state was left, so all tasks began again",
        DISMISSED_RESET);
}

/* Forms the first generation when all usable tasks have said hello. */
static void decide_forming(struct core *core, struct job *job)
{
    bool all = job->usable > 0 && job->ready == job->usable && plain_is_gathered(job);
    bool complete = all && job->silent == 0 && job->early_slot == NONE &&
                    (job->gone == job->refilled || ps_job_is_set(&job->ps_job));
    CADRE_ASSERT(job->phase == PHASE_JOIN);
    CADRE_ASSERT(job->ready <= job->usable);
    if (job->generation.number > 0) {
        complete = all;
    }
    /* Rules 9 and 29: no task has the state, so all processes begin from the newest checkpoint. */
    if (complete && job->ready >= job_members_min(job)) {
        struct plan_choice choice = {.resume = job->has_checkpoint ? job->checkpoint.position : 0,
            .source = NONE,
            .first = true};
        plan_make(core, job, &choice);
    } else if (underfilled_lack(core, job) > 0 && plain_is_gathered(job) &&
               (job->silent == 0 || !ps_job_is_set(&job->ps_job))) {
        abort_arm_wait(core, job);
        core->placement_due |=
            job->ready == job->usable; /* another job may use the slots that it holds */
    } else {
        deadline_clear(core, job, DEADLINE_WAIT);
    }
}

/* Whether those that drain can be left out of the next generation. */
static bool drains_now(
    const struct job *job, const struct resume_point *resume_point, uint32_t aligned)
{
    CADRE_ASSERT(resume_point->draining <= job->present);
    return resume_point->draining > 0 && resume_point->staying != NONE &&
           job->present - resume_point->draining + aligned >= job_members_min(job);
}

static uint32_t aligned_joiners(const struct job *job, const struct resume_point *resume_point)
{
    CADRE_ASSERT(!resume_point->aligned || resume_point->stream <= LIMIT_STREAMS);
    return resume_point->aligned ? job->joiners_of[resume_point->stream] : 0;
}

static void plan_on(
    struct core *core, struct job *job, const struct resume_point *resume_point, bool drains)
{
    struct plan_choice choice = {.resume = resume_point->position,
        .source = drains ? resume_point->staying : resume_point->source,
        .joins = resume_point->aligned && !preempt_stops(job),
        .stream = resume_point->stream,
        .drains = drains};
    CADRE_ASSERT(resume_point->source != NONE);
    CADRE_ASSERT(!drains || resume_point->staying != NONE);
    plan_make(core, job, &choice);
}

/* A preempted job: the members that are left save at their position; it waits for no joiner. */
static void plan_last(struct core *core, struct job *job, const struct resume_point *resume_point)
{
    CADRE_ASSERT(preempt_stops(job));
    if (!preempted_at_once(core, job, resume_point->position)) {
        plan_on(core, job, resume_point, false);
    }
}

/* "1 task had to leave, since its worker drains", "2 tasks join" */
static void halted_reason(
    const struct job *job, const struct resume_point *resume_point, char sentence[LIMIT_TEXT_BYTES])
{
    struct text text = text_begin(sentence, LIMIT_TEXT_BYTES);
    if (resume_point->draining > 0) {
        text_count(&text, resume_point->draining, "task had", "tasks had");
        text_add(&text, " to leave, since its worker drains");
    } else if (job->joiners > 0) {
        text_count(&text, job->joiners, "task joins", "tasks join");
    } else {
        text_add(&text, "the task that was to join has ended");
    }
}

/* All members are at the halt (protocol, rule 20). */
static void decide_halted(struct core *core, struct job *job)
{
    struct resume_point resume_point = resume_point_find(core, job);
    uint32_t aligned = aligned_joiners(job, &resume_point);
    bool stuck = false;
    CADRE_ASSERT(job->phase == PHASE_RUN);
    CADRE_ASSERT(job->reported == job->roster);
    CADRE_ASSERT(resume_point.source != NONE);
    CADRE_ASSERT(resume_point.position == job->halt_at);
    if (preempt_stops(job)) {
        plan_last(core, job, &resume_point);
        return;
    }
    bool possible = resume_point.draining > 0 && drain_possible(core, job, &stuck);
    char sentence[LIMIT_TEXT_BYTES];
    halted_reason(job, &resume_point, sentence);
    if (job->plain) {
        abort_set_reason(job, sentence, false);
        job->grows = resume_point.draining == 0;
        decide_regroup_restart(core, job, "; all tasks began again", DISMISSED_LEAVES);
        return;
    }
    bool now = drains_now(job, &resume_point, aligned);
    if (!possible || now) {
        if (now) {
            abort_set_reason(job, sentence, false);
            note_loss(job, resume_point.position, job->present - resume_point.draining);
        }
        plan_on(core, job, &resume_point, now);
        return;
    }
    job->excused = true;
    /* Too few would be left: the others stay frozen until replacements have joined. */
    for (uint32_t slot = 0; slot < job->tasks; slot++) {
        const struct task *task = job_task(core, job, slot);
        if (task_is_usable(task) && task->rank != NONE && task_drains(core, job, task)) {
            task_dismiss(core, job, slot, DISMISSED_SUPERSEDED);
        }
    }
    phase_move(job, PHASE_REGROUP);
    deadlines_clear(core, job);
    abort_set_reason(job, sentence, false);
    job_due(core, job, DUE_REGROUP | DUE_CHANGED);
    CADRE_ASSERT(job->phase == PHASE_REGROUP);
}

/* Whether a step of this generation is kept. */
static bool has_progressed(
    const struct job *job, const struct resume_point *resume_point, bool unsure)
{
    return unsure || job->plain
               ? job->has_checkpoint && job->checkpoint.position > job->resume
               : resume_point->source != NONE && resume_point->position > job->resume;
}

/* Counts the failure that ended the generation, if one did. False: there was no restart left. A
 * lost worker is not the job's failure, nor is an exit that only followed another one. */
static bool decide_regroup_account(struct core *core, struct job *job, bool progressed)
{
    bool allowed = true;
    CADRE_ASSERT(job->phase == PHASE_REGROUP);
    if (job->counted || job->excused) {
        return true;
    }
    if (job->followed.code != CADRE_OK) {
        allowed = restarts_count(
            core, job, job->followed.code, job->followed.exit_code, job->followed.text);
    } else if (!progressed && !preempt_stops(job)) {
        allowed = restarts_count(core, job, CADRE_ABORTED, 1, job->reason);
    } else {
        return true;
    }
    job->counted = true;
    return allowed;
}

/* All members that had applied the last step are lost, so it is undone, and the timeline is cut
 * before it. Members that had no state of their own and were to receive the lost one were admitted
 * for the later step: their programs cannot begin at this one. */
static void step_back(struct core *core, struct job *job, const struct resume_point *resume_point)
{
    CADRE_ASSERT(resume_point->position < job->resume);
    for (uint32_t slot = 0; slot < job->tasks; slot++) {
        const struct task *task = job_task(core, job, slot);
        bool there =
            task->position == resume_point->position && (task->clean || resume_point->position > 0);
        if (task_is_usable(task) && task->rank != NONE && !there) {
            task_dismiss(core, job, slot, DISMISSED_RESET);
        }
    }
}

static void decide_reported(struct core *core, struct job *job)
{
    struct resume_point resume_point = resume_point_find(core, job);
    CADRE_ASSERT(job->phase == PHASE_REGROUP);
    CADRE_ASSERT(job->reported == job->present);
    bool unsure = resume_point.source != NONE && verified_lacks(core, job, resume_point.position);
    if (!decide_regroup_account(core, job, has_progressed(job, &resume_point, unsure))) {
        return;
    }
    deadline_clear(core, job, DEADLINE_REPORT);
    /* Rule 9: without a whole state all begin from the newest checkpoint. So they do when states
     * differ, since it is not known which is right; when the state was to be compared and can no
     * longer be; and in a ps job, whose servers belong to one generation. */
    if (resume_point.source == NONE || job->diverged || ps_job_is_set(&job->ps_job)) {
        regroup_restart(core, job);
        return;
    }
    if (unsure || job->plain) {
        decide_regroup_restart(core, job,
            unsure ? "; what it held was not compared, so all tasks began again"
                   : "; all tasks began again",
            DISMISSED_RESET);
        return;
    }
    if (resume_point.position < job->resume) {
        step_back(core, job, &resume_point);
        resume_point = resume_point_find(core, job);
    }
    if (preempt_stops(job)) {
        plan_last(core, job, &resume_point);
        return;
    }
    uint32_t aligned = aligned_joiners(job, &resume_point);
    bool unaligned = job->joiners > aligned;
    if (job->present + aligned >= job_members_min(job) || unaligned) {
        note_loss(job, resume_point.position, job->present);
        plan_on(core, job, &resume_point, drains_now(job, &resume_point, aligned));
    } else {
        abort_arm_wait(core, job);
    }
}

void regroup_decide(struct core *core, struct job *job)
{
    bool halted = job->halt_kind == HALT_REGROUP && job->finished == 0;
    CADRE_ASSERT(job->reported <= job->present);
    if (job->outcome != 0) {
        return;
    }
    switch (job->phase) {
    case PHASE_JOIN:
        if (job->preempt == PREEMPT_NOT && job->state != JOB_QUEUED) {
            decide_forming(core, job);
        }
        break;
    case PHASE_RUN:
        if (halted && job->reported == job->roster) {
            decide_halted(core, job);
        } else {
            preempted_halted(core, job);
        }
        break;
    case PHASE_REGROUP:
        if (job->reported == job->present) {
            decide_reported(core, job);
        }
        break;
    case PHASE_DONE:
        break;
    }
}
