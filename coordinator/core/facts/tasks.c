/* SPDX-License-Identifier: Apache-2.0
 * The facts of a task, and the counts of its job over them. Every change of a task is made here, so
 * that the counts are right. events/ and decide/ call this. */
#include "coordinator/core/facts/tasks.h"

#include "coordinator/core/facts/ps_job.h"
#include "coordinator/core/facts/jobs.h"
#include "coordinator/core/state/due.h"
#include "coordinator/core/state/find.h"
#include "coordinator/core/state/offers.h"
#include "coordinator/core/state/states.h"

static const struct {
    uint8_t may_become; /* bits of enum task_state */
} task_moves[] = {
    [TASK_WAITING] = {1 << TASK_STARTING},
    [TASK_STARTING] = {1 << TASK_RUNNING | 1 << TASK_EXITED | 1 << TASK_LOST},
    [TASK_RUNNING] = {1 << TASK_EXITED | 1 << TASK_LOST},
    [TASK_EXITED] = {1 << TASK_WAITING},
    [TASK_LOST] = {1 << TASK_WAITING},
};

static bool state_is_alive(enum task_state state)
{
    return state == TASK_STARTING || state == TASK_RUNNING;
}

static bool state_is_gone(enum task_state state)
{
    return state == TASK_EXITED || state == TASK_LOST;
}

static void count_state(struct job *job, enum task_state state, uint32_t by)
{
    job->waiting += state == TASK_WAITING ? by : 0;
    job->alive += state_is_alive(state) ? by : 0;
    job->running += state == TASK_RUNNING ? by : 0;
    job->gone += state_is_gone(state) ? by : 0;
}

static void count_usable(struct job *job, const struct task *task, uint32_t by)
{
    bool member = task->rank != NONE;
    CADRE_ASSERT(!task_is_ps_task(task) || !member);
    CADRE_ASSERT(task->joining == JOINING_NOT || !member);
    if (task_is_ps_task(task)) {
        job->ps_task_counts[task->role] += by;
        return;
    }
    job->usable += by;
    job->ready += task->joined ? by : 0;
    job->present += member ? by : 0;
    job->reported += member && task->reported ? by : 0;
    job->unconfirmed += member && !task->joined ? by : 0;
    job->joiners += task->joining != JOINING_NOT ? by : 0;
    if (task->joining != JOINING_NOT) {
        job->joiners_of[task->join_stream] += by;
    }
}

/* Removes the task from the counts before a change; facts_tasks_recount() adds it after it. */
static void facts_tasks_uncount(struct job *job, const struct task *task)
{
    if (task_is_usable(task)) {
        count_usable(job, task, UINT32_MAX);
    }
}

static void facts_tasks_recount(struct job *job, const struct task *task)
{
    if (task_is_usable(task)) {
        count_usable(job, task, 1);
    }
}

void task_move(struct job *job, struct task *task, enum task_state state)
{
    CADRE_ASSERT(state <= TASK_LOST);
    CADRE_ASSERT((task_moves[task->state].may_become >> state & 1) != 0);
    facts_tasks_uncount(job, task);
    count_state(job, task->state, UINT32_MAX);
    task->state = state;
    count_state(job, state, 1);
    facts_tasks_recount(job, task);
    CADRE_ASSERT(job->waiting + job->alive + job->gone == job->tasks);
    CADRE_ASSERT(job->running <= job->alive);
}

void task_assign(
    struct core *core, struct job *job, uint32_t slot, uint32_t worker, uint64_t incarnation)
{
    struct task *task = job_task(core, job, slot);
    CADRE_ASSERT(task->task_group == NONE);
    CADRE_ASSERT(worker_serves(core, worker, job) || core->workers[worker].state == WORKER_AWAY);
    CADRE_ASSERT(incarnation > task->incarnation);
    if (incarnation > job->incarnation_max) {
        job->incarnation_max = incarnation;
    }
    task->incarnation = incarnation;
    task_move(job, task, TASK_STARTING);
    CADRE_ASSERT(task_is_usable(task));
    ps_job_task_placed(core, job, slot, worker);
    task_group_add(core, job, slot, worker);
    core->workers[worker].slots_used++;
    worker_offer(core, worker);
    CADRE_ASSERT(core->workers[worker].slots_used <= core->workers[worker].slots);
}

void task_set_joined(struct job *job, struct task *task)
{
    CADRE_ASSERT(task_is_usable(task));
    facts_tasks_uncount(job, task);
    job->joined += !task->joined;
    task->joined = true;
    facts_tasks_recount(job, task);
    CADRE_ASSERT(job->joined <= job->tasks);
}

