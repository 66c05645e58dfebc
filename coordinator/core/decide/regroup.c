/* SPDX-License-Identifier: Apache-2.0
 * A generation that cannot go on: its members freeze and say where they stand, then it is decided
 * who forms the next one and where it begins, or what is waited for.
 *
 *     RUN --a member is gone--> COLLECT --all reported--> enough: plan
 *                                                         too few: wait for joiners
 *                                                         no state is left: JOIN, all begin again
 */
#include "coordinator/core/decide/regroup.h"

#include "coordinator/core/decide/disband.h"
#include "coordinator/core/decide/leaving.h"
#include "coordinator/core/decide/plan.h"
#include "coordinator/core/facts/collect.h"
#include "coordinator/core/facts/crew.h"
#include "coordinator/core/facts/drain.h"
#include "coordinator/core/facts/edge.h"
#include "coordinator/core/facts/preempt.h"
#include "coordinator/core/facts/restarts.h"
#include "coordinator/core/facts/tasks.h"
#include "coordinator/core/facts/verified.h"
#include "coordinator/core/facts/wanting.h"
#include "coordinator/core/state/deadlines.h"
#include "coordinator/core/state/due.h"
#include "coordinator/core/state/find.h"
#include "coordinator/core/state/states.h"
#include "coordinator/core/state/words.h"

