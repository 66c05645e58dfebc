/* SPDX-License-Identifier: Apache-2.0
 * The next generation: its members, their ranks, and its first position. Ranks are 0 to n-1 without
 * gaps. A member that stays keeps its rank where possible; gaps are filled from the highest rank,
 * then with joiners. Rank 0, the chief, is a joiner only when no member stays. regroup.c chooses
 * the position and the source, and calls plan_make(). */
#include "coordinator/core/decide/regroup.h"

#include "coordinator/core/facts/barrier.h"
#include "coordinator/core/facts/ps_job.h"
#include "coordinator/core/facts/drain.h"
#include "coordinator/core/facts/health.h"
#include "coordinator/core/facts/preempt.h"
#include "coordinator/core/facts/timeline.h"
#include "coordinator/core/facts/verified.h"
#include "coordinator/core/facts/tasks.h"
#include "coordinator/core/facts/jobs.h"
#include "coordinator/core/state/due.h"
#include "coordinator/core/state/find.h"
#include "coordinator/core/state/states.h"

static bool plan_stays(const struct core *core, const struct job *job, const struct task *task,
    const struct plan_choice *choice)
{
    CADRE_ASSERT(task->rank == NONE || task->rank < job->roster);
    return task_is_usable(task) && task->rank != NONE && !choice->first &&
           !(choice->drains && task_drains(core, job, task));
}

static bool plan_comes(const struct core *core, const struct job *job, const struct task *task,
    const struct plan_choice *choice)
{
    CADRE_ASSERT(!choice->first || !choice->joins);
    if (!task_is_usable(task) || !task->joined || task->rank != NONE || task_is_ps_task(task)) {
        return false;
    }
    return choice->first ||
           (choice->joins && task->joining != JOINING_NOT && task->join_stream == choice->stream &&
               !(choice->drains && task_drains(core, job, task)));
}

static uint32_t next_free_rank(const uint32_t *members, uint32_t rank)
{
    while (members[rank] != NONE) {
        rank++;
    }
    CADRE_ASSERT(members[rank] == NONE);
    return rank;
}

/* Members that stay, in members[0..count): NONE where a joiner is to be put. Old ranks that are
 * read after being written lie higher, so they are still intact. */
static void ranks_keep(const struct core *core, const struct job *job,
    const struct plan_choice *choice, uint32_t count)
{
    uint32_t *members = core->members + job->first;
    uint32_t free_rank = 0;
    CADRE_ASSERT(count > 0 && count <= job->tasks);
    for (uint32_t rank = 0; rank < job->roster; rank++) {
        const struct task *task = job_task(core, job, members[rank]);
        if (task->rank != rank || !plan_stays(core, job, task, choice)) {
            members[rank] = NONE;
        }
    }
    for (uint32_t rank = job->roster; rank < count; rank++) {
        members[rank] = NONE;
    }
    for (uint32_t rank = job->roster; rank > count; rank--) {
        if (members[rank - 1] != NONE) {
            free_rank = next_free_rank(members, free_rank);
            members[free_rank] = members[rank - 1];
        }
    }
    for (uint32_t rank = count; rank > 1 && members[0] == NONE; rank--) {
        members[0] = members[rank - 1];
        members[rank - 1] = NONE;
    }
    CADRE_ASSERT(choice->first || members[0] != NONE);
}

/* Assigns the ranks of all members; returns how many. */
static uint32_t ranks_assign(
    struct core *core, const struct job *job, const struct plan_choice *choice)
{
    uint32_t *members = core->members + job->first;
    uint32_t count = 0;
    CADRE_ASSERT(job->roster <= job->tasks);
    for (uint32_t slot = 0; slot < job->tasks; slot++) {
        const struct task *task = job_task(core, job, slot);
        count += plan_stays(core, job, task, choice) || plan_comes(core, job, task, choice);
    }
    ranks_keep(core, job, choice, count);
    uint32_t free_rank = 0;
    for (uint32_t slot = 0; slot < job->tasks; slot++) {
        if (plan_comes(core, job, job_task(core, job, slot), choice)) {
            free_rank = next_free_rank(members, free_rank);
            members[free_rank] = slot;
        }
    }
    CADRE_ASSERT(count <= job->tasks);
    return count;
}