void task_waits_to_join(struct job *job, struct task *task, uint32_t stream)
{
    CADRE_ASSERT(!task_is_ps_task(task));
    CADRE_ASSERT(task->joined);
    CADRE_ASSERT(task->rank == NONE);
    CADRE_ASSERT(stream <= LIMIT_STREAMS);
    facts_tasks_uncount(job, task);
    if (task->joining == JOINING_NOT) {
        joining_move(task, JOINING_WAITS);
    }
    task->join_stream = stream;
    facts_tasks_recount(job, task);
    CADRE_ASSERT(job->joiners <= job->usable - job->present);
}

void task_reports(struct job *job, struct task *task, const struct task_report *report)
{
    CADRE_ASSERT(task_is_usable(task));
    CADRE_ASSERT(task->rank != NONE);
    facts_tasks_uncount(job, task);
    task->reported = true;
    task->position = report->position;
    task->clean = report->clean;
    task->reason = report->reason;
    task->begun = report->begun;
    task->stream = report->stream;
    task->nested = report->begun && report->nested;
    task->digest = report->digest;
    task->trusts = report->trusts;
    facts_tasks_recount(job, task);
    CADRE_ASSERT(job->reported > 0 && job->reported <= job->present);
}

void task_report_again(struct job *job, struct task *task)
{
    CADRE_ASSERT(task->reported);
    CADRE_ASSERT(task->rank != NONE);
    facts_tasks_uncount(job, task);
    task->reported = false;
    facts_tasks_recount(job, task);
    CADRE_ASSERT(job->reported < job->present);
}

/* Rule 9: dirty is never a source. Members of a generation are one step apart at most, so a member
 * that was to receive its first position, and did not, is one before it with all of its state. No
 * member is behind a published checkpoint: such a report counts as without a state. */
bool task_holds_state(const struct job *job, const struct task *task)
{
    return task->clean && task->position + 1 >= job->resume &&
           (!job->has_checkpoint || task->position >= job->checkpoint.position);
}

bool task_drains(const struct core *core, const struct job *job, const struct task *task)
{
    uint32_t worker =
        task->task_group == NONE ? NONE : job_task_group(core, job, task->task_group)->worker;
    return worker != NONE && core->workers[worker].draining;
}

void task_add_to_roster(struct core *core, struct job *job, uint32_t slot, uint32_t rank)
{
    struct task *task = job_task(core, job, slot);
    CADRE_ASSERT(rank < job->roster);
    CADRE_ASSERT(core->members[job->first + rank] == slot);
    CADRE_ASSERT(!task_is_ps_task(task));
    CADRE_ASSERT(task->rank == NONE);
    CADRE_ASSERT(task->task_group != NONE);
    facts_tasks_uncount(job, task);
    task->rank = rank;
    joining_move(task, JOINING_NOT);
    task->reported = false;
    task->finished = false;
    task->digest = 0;
    task->trusts = 0;
    facts_tasks_recount(job, task);
    job_task_group(core, job, task->task_group)->members++;
}

void task_remove_from_roster(struct core *core, struct job *job, uint32_t slot)
{
    struct task *task = job_task(core, job, slot);
    if (task->rank == NONE) {
        return;
    }
    facts_tasks_uncount(job, task);
    task->rank = NONE;
    facts_tasks_recount(job, task);
    if (task->finished) {
        task->finished = false;
        job->finished--;
    }
    struct task_group *task_group = job_task_group(core, job, task->task_group);
    CADRE_ASSERT(task_group->members > 0);
    task_group->members--;
}

void task_dismiss(struct core *core, struct job *job, uint32_t slot, enum dismissal why)
{
    struct task *task = job_task(core, job, slot);
    CADRE_ASSERT(!task->stop_unsent);
    CADRE_ASSERT(task_is_usable(task));
    CADRE_ASSERT(why != DISMISSED_NOT);
    task_remove_from_roster(core, job, slot);
    facts_tasks_uncount(job, task);
    task->dismissed = why;
    task->stop_unsent = true;
    task->next_dismissed = job->dismissed;
    job->dismissed = slot;
    job_due(core, job, DUE_CHANGED);
    ps_job_member_changed(core, job, slot);
    CADRE_ASSERT(!task_is_usable(task) && task->rank == NONE);
}