/* Those that left in order and cannot be asked. */
static void resign_gone(struct core *core, struct job *job)
{
    for (uint32_t slot = 0; slot < job->tasks; slot++) {
        const struct task *task = job_task(core, job, slot);
        if (task->rank != NONE && !task_is_usable(task)) {
            task_resigns(core, job, slot);
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
    phase_move(job, PHASE_COLLECT);
    resign_gone(core, job);
    job_due(core, job, DUE_ABORT);
    wanting_reopen(core, job);
    wanting_note(core, job);
    CADRE_ASSERT(job->phase == PHASE_COLLECT);
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

/* `why`: "", or why those that have a state do not go on from it. */
static void begin_anew(struct core *core, struct job *job, const char *why)
{
    bool voided = crew_is(&job->crew) || job->diverged;
    CADRE_ASSERT(job->outcome == 0);
    if (preempt_stops(job)) {
        preempt_unsaved(core, job, job->reason);
        return;
    }
    struct text text = text_begin(job->note, sizeof(job->note));
    text_add(&text, job->reason);
    text_add(&text, why[0] == '\0' && !voided ? "; no state was left" : why);
    text_add(&text, voided ? "; all tasks began again" : ", so all tasks began again");
    if (job->has_checkpoint) {
        text_add(&text, " from the checkpoint of step ");
        text_add_u64(&text, job->checkpoint.position);
    } else {
        text_add(&text, ", and Cadre has no checkpoint of the job");
    }
    disband(core, job, DISMISSED_RESET);
    CADRE_ASSERT(job->phase == PHASE_JOIN && job->roster == 0);
}

void regroup_anew(struct core *core, struct job *job)
{
    begin_anew(core, job, "");
}

/* All that there will be for now have said hello. */
static void decide_forming(struct core *core, struct job *job)
{
    bool complete = job->usable > 0 && job->ready == job->usable && job->silent == 0 &&
                    job->early_slot == NONE && (job->gone == job->owed || crew_is(&job->crew));
    CADRE_ASSERT(job->phase == PHASE_JOIN);
    CADRE_ASSERT(job->ready <= job->usable);
    if (job->generation.number > 0) {
        complete = job->usable > 0 && job->ready == job->usable;
    }
    if (complete && job->ready >= job_members_min(job)) {
        struct plan_choice choice = {.resume = job->has_checkpoint ? job->checkpoint.position : 0,
            .source = NONE,
            .first = true};
        plan_make(core, job, &choice);
    } else if (wanting_needed(core, job) > 0 && (job->silent == 0 || !crew_is(&job->crew))) {
        collect_waits(core, job);
        core->place_due |= job->ready == job->usable; /* perhaps another can use what it holds */
    } else {
        deadline_clear(core, job, DEADLINE_WAIT);
    }
}

/* Whether those that drain can be left out of the next generation. */
static bool drains_now(const struct job *job, const struct edge *edge, uint32_t aligned)
{
    CADRE_ASSERT(edge->draining <= job->present);
    return edge->draining > 0 && edge->staying != NONE &&
           job->present - edge->draining + aligned >= job_members_min(job);
}

static uint32_t aligned_joiners(const struct job *job, const struct edge *edge)
{
    CADRE_ASSERT(!edge->aligned || edge->stream <= LIMIT_STREAMS);
    return edge->aligned ? job->joiners_of[edge->stream] : 0;
}

static void plan_on(struct core *core, struct job *job, const struct edge *edge, bool drains)
{
    struct plan_choice choice = {.resume = edge->position,
        .source = drains ? edge->staying : edge->source,
        .joins = edge->aligned && !preempt_stops(job),
        .stream = edge->stream,
        .drains = drains};
    CADRE_ASSERT(edge->source != NONE);
    CADRE_ASSERT(!drains || edge->staying != NONE);
    plan_make(core, job, &choice);
}

/* Of a job that is preempted: whoever is left saves where it stands, and nobody is waited for. */
static void plan_last(struct core *core, struct job *job, const struct edge *edge)
{
    CADRE_ASSERT(preempt_stops(job));
    if (!leaving_at_once(core, job, edge->position)) {
        plan_on(core, job, edge, false);
    }
}

/* All members stand before step halt_at. */
static void decide_halted(struct core *core, struct job *job)
{
    struct edge edge = edge_find(core, job);
    uint32_t aligned = aligned_joiners(job, &edge);
    bool stuck = false;
    CADRE_ASSERT(job->phase == PHASE_RUN);
    CADRE_ASSERT(job->reported == job->roster);
    CADRE_ASSERT(edge.source != NONE);
    CADRE_ASSERT(edge.position == job->halt_at);
    if (preempt_stops(job)) {
        plan_last(core, job, &edge);
        return;
    }
    bool possible = edge.draining > 0 && drain_possible(core, job, &stuck);
    char sentence[LIMIT_TEXT_BYTES];
    struct text text = text_begin(sentence, sizeof(sentence));
    text_count(&text, edge.draining, "task had", "tasks had");
    text_add(&text, " to leave, since its worker drains");
    bool now = drains_now(job, &edge, aligned);
    if (!possible || now) {
        if (now) {
            collect_reason(job, sentence, false);
            note_loss(job, edge.position, job->present - edge.draining);
        }
        plan_on(core, job, &edge, now);
        return;
    }
    job->excused = true;
    /* Too few would be left: the others wait, as they stand, for those that come instead. */
    for (uint32_t slot = 0; slot < job->tasks; slot++) {
        const struct task *task = job_task(core, job, slot);
        if (task_is_usable(task) && task->rank != NONE && task_drains(core, job, task)) {
            task_dismiss(core, job, slot, DISMISSED_SUPERSEDED);
        }
    }
    phase_move(job, PHASE_COLLECT);
    deadlines_clear(core, job);
    collect_reason(job, sentence, false);
    job_due(core, job, DUE_REGROUP | DUE_CHANGED);
    CADRE_ASSERT(job->phase == PHASE_COLLECT);
}

/* Whether something of what the generation did is left. */
static bool has_progressed(const struct job *job, const struct edge *edge, bool unsure)
{
    return unsure ? job->has_checkpoint && job->checkpoint.position > job->resume
                  : edge->source != NONE && edge->position > job->resume;
}

/* Counts the failure that ended the generation, if one did. False: it was one too many. A worker
 * that was lost is nobody's failure, and whoever gave up because of it only followed. */
static bool account(struct core *core, struct job *job, bool progressed)
{
    bool allowed = true;
    CADRE_ASSERT(job->phase == PHASE_COLLECT);
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

/* All that had applied the last step are lost, so it is undone, and the line is cut before it. Who
 * was about to receive what is lost and has nothing of its own was let in for a later step than
 * that: its program cannot begin there. */
static void step_back(struct core *core, struct job *job, const struct edge *edge)
{
    CADRE_ASSERT(edge->position < job->resume);
    for (uint32_t slot = 0; slot < job->tasks; slot++) {
        const struct task *task = job_task(core, job, slot);
        bool there = task->position == edge->position && (task->clean || edge->position > 0);
        if (task_is_usable(task) && task->rank != NONE && !there) {
            task_dismiss(core, job, slot, DISMISSED_RESET);
        }
    }
}

static void decide_collected(struct core *core, struct job *job)
{
    struct edge edge = edge_find(core, job);
    CADRE_ASSERT(job->phase == PHASE_COLLECT);
    CADRE_ASSERT(job->reported == job->present);
    bool unsure = edge.source != NONE && verified_lacks(core, job, edge.position);
    if (!account(core, job, has_progressed(job, &edge, unsure))) {
        return;
    }
    deadline_clear(core, job, DEADLINE_REPORT);
    /* Nobody knows which of the states that differ is right, or whether what a member that is gone
     * gave to all was, where that is to be known; attendants are of one generation. */
    if (edge.source == NONE || job->diverged || crew_is(&job->crew) || unsure) {
        bool voided = job->diverged || crew_is(&job->crew);
        begin_anew(core, job, unsure && !voided ? "; what it held was not compared" : "");
        return;
    }
    if (edge.position < job->resume) {
        step_back(core, job, &edge);
        edge = edge_find(core, job);
    }
    if (preempt_stops(job)) {
        plan_last(core, job, &edge);
        return;
    }
    uint32_t aligned = aligned_joiners(job, &edge);
    bool unaligned = job->joiners > aligned;
    if (job->present + aligned >= job_members_min(job) || unaligned) {
        note_loss(job, edge.position, job->present);
        plan_on(core, job, &edge, drains_now(job, &edge, aligned));
    } else {
        collect_waits(core, job);
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
            leaving_halted(core, job);
        }
        break;
    case PHASE_COLLECT:
        if (job->reported == job->present) {
            decide_collected(core, job);
        }
        break;
    case PHASE_DONE:
        break;
    }
}