static void roster_form(struct core *core, struct job *job, const struct plan_choice *choice)
{
    const uint32_t *members = core->members + job->first;
    uint32_t count = ranks_assign(core, job, choice);
    CADRE_ASSERT(count > 0);
    for (uint32_t slot = 0; slot < job->tasks; slot++) {
        const struct task *task = job_task(core, job, slot);
        bool leaves =
            task_is_usable(task) && task->rank != NONE && !plan_stays(core, job, task, choice);
        if (leaves) {
            task_dismiss(core, job, slot, DISMISSED_SUPERSEDED);
        }
        task_remove_from_roster(core, job, slot);
    }
    CADRE_ASSERT(job->present == 0 && job->finished == 0);
    job->roster = count;
    bool draining = false;
    for (uint32_t rank = 0; rank < count; rank++) {
        task_add_to_roster(core, job, members[rank], rank);
        draining = draining || task_drains(core, job, job_task(core, job, members[rank]));
    }
    drain_note(core, job, draining || (ps_job_is_set(&job->ps_job) && ps_job_drains(core, job)));
    CADRE_ASSERT(job->present == count);
    CADRE_ASSERT(job->reported == 0);
}

/* Clears what belongs to the last generation. */
static void forget_last(struct core *core, struct job *job)
{
    CADRE_ASSERT(job->finished == 0);
    deadlines_clear(core, job);
    /* Rule 15: a halt for joiners is dropped, because they are in the plan; a part that is not
     * published is dropped, and the chief sends it again if its position is still on the timeline.
     */
    halt_drop(job);
    job->due &= ~(uint32_t)(DUE_ABORT | DUE_HALT | DUE_RELEASE | DUE_RELEASE_RESEND);
    job->early_slot = NONE;
    job->has_part = false;
    job->counted = false;
    job->excused = false;
    job->followed.code = CADRE_OK;
    underfilled_reopen(core, job);
    CADRE_ASSERT(job->declined == 0 && job->halt_kind == HALT_NONE);
}

void plan_make(struct core *core, struct job *job, const struct plan_choice *choice)
{
    CADRE_ASSERT(job->outcome == 0);
    CADRE_ASSERT(job->phase != PHASE_DONE);
    CADRE_ASSERT(!job->diverged);
    sample_audit_record(core, job, true, choice->first ? job->applied.least : choice->resume);
    roster_form(core, job, choice);
    forget_last(core, job);
    job->parent = job->generation;
    /* Rule 13: each generation has a new number and a nonce. */
    job->generation.number++;
    do {
        job->generation.nonce = prng_next(&core->prng);
    } while (job->generation.nonce == 0);
    job->resume = choice->resume;
    /* Section 1.3: the plan truncates the ledger at `resume`. Rule 15: it sets pending controls
     * again in the same transaction. */
    preempt_plan(core, job);
    job->source = choice->source == NONE ? SOURCE_NONE : job_task(core, job, choice->source)->rank;
    CADRE_ASSERT((job->source == SOURCE_NONE) == choice->first);
    job->restarted = job->restart_all;
    job->restart_all = false;
    job->regains = 0;
    job->formed = true;
    sample_audit_cut(job);
    verified_cut(job);
    published_cut(job);
    barrier_open(core, job);
    health_progress(core, job, 0);
    phase_move(job, PHASE_RUN);
    underfilled_note(core, job);
    job_due(core, job, DUE_PLAN | DUE_CONTROL | DUE_CHANGED);
    ps_job_planned(core, job);
    if (job->published != POSITION_NONE) {
        job_due(core, job, DUE_RELEASE_RESEND); /* a plan does not carry what is published */
    }
    CADRE_ASSERT(job->roster == job->present && job->roster > 0);
    CADRE_ASSERT(job->released == job->resume);
}