void tasks_stop_leaving(struct core *core, struct job *job)
{
    for (uint32_t slot = 0; slot < job->tasks; slot++) {
        struct task *task = job_task(core, job, slot);
        if (task->dismissed != DISMISSED_LEAVES || !state_is_alive(task->state)) {
            continue;
        }
        task->dismissed = DISMISSED_RESET;
        if (!task->stop_unsent) {
            task->stop_unsent = true;
            task->next_dismissed = job->dismissed;
            job->dismissed = slot;
        }
        job_due(core, job, DUE_CHANGED);
    }
}

void joiners_dismiss(struct core *core, struct job *job)
{
    CADRE_ASSERT(job->usable >= job->present);
    for (uint32_t slot = 0; slot < job->tasks && job->usable > job->present; slot++) {
        const struct task *task = job_task(core, job, slot);
        if (task_is_usable(task) && task->rank == NONE) {
            task_dismiss(core, job, slot, DISMISSED_SUPERSEDED);
        }
    }
    CADRE_ASSERT(job->usable == job->present);
}

/* Their programs may go on with another stream, or end. */
void joiners_outdate(struct core *core, struct job *job, uint32_t stream)
{
    CADRE_ASSERT(stream <= LIMIT_STREAMS);
    for (uint32_t slot = 0; slot < job->tasks && job->joiners_of[stream] > 0; slot++) {
        struct task *task = job_task(core, job, slot);
        if (task_is_usable(task) && task->joining != JOINING_NOT && task->join_stream == stream) {
            joining_move(task, JOINING_OUTDATED);
            job->outdated = true;
            job_due(core, job, 0);
        }
    }
}

void task_refill_now(struct job *job, struct task *task)
{
    CADRE_ASSERT(!task_is_ps_task(task));
    CADRE_ASSERT(state_is_gone(task->state));
    refill_move(job, task, REFILL_NOW);
    CADRE_ASSERT(job->refilled <= job->gone);
}

void task_collect(struct core *core, struct job *job, uint32_t slot)
{
    struct task *task = job_task(core, job, slot);
    CADRE_ASSERT(task->state == TASK_EXITED || task->state == TASK_LOST);
    if (task->collected) {
        return;
    }
    uint32_t worker = job_task_group(core, job, task->task_group)->worker;
    task->collected = true;
    job->collected++;
    if (worker != NONE) {
        CADRE_ASSERT(core->workers[worker].slots_used > 0);
        core->workers[worker].slots_used--;
        worker_offer(core, worker);
    }
    job_due(core, job, DUE_CHANGED);
    task_vacate(core, job, slot);
    CADRE_ASSERT(task->state == TASK_WAITING || job->collected <= job->gone);
}

void task_vacate(struct core *core, struct job *job, uint32_t slot)
{
    struct task *task = job_task(core, job, slot);
    bool goes_on =
        job->outcome == 0 && !job->behind && job->phase != PHASE_DONE && job->state != JOB_ENDING;
    bool over = state_is_gone(task->state) && task->collected;
    bool listed = task->placement_unrecorded || task->stop_unsent || task->end_unrecorded;
    bool final = job->generation.number == 0 && task->refill != REFILL_NOW &&
                 !task_is_ps_task(task) && job->preempt != PREEMPT_REQUEUES;
    if (!goes_on || !over || listed || final || task->rank != NONE) {
        return;
    }
    uint64_t incarnation = task->incarnation;
    bool declined = task->refill == REFILL_NEXT_PLAN && job->phase == PHASE_RUN;
    ps_job_task_vacated(core, job, slot);
    task_group_remove(core, job, slot);
    refill_move(job, task, REFILL_AFTER_PLAN);
    task_move(job, task, TASK_WAITING);
    job->joined -= task->joined;
    job->collected--;
    task_clear(task);
    task->incarnation = incarnation;
    refill_move(job, task, declined ? REFILL_NEXT_PLAN : REFILL_AFTER_PLAN);
    underfilled_note(core, job);
    job_due(core, job, DUE_CHANGED | DUE_REGROUP);
    if (job->preempt == PREEMPT_REQUEUES) {
        job_due(core, job, DUE_REQUEUE);
    }
    CADRE_ASSERT(task->state == TASK_WAITING && task->task_group == NONE);
    CADRE_ASSERT(job->collected <= job->gone && job->refilled <= job->gone);
}

void task_clear(struct task *task)
{
    *task = (struct task){.role = task->role,
        .attempts = task->attempts,
        .attempts_generation = task->attempts_generation,
        .home = task->home,
        .kept = task->kept,
        .backed = {.by = task->backed.by},
        .waited_us = task->waited_us,
        .state = TASK_WAITING,
        .task_group = NONE,
        .next = NONE,
        .prev = NONE,
        .rank = NONE,
        .waits_for = NONE};
}
