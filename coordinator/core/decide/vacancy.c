/* SPDX-License-Identifier: Apache-2.0
 * Empty slots of jobs that were placed before: of lost tasks, and of those for which no slot was
 * free at first. placement.c fills what a job needs to go on before the queue, and what makes it
 * larger after the queue. Jobs that each hold a part of what they need would wait for each other
 * for ever: so of those without a state the last one frees what the first one lacks. */
#include "coordinator/core/decide/placement.h"

#include "coordinator/core/facts/tasks.h"
#include "coordinator/core/facts/jobs.h"
#include "coordinator/core/state/due.h"
#include "coordinator/core/state/find.h"
#include "coordinator/core/state/offers.h"
#include "coordinator/core/state/states.h"

static void fresh_add(struct core *core, struct job *job, uint32_t slot)
{
    CADRE_ASSERT(!job_task(core, job, slot)->placement_unrecorded);
    CADRE_ASSERT(job_task(core, job, slot)->state == TASK_STARTING);
    job_task(core, job, slot)->placement_unrecorded = true;
    job_task(core, job, slot)->next_fresh = NONE;
    if (job->fresh == NONE) {
        job->fresh = slot;
    } else {
        job_task(core, job, job->fresh_last)->next_fresh = slot;
    }
    job->fresh_last = slot;
    job_due(core, job, DUE_CHANGED);
    CADRE_ASSERT(job->fresh != NONE);
}

/* It begins, or begins again: no state is lost with its slots. */
static bool vacancy_begins(const struct job *job)
{
    return job->phase == PHASE_JOIN;
}

/* Slots that the job cannot go on without and that are not free. */
static uint32_t vacancy_lacks(const struct core *core, const struct job *job)
{
    uint32_t count = underfilled_count(job);
    uint32_t needed = underfilled_lack(core, job);
    uint32_t room = offers_free(core, job);
    count = count < needed ? count : needed;
    return count > room ? count - room : 0;
}

static void vacancy_fill(struct core *core, struct job *job, bool grow)
{
    uint32_t count = underfilled_count(job);
    uint32_t needed = underfilled_lack(core, job);
    uint32_t had = job->regains > job->usable ? job->regains - job->usable : 0;
    needed = needed > had ? needed : had;
    count = grow || count < needed ? count : needed;
    uint32_t room = offers_free(core, job);
    count = count < room ? count : room;
    if (count > 0) {
        deadline_clear(core, job, DEADLINE_FORM); /* it is for running tasks; some are not now */
        count -= placement_return_servers(core, job, count, fresh_add);
        placement_spread(core, job, count, fresh_add);
        underfilled_note(core, job);
        job_due(core, job, DUE_REGROUP);
    }
}

/* Jobs whose tasks have states come first. */
void vacancy_run(struct core *core, bool grow)
{
    CADRE_ASSERT(core->slots_free[0] <= core->slots_total[0]);
    for (int turn = 0; turn < 2; turn++) {
        uint32_t index = core->underfilled.first;
        while (index != LIST_NONE && core->slots_free[0] > 0) {
            struct job *job = &core->jobs[index];
            index = core->underfilled.nodes[index].next; /* it may leave the list */
            if (vacancy_begins(job) == (turn == 1)) {
                vacancy_fill(core, job, grow);
            }
        }
    }
}

/* ---- slots held while none is free ---- */

/* Its slots that will be freed anyway. */
static uint32_t becomes_free(const struct job *job)
{
    uint32_t usable = job->usable;
    for (uint32_t role = 0; role <= ROLE_EVALUATOR; role++) {
        usable += job->ps_task_counts[role];
    }
    CADRE_ASSERT(usable <= job->alive && job->collected <= job->gone);
    return job->alive - usable + (job->gone - job->collected);
}

/* Dismisses up to `count` tasks that wait for the others and whose slots `other` could use. */
static uint32_t give_back(
    struct core *core, struct job *job, const struct job *other, uint32_t count)
{
    uint32_t given = 0;
    CADRE_ASSERT(vacancy_begins(job) && job != other);
    for (uint32_t slot = job->tasks; slot-- > 0 && given < count;) {
        const struct task *task = job_task(core, job, slot);
        bool waits = task_is_usable(task) && task->joined;
        uint32_t worker = waits ? job_task_group(core, job, task->task_group)->worker : NONE;
        if (worker != NONE && worker_lends(core, worker, other)) {
            task_dismiss(core, job, slot, DISMISSED_RESET);
            given++;
        }
    }
    if (given > 0) {
        deadline_clear(core, job, DEADLINE_WAIT); /* its wait begins again */
        job_due(core, job, DUE_REGROUP | DUE_CHANGED);
    }
    return given;
}

/* The last underfilled job that begins and lacks slots itself frees some for `job`, down to `job`
 * in the list; false: no job could. */
static bool take_for(struct core *core, struct job *job, uint32_t count)
{
    uint32_t end = vacancy_begins(job) ? job_index(core, job) : LIST_NONE;
    CADRE_ASSERT(job->underfilled && count > 0);
    for (uint32_t i = core->underfilled.last; i != end; i = core->underfilled.nodes[i].prev) {
        struct job *giver = &core->jobs[i];
        if (vacancy_begins(giver) && giver->preempt == PREEMPT_NOT &&
            vacancy_lacks(core, giver) > 0 && give_back(core, giver, job, count) > 0) {
            return true;
        }
    }
    return false;
}

void vacancy_concentrate(struct core *core)
{
    uint32_t coming = 0;
    uint32_t gpus_least = LIMIT_GPUS_PER_WORKER + 1; /* of jobs for which nothing could be freed */
    for (uint32_t i = core->underfilled.first; i != LIST_NONE;
         i = core->underfilled.nodes[i].next) {
        coming += becomes_free(&core->jobs[i]);
    }
    for (int turn = 0; turn < 2; turn++) {
        for (uint32_t i = core->underfilled.first; i != LIST_NONE;
             i = core->underfilled.nodes[i].next) {
            struct job *job = &core->jobs[i];
            uint32_t count = vacancy_begins(job) == (turn == 1) ? vacancy_lacks(core, job) : 0;
            if (count == 0 || job->gpus >= gpus_least) {
                continue;
            }
            if (count <= coming || take_for(core, job, count - coming)) {
                return;
            }
            gpus_least = job->gpus;
        }
    }
}
